/* How many replicas each expert gets: DeepSeek's rule. */
#ifndef PLAN_REPLICATE_H
#define PLAN_REPLICATE_H

#include <eplb/status.h>

#include "base/memory.h"

/* Gives num_slots >= n slots to n experts: slots 0 .. n-1 are the experts in order, each further one goes to
 * the expert with the largest weight / count. expert[num_slots]: who holds a slot; rank[num_slots]: its
 * number among that expert's replicas; count[n]. Errors: MEMORY. O(n + (num_slots - n) log n). */
eplb_status replicate_experts(const float *weight, int32_t n, int32_t num_slots, arena *scratch,
                              int32_t *expert, int32_t *rank, int32_t *count, eplb_error *error);

#endif
