/* A first placement for equal split, made from nothing. */
#ifndef PLAN_EQUAL_START_H
#define PLAN_EQUAL_START_H

#include "plan/layout.h"

/* Where experts may live: areas are nodes when groups may not leave theirs. */
typedef struct equal_areas {
    int32_t *rank_area;   /* [G], NULL: one area, replicas may be anywhere */
    int32_t *expert_area; /* [E] or NULL */
} equal_areas;

/* Fills expert[S]: replica counts, then heaviest replica to the lightest rank, in each area. count[E]:
 * replica counts for all slots and ranks, as equal_bounds_find has found them. Errors: MEMORY. O(E + S log
 * G). */
eplb_status equal_start(const layer_problem *problem, const replica_work *work, const int32_t *count,
                        const equal_areas *areas, int32_t *expert, arena *scratch, eplb_error *error);

#endif
