/* Policy `spill`: node-limited groups, of which a few replicas may live outside their group's node.
 *
 * Weighted shares: the weighted policy's own plan (weighted_spill.c). With equal split and with batches split
 * anew the search of window_plan.c runs under that limit, from a start that spends it between nodes first
 * (spill_nodes.c); batches compare the weighted plan, too. Without groups, nodes or replicas to spill the
 * layer is planned as `auto` does. */
#include <string.h>

#include "base/error.h"
#include "plan/batch_split.h"
#include "plan/policies.h"
#include "plan/window_plan.h"

#define GOOD_ENOUGH 1.002
#define FAR         1.005 /* times the bound */

static const window_aim equal_aim = {
    .name = "spill",
    .risk = {.caution = 1.0, .floating = 1.0, .power = 24},
    .score = batch_split_mean,
    .reason = "spill",
};

static const char spilled_reason[] =
    "spill: replicas outside their group's node take what nodes cannot even out";

/* A placement found so far and what the windows reach over it. */
typedef struct contest {
    const layer_problem *problem;
    layer_answer *answer; /* the best */
    double best;
    bool changed; /* it is not the first */
    int32_t *next;
} contest;

/* Whether no more replicas are outside their group's node than allowed. */
static eplb_status keeps_limit(const contest *c, bool *keeps, arena *scratch, eplb_error *error)
{
    const layer_problem *problem = c->problem;
    int32_t *area = arena_take(scratch, (size_t)problem->num_experts, sizeof *area), outside = 0;
    if (area == NULL)
        return error_memory(error, (size_t)problem->num_experts * sizeof *area, "groups on nodes");
    eplb_status status = window_plan_areas(problem, c->next, area, scratch, error);
    for (int32_t p = 0; status == EPLB_OK && p < problem->num_slots; p++) {
        int32_t e = c->next[p];
        outside += e >= 0 && area[e] != problem->rank_node[problem->slot_rank[p]];
    }
    *keeps = outside <= problem->max_spill;
    return status;
}

static eplb_status compare(contest *c, arena *scratch, eplb_error *error)
{
    double reached;
    bool keeps = false;
    eplb_status status = batch_split_mean(c->problem, c->next, &reached, scratch, error);
    if (status == EPLB_OK && reached < c->best)
        status = keeps_limit(c, &keeps, scratch, error);
    if (status != EPLB_OK || !keeps)
        return status;
    c->best = reached;
    c->changed = true;
    memcpy(c->answer->expert, c->next, (size_t)c->problem->num_slots * sizeof *c->next);
    return EPLB_OK;
}

/* Ends the contest with the last placement, `next`; shares are chosen anew if it wins. */
static eplb_status settle(contest *c, arena *scratch, eplb_error *error)
{
    eplb_status status = compare(c, scratch, error);
    if (status != EPLB_OK || !c->changed)
        return status;
    memset(c->answer->quota, 0, (size_t)c->problem->num_slots * sizeof(int64_t));
    c->answer->reason = spilled_reason;
    return batch_split_quota(c->problem, c->answer, scratch, error);
}

/* *reaches: the shares chosen for the sum of the windows bring the placement to the target, if there is
 * one. */
static eplb_status reaches_target(const layer_problem *problem, const int32_t *expert, bool *reaches,
                                  arena *scratch, eplb_error *error)
{
    layer_problem sum = *problem;
    double reached;
    *reaches = false;
    if (!(problem->target_imbalance > 0.0))
        return EPLB_OK;
    sum.num_windows = 1;
    sum.window_load = sum.load;
    eplb_status status = batch_split_mean(&sum, expert, &reached, scratch, error);
    *reaches = status == EPLB_OK && reached <= problem->target_imbalance;
    return status;
}

/* A placement that is good for equal shares is better with chosen ones. */
static eplb_status plan_weighted(const layer_problem *problem, arena *scratch, layer_answer *answer,
                                 eplb_error *error)
{
    size_t slots = (size_t)problem->num_slots;
    contest c = {.problem = problem, .answer = answer, .next = arena_take(scratch, slots, sizeof(int32_t))};
    if (c.next == NULL)
        return error_memory(error, slots * sizeof(int32_t), "a plan with spilled replicas");
    eplb_status status = plan_layer_weighted(problem, scratch, answer, error);
    if (status == EPLB_OK)
        status = batch_split_mean(problem, answer->expert, &c.best, scratch, error);
    bool enough = false;
    if (status == EPLB_OK)
        status = reaches_target(problem, answer->expert, &enough, scratch, error);
    if (status != EPLB_OK || enough || problem->max_moves < problem->num_slots ||
        c.best <= answer->bound * FAR || problem->should_stop(problem->stop_context))
        return status;
    layer_answer equal = {.expert = c.next, .bound = 1.0};
    status = window_plan(problem, &equal_aim, scratch, &equal, error);
    return status == EPLB_OK ? settle(&c, scratch, error) : status;
}

/* The best of the search for batches and of what is found for weighted shares: both are split anew. */
static eplb_status plan_batch(const layer_problem *problem, arena *scratch, layer_answer *answer,
                              eplb_error *error)
{
    size_t slots = (size_t)problem->num_slots;
    contest c = {.problem = problem, .answer = answer, .next = arena_take(scratch, slots, sizeof(int32_t))};
    layer_problem sum = *problem;
    layer_answer weighted = {.expert = c.next, .quota = arena_take_zero(scratch, slots, sizeof(int64_t))};
    if (c.next == NULL || weighted.quota == NULL)
        return error_memory(error, slots * sizeof(int64_t), "a plan with spilled replicas");
    eplb_status status = batch_search(problem, scratch, answer, error);
    if (status == EPLB_OK)
        status = batch_split_mean(problem, answer->expert, &c.best, scratch, error);
    if (status != EPLB_OK || problem->max_moves < problem->num_slots || c.best <= GOOD_ENOUGH ||
        c.best <= problem->target_imbalance || problem->should_stop(problem->stop_context))
        return status;
    sum.split = EPLB_SPLIT_WEIGHTED;
    sum.num_windows = 1;
    sum.window_load = sum.load;
    memset(c.next, -1, slots * sizeof *c.next);
    status = plan_layer_weighted(&sum, scratch, &weighted, error);
    return status == EPLB_OK ? settle(&c, scratch, error) : status;
}

eplb_status plan_layer_spill(const layer_problem *problem, arena *scratch, layer_answer *answer,
                             eplb_error *error)
{
    if (!layer_binds_groups(problem) || problem->max_spill == 0 || problem->total == 0)
        return plan_layer_auto(problem, scratch, answer, error);
    switch (problem->split) {
    case EPLB_SPLIT_WEIGHTED:
        return plan_weighted(problem, scratch, answer, error);
    case EPLB_SPLIT_BATCH:
        return plan_batch(problem, scratch, answer, error);
    default:
        return plan_layer_windows(problem, scratch, answer, error);
    }
}
