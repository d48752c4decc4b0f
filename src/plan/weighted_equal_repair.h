/* Repair for the weighted split by way of policy equal. */
#ifndef PLAN_WEIGHTED_EQUAL_REPAIR_H
#define PLAN_WEIGHTED_EQUAL_REPAIR_H

#include "plan/weighted_repair.h"

/* Repairs problem->current as policy equal does within `moves`, gives that placement the best shares and
 * makes the moves that limits->max_moves leaves. *found false: policy equal has no answer that keeps to the
 * limits; the slots and quotas of `answer` mean nothing then. Errors: MEMORY. */
eplb_status weighted_equal_repair(const layer_problem *problem, const weighted_repair_limits *limits,
                                  int64_t moves, arena *scratch, layer_answer *answer,
                                  weighted_repair_result *result, bool *found, eplb_error *error);

#endif
