/* Frontier: what each layer reaches within 0, 1, 2 ... received experts, from one run per layer.
 *
 * For deciding how many moves a better balance is worth. Point i of layer l is at first[l] + i in both
 * arrays: with at most moves[...] experts received in that layer, the policy reaches imbalance[...]. Moves
 * rise and imbalance falls from point to point; the first point has the fewest moves that serve every expert,
 * 0 unless experts were lost. Immutable; any number of threads may read it. */
#ifndef EPLB_FRONTIER_H
#define EPLB_FRONTIER_H

#include <eplb/plan.h>

EPLB_BEGIN_DECLS

typedef struct eplb_frontier eplb_frontier;

/* Explores repairs of params->current, which must be given, under the other params of eplb_plan_create
 * (max_moves_per_layer bounds the moves looked at; max_moves, threads and progress are not used). A plan with
 * max_moves_per_layer set to a point's moves is as good as the point, up to the policy's tolerance. Errors:
 * as eplb_plan_create; INVALID without a current placement; UNSUPPORTED for policies that plan from nothing.
 * On failure *frontier is NULL. O(L) times a few plans of one layer. */
EPLB_API eplb_status eplb_frontier_create(eplb_frontier **frontier, const eplb_load *load,
                                          const eplb_topology *topology, const eplb_plan_params *params,
                                          const eplb_allocator *allocator, eplb_error *error);
/* Releases it; NULL is fine. */
EPLB_API void eplb_frontier_destroy(eplb_frontier *frontier);

/* L. */
EPLB_API int32_t eplb_frontier_num_layers(const eplb_frontier *frontier);
/* Arrays owned by the frontier: first [L + 1], moves and imbalance [first[L]]. */
EPLB_API const int32_t *eplb_frontier_first(const eplb_frontier *frontier);
EPLB_API const int64_t *eplb_frontier_moves(const eplb_frontier *frontier);
EPLB_API const double *eplb_frontier_imbalance(const eplb_frontier *frontier);

EPLB_END_DECLS

#endif
