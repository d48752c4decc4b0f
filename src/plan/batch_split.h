/* What exact splits reach over a placement. */
#ifndef PLAN_BATCH_SPLIT_H
#define PLAN_BATCH_SPLIT_H

#include "plan/layer.h"

/* Mean over the windows with tokens of the imbalance that an exact split of the window reaches with
 * expert[S]; a window_score. Errors: MEMORY. O(T (S + flow)). */
eplb_status batch_split_mean(const layer_problem *problem, const int32_t *expert, double *mean,
                             arena *scratch, eplb_error *error);
/* Fills answer->quota so that the sum of the windows is split exactly over answer->expert. Errors: MEMORY. */
eplb_status batch_split_quota(const layer_problem *problem, layer_answer *answer, arena *scratch,
                              eplb_error *error);
/* The plan of policy batch (batch.c) under window_plan's own use of spilled replicas. Errors: UNSUPPORTED,
 * INFEASIBLE, MEMORY. */
eplb_status batch_search(const layer_problem *problem, arena *scratch, layer_answer *answer,
                         eplb_error *error);

#endif
