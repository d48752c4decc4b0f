/* The exact min-max split: given which ranks hold which experts, how many tokens each replica serves so that
 * the largest rank load is least.
 *
 * Splitting a graph takes the same amount of the arena's memory every time, so that a solve after a rewind
 * allocates nothing. One thread per arena. */
#ifndef PLAN_MIN_MAX_SPLIT_H
#define PLAN_MIN_MAX_SPLIT_H

#include "plan/min_max_graph.h"

/* What a solve fills; the arrays are the caller's. */
typedef struct min_max_result {
    int64_t *quota;      /* [replicas] tokens of each replica; they sum to the load of the expert */
    int64_t *rank_load;  /* [G] */
    uint8_t *tight_rank; /* [G] 1: member of the tight set U, or NULL */
    /* The certificate: experts that live only on U load it with bound_load tokens, its speeds sum to
     * bound_speed, so no split has a maximum of rank_load / speed below bound_load / bound_speed. */
    int64_t bound_load;
    int64_t bound_speed;
    bool bound_exact; /* the bound is the fractional optimum itself, not only within one token of it */
    /* max over ranks of rank_load / speed, as a fraction: the least of all splits into whole tokens. With
     * equal speeds max_speed is 1 and max_load is ceil(bound_load / bound_speed). */
    int64_t max_load;
    int64_t max_speed;
} min_max_result;

/* Solves for load [E] >= 0 whose total fits int64. `warm` [replicas] or NULL: quotas of an earlier solve (any
 * non-negative numbers) to start from; the optimum is the same, which of the optimal splits comes out may
 * differ. `want_exact_bound` proves the fractional optimum as well, which costs about as much again. False
 * when memory is out. Few Newton steps (at most G) of a blocking flow on the ranks; typical O(S + edges *
 * small). */
bool min_max_split(const min_max_graph *graph, const int64_t *load, const int64_t *warm,
                   bool want_exact_bound, arena *scratch, min_max_result *result);

/* Tokens that a rank of this speed may take at the level load / speed_sum: floor(load * speed / speed_sum),
 * cut to what fits int64. */
int64_t min_max_capacity(int64_t load, int64_t speed, int64_t speed_sum);

#endif
