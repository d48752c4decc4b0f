/* Dividing a total of moves over the layers. */
#ifndef PLAN_MOVE_BUDGET_H
#define PLAN_MOVE_BUDGET_H

#include "plan/layer_loop.h"

/* Writes limit[L], how many experts each layer may receive so that all together stay within
 * params.max_moves and each within params.max_moves_per_layer. Errors: the policy's, INFEASIBLE (experts
 * without a live replica need more moves than allowed), MEMORY. */
eplb_status move_budget_divide(const plan_request *request, int64_t *limit, plan_progress *progress,
                               const eplb_allocator *allocator, eplb_error *error);

/* True if dividing visits every layer once. */
bool move_budget_visits(const plan_request *request);

#endif
