/* Two ways to put exports (tokens that experts of high ranks must give away) into rooms (what low ranks may
 * still take), with few pieces per room. Few: the largest export goes to the largest room, as much as fits;
 * what is left of either goes back into its heap. Every piece empties one side, so there are fewer pieces
 * than exports and rooms. Tight: rooms from the largest down, as in the exact tree (weighted_tree.c): small
 * exports go in whole, and one open export, large and divisible, fills the rest; so a room is left unfilled
 * only where no exports of any size fill it. Cost: O(n log n) for n exports and rooms. Source: Walker's alias
 * method (1977) for the second. */
#include "plan/realtime_fill.h"

#include <string.h>

/* --- amounts ----------------------------------------------------------------------------------------- */

static int64_t amount_of(uint64_t key)
{
    return (int64_t)(key >> REALTIME_INDEX_BITS);
}

static int32_t index_of(uint64_t key)
{
    return REALTIME_INDEX_MASK - (int32_t)(key & REALTIME_INDEX_MASK);
}

static void sift_down(uint64_t *heap, int32_t size, int32_t place, uint64_t key)
{
    for (;;) {
        int32_t child = 2 * place + 1;
        if (child >= size)
            break;
        if (child + 1 < size && heap[child + 1] > heap[child])
            child++;
        if (heap[child] <= key)
            break;
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = key;
}

static void make_heap(realtime_amounts *list)
{
    for (int32_t i = list->size / 2 - 1; i >= 0; i--)
        sift_down(list->key, list->size, i, list->key[i]);
}

static uint64_t take_largest(realtime_amounts *heap)
{
    uint64_t largest = heap->key[0];
    heap->size--;
    if (heap->size > 0)
        sift_down(heap->key, heap->size, 0, heap->key[heap->size]);
    return largest;
}

static void sort_ascending(realtime_amounts *list)
{
    make_heap(list);
    realtime_amounts heap = *list;
    while (heap.size > 1) {
        uint64_t largest = take_largest(&heap);
        heap.key[heap.size] = largest;
    }
}

/* --- few replicas ------------------------------------------------------------------------------------ */

static void put(realtime_filling *work, int32_t rank, int32_t expert, int64_t amount)
{
    int32_t slot = rank * work->spare + work->used[rank]++;
    work->plan->replica_expert[slot] = expert;
    work->plan->replica_tokens[slot] = (int32_t)amount;
    work->plan->home_tokens[expert] -= (int32_t)amount;
    work->plan->num_replicas++;
}

/* Gives the first of a heap another amount; 0 takes it out. */
static void change_first(realtime_amounts *heap, int64_t amount)
{
    if (amount > 0)
        sift_down(heap->key, heap->size, 0, realtime_pack(amount, index_of(heap->key[0])));
    else
        (void)take_largest(heap);
}

bool realtime_fill_few(realtime_filling *work)
{
    make_heap(&work->exports);
    make_heap(&work->rooms);
    while (work->exports.size > 0 && work->rooms.size > 0) {
        int32_t rank = index_of(work->rooms.key[0]);
        int64_t export = amount_of(work->exports.key[0]), room = amount_of(work->rooms.key[0]);
        int64_t moved = export < room ? export : room;
        put(work, rank, index_of(work->exports.key[0]), moved);
        change_first(&work->exports, export - moved);
        change_first(&work->rooms, work->used[rank] < work->spare ? room - moved : 0);
    }
    return work->exports.size == 0;
}

/* --- tight rooms ------------------------------------------------------------------------------------- */

/* Exports low .. high-1 are whole; the open one is being divided. */
typedef struct filling {
    realtime_filling *all;
    int32_t low, high;
    int32_t open; /* expert */
    int64_t rest; /* of the open export; 0: all are placed */
    int32_t rank; /* whose room is filled */
    int64_t room;
} filling;

static void place(filling *work, int32_t expert, int64_t amount)
{
    put(work->all, work->rank, expert, amount);
    work->room -= amount;
}

static void open_largest(filling *work)
{
    work->rest = 0;
    if (work->high > work->low) {
        uint64_t key = work->all->exports.key[--work->high];
        work->open = index_of(key);
        work->rest = amount_of(key);
    }
}

/* The open export cannot fill the last slot but a larger one is left: they change places. */
static void exchange_open(filling *work)
{
    uint64_t *key = work->all->exports.key, old = realtime_pack(work->rest, work->open);
    int32_t at = work->high - 1;
    work->open = index_of(key[at]);
    work->rest = amount_of(key[at]);
    for (; at > work->low && key[at - 1] > old; at--)
        key[at] = key[at - 1];
    key[at] = old;
}

static void fill_room(filling *work)
{
    const uint64_t *key = work->all->exports.key;
    const int32_t *used = &work->all->used[work->rank];
    while (work->room > 0 && *used < work->all->spare && work->rest > 0) {
        bool last = *used == work->all->spare - 1, more = work->low < work->high;
        int64_t smallest = more ? amount_of(key[work->low]) : 0;
        if (!last && more && smallest <= work->room && work->rest >= work->room - smallest) {
            place(work, index_of(key[work->low++]), smallest);
            continue;
        }
        if (last && more && work->rest < work->room && amount_of(key[work->high - 1]) > work->rest)
            exchange_open(work);
        int64_t amount = work->rest < work->room ? work->rest : work->room;
        place(work, work->open, amount);
        work->rest -= amount;
        if (work->rest == 0)
            open_largest(work);
    }
}

bool realtime_fill_tight(realtime_filling *all)
{
    sort_ascending(&all->exports);
    make_heap(&all->rooms);
    filling work = {.all = all, .high = all->exports.size};
    open_largest(&work);
    while (work.rest > 0 && all->rooms.size > 0) {
        uint64_t room = take_largest(&all->rooms);
        work.rank = index_of(room);
        work.room = amount_of(room);
        fill_room(&work);
    }
    return work.rest == 0;
}
