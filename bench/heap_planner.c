/* The baseline of `bench plan`: DeepSeek's global planner as one writes it in an afternoon. A binary heap of
 * experts by load per replica gives out the spare slots, qsort orders the replicas, a binary heap of ranks by
 * load takes them. Same rules, same ties, same single precision. O(S log S) per layer. */
#include "heap_planner.h"

#include <stdbool.h>
#include <stdlib.h>

typedef struct item {
    float key;
    int32_t index;
} item;

typedef bool (*item_order)(item a, item b);

static bool is_heavier(item a, item b)
{
    return a.key > b.key || (a.key == b.key && a.index < b.index);
}

static bool is_lighter(item a, item b)
{
    return a.key < b.key || (a.key == b.key && a.index < b.index);
}

static void sift(item *heap, int32_t size, int32_t at, item_order before)
{
    for (;;) {
        int32_t best = at, left = 2 * at + 1, right = left + 1;
        if (left < size && before(heap[left], heap[best]))
            best = left;
        if (right < size && before(heap[right], heap[best]))
            best = right;
        if (best == at)
            return;
        item swap = heap[at];
        heap[at] = heap[best];
        heap[best] = swap;
        at = best;
    }
}

static void make_heap(item *heap, int32_t size, item_order before)
{
    for (int32_t i = size / 2 - 1; i >= 0; i--)
        sift(heap, size, i, before);
}

static int by_weight(const void *a, const void *b)
{
    const item *x = a, *y = b;
    return is_heavier(*x, *y) ? -1 : is_heavier(*y, *x);
}

typedef struct work {
    item *heap;      /* [experts or ranks] */
    item *replica;   /* [slots] */
    int32_t *holder; /* [slots] expert of each replica */
    int32_t *count;  /* [experts] */
    int32_t *filled; /* [ranks] */
} work;

static void replicate(work *w, const int64_t *load, int32_t experts, int32_t slots)
{
    for (int32_t e = 0; e < experts; e++) {
        w->heap[e] = (item){(float)load[e], e};
        w->holder[e] = e;
        w->count[e] = 1;
    }
    make_heap(w->heap, experts, is_heavier);
    for (int32_t p = experts; p < slots; p++) {
        int32_t e = w->heap[0].index;
        w->holder[p] = e;
        w->heap[0].key = (float)load[e] / (float)++w->count[e];
        sift(w->heap, experts, 0, is_heavier);
    }
}

static void pack(work *w, const int64_t *load, int32_t slots, int32_t ranks, int32_t *expert)
{
    for (int32_t p = 0; p < slots; p++) {
        int32_t e = w->holder[p];
        w->replica[p] = (item){(float)load[e] / (float)w->count[e], p};
    }
    qsort(w->replica, (size_t)slots, sizeof *w->replica, by_weight);
    for (int32_t g = 0; g < ranks; g++) {
        w->heap[g] = (item){0.0f, g};
        w->filled[g] = 0;
    }
    int32_t room = slots / ranks, open = ranks;
    for (int32_t i = 0; i < slots; i++) {
        int32_t g = w->heap[0].index;
        expert[g * room + w->filled[g]++] = w->holder[w->replica[i].index];
        w->heap[0].key += w->replica[i].key;
        if (w->filled[g] == room)
            w->heap[0] = w->heap[--open];
        sift(w->heap, open, 0, is_lighter);
    }
}

int heap_planner(const int64_t *load, int32_t layers, int32_t experts, int32_t slots, int32_t ranks,
                 int32_t *expert)
{
    size_t most = (size_t)(experts > ranks ? experts : ranks);
    work w = {
        .heap = malloc(most * sizeof(item)),
        .replica = malloc((size_t)slots * sizeof(item)),
        .holder = malloc((size_t)slots * sizeof(int32_t)),
        .count = malloc((size_t)experts * sizeof(int32_t)),
        .filled = malloc((size_t)ranks * sizeof(int32_t)),
    };
    int result = -1;
    if (w.heap != NULL && w.replica != NULL && w.holder != NULL && w.count != NULL && w.filled != NULL) {
        for (int32_t l = 0; l < layers; l++) {
            replicate(&w, load + (size_t)l * (size_t)experts, experts, slots);
            pack(&w, load + (size_t)l * (size_t)experts, slots, ranks, expert + (size_t)l * (size_t)slots);
        }
        result = 0;
    }
    free(w.filled);
    free(w.count);
    free(w.holder);
    free(w.replica);
    free(w.heap);
    return result;
}
