/* A first placement for given replica counts. */
#ifndef PLAN_LIGHTEST_FIRST_H
#define PLAN_LIGHTEST_FIRST_H

#include "plan/layer.h"

/* Fills expert[S] with count[e] replicas of each expert, no two of one on a rank; replica_load[E] is the work
 * of one. Where the shape of the ranks leaves no room for a replica beyond an expert's first, the slot goes
 * to the heaviest expert that its rank does not hold; a slot that nobody can use is -1. Counts sum to at most
 * S, each is >= 1. Errors: MEMORY. O(E + S log G), with rank speeds O(S G). */
eplb_status lightest_first(const layer_problem *problem, const int32_t *count, const double *replica_load,
                           int32_t *expert, arena *scratch, eplb_error *error);

#endif
