/* Keeping experts where they are inside a rank. */
#ifndef PLAN_KEEP_SLOTS_H
#define PLAN_KEEP_SLOTS_H

#include <eplb/status.h>

#include "base/memory.h"

/* Reorders the slots of each rank in `expert` [S] so that an expert that the rank already holds in `current`
 * [S] stays in its slot; -1 is an empty slot in both. Which rank holds what does not change. Errors: MEMORY.
 * O(S + E). */
eplb_status keep_slots(const int32_t *first_slot, int32_t num_ranks, int32_t num_experts,
                       const int32_t *current, int32_t *expert, arena *scratch, eplb_error *error);

#endif
