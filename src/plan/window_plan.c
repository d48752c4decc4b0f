/* The course of a plan for many windows.
 *
 * The plan on the sum (equal.c) is the start; annealing on the risk (risk_search.c) goes on from it. With a
 * current placement and few moves the best changes per received expert come first and annealing exchanges
 * them within the budget; with free moves ranks are relabelled for most overlap. The recorded windows then
 * choose between the results, so that a plan is never worse on them than keeping or than planning on the sum.
 * Cost: steps times the number of directions of the risk. */
#include "plan/window_plan.h"

#include <string.h>

#include "base/error.h"
#include "plan/group_nodes.h"
#include "plan/keep_slots.h"
#include "plan/policies.h"
#include "plan/relabel.h"
#include "plan/spill_nodes.h"

#define STEPS_PER_SLOT INT64_C(1000)
#define LEAST_STEPS    INT64_C(50000)
#define MOST_STEPS     INT64_C(400000)
#define SUM_WORK       INT64_C(20000) /* for the plan on the sum: it is a start only */
#define HEAT           0.003          /* of a search from nothing */
#define REPAIR_HEAT    0.0003

typedef struct window_planner {
    const layer_problem *problem;
    const window_aim *aim;
    replica_work work;
    layout seats;
    window_risk risk;
    risk_search search;
    uint64_t *home;       /* [G, words] with a current placement */
    int32_t *expert_area; /* [E] with groups on nodes */
    int32_t *found;       /* [S] */
    int32_t *best;        /* [S] */
    int32_t best_excess;  /* replicas outside their group's node beyond those allowed */
    double best_score;
    const char *reason;
} window_planner;

eplb_status window_plan_areas(const layer_problem *problem, const int32_t *expert, int32_t *expert_area,
                              arena *scratch, eplb_error *error)
{
    layer_problem placed = *problem;
    placed.current = expert;
    bool fits;
    int32_t *group_node = arena_take(scratch, (size_t)problem->num_groups, sizeof *group_node);
    if (group_node == NULL)
        return error_memory(error, (size_t)problem->num_groups * sizeof *group_node, "groups on nodes");
    eplb_status status = group_nodes_read(&placed, group_node, &fits, scratch, error);
    for (int32_t e = 0; status == EPLB_OK && e < problem->num_experts; e++)
        expert_area[e] = group_node[e / (problem->num_experts / problem->num_groups)];
    return status;
}

/* The plan on the sum; with `keep` the current placement, made legal. */
static eplb_status plan_sum(window_planner *planner, bool keep, int32_t *expert, arena *scratch,
                            eplb_error *error)
{
    layer_problem problem = *planner->problem;
    problem.split = EPLB_SPLIT_EQUAL;
    problem.work_limit = SUM_WORK;
    problem.max_spill = 0;
    problem.target_imbalance = 0.0;
    if (keep) {
        problem.target_imbalance = (double)INT64_MAX; /* anything is good enough: it stays */
    } else {
        problem.current = NULL;
        problem.max_moves = INT64_MAX;
    }
    layer_answer answer = {.expert = expert, .bound = 1.0};
    for (int32_t p = 0; p < problem.num_slots; p++)
        expert[p] = -1;
    return plan_layer_equal(&problem, scratch, &answer, error);
}

/* The start of the search: replicas on the hottest experts. Counts that were fitted to the sum are worse to
 * start from. */
static eplb_status plan_greedily(window_planner *planner, arena *scratch, eplb_error *error)
{
    layer_problem problem = *planner->problem;
    problem.split = EPLB_SPLIT_EQUAL;
    problem.max_moves = INT64_MAX;
    problem.current = NULL;
    layer_answer answer = {.expert = planner->found, .bound = 1.0};
    for (int32_t p = 0; p < problem.num_slots; p++)
        answer.expert[p] = -1;
    return plan_layer_greedy(&problem, scratch, &answer, error);
}

static void read_home(window_planner *planner)
{
    const layer_problem *problem = planner->problem;
    for (int32_t p = 0; p < problem->num_slots; p++) {
        int32_t e = problem->current[p];
        size_t row = (size_t)problem->slot_rank[p] * (size_t)planner->seats.words;
        if (e >= 0)
            planner->home[row + (size_t)(e >> 6)] |= UINT64_C(1) << (e & 63);
    }
}

static eplb_status planner_init(window_planner *planner, arena *scratch, eplb_error *error)
{
    const layer_problem *problem = planner->problem;
    size_t slots = (size_t)problem->num_slots, experts = (size_t)problem->num_experts;
    eplb_status status = replica_work_init(&planner->work, problem, scratch, error);
    if (status == EPLB_OK)
        status = layout_init(&planner->seats, problem, &planner->work, scratch, error);
    if (status == EPLB_OK)
        status = window_risk_init(&planner->risk, problem, scratch, error);
    if (status != EPLB_OK)
        return status;
    window_risk_level(&planner->risk,
                      planner->aim->level + planner->aim->level_on_drift * planner->risk.unexplained);
    status = risk_search_init(&planner->search, problem, &planner->seats, &planner->risk, &planner->aim->risk,
                              scratch, error);
    if (status != EPLB_OK)
        return status;
    size_t words = (size_t)problem->num_ranks * (size_t)planner->seats.words;
    planner->found = arena_take(scratch, slots, sizeof(int32_t));
    planner->best = arena_take(scratch, slots, sizeof(int32_t));
    planner->expert_area = arena_take(scratch, experts, sizeof(int32_t));
    planner->home = arena_take_zero(scratch, words, sizeof(uint64_t));
    if (planner->found == NULL || planner->best == NULL || planner->expert_area == NULL ||
        planner->home == NULL)
        return error_memory(error, words * sizeof(uint64_t), "window plan");
    if (problem->current != NULL)
        read_home(planner);
    return EPLB_OK;
}

static bool is_node_limited(const layer_problem *problem)
{
    return problem->num_groups > 1 && problem->num_nodes > 1;
}

/* Replicas of `found` outside their group's node beyond those allowed. */
static eplb_status count_excess(window_planner *planner, int32_t *excess, arena *scratch, eplb_error *error)
{
    const layer_problem *problem = planner->problem;
    *excess = 0;
    if (!is_node_limited(problem))
        return EPLB_OK;
    int32_t *area = arena_take(scratch, (size_t)problem->num_experts, sizeof *area), outside = 0;
    if (area == NULL)
        return error_memory(error, (size_t)problem->num_experts * sizeof *area, "groups on nodes");
    eplb_status status = window_plan_areas(problem, planner->found, area, scratch, error);
    for (int32_t p = 0; status == EPLB_OK && p < problem->num_slots; p++) {
        int32_t e = planner->found[p];
        outside += e >= 0 && area[e] != problem->rank_node[problem->slot_rank[p]];
    }
    *excess = outside > problem->max_spill ? outside - problem->max_spill : 0;
    return status;
}

/* Takes `found` as the best if it keeps the limit of nodes better, or as well and the recorded windows like
 * it better. */
static eplb_status keep_better(window_planner *planner, const char *reason, arena *scratch, eplb_error *error)
{
    double score;
    int32_t excess;
    eplb_status status = planner->aim->score(planner->problem, planner->found, &score, scratch, error);
    if (status == EPLB_OK)
        status = count_excess(planner, &excess, scratch, error);
    if (status != EPLB_OK || (planner->reason != NULL && excess > planner->best_excess) ||
        (planner->reason != NULL && excess == planner->best_excess && score >= planner->best_score))
        return status;
    planner->best_excess = excess;
    planner->best_score = score;
    planner->reason = reason;
    memcpy(planner->best, planner->found, (size_t)planner->problem->num_slots * sizeof(int32_t));
    return EPLB_OK;
}

/* Binds experts to the nodes where `found` has their groups. */
static eplb_status bind_areas(window_planner *planner, arena *scratch, eplb_error *error)
{
    const layer_problem *problem = planner->problem;
    if (!is_node_limited(problem))
        return EPLB_OK;
    planner->search.rank_area = problem->rank_node;
    planner->search.expert_area = planner->expert_area;
    return window_plan_areas(problem, planner->found, planner->expert_area, scratch, error);
}

static int64_t steps_of(const layer_problem *problem)
{
    int64_t steps = STEPS_PER_SLOT * problem->num_slots;
    if (problem->work_limit > 0)
        return problem->work_limit;
    return steps < LEAST_STEPS ? LEAST_STEPS : steps > MOST_STEPS ? MOST_STEPS : steps;
}

/* Searches on from `found`; what was outside its area may stay or come back. */
static void search_on(window_planner *planner, bool moves_count)
{
    const layer_problem *problem = planner->problem;
    risk_search *search = &planner->search;
    layout_set(&planner->seats, planner->found);
    search->home = moves_count ? planner->home : NULL;
    search->purse = problem->max_moves;
    risk_search_read(search);
    search->max_outside = problem->max_spill;
    if (moves_count)
        risk_search_descend(search);
    risk_search_anneal(search, steps_of(problem), moves_count ? REPAIR_HEAT : HEAT);
    memcpy(planner->found, planner->seats.expert, (size_t)problem->num_slots * sizeof(int32_t));
}

/* A start that uses the replicas allowed outside; the plan on the sum stays the start if groups do not fit.
 */
static eplb_status spill_start(window_planner *planner, double room, arena *scratch, eplb_error *error)
{
    const layer_problem *problem = planner->problem;
    spill_nodes spill;
    eplb_status status = spill_nodes_choose(&spill, problem, &planner->work, false, room, scratch, error);
    if (status != EPLB_OK || !spill.fits)
        return status;
    for (int32_t e = 0; e < problem->num_experts; e++)
        planner->expert_area[e] = spill.group_node[e / (problem->num_experts / problem->num_groups)];
    return spill_nodes_place(&spill, problem, planner->found, scratch, error);
}

/* Searches on, relabels the ranks and compares. */
static eplb_status search_and_compare(window_planner *planner, const char *reason, arena *scratch,
                                      eplb_error *error)
{
    const layer_problem *problem = planner->problem;
    eplb_status status = EPLB_OK;
    search_on(planner, false);
    if (problem->current != NULL)
        status = relabel_ranks(problem, planner->search.rank_area, planner->home, planner->seats.words,
                               planner->found, scratch, error);
    return status == EPLB_OK ? keep_better(planner, reason, scratch, error) : status;
}

static eplb_status plan_from_nothing(window_planner *planner, arena *scratch, eplb_error *error)
{
    static const double rooms[] = {0.8, 0.9, 1.0, 1.15};
    const layer_problem *problem = planner->problem;
    eplb_status status = plan_sum(planner, false, planner->found, scratch, error);
    if (status == EPLB_OK && problem->current != NULL)
        status = relabel_ranks(problem, is_node_limited(problem) ? problem->rank_node : NULL, planner->home,
                               planner->seats.words, planner->found, scratch, error);
    if (status == EPLB_OK)
        status = keep_better(planner, "the plan on the sum of the windows is the best found", scratch, error);
    if (status == EPLB_OK)
        status = plan_greedily(planner, scratch, error);
    if (status == EPLB_OK)
        status = bind_areas(planner, scratch, error);
    if (status != EPLB_OK || problem->max_spill == 0 || planner->search.rank_area == NULL)
        return status != EPLB_OK ? status : search_and_compare(planner, planner->aim->reason, scratch, error);
    for (size_t i = 0; status == EPLB_OK && i < sizeof rooms / sizeof *rooms; i++) {
        status = spill_start(planner, rooms[i], scratch, error);
        if (status == EPLB_OK)
            status = search_and_compare(
                planner, "spill: replicas outside their group's node take what nodes cannot even out",
                scratch, error);
    }
    return status;
}

static eplb_status plan_repair(window_planner *planner, arena *scratch, eplb_error *error)
{
    const layer_problem *problem = planner->problem;
    eplb_status status = plan_sum(planner, true, planner->found, scratch, error);
    if (status == EPLB_OK)
        status = keep_better(planner, "windows: the current placement stays", scratch, error);
    if (status != EPLB_OK)
        return status;
    if (problem->target_imbalance <= 0.0 || planner->best_score > problem->target_imbalance ||
        planner->best_excess > 0) {
        if (problem->max_moves < problem->num_slots) {
            status = bind_areas(planner, scratch, error);
            if (status == EPLB_OK) {
                search_on(planner, true);
                status = keep_better(planner, "windows: repair within the moves, most gain per move first",
                                     scratch, error);
            }
        } else {
            status = plan_from_nothing(planner, scratch, error);
        }
    }
    return status != EPLB_OK ? status
                             : keep_slots(problem->first_slot, problem->num_ranks, problem->num_experts,
                                          problem->current, planner->best, scratch, error);
}

eplb_status window_plan(const layer_problem *problem, const window_aim *aim, arena *scratch,
                        layer_answer *answer, eplb_error *error)
{
    window_planner planner = {.problem = problem, .aim = aim};
    if (!problem->plain_cost)
        return error_text(error, EPLB_ERROR_UNSUPPORTED,
                          "policy %s: it plans for tokens only, not for tiles or activated replicas",
                          aim->name);
    eplb_status status = planner_init(&planner, scratch, error);
    if (status == EPLB_OK)
        status = problem->current != NULL ? plan_repair(&planner, scratch, error)
                                          : plan_from_nothing(&planner, scratch, error);
    if (status != EPLB_OK)
        return status;
    memcpy(answer->expert, planner.best, (size_t)problem->num_slots * sizeof(int32_t));
    answer->reason = planner.reason;
    return EPLB_OK;
}
