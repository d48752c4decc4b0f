/* Equal-split judging for tests, from slots alone and exact: loads are fractions over the least common
 * multiple of all replica counts. */
#ifndef TESTS_EQUAL_CASE_H
#define TESTS_EQUAL_CASE_H

#include "layer_case.h"

/* Least common multiple of 1 .. 12: a multiple of every count that small cases have. */
#define EQUAL_UNIT INT64_C(27720)

/* The hottest rank's load in units of 1 / EQUAL_UNIT tokens; at most 12 replicas of an expert. -1: an expert
 * has no replica. Equal speeds. */
static inline int64_t equal_hottest(const layer_case *c, const int32_t *expert)
{
    int32_t count[CASE_EXPERTS] = {0};
    int64_t most = 0;
    for (int32_t s = 0; s < c->problem.num_slots; s++) {
        if (expert[s] >= 0)
            count[expert[s]]++;
    }
    for (int32_t e = 0; e < c->problem.num_experts; e++) {
        if (count[e] == 0)
            return -1;
    }
    for (int32_t g = 0; g < c->problem.num_ranks; g++) {
        int64_t load = 0;
        for (int32_t s = c->first_slot[g]; s < c->first_slot[g + 1]; s++) {
            if (expert[s] >= 0)
                load += c->load[expert[s]] * (EQUAL_UNIT / count[expert[s]]);
        }
        most = load > most ? load : most;
    }
    return most;
}

typedef struct equal_enumeration {
    layer_case *c;
    int32_t expert[CASE_SLOTS];
    int64_t best;
} equal_enumeration;

/* Every set of experts (ascending, one for each slot) for `rank` from slot `slot` on, then the next rank. */
static inline void equal_enumerate(equal_enumeration *all, int32_t rank, int32_t slot, int32_t next)
{
    const layer_case *c = all->c;
    if (rank == c->problem.num_ranks) {
        int64_t hottest = equal_hottest(c, all->expert);
        if (hottest >= 0 && (all->best < 0 || hottest < all->best))
            all->best = hottest;
        return;
    }
    if (slot == c->first_slot[rank + 1]) {
        equal_enumerate(all, rank + 1, slot, 0);
        return;
    }
    for (int32_t e = next; e < c->problem.num_experts; e++) {
        all->expert[slot] = e;
        equal_enumerate(all, rank, slot + 1, e + 1);
    }
}

/* The exact optimum over all placements that fill every slot without duplicates; k <= E. Exponential. */
static inline int64_t equal_optimum(layer_case *c)
{
    equal_enumeration all = {.c = c, .best = -1};
    equal_enumerate(&all, 0, c->first_slot[0], 0);
    return all.best;
}

static inline bool equal_near(double a, double b)
{
    return a - b < 1e-9 * b && b - a < 1e-9 * b;
}

#endif
