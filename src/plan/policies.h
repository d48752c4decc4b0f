/* The table of policies and the functions behind it.
 *
 * To add one: write its file with a function of type layer_planner, declare it here, add a row in
 * policies.c. */
#ifndef PLAN_POLICIES_H
#define PLAN_POLICIES_H

#include "plan/layer.h"

/* The policy of that name ("auto" for NULL), or NULL when there is none. */
const plan_policy *policy_find(const char *name);
/* Writes "a, b, c": all names, cut to `bytes`. */
void policy_list_names(char *text, size_t bytes);

eplb_status plan_layer_auto(const layer_problem *problem, arena *scratch, layer_answer *answer,
                            eplb_error *error);
eplb_status plan_layer_deepseek(const layer_problem *problem, arena *scratch, layer_answer *answer,
                                eplb_error *error);
eplb_status plan_layer_vllm(const layer_problem *problem, arena *scratch, layer_answer *answer,
                            eplb_error *error);
eplb_status plan_layer_greedy(const layer_problem *problem, arena *scratch, layer_answer *answer,
                              eplb_error *error);
eplb_status plan_layer_equal(const layer_problem *problem, arena *scratch, layer_answer *answer,
                             eplb_error *error);
eplb_status plan_frontier_equal(const layer_problem *problem, arena *scratch, frontier_point *points,
                                int32_t capacity, int32_t *num_points, eplb_error *error);
eplb_status plan_layer_weighted(const layer_problem *problem, arena *scratch, layer_answer *answer,
                                eplb_error *error);
eplb_status plan_frontier_weighted(const layer_problem *problem, arena *scratch, frontier_point *points,
                                   int32_t capacity, int32_t *num_points, eplb_error *error);
eplb_status plan_frontier_auto(const layer_problem *problem, arena *scratch, frontier_point *points,
                               int32_t capacity, int32_t *num_points, eplb_error *error);

eplb_status plan_layer_windows(const layer_problem *problem, arena *scratch, layer_answer *answer,
                               eplb_error *error);
eplb_status plan_layer_batch(const layer_problem *problem, arena *scratch, layer_answer *answer,
                             eplb_error *error);
eplb_status plan_layer_spill(const layer_problem *problem, arena *scratch, layer_answer *answer,
                             eplb_error *error);

#endif
