/* Stable descending order of weights. */
#ifndef PLAN_DESCENDING_H
#define PLAN_DESCENDING_H

#include <eplb/status.h>

#include "base/memory.h"

/* order[n] = indices of weight[n] (finite, >= 0, no -0.0), heaviest first, equal ones by index. Errors:
 * MEMORY. O(n). */
eplb_status order_descending(const float *weight, int32_t n, arena *scratch, int32_t *order,
                             eplb_error *error);

#endif
