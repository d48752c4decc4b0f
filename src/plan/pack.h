/* Which pack each item goes to: DeepSeek's rule. */
#ifndef PLAN_PACK_H
#define PLAN_PACK_H

#include <eplb/status.h>

#include "base/memory.h"

/* Packs n items into num_packs packs of n / num_packs (exact) items each. pack[n], position[n] (place inside
 * the pack, in order of arrival). Errors: MEMORY. O(n log num_packs). */
eplb_status pack_balanced(const float *weight, int32_t n, int32_t num_packs, arena *scratch, int32_t *pack,
                          int32_t *position, eplb_error *error);

#endif
