/* The exact min-max split: given which ranks hold which experts, how many tokens each replica serves so that
 * the largest rank load is least.
 *
 * A graph is made once per placement and solved for any number of loads. All memory comes from the caller's
 * arena; a graph lives as long as the arena is not rewound past it. Splitting a graph takes the same amount
 * of arena memory every time, so that a solve after a rewind allocates nothing. One thread per arena; a graph
 * is read-only for the solver and may be shared. */
#ifndef PLAN_MIN_MAX_SPLIT_H
#define PLAN_MIN_MAX_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

/* Experts held by one rank only have nothing to decide ("fixed"); the others ("movable") have one edge per
 * rank that holds them. Several replicas of an expert on one rank are one edge: the first of them serves
 * all. */
typedef struct min_max_graph {
    int32_t num_experts;
    int32_t num_ranks;
    int32_t num_replicas;
    const int32_t *rank_speed; /* [G] or NULL: all equal */
    int64_t total_speed;

    int32_t num_fixed;
    int32_t *fixed_expert;  /* [num_fixed] ascending */
    int32_t *fixed_rank;    /* [num_fixed] */
    int32_t *fixed_replica; /* [num_fixed] */

    int32_t num_movable;
    int32_t *movable_expert; /* [num_movable] ascending */
    int32_t *edge_first;     /* [num_movable + 1] */
    int32_t *edge_rank;      /* [edges] */
    int32_t *edge_movable;   /* [edges] which movable expert */
    int32_t *edge_replica;   /* [edges] */

    int32_t *rank_first; /* [G + 1] */
    int32_t *rank_edge;  /* [edges] edges at a rank, ascending */
} min_max_graph;

/* Builds the graph. Replicas first[e] .. first[e+1]-1 of expert e (counted from first[0] = 0) are on ranks
 * replica_rank[...] in 0 .. num_ranks-1. rank_speed [G] >= 1 or NULL; it is borrowed. An expert without
 * replicas is legal: nobody serves it. False when memory is out. O(E + S + G). */
bool min_max_graph_init(min_max_graph *graph, int32_t num_experts, int32_t num_ranks, const int32_t *first,
                        const int32_t *replica_rank, const int32_t *rank_speed, arena *scratch);

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
    /* max over ranks of rank_load / speed, as a fraction. With equal speeds max_speed is 1 and max_load is
     * ceil(bound_load / bound_speed): the least of all integer splits. With speeds it is the least of all
     * integer splits too (each rank takes at most floor(T * speed)). */
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

/* Sets tight_expert[e] (1 or 0) for the experts whose replicas all lie in tight_rank. Experts without
 * replicas are not members. O(S). */
void min_max_tight_experts(const min_max_graph *graph, const uint8_t *tight_rank, uint8_t *tight_expert);

#endif
