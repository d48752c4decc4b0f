/* Experts that no rank can keep: they must be received before anything else. */
#ifndef PLAN_LOST_EXPERTS_H
#define PLAN_LOST_EXPERTS_H

#include "plan/request.h"

/* Refuses a layer with more of them than it may receive. Errors: INFEASIBLE (lists them), MEMORY. O(S +
 * E). */
eplb_status lost_experts_check(const layer_problem *problem, arena *scratch, eplb_error *error);

/* Where no plan was found: tells it anew if a limit of moves below their number is why, the first such layer
 * as lost_experts_check does and how many the others need; else leaves `error`. `limit` [L], or NULL: the
 * request's. Returns INFEASIBLE. O(L (T E + S)). */
eplb_status lost_experts_explain(const plan_request *request, const int64_t *limit,
                                 const eplb_allocator *allocator, eplb_error *error);

#endif
