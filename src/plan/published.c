/* Policies that answer exactly as published planners do, faults included: `deepseek` and `vllm`.
 *
 * They see loads as single-precision numbers, as the originals do, and refuse whatever the originals cannot
 * take, with the reason. Known faults are listed in docs/deepseek.md and mended in our own policies only. */
#include "base/error.h"
#include "plan/deepseek.h"
#include "plan/keep_slots.h"
#include "plan/policies.h"

/* The first thing the original cannot do, or NULL. */
static const char *refusal(const layer_problem *problem)
{
    if (problem->split != EPLB_SPLIT_EQUAL)
        return "it knows the equal split only";
    if (!problem->uniform_speed)
        return "it takes all ranks for equally fast";
    if (problem->uniform_slots < 0)
        return "it needs the same number of slots on every live rank";
    if (!problem->plain_cost)
        return "it balances tokens only";
    if (problem->max_moves != INT64_MAX)
        return "it plans from nothing and cannot bound the moves";
    return NULL;
}

/* True if every node has the same number of ranks, one node after the other: what "node" means to the
 * original. */
static bool nodes_are_blocks(const layer_problem *problem)
{
    if (problem->num_ranks % problem->num_nodes != 0)
        return false;
    int32_t ranks = problem->num_ranks / problem->num_nodes;
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        if (problem->rank_node[g] != g / ranks)
            return false;
    }
    return true;
}

static eplb_status refuse(const char *policy, const char *reason, eplb_error *error)
{
    return error_text(error, EPLB_ERROR_UNSUPPORTED, "policy %s: %s; policy auto has no such limit", policy,
                      reason);
}

/* Single-precision weights; INT64_MAX and below are exact or rounded to nearest even, as in the original. */
static eplb_status place(const layer_problem *problem, const deepseek_shape *shape, arena *scratch,
                         layer_answer *answer, eplb_error *error)
{
    float *weight = arena_take(scratch, (size_t)problem->num_experts, sizeof *weight);
    if (weight == NULL)
        return error_memory(error, (size_t)problem->num_experts * sizeof *weight, "a layer's weights");
    for (int32_t e = 0; e < problem->num_experts; e++)
        weight[e] = (float)problem->load[e];
    return deepseek_place(weight, shape, scratch, answer->expert, NULL, NULL, error);
}

static deepseek_shape global_shape(const layer_problem *problem)
{
    return (deepseek_shape){problem->num_experts, problem->num_slots, 1, 1, problem->num_ranks};
}

eplb_status plan_layer_deepseek(const layer_problem *problem, arena *scratch, layer_answer *answer,
                                eplb_error *error)
{
    const char *reason = refusal(problem);
    if (reason != NULL)
        return refuse("deepseek", reason, error);
    deepseek_shape shape = global_shape(problem);
    bool hierarchical = problem->num_groups % problem->num_nodes == 0;
    if (hierarchical) {
        if (!nodes_are_blocks(problem))
            return refuse("deepseek", "groups on nodes need equal nodes of neighbouring live ranks", error);
        shape.num_groups = problem->num_groups;
        shape.num_nodes = problem->num_nodes;
    }
    if (problem->total == 0)
        answer->reason = "no load: as in the original, all spare slots go to the first expert";
    else if (hierarchical && problem->num_nodes > 1)
        answer->reason = "hierarchical: groups to nodes, replicas inside each node";
    else
        answer->reason = "global: replicas to ranks, nodes and groups not looked at";
    return place(problem, &shape, scratch, answer, error);
}

eplb_status plan_layer_vllm(const layer_problem *problem, arena *scratch, layer_answer *answer,
                            eplb_error *error)
{
    const char *reason = refusal(problem);
    if (reason != NULL)
        return refuse("vllm", reason, error);
    deepseek_shape shape = global_shape(problem);
    /* The engine gives one node to its planner when the ranks do not divide. */
    int32_t nodes = problem->num_ranks % problem->num_nodes == 0 ? problem->num_nodes : 1;
    if (problem->num_groups % nodes == 0) {
        if (nodes > 1 && !nodes_are_blocks(problem))
            return refuse("vllm", "groups on nodes need equal nodes of neighbouring live ranks", error);
        shape.num_groups = problem->num_groups;
        shape.num_nodes = nodes;
    }
    eplb_status status = place(problem, &shape, scratch, answer, error);
    if (status != EPLB_OK)
        return status;
    if (problem->total == 0)
        answer->reason = "no load: as in the original, all spare slots go to the first expert";
    else if (problem->current == NULL)
        answer->reason = "DeepSeek's plan; no current placement, so no slot to keep";
    else
        answer->reason = "DeepSeek's plan; experts that stay on a rank keep their slot";
    if (problem->current == NULL)
        return EPLB_OK;
    return keep_slots(problem->first_slot, problem->num_ranks, problem->num_experts, problem->current,
                      answer->expert, scratch, error);
}
