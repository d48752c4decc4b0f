/* Equal split: counts and places chosen together.
 *
 * From nothing: greedy start, then search until a rank maximum within TOLERANCE of the proved bound or the
 * work limit; never worse than DeepSeek's plan. With a current placement: equal_repair.c. Costs:
 * docs/planning/equal.md. */
#include "plan/equal_plan.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "plan/equal_search.h"
#include "plan/group_nodes.h"
#include "plan/pair_counts.h"
#include "plan/policies.h"
#include "plan/repair.h"
#include "plan/weighted.h"

#define TOLERANCE    4e-4 /* of the floor; near enough */
#define FINE_SLOTS   128  /* layers of up to so many slots are cheap: */
#define FINE         1e-4
#define NEAR         1.006 /* a first search that ends at most so far above the floor is only searched on */
#define PAIR_STEPS   3     /* of annealing, for work of all slots */
#define SHORT_PART   20    /* of the work goes into each of some starts */
#define FAR_BELOW    4
#define DEFAULT_WORK INT64_C(200000)
#define FEW_SLOTS    4    /* on average on a rank */
#define HARD_WORK    1500 /* for each slot where they are few */

/* Time by which sums of rounded replica loads may differ from the truth: a difference counts beyond it. */
static double rounding(const equal_plan *plan)
{
    return (double)(plan->problem->num_slots / plan->problem->num_ranks + 2) * 2;
}

/* Floor of one area: its work over its speed. The hottest area bounds the layer. */
static eplb_status area_floor(equal_plan *plan, arena *scratch, eplb_error *error)
{
    const layer_problem *problem = plan->problem;
    size_t nodes = (size_t)problem->num_nodes;
    double *work = arena_take_zero(scratch, nodes, sizeof *work);
    double *speed = arena_take_zero(scratch, nodes, sizeof *speed);
    if (work == NULL || speed == NULL)
        return error_memory(error, nodes * sizeof *work, "node loads");
    for (int32_t e = 0; e < problem->num_experts; e++)
        work[plan->areas.expert_area[e]] += replica_work_at(&plan->work, e, 1);
    for (int32_t g = 0; g < problem->num_ranks; g++)
        speed[plan->areas.rank_area[g]] += problem->rank_speed[g];
    for (size_t n = 0; n < nodes; n++) {
        if (work[n] > plan->floor * speed[n])
            plan->floor = work[n] / speed[n];
    }
    return EPLB_OK;
}

bool equal_plan_is_inside(const equal_plan *plan, const int32_t *expert)
{
    const layer_problem *problem = plan->problem;
    for (int32_t p = 0; p < problem->num_slots; p++) {
        if (expert[p] >= 0 &&
            plan->areas.expert_area[expert[p]] != plan->areas.rank_area[problem->slot_rank[p]])
            return false;
    }
    return true;
}

/* Binds groups to nodes, as they are now if there is a current placement, unless they do not fit. */
static eplb_status bind_groups(equal_plan *plan, bool as_now, arena *scratch, eplb_error *error)
{
    const layer_problem *problem = plan->problem;
    size_t experts = (size_t)problem->num_experts, ranks = (size_t)problem->num_ranks;
    int32_t *group_node = arena_take(scratch, (size_t)problem->num_groups, sizeof *group_node);
    int32_t *rank_area = arena_take(scratch, ranks, sizeof *rank_area);
    int32_t *expert_area = arena_take(scratch, experts, sizeof *expert_area);
    if (group_node == NULL || rank_area == NULL || expert_area == NULL)
        return error_memory(error, experts * sizeof *expert_area, "groups on nodes");
    eplb_status status =
        as_now ? group_nodes_read(problem, group_node, &plan->groups_fit, scratch, error)
               : group_nodes_choose(problem, &plan->work, group_node, &plan->groups_fit, scratch, error);
    plan->areas = (equal_areas){NULL, NULL};
    plan->floor = plan->bounds.work_time;
    if (status != EPLB_OK || !plan->groups_fit)
        return status;
    memcpy(rank_area, problem->rank_node, ranks * sizeof *rank_area);
    for (int32_t e = 0; e < problem->num_experts; e++)
        expert_area[e] = group_node[e / (problem->num_experts / problem->num_groups)];
    plan->areas = (equal_areas){rank_area, expert_area};
    if (as_now && (problem->max_spill > 0 || problem->max_moves != INT64_MAX) &&
        !equal_plan_is_inside(plan, problem->current))
        return EPLB_OK; /* what lives elsewhere may stay there */
    return area_floor(plan, scratch, error);
}

eplb_status equal_plan_aim(equal_plan *plan, bool as_now, arena *scratch, eplb_error *error)
{
    const layer_problem *problem = plan->problem;
    plan->floor = plan->bounds.work_time;
    plan->groups_fit = true;
    if (layer_binds_groups(problem)) {
        eplb_status status = bind_groups(plan, as_now, scratch, error);
        if (status != EPLB_OK)
            return status;
    }
    plan->around.rank_area = plan->areas.rank_area;
    plan->around.expert_area = plan->areas.expert_area;
    double tolerance = problem->num_slots <= FINE_SLOTS ? FINE : TOLERANCE;
    plan->goal = plan->floor * (problem->work_limit > 0 ? 1 : 1 + tolerance);
    double target = problem->target_imbalance * (plan->work.least_total / (double)problem->total_speed);
    if (target > plan->goal)
        plan->goal = target;
    return EPLB_OK;
}

/* Few slots a rank are hard to fill evenly: there is nothing small to fill up with. */
static bool has_few_slots(const layer_problem *problem)
{
    return problem->num_slots <= FEW_SLOTS * problem->num_ranks;
}

static int64_t default_work(const layer_problem *problem)
{
    int64_t ranks = problem->num_ranks, slots = problem->num_slots;
    int64_t sweep = 2 * slots * (slots / ranks + 1); /* the swaps around every rank, twice */
    int64_t hard = has_few_slots(problem) ? HARD_WORK * slots : 0;
    int64_t least = hard > DEFAULT_WORK ? hard : DEFAULT_WORK;
    return sweep > least ? sweep : least;
}

eplb_status equal_plan_init(equal_plan *plan, const layer_problem *problem, arena *scratch, eplb_error *error)
{
    *plan = (equal_plan){.problem = problem, .hottest = INFINITY};
    plan->best = arena_take(scratch, (size_t)problem->num_slots, sizeof *plan->best);
    if (plan->best == NULL)
        return error_memory(error, (size_t)problem->num_slots * sizeof *plan->best, "best placement");
    eplb_status status = replica_work_init(&plan->work, problem, scratch, error);
    if (status == EPLB_OK)
        status = equal_bounds_find(&plan->bounds, problem, &plan->work, scratch, error);
    if (status == EPLB_OK)
        status = layout_init(&plan->seats, problem, &plan->work, scratch, error);
    if (status == EPLB_OK)
        status = neighbourhood_init(&plan->around, &plan->seats, problem, scratch, error);
    plan->work_limit = problem->work_limit > 0 ? problem->work_limit : default_work(problem);
    return status;
}

void equal_plan_keep(equal_plan *plan, double hottest, int64_t moves, const char *reason)
{
    double margin = rounding(plan), gain = plan->hottest - hottest;
    double least = moves > plan->moves && plan->hair > margin ? plan->hair : margin;
    bool good = hottest <= plan->goal && plan->hottest <= plan->goal;
    if (good ? moves >= plan->moves : gain < -margin || (gain <= least && moves >= plan->moves))
        return;
    plan->hottest = hottest;
    plan->moves = moves;
    plan->reason = reason;
    memcpy(plan->best, plan->seats.expert, (size_t)plan->problem->num_slots * sizeof *plan->best);
}

static eplb_status search(equal_plan *plan, int64_t work, double *hottest, arena *scratch, eplb_error *error)
{
    equal_search_limits limits = {plan->floor, plan->goal, work, 0, INT64_MAX};
    plan->around.home = NULL;
    return equal_search(&plan->around, plan->problem, &limits, hottest, scratch, error);
}

/* One start and its search; the layout has the result. */
static eplb_status plan_start(equal_plan *plan, double largest, int64_t work, double *hottest, arena *scratch,
                              eplb_error *error)
{
    int32_t hot;
    arena_mark mark = arena_position(scratch);
    int32_t *start = arena_take(scratch, (size_t)plan->problem->num_slots, sizeof *start);
    if (start == NULL)
        return error_memory(error, (size_t)plan->problem->num_slots * sizeof *start, "first placement");
    equal_counts counts = {plan->bounds.count, largest};
    eplb_status status =
        equal_start(plan->problem, &plan->work, &counts, &plan->areas, start, scratch, error);
    if (status != EPLB_OK)
        return status;
    layout_set(&plan->seats, start);
    if (largest <= 0)
        plan->start = layout_hottest(&plan->seats, &hot);
    status = search(plan, work, hottest, scratch, error);
    arena_rewind(scratch, mark);
    return status;
}

/* Up to two slots a rank: counts by annealing, with the places that suit them, then the search. */
static eplb_status plan_pairs(equal_plan *plan, double *hottest, arena *scratch, eplb_error *error)
{
    const layer_problem *problem = plan->problem;
    size_t slots = (size_t)problem->num_slots, experts = (size_t)problem->num_experts;
    int32_t *expert = arena_take(scratch, slots, sizeof *expert);
    int32_t *count = arena_take(scratch, experts, sizeof *count);
    if (expert == NULL || count == NULL)
        return error_memory(error, slots * sizeof *expert, "pairs of replicas");
    bool legal = false;
    pair_limits limits = {plan->floor, plan->goal, PAIR_STEPS * (plan->work_limit / problem->num_slots)};
    memcpy(count, plan->seats.count, experts * sizeof *count);
    eplb_status status = pair_counts_anneal(problem, &plan->work, &limits, count, scratch, error);
    if (status == EPLB_OK)
        status = pair_counts_place(problem, &plan->work, count, expert, &legal, scratch, error);
    if (status != EPLB_OK)
        return status;
    if (legal)
        layout_set(&plan->seats, expert);
    return search(plan, plan->work_limit / 4, hottest, scratch, error);
}

/* True if an expert has more work than a rank shall have. */
static bool has_giant(const equal_plan *plan)
{
    for (int32_t e = 0; e < plan->problem->num_experts; e++) {
        if (replica_work_at(&plan->work, e, 1) > plan->floor)
            return true;
    }
    return false;
}

/* Starts from fewer, larger replicas until one comes near the floor, each with `work`; the layout has the
 * best of these and what it had. */
static eplb_status plan_large(equal_plan *plan, int64_t work, double *hottest, arena *scratch,
                              eplb_error *error)
{
    static const double parts[] = {0.97, 0.9, 0.8, 0.65, 0.5};
    size_t bytes = (size_t)plan->problem->num_slots * sizeof(int32_t);
    int32_t *best = arena_take(scratch, bytes, 1);
    if (best == NULL)
        return error_memory(error, bytes, "best placement");
    memcpy(best, plan->seats.expert, bytes);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (*hottest <= plan->floor * NEAR)
            break;
        double reached;
        eplb_status status = plan_start(plan, parts[i] * plan->floor, work, &reached, scratch, error);
        if (status != EPLB_OK)
            return status;
        if (reached >= *hottest)
            continue;
        *hottest = reached;
        memcpy(best, plan->seats.expert, bytes);
    }
    layout_set(&plan->seats, best);
    return EPLB_OK;
}

/* Start and search from nothing; where the floor is far, also from fewer, larger replicas, and on from the
 * best. An expert that needs ranks of its own wants these, where there are small ones to fill up with: then
 * the first search is as short as theirs. The layout has the result. */
eplb_status equal_plan_anew(equal_plan *plan, double *hottest, arena *scratch, eplb_error *error)
{
    if (pair_counts_apply(plan->problem) && plan->areas.rank_area == NULL) {
        eplb_status paired = plan_start(plan, 0, 0, hottest, scratch, error);
        return paired != EPLB_OK || *hottest <= plan->goal ? paired
                                                           : plan_pairs(plan, hottest, scratch, error);
    }
    int64_t short_work = plan->work_limit / SHORT_PART, end = plan->around.looked + plan->work_limit;
    int64_t first_work = !has_few_slots(plan->problem) && has_giant(plan) ? short_work : plan->work_limit / 4;
    eplb_status status = plan_start(plan, 0, first_work, hottest, scratch, error);
    if (status == EPLB_OK && *hottest > plan->goal)
        status = plan_large(plan, short_work, hottest, scratch, error);
    if (status != EPLB_OK || *hottest <= plan->goal || plan->around.looked >= end)
        return status;
    return search(plan, end - plan->around.looked, hottest, scratch, error);
}

static bool has_duplicate(const layer_problem *problem, const int32_t *expert)
{
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        for (int32_t p = problem->first_slot[g]; p < problem->first_slot[g + 1]; p++) {
            for (int32_t q = problem->first_slot[g]; q < p; q++) {
                if (expert[p] == expert[q])
                    return true;
            }
        }
    }
    return false;
}

/* Hottest rank of a placement that may hold experts twice on a rank. */
static eplb_status judge(const equal_plan *plan, const int32_t *expert, double *hottest, arena *scratch,
                         eplb_error *error)
{
    const layer_problem *problem = plan->problem;
    int32_t *count = arena_take_zero(scratch, (size_t)problem->num_experts, sizeof *count);
    if (count == NULL)
        return error_memory(error, (size_t)problem->num_experts * sizeof *count, "DeepSeek's plan");
    for (int32_t p = 0; p < problem->num_slots; p++)
        count[expert[p]]++;
    *hottest = 0;
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        double load = 0;
        for (int32_t p = problem->first_slot[g]; p < problem->first_slot[g + 1]; p++)
            load += replica_work_at(&plan->work, expert[p], count[expert[p]]);
        *hottest = load > *hottest ? load : *hottest;
    }
    return EPLB_OK;
}

/* Takes DeepSeek's plan, which is better; where it breaks our rule of one replica per rank, searches on. */
static eplb_status learn(equal_plan *plan, const int32_t *expert, double theirs, arena *scratch,
                         eplb_error *error)
{
    double hottest = theirs;
    if (!has_duplicate(plan->problem, expert)) {
        layout_set(&plan->seats, expert);
        equal_plan_keep(plan, hottest, plan->moves, "DeepSeek's plan: the search found none better");
        return EPLB_OK;
    }
    plan->goal = theirs;
    layout_set(&plan->seats, plan->best);
    eplb_status status = search(plan, plan->work_limit, &hottest, scratch, error);
    plan->goal = 0;
    if (status == EPLB_OK)
        equal_plan_keep(plan, hottest, plan->moves, plan->reason);
    return status;
}

/* Where groups do not divide by nodes DeepSeek's planner does not look at them; we keep them on nodes. */
static bool looks_at_nodes(const equal_plan *plan)
{
    return plan->areas.rank_area == NULL || plan->problem->num_groups % plan->problem->num_nodes == 0;
}

/* DeepSeek's plan, if it exists for this input and is better, sets the bar. Without duplicates it differs
 * from our start by rounding and ties only, so where the search went far below the start it is not made. */
static eplb_status compare_deepseek(equal_plan *plan, arena *scratch, eplb_error *error)
{
    if (!looks_at_nodes(plan))
        return EPLB_OK;
    if (plan->areas.rank_area == NULL && plan->problem->num_slots > FINE_SLOTS &&
        plan->hottest <= plan->goal && plan->start - plan->floor > FAR_BELOW * (plan->hottest - plan->floor))
        return EPLB_OK;
    plan->goal = 0; /* from here on better is better */
    layer_problem problem = *plan->problem;
    problem.split = EPLB_SPLIT_EQUAL;
    problem.max_moves = INT64_MAX;
    layer_answer answer = {.expert = arena_take(scratch, (size_t)problem.num_slots, sizeof(int32_t))};
    if (answer.expert == NULL)
        return error_memory(error, (size_t)problem.num_slots * sizeof(int32_t), "DeepSeek's plan");
    eplb_error refusal;
    double theirs = 0;
    eplb_status status = plan_layer_deepseek(&problem, scratch, &answer, &refusal);
    if (status == EPLB_ERROR_UNSUPPORTED)
        return EPLB_OK;
    if (status != EPLB_OK) {
        if (error != NULL)
            *error = refusal;
        return status;
    }
    status = judge(plan, answer.expert, &theirs, scratch, error);
    if (status != EPLB_OK || theirs >= plan->hottest)
        return status;
    return learn(plan, answer.expert, theirs, scratch, error);
}

/* The planner without a current placement. */
static eplb_status plan_from_nothing(equal_plan *plan, arena *scratch, eplb_error *error)
{
    double hottest;
    eplb_status status = equal_plan_aim(plan, false, scratch, error);
    if (status == EPLB_OK)
        status = equal_plan_anew(plan, &hottest, scratch, error);
    if (status != EPLB_OK)
        return status;
    equal_plan_keep(plan, hottest, 0, "equal split: greedy start, then search over counts and places");
    return compare_deepseek(plan, scratch, error);
}

eplb_status plan_layer_equal(const layer_problem *paid, arena *scratch, layer_answer *answer,
                             eplb_error *error)
{
    const layer_problem whole = repair_problem(paid), *problem = &whole;
    equal_plan plan;
    if (problem->split != EPLB_SPLIT_EQUAL)
        return error_text(error, EPLB_ERROR_UNSUPPORTED, "policy equal: it plans for the equal split only");
    eplb_status status = equal_plan_init(&plan, problem, scratch, error);
    if (status == EPLB_OK)
        status = problem->current != NULL ? equal_plan_repair(&plan, scratch, error)
                                          : plan_from_nothing(&plan, scratch, error);
    if (status != EPLB_OK)
        return status;
    memcpy(answer->expert, plan.best, (size_t)problem->num_slots * sizeof *plan.best);
    answer->bound = plan.bounds.imbalance;
    if (problem->max_spill == 0 && plan.areas.rank_area != NULL && equal_plan_is_inside(&plan, plan.best) &&
        plan.bounds.groups > answer->bound)
        answer->bound = plan.bounds.groups;
    if (problem->total > 0 && plan.hottest > plan.bounds.work_time * (1 + TOLERANCE)) {
        double floor; /* what no shares reach, equal ones do not */
        if (!weighted_floor(problem, &floor, scratch))
            return error_memory(error, (size_t)problem->num_experts * sizeof(int32_t), "bounds");
        answer->bound = floor > answer->bound ? floor : answer->bound;
    }
    answer->reason = plan.groups_fit ? plan.reason : "groups do not fit on the nodes: planned across nodes";
    return EPLB_OK;
}
