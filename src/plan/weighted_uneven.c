/* Balance of a part whose ranks differ in speed or, beyond what the tree takes, in slots.
 *
 * The steps of the tree (weighted_tree.c) with a target T_g and k_g slots per rank: from the items left, some
 * of the smallest and some of the largest fill the rank, the last one is cut and its rest goes back into the
 * list. A step works if the k_g - 1 smallest sum to at most T_g and the k_g largest to at least T_g. That is
 * certain when k_g - 1 is in proportion to T_g, or speeds are equal and slots differ by one; otherwise it
 * depends on the loads and on the order of ranks, so several are tried: slots used in proportion to speed,
 * then all slots; ranks that need most per slot first, last, and from both ends. If all fail, the slots are
 * left empty. Cost: O(S + G E) per order, mostly copying. Source: the tree; speeds as in uniform machine
 * scheduling. */
#include "plan/weighted.h"

#include <string.h>

#include "base/checked.h"

typedef struct uneven {
    const layer_problem *problem;
    const weighted_part *part;
    int64_t unit;
    int64_t total;   /* units */
    int64_t speed;   /* of the part */
    int32_t *order;  /* [ranks] ranks of the part in the order of filling */
    int32_t *ranked; /* [ranks] by target per slot, most first */
    int32_t *slots;  /* [G] slots used of each rank */
    int64_t *target; /* [G] */
    int32_t *item;   /* [capacity] experts by ascending load; -1: dummy */
    int64_t *load;   /* [capacity] units left */
    uint8_t *placed; /* [E] has a slot */
    int32_t low, high;
    int32_t slot; /* next slot of the rank in work */
} uneven;

enum uneven_order { MOST_PER_SLOT_FIRST, LEAST_PER_SLOT_FIRST, BOTH_ENDS, NUM_ORDERS };

static int32_t rank_slots(const layer_problem *problem, int32_t rank)
{
    return problem->first_slot[rank + 1] - problem->first_slot[rank];
}

/* target[g] = total * speed_g / speed, rounded so that they sum to the total. */
static void set_targets(uneven *work)
{
    int64_t quotient = work->total / work->speed, rest = work->total % work->speed, sum = 0;
    for (int32_t i = 0; i < work->part->num_ranks; i++) {
        int32_t g = work->part->ranks[i];
        int64_t speed = work->problem->rank_speed[g];
        work->target[g] = quotient * speed + rest * speed / work->speed;
        sum += work->target[g];
    }
    for (int32_t i = 0; sum < work->total; i++, sum++)
        work->target[work->part->ranks[i]]++;
}

/* Slots that `level` slots beyond the first per unit of speed would use. */
static int64_t slots_at(const uneven *work, double level)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < work->part->num_ranks; i++) {
        int32_t g = work->part->ranks[i];
        int32_t most = rank_slots(work->problem, g) - 1;
        double wish = level * work->problem->rank_speed[g];
        work->slots[g] = 1 + (wish < most ? (int32_t)wish : most);
        sum += work->slots[g] - 1;
    }
    return sum;
}

/* k_g - 1 in proportion to speed, just enough for all experts. */
static void use_slots_by_speed(uneven *work)
{
    double low = 0.0, high = (double)work->part->num_slots;
    for (int step = 0; step < 60; step++) {
        double middle = 0.5 * (low + high);
        if (slots_at(work, middle) >= work->part->num_experts - 1)
            high = middle;
        else
            low = middle;
    }
    (void)slots_at(work, high);
}

static void use_all_slots(uneven *work)
{
    for (int32_t i = 0; i < work->part->num_ranks; i++)
        work->slots[work->part->ranks[i]] = rank_slots(work->problem, work->part->ranks[i]);
}

/* Stable merge sort of work->ranked by target per slot, most first. */
static void rank_by_need(uneven *work)
{
    int32_t n = work->part->num_ranks, *from = work->ranked, *to = work->order;
    memcpy(from, work->part->ranks, (size_t)n * sizeof *from);
    for (int32_t width = 1; width < n; width *= 2) {
        for (int32_t start = 0; start < n; start += 2 * width) {
            int32_t middle = start + width < n ? start + width : n;
            int32_t stop = middle + width < n ? middle + width : n;
            for (int32_t a = start, b = middle, out = start; out < stop; out++) {
                bool second = a == middle ||
                              (b < stop && fraction_compare(work->target[from[b]], work->slots[from[b]],
                                                            work->target[from[a]], work->slots[from[a]]) > 0);
                to[out] = second ? from[b++] : from[a++];
            }
        }
        int32_t *swap = from;
        from = to;
        to = swap;
    }
    work->ranked = from;
    work->order = to;
}

static void set_order(uneven *work, enum uneven_order order)
{
    int32_t n = work->part->num_ranks;
    for (int32_t i = 0; i < n; i++) {
        int32_t from = i;
        if (order == LEAST_PER_SLOT_FIRST)
            from = n - 1 - i;
        else if (order == BOTH_ENDS)
            from = i % 2 == 0 ? i / 2 : n - 1 - i / 2;
        work->order[i] = work->ranked[from];
    }
}

/* False if the slots in use do not hold all experts. */
static bool list_items(uneven *work)
{
    int32_t places = 1;
    for (int32_t i = 0; i < work->part->num_ranks; i++)
        places += work->slots[work->part->ranks[i]] - 1;
    int32_t dummies = places - work->part->num_experts;
    if (dummies < 0)
        return false;
    for (int32_t i = 0; i < dummies; i++) {
        work->item[i] = -1;
        work->load[i] = 0;
    }
    for (int32_t i = 0; i < work->part->num_experts; i++) {
        int32_t expert = work->part->experts[i];
        work->item[dummies + i] = expert;
        work->load[dummies + i] = work->problem->load[expert] * work->unit;
        work->placed[expert] = 0;
    }
    work->low = 0;
    work->high = dummies + work->part->num_experts;
    return true;
}

static void clear_slots(const uneven *work, layer_answer *answer)
{
    for (int32_t i = 0; i < work->part->num_ranks; i++) {
        int32_t g = work->part->ranks[i];
        for (int32_t s = work->problem->first_slot[g]; s < work->problem->first_slot[g + 1]; s++) {
            answer->expert[s] = -1;
            answer->quota[s] = 0;
        }
    }
}

/* Nothing of an item that has a slot needs none here. */
static void put(uneven *work, layer_answer *answer, int32_t expert, int64_t quota)
{
    if (expert < 0 || (quota == 0 && work->placed[expert]))
        return;
    answer->expert[work->slot] = expert;
    answer->quota[work->slot] = quota;
    work->placed[expert] = 1;
    work->slot++;
}

static int64_t sum_loads(const uneven *work, int32_t from, int32_t to)
{
    int64_t sum = 0;
    for (int32_t i = from; i < to; i++)
        sum += work->load[i];
    return sum;
}

/* The item at `place` has been cut: puts its rest where it belongs among those below. */
static void put_back(uneven *work, int32_t place, int64_t rest)
{
    int32_t expert = work->item[place];
    for (; place > work->low && work->load[place - 1] > rest; place--) {
        work->load[place] = work->load[place - 1];
        work->item[place] = work->item[place - 1];
    }
    work->load[place] = rest;
    work->item[place] = expert;
}

/* One step; false if it does not fill the rank exactly. */
static bool fill_rank(uneven *work, int32_t rank, layer_answer *answer)
{
    int32_t others = work->slots[rank] - 1;
    int64_t target = work->target[rank], whole = sum_loads(work, work->low, work->low + others);
    if (whole > target)
        return false;
    int32_t j = 0; /* this many of the largest are taken whole */
    int32_t cut = work->high - 1;
    while (j < others && whole + work->load[cut] < target) {
        whole += work->load[cut] - work->load[work->low + others - 1 - j];
        j++;
        cut--;
    }
    int64_t amount = target - whole;
    if (amount > work->load[cut])
        return false;
    work->slot = work->problem->first_slot[rank];
    for (int32_t i = work->low; i < work->low + others - j; i++)
        put(work, answer, work->item[i], work->load[i]);
    for (int32_t i = work->high - j; i < work->high; i++)
        put(work, answer, work->item[i], work->load[i]);
    if (amount > 0)
        put(work, answer, work->item[cut], amount);
    work->low += others - j;
    work->high -= j;
    put_back(work, cut, work->load[cut] - amount);
    return true;
}

/* Fills the ranks in order; the last one takes all that is left, which is as many items as it has slots. */
static bool fill_all(uneven *work, layer_answer *answer)
{
    int32_t last = work->part->num_ranks - 1;
    clear_slots(work, answer);
    if (!list_items(work))
        return false;
    for (int32_t i = 0; i < last; i++) {
        if (!fill_rank(work, work->order[i], answer))
            return false;
    }
    work->slot = work->problem->first_slot[work->order[last]];
    for (; work->low < work->high; work->low++)
        put(work, answer, work->item[work->low], work->load[work->low]);
    return true;
}

static bool take(uneven *work, arena *scratch)
{
    size_t ranks = (size_t)work->part->num_ranks, all = (size_t)work->problem->num_ranks;
    size_t items = (size_t)work->part->num_slots + (size_t)work->part->num_experts + 1;
    work->order = arena_take(scratch, ranks, sizeof *work->order);
    work->ranked = arena_take(scratch, ranks, sizeof *work->ranked);
    work->slots = arena_take(scratch, all, sizeof *work->slots);
    work->target = arena_take(scratch, all, sizeof *work->target);
    work->item = arena_take(scratch, items, sizeof *work->item);
    work->load = arena_take(scratch, items, sizeof *work->load);
    work->placed = arena_take(scratch, (size_t)work->problem->num_experts, sizeof *work->placed);
    return work->order != NULL && work->ranked != NULL && work->slots != NULL && work->target != NULL &&
           work->item != NULL && work->load != NULL && work->placed != NULL;
}

bool weighted_uneven(const layer_problem *problem, const weighted_part *part, int64_t unit, arena *scratch,
                     layer_answer *answer, bool *exact)
{
    arena_mark mark = arena_position(scratch);
    uneven work = {.problem = problem, .part = part, .unit = unit, .total = part->total * unit};
    if (!take(&work, scratch))
        return false;
    for (int32_t i = 0; i < part->num_ranks; i++)
        work.speed += problem->rank_speed[part->ranks[i]];
    set_targets(&work);
    *exact = false;
    bool room = part->num_slots >= part->num_experts + part->num_ranks - 1;
    for (int use = 0; use < 2 && room && !*exact; use++) {
        if (use == 0)
            use_slots_by_speed(&work);
        else
            use_all_slots(&work);
        rank_by_need(&work);
        for (int order = 0; order < NUM_ORDERS && !*exact; order++) {
            set_order(&work, (enum uneven_order)order);
            *exact = fill_all(&work, answer);
        }
    }
    if (!*exact)
        clear_slots(&work, answer);
    arena_rewind(scratch, mark);
    return true;
}
