/* A few replicas outside their group's node, to lower the node that groups alone leave too full. */
#ifndef PLAN_WEIGHTED_SPILL_H
#define PLAN_WEIGHTED_SPILL_H

#include "plan/weighted_nodes.h"

/* Plans the layer with at most problem->max_spill such replicas, if that takes it below *imbalance, which
 * then is what was reached: *better. *floor is a level that no such plan is below. `plan` plans what hosts
 * leave of a node. Errors: those of `plan`, MEMORY. */
eplb_status weighted_spill_plan(const layer_problem *problem, weighted_area_planner plan, arena *scratch,
                                layer_answer *answer, double *imbalance, double *floor, bool *better,
                                eplb_error *error);

#endif
