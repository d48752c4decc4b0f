/* Which ranks share an expert: the last step of a placement for batches that are split anew. */
#ifndef PLAN_BATCH_JOIN_H
#define PLAN_BATCH_JOIN_H

#include "plan/layer.h"

/* Exchanges replicas of experts that have several, so that the mean over windows of what exact splits reach
 * falls; who is pinned where, how many replicas an expert has and on which node they are stays. expert[S] is
 * valid and stays so. With home [G, words] (expert_bits.h), what ranks hold now, no exchange brings the
 * experts received above `purse`; NULL: moves are free. `steps` are those of the search before: the more, the
 * more exchanges are drawn. Errors: MEMORY. O(exchanges flows + T E + S). */
eplb_status batch_join(const layer_problem *problem, int32_t *expert, int64_t steps, const uint64_t *home,
                       int64_t purse, arena *scratch, eplb_error *error);

#endif
