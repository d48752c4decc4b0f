/* All placements of a layer that is small enough. */
#ifndef PLAN_FEW_PLACEMENTS_H
#define PLAN_FEW_PLACEMENTS_H

#include "plan/layer.h"

/* Called with expert[S]; false ends the listing. */
typedef bool (*few_visit)(void *context, const int32_t *expert);

/* Calls `visit` for every placement that serves each expert, fills the slots as far as there are experts and
 * holds none twice on a rank; of placements that differ by like ranks in another order, one. Groups are not
 * looked at. *all: false if `visit` ended it or more than `most` sets of experts were put on a rank. False
 * when memory is out. O(S) a set. */
bool few_placements(const layer_problem *problem, int64_t most, few_visit visit, void *context, bool *all,
                    arena *scratch);

#endif
