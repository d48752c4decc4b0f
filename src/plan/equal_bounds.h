/* Proved lower bounds for equal split, whatever the replica counts and the placement. */
#ifndef PLAN_EQUAL_BOUNDS_H
#define PLAN_EQUAL_BOUNDS_H

#include "plan/replica_work.h"

typedef struct equal_bounds {
    double work_time; /* in units of replica_work per unit of speed: no placement's hottest rank is below */
    double imbalance; /* the same for plain tokens, as max / mean; >= 1 */
    int32_t *count;   /* [E] counts with the least largest replica, for all slots and ranks */
    double groups;    /* the same if no replica leaves the node of its group */
} equal_bounds;

/* Errors: MEMORY. O(E + R log E). */
eplb_status equal_bounds_find(equal_bounds *bounds, const layer_problem *problem, const replica_work *work,
                              arena *scratch, eplb_error *error);

#endif
