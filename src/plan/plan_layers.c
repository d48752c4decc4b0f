/* The pass that plans: the policy's answer for each layer, put where the topology's slots are. O(S + E) per
 * layer beside the policy. */
#include "base/error.h"
#include "plan/fill_slots.h"
#include "plan/layer_loop.h"
#include "plan/match_nodes.h"

typedef struct plan_pass {
    const plan_request *request;
    const int64_t *move_limit;
    plan_answers *answers;
} plan_pass;

/* Fractions from quotas: quota / sum over the expert's replicas, equal where all are 0. */
static eplb_status write_shares(const layer_problem *problem, const layer_answer *answer,
                                const live_ranks *live, arena *scratch, double *shares, eplb_error *error)
{
    size_t experts = (size_t)problem->num_experts;
    int64_t *sum = arena_take_zero(scratch, experts, sizeof *sum);
    int32_t *count = arena_take_zero(scratch, experts, sizeof *count);
    if (sum == NULL || count == NULL)
        return error_memory(error, experts * sizeof *sum, "the shares of a layer");
    for (int32_t p = 0; p < problem->num_slots; p++) {
        int32_t e = answer->expert[p];
        if (e < 0 || e >= problem->num_experts)
            continue;
        count[e]++;
        sum[e] += answer->quota[p];
    }
    for (int32_t p = 0; p < problem->num_slots; p++) {
        int32_t e = answer->expert[p];
        if (e < 0 || e >= problem->num_experts)
            continue;
        shares[live->slot[p]] =
            sum[e] > 0 ? (double)answer->quota[p] / (double)sum[e] : 1.0 / (double)count[e];
    }
    return EPLB_OK;
}

/* Copies a layer's answer to its place, by the topology's slot numbers. */
static eplb_status store(const plan_pass *pass, const layer_problem *problem, const layer_answer *answer,
                         arena *scratch, eplb_error *error)
{
    const live_ranks *live = pass->request->live;
    size_t layer = (size_t)problem->layer, slots = (size_t)eplb_topology_num_slots(pass->request->topology);
    int32_t *row = pass->answers->expert + layer * slots;
    for (int32_t p = 0; row != answer->expert && p < live->num_slots; p++)
        row[live->slot[p]] = answer->expert[p];
    pass->answers->bound[layer] = answer->bound;
    pass->answers->reason[layer] = answer->reason;
    if (pass->answers->shares == NULL)
        return EPLB_OK;
    return write_shares(problem, answer, live, scratch, pass->answers->shares + layer * slots, error);
}

/* The policy's answer. Published planners keep theirs as published; ours leave no slot empty. */
static eplb_status run_policy(const plan_pass *pass, const layer_problem *problem, layer_answer *answer,
                              arena *scratch, eplb_error *error)
{
    const plan_policy *policy = pass->request->policy;
    layer_problem filled = *problem;
    int64_t *slots = &pass->answers->filled[problem->layer];
    int64_t *lacking = &pass->answers->lacking[problem->layer];
    *slots = *lacking = 0;
    pass->answers->most_moves[problem->layer] = problem->max_moves;
    if (policy->may_duplicate)
        return policy->plan_layer(problem, scratch, answer, error);
    eplb_status status = fill_slots_before(&filled, slots, scratch, error);
    if (status == EPLB_OK)
        status = policy->plan_layer(&filled, scratch, answer, error);
    if (status == EPLB_OK)
        status = fill_slots_after(problem, answer, lacking, scratch, error);
    return status == EPLB_OK ? match_nodes(problem, answer, scratch, error) : status;
}

static eplb_status plan_layer(void *context, layer_problem *problem, arena *scratch, eplb_error *error)
{
    const plan_pass *pass = context;
    const plan_request *request = pass->request;
    if (pass->move_limit != NULL)
        problem->max_moves = pass->move_limit[problem->layer];
    size_t slots = (size_t)problem->num_slots;
    layer_answer answer = {.bound = 1.0, .quota = arena_take_zero(scratch, slots, sizeof(int64_t))};
    if (request->live->all)
        answer.expert = pass->answers->expert + (size_t)problem->layer * slots;
    else
        answer.expert = arena_take(scratch, slots, sizeof(int32_t));
    if (answer.expert == NULL || answer.quota == NULL)
        return error_memory(error, slots * sizeof(int64_t), "the answer of a layer");
    for (size_t p = 0; p < slots; p++)
        answer.expert[p] = -1;
    eplb_status status = run_policy(pass, problem, &answer, scratch, error);
    return status == EPLB_OK ? store(pass, problem, &answer, scratch, error) : status;
}

eplb_status plan_layers(const plan_request *request, const int64_t *move_limit, plan_progress *progress,
                        plan_answers *answers, const eplb_allocator *allocator, eplb_error *error)
{
    plan_pass pass = {request, move_limit, answers};
    return visit_layers(request, plan_layer, &pass, progress, allocator, error);
}
