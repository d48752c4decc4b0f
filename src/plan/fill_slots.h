/* No live slot stays empty while a move can fill it. */
#ifndef PLAN_FILL_SLOTS_H
#define PLAN_FILL_SLOTS_H

#include "plan/layer.h"

/* Before the policy: where the current placement has empty slots, slots whose expert sits on the same rank
 * already, or (as policy equal takes them out) replicas outside their group's node, replaces problem->current
 * by one in which as many such slots are filled as problem->max_moves allows beside lost experts, takes what
 * that receives from max_moves, and lists it in problem->fresh where the policy looks at that. Lost experts
 * go first into such slots. Nothing changes where max_moves does not even serve the lost experts, nor where
 * moves are unlimited and a replica may serve nothing: filling costs nothing then after the policy has
 * planned. *filled: slots that are filled. Errors: MEMORY. O(S + E), per filled slot O(W (G + replicas of all
 * experts)), W the windows looked at, five times at most. */
eplb_status fill_slots_before(layer_problem *problem, int64_t *filled, arena *scratch, eplb_error *error);

/* After it: fills what the answer leaves empty, within problem->max_moves, which counts from problem->current
 * as it was before fill_slots_before. *lacking: moves that are missing to fill the rest. A new replica serves
 * nothing where the answer has quotas. Errors and cost as above. */
eplb_status fill_slots_after(const layer_problem *problem, layer_answer *answer, int64_t *lacking,
                             arena *scratch, eplb_error *error);

/* The policy's frontier with slots filled first: points for each of the first moves, then the policy's. */
eplb_status fill_slots_frontier(const plan_policy *policy, const layer_problem *problem, arena *scratch,
                                frontier_point *points, int32_t capacity, int32_t *num_points,
                                eplb_error *error);

/* Of the current placement: experts without a live replica, and slots that are empty or whose expert sits on
 * the same rank already, the most moves that filling may take. Errors: MEMORY. O(S + E). */
eplb_status fill_slots_count(const layer_problem *problem, int64_t *lost, int64_t *empty, arena *scratch,
                             eplb_error *error);

#endif
