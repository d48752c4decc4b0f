/* One or two slots on every rank: replica counts found by annealing, places that follow from them. */
#ifndef PLAN_PAIR_COUNTS_H
#define PLAN_PAIR_COUNTS_H

#include "plan/replica_work.h"

typedef struct pair_limits {
    double floor;  /* proved: no placement has a hottest rank below this work */
    double goal;   /* good enough: stop at or below it */
    int64_t steps; /* changes of counts to look at, at most */
} pair_limits;

/* True if ranks are equally fast and have up to two slots, and the experts can fill them. */
bool pair_counts_apply(const layer_problem *problem);

/* Improves count[E], which sums to the number of slots. Errors: MEMORY. O(steps S). */
eplb_status pair_counts_anneal(const layer_problem *problem, const replica_work *work,
                               const pair_limits *limits, int32_t *count, arena *scratch, eplb_error *error);
/* Fills expert[S] for these counts: the heaviest live alone where there is one slot, of the rest the heaviest
 * joins the lightest, and so on inwards. *legal: false
 * if that cannot be had without an expert twice on a rank. Errors: MEMORY. O(S). */
eplb_status pair_counts_place(const layer_problem *problem, const replica_work *work, const int32_t *count,
                              int32_t *expert, bool *legal, arena *scratch, eplb_error *error);

#endif
