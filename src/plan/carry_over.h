/* What ranks hold now, in the slots that they have from now on. */
#ifndef PLAN_CARRY_OVER_H
#define PLAN_CARRY_OVER_H

#include "plan/request.h"

/* Sets problem->current and, where live ranks have lost slots, problem->cut_off from the request's current
 * placement, whose ranks and slots may be more or fewer; the rest of the problem is set. False when memory is
 * out. O(S + E), plus O(S) per expert that has to make way where ranks shrink. */
bool carry_over(layer_problem *problem, const plan_request *request, arena *scratch);

#endif
