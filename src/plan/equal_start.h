/* A first placement for equal split, made from nothing. */
#ifndef PLAN_EQUAL_START_H
#define PLAN_EQUAL_START_H

#include "plan/layout.h"

/* Where experts may live: areas are nodes when groups may not leave theirs. */
typedef struct equal_areas {
    int32_t *rank_area;   /* [G], NULL: one area, replicas may be anywhere */
    int32_t *expert_area; /* [E] or NULL */
} equal_areas;

/* Which replica counts to start from. */
typedef struct equal_counts {
    const int32_t *known; /* [E] greedy counts for all slots and ranks, as equal_bounds_find has found them */
    double largest;       /* > 0: fewer, larger replicas of at most this work where slots allow; 0: greedy */
} equal_counts;

/* Fills expert[S]: replica counts, then heaviest replica to the lightest rank, in each area. Errors: MEMORY.
 * O(E + S log G). */
eplb_status equal_start(const layer_problem *problem, const replica_work *work, const equal_counts *counts,
                        const equal_areas *areas, int32_t *expert, arena *scratch, eplb_error *error);

#endif
