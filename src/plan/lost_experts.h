/* Experts that no live rank holds: they must be received before anything else. */
#ifndef PLAN_LOST_EXPERTS_H
#define PLAN_LOST_EXPERTS_H

#include "plan/layer.h"

/* Refuses a layer whose current placement lacks more experts than it may receive. Errors: INFEASIBLE (lists
 * them), MEMORY. O(S + E). */
eplb_status lost_experts_check(const layer_problem *problem, arena *scratch, eplb_error *error);

#endif
