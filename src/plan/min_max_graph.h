/* Which experts can shift tokens between which ranks: a placement as the min-max split sees it.
 *
 * Made once per placement and solved for any number of loads. All memory comes from the caller's arena; a
 * graph lives as long as the arena is not rewound past it. It is read-only for the solver and may be
 * shared. */
#ifndef PLAN_MIN_MAX_GRAPH_H
#define PLAN_MIN_MAX_GRAPH_H

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

/* Sets tight_expert[e] (1 or 0) for the experts whose replicas all lie in tight_rank. Experts without
 * replicas are not members. O(S). */
void min_max_tight_experts(const min_max_graph *graph, const uint8_t *tight_rank, uint8_t *tight_expert);

#endif
