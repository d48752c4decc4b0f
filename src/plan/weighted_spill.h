/* A few replicas outside their group's node, to lower the node that groups alone leave too full. */
#ifndef PLAN_WEIGHTED_SPILL_H
#define PLAN_WEIGHTED_SPILL_H

#include "plan/weighted.h"

/* Plans the layer with at most problem->max_spill such replicas. *done: false if no plan was found that is
 * exact inside every node; the answer then means nothing. Errors: MEMORY. */
eplb_status weighted_spill_plan(const layer_problem *problem, const int32_t *node_of_expert, arena *scratch,
                                layer_answer *answer, bool *done, eplb_error *error);

#endif
