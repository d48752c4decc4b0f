/* DeepSeek's planner for one layer in single precision; eplb/deepseek.h and the policies build on it. */
#ifndef PLAN_DEEPSEEK_H
#define PLAN_DEEPSEEK_H

#include <eplb/status.h>

#include "base/memory.h"

typedef struct deepseek_shape {
    int32_t num_experts;
    int32_t num_slots;  /* >= num_experts; divides by num_ranks */
    int32_t num_groups; /* divides num_experts, divides by num_nodes */
    int32_t num_nodes;  /* divides num_ranks */
    int32_t num_ranks;
} deepseek_shape;

/* Places one layer: expert[S] of every slot, replica_rank[S] (may be NULL): number of the replica among its
 * expert's, count[E] (may be NULL). Weights are finite and >= +0. Errors: MEMORY. O(S log S). */
eplb_status deepseek_place(const float *weight, const deepseek_shape *shape, arena *scratch, int32_t *expert,
                           int32_t *replica_rank, int32_t *count, eplb_error *error);

#endif
