/* The default policy: chooses the algorithm for a layer by what is asked for and says which.
 *
 * Every answer spreads a layer without load evenly and puts no expert twice on a rank. */
#include "plan/policies.h"

eplb_status plan_layer_auto(const layer_problem *problem, arena *scratch, layer_answer *answer,
                            eplb_error *error)
{
    if (problem->max_spill > 0 && layer_binds_groups(problem) && problem->total > 0 && problem->plain_cost)
        return plan_layer_spill(problem, scratch, answer, error);
    if (problem->split == EPLB_SPLIT_BATCH && problem->plain_cost)
        return plan_layer_batch(problem, scratch, answer, error);
    if (problem->split == EPLB_SPLIT_EQUAL && problem->num_windows > 1 && problem->plain_cost)
        return plan_layer_windows(problem, scratch, answer, error);
    if (problem->split == EPLB_SPLIT_EQUAL)
        return plan_layer_equal(problem, scratch, answer, error);
    if (problem->split == EPLB_SPLIT_WEIGHTED && problem->plain_cost)
        return plan_layer_weighted(problem, scratch, answer, error);
    return plan_layer_greedy(problem, scratch, answer, error);
}

eplb_status plan_frontier_auto(const layer_problem *problem, arena *scratch, frontier_point *points,
                               int32_t capacity, int32_t *num_points, eplb_error *error)
{
    if (problem->split == EPLB_SPLIT_EQUAL || !problem->plain_cost)
        return plan_frontier_equal(problem, scratch, points, capacity, num_points, error);
    return plan_frontier_weighted(problem, scratch, points, capacity, num_points, error);
}
