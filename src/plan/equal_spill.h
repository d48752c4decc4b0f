/* Equal split on nodes with a few replicas elsewhere, from what the bound leaves open. */
#ifndef PLAN_EQUAL_SPILL_H
#define PLAN_EQUAL_SPILL_H

#include "plan/layout.h"

/* Plans the sum of the windows with at most problem->max_spill (>= 1) replicas outside their group's node.
 * expert[S] is filled if a plan was found: *found. *floor: no such plan has a lower imbalance. Errors:
 * MEMORY. */
eplb_status equal_spill_plan(const layer_problem *problem, const replica_work *work, int32_t *expert,
                             bool *found, double *floor, arena *scratch, eplb_error *error);

#endif
