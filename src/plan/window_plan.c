/* The course of a plan for many windows.
 *
 * Plans on the sum come first; annealing on the risk (risk_search.c) goes on where windows it has not seen
 * like what it finds (window_trial.c). With a current placement and few moves the changes are found for a
 * rising number of moves (window_repair.c); with free moves ranks are relabelled for most overlap. The
 * recorded windows then choose between the results, so that a plan is never worse on them than keeping or
 * than planning on the sum. Cost: steps times the number of directions of the risk, twice with the trial. */
#include "plan/window_plan.h"

#include <string.h>

#include "base/error.h"
#include "plan/equal_spill.h"
#include "plan/fill_slots.h"
#include "plan/group_nodes.h"
#include "plan/keep_slots.h"
#include "plan/policies.h"
#include "plan/relabel.h"
#include "plan/spill_floor.h"
#include "plan/spill_nodes.h"
#include "plan/window_course.h"

#define STEPS_PER_SLOT INT64_C(1000)
#define LEAST_STEPS    INT64_C(50000)
#define MOST_STEPS     INT64_C(400000)
#define HEAT           0.003 /* of a search from nothing */
#define NEAR           1.004 /* times the bound: few starts do */

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

static void clear_slots(int32_t *expert, int32_t num_slots)
{
    for (int32_t p = 0; p < num_slots; p++)
        expert[p] = -1;
}

/* The layer as other policies plan it: on the sum, without spilling. */
static layer_problem on_the_sum(const layer_problem *problem, eplb_split split)
{
    layer_problem sum = *problem;
    sum.split = split;
    sum.num_windows = 1;
    sum.window_load = problem->load;
    sum.max_spill = 0;
    sum.target_imbalance = 0.0;
    return sum;
}

static layer_problem from_nothing(const layer_problem *problem, eplb_split split)
{
    layer_problem sum = on_the_sum(problem, split);
    sum.current = NULL;
    sum.max_moves = INT64_MAX;
    return sum;
}

/* `found`: the current placement, made legal. */
static eplb_status keep_current(window_course *course, arena *scratch, eplb_error *error)
{
    layer_problem sum = on_the_sum(course->problem, EPLB_SPLIT_EQUAL);
    sum.target_imbalance = (double)INT64_MAX; /* anything is good enough: it stays */
    sum.max_spill = INT32_MAX;                /* replicas outside their node stay, too */
    layer_answer answer = {.expert = course->found, .bound = 1.0};
    clear_slots(course->found, sum.num_slots);
    return plan_layer_equal(&sum, scratch, &answer, error);
}

eplb_status window_course_weighted(window_course *course, const layer_problem *sum, double *bound,
                                   arena *scratch, eplb_error *error)
{
    layer_answer answer = {.expert = course->found,
                           .quota = arena_take_zero(scratch, (size_t)sum->num_slots, sizeof(int64_t)),
                           .bound = 1.0};
    if (answer.quota == NULL)
        return error_memory(error, (size_t)sum->num_slots * sizeof(int64_t), "quotas on the sum");
    clear_slots(course->found, sum->num_slots);
    eplb_status status = plan_layer_weighted(sum, scratch, &answer, error);
    if (status == EPLB_OK && bound != NULL)
        *bound = answer.bound;
    return status;
}

/* Replicas on the hottest experts: the start of the search. Counts that were fitted to the sum are worse to
 * start from. */
static eplb_status plan_greedily(window_course *course, arena *scratch, eplb_error *error)
{
    layer_problem sum = from_nothing(course->problem, EPLB_SPLIT_EQUAL);
    layer_answer answer = {.expert = course->found, .bound = 1.0};
    clear_slots(course->found, sum.num_slots);
    return plan_layer_greedy(&sum, scratch, &answer, error);
}

static int64_t steps_of(const layer_problem *problem)
{
    int64_t steps = STEPS_PER_SLOT * problem->num_slots;
    if (problem->work_limit > 0)
        return problem->work_limit;
    return steps < LEAST_STEPS ? LEAST_STEPS : steps > MOST_STEPS ? MOST_STEPS : steps;
}

eplb_status window_course_init(window_course *course, arena *scratch, eplb_error *error)
{
    const layer_problem *problem = course->problem;
    size_t slots = (size_t)problem->num_slots, experts = (size_t)problem->num_experts;
    course->steps = steps_of(problem);
    eplb_status status = replica_work_init(&course->work, problem, scratch, error);
    if (status == EPLB_OK)
        status = layout_init(&course->seats, problem, &course->work, scratch, error);
    if (status != EPLB_OK)
        return status;
    size_t words = (size_t)problem->num_ranks * (size_t)course->seats.words;
    course->found = arena_take(scratch, slots, sizeof(int32_t));
    course->best = arena_take(scratch, slots, sizeof(int32_t));
    course->expert_area = arena_take(scratch, experts, sizeof(int32_t));
    course->home = arena_take_zero(scratch, words, sizeof(uint64_t));
    if (course->found == NULL || course->best == NULL || course->expert_area == NULL || course->home == NULL)
        return error_memory(error, words * sizeof(uint64_t), "window plan");
    if (problem->current != NULL)
        layer_read_home(problem, course->home);
    return EPLB_OK;
}

eplb_status window_course_aim(window_course *course, arena *scratch, eplb_error *error)
{
    eplb_status status = window_risk_init(&course->risk, course->problem, scratch, error);
    if (status != EPLB_OK)
        return status;
    const window_aim *aim = course->aim;
    double room = aim->risk.room > 0.0 ? aim->risk.room / (double)course->problem->num_ranks : 1.0;
    window_risk_level(&course->risk, aim->level + aim->level_on_drift * course->risk.unexplained, room);
    return risk_search_init(&course->search, course->problem, &course->seats, &course->risk,
                            &course->aim->risk, scratch, error);
}

/* Replicas of `found` outside their group's node beyond those allowed. */
static eplb_status count_excess(window_course *course, int32_t *excess, arena *scratch, eplb_error *error)
{
    const layer_problem *problem = course->problem;
    *excess = 0;
    if (!layer_binds_groups(problem))
        return EPLB_OK;
    int32_t *area = arena_take(scratch, (size_t)problem->num_experts, sizeof *area), outside = 0;
    if (area == NULL)
        return error_memory(error, (size_t)problem->num_experts * sizeof *area, "groups on nodes");
    eplb_status status = window_plan_areas(problem, course->found, area, scratch, error);
    for (int32_t p = 0; status == EPLB_OK && p < problem->num_slots; p++) {
        int32_t e = course->found[p];
        outside += e >= 0 && area[e] != problem->rank_node[problem->slot_rank[p]];
    }
    *excess = outside > problem->max_spill ? outside - problem->max_spill : 0;
    return status;
}

static int32_t count_empty(const window_course *course)
{
    int32_t empty = 0;
    for (int32_t p = 0; p < course->problem->num_slots; p++)
        empty += course->found[p] < 0;
    return empty;
}

/* Whether what was found is better than the best. */
static bool is_better(const window_course *course, int32_t excess, int32_t empty, double score)
{
    if (course->reason == NULL)
        return true;
    if (excess != course->best_excess)
        return excess < course->best_excess;
    return empty != course->best_empty ? empty < course->best_empty : score < course->best_score;
}

eplb_status window_course_compare(window_course *course, const char *reason, arena *scratch,
                                  eplb_error *error)
{
    double score;
    int32_t excess = 0;
    arena_mark mark = arena_position(scratch);
    eplb_status status = course->aim->score(course->problem, course->found, &score, scratch, error);
    if (status == EPLB_OK)
        status = count_excess(course, &excess, scratch, error);
    arena_rewind(scratch, mark);
    int32_t empty = count_empty(course) - course->kept_empty;
    empty = empty > 0 ? empty : 0;
    if (status != EPLB_OK || !is_better(course, excess, empty, score))
        return status;
    course->best_excess = excess;
    course->best_empty = empty;
    course->best_score = score;
    course->reason = reason;
    memcpy(course->best, course->found, (size_t)course->problem->num_slots * sizeof(int32_t));
    return EPLB_OK;
}

eplb_status window_course_bind(window_course *course, arena *scratch, eplb_error *error)
{
    const layer_problem *problem = course->problem;
    if (!layer_binds_groups(problem))
        return EPLB_OK;
    course->search.rank_area = problem->rank_node;
    course->search.expert_area = course->expert_area;
    return window_plan_areas(problem, course->found, course->expert_area, scratch, error);
}

/* Relabels the ranks of `found` for most overlap with the current placement, then compares it. */
static eplb_status relabel_and_compare(window_course *course, const char *reason, arena *scratch,
                                       eplb_error *error)
{
    const layer_problem *problem = course->problem;
    eplb_status status = EPLB_OK;
    if (problem->current != NULL)
        status = relabel_ranks(problem, layer_binds_groups(problem) ? problem->rank_node : NULL, course->home,
                               course->seats.words, course->found, scratch, error);
    return status == EPLB_OK ? window_course_compare(course, reason, scratch, error) : status;
}

eplb_status window_course_on_sum(window_course *course, bool weighted_too, arena *scratch, eplb_error *error)
{
    const layer_problem *problem = course->problem;
    bool one = problem->num_windows == 1;
    layer_problem equal = from_nothing(problem, EPLB_SPLIT_EQUAL);
    layer_problem weighted = from_nothing(problem, EPLB_SPLIT_WEIGHTED);
    layer_answer answer = {.expert = course->found, .bound = 1.0};
    eplb_status status = EPLB_OK;
    if (weighted_too) {
        status = window_course_weighted(course, &weighted, &course->bound, scratch, error);
        if (status == EPLB_OK)
            status = relabel_and_compare(course,
                                         one ? "the placement of policy weighted is the best found"
                                             : "the placement of policy weighted, on the sum of the windows, "
                                               "is the best found",
                                         scratch, error);
        if (status != EPLB_OK || layer_is_stopped(problem) || window_course_is_good(course))
            return status;
    }
    clear_slots(course->found, problem->num_slots);
    status = plan_layer_equal(&equal, scratch, &answer, error);
    return status == EPLB_OK
               ? relabel_and_compare(course,
                                     one ? "the plan for equal shares is the best found"
                                         : "the plan on the sum of the windows is the best found",
                                     scratch, error)
               : status;
}

void window_course_anneal(window_course *course, int64_t steps, double heat, bool moves_count, int64_t purse)
{
    const layer_problem *problem = course->problem;
    risk_search *search = &course->search;
    layout_set(&course->seats, course->found);
    search->home = moves_count ? course->home : NULL;
    search->purse = purse;
    risk_search_read(search);
    search->max_outside = problem->max_spill;
    search->until = course->until;
    risk_search_anneal(search, steps, heat);
    memcpy(course->found, course->seats.expert, (size_t)problem->num_slots * sizeof(int32_t));
}

eplb_status window_course_finish(window_course *course, int64_t steps, bool moves_count, int64_t purse,
                                 arena *scratch, eplb_error *error)
{
    if (course->aim->finish == NULL)
        return EPLB_OK;
    arena_mark mark = arena_position(scratch);
    eplb_status status = course->aim->finish(course->problem, course->found, steps,
                                             moves_count ? course->home : NULL, purse, scratch, error);
    arena_rewind(scratch, mark);
    return status;
}

eplb_status window_course_search(window_course *course, arena *scratch, eplb_error *error)
{
    bool all = false;
    eplb_status few = EPLB_OK;
    if (!layer_binds_groups(course->problem))
        few = window_course_all(course, &all, scratch, error);
    if (few != EPLB_OK || all)
        return few;
    eplb_status status = plan_greedily(course, scratch, error);
    if (status == EPLB_OK)
        status = window_course_bind(course, scratch, error);
    if (status == EPLB_OK)
        window_course_anneal(course, course->steps, HEAT, false, INT64_MAX);
    return status == EPLB_OK ? window_course_finish(course, course->steps, false, INT64_MAX, scratch, error)
                             : status;
}

/* A start that uses the replicas allowed outside; the greedy plan stays the start if groups do not fit. */
static eplb_status spill_start(window_course *course, double room, arena *scratch, eplb_error *error)
{
    const layer_problem *problem = course->problem;
    spill_nodes spill;
    eplb_status status = spill_nodes_choose(&spill, problem, &course->work, room, scratch, error);
    if (status != EPLB_OK || !spill.fits)
        return status;
    for (int32_t e = 0; e < problem->num_experts; e++)
        course->expert_area[e] = spill.group_node[e / (problem->num_experts / problem->num_groups)];
    return spill_nodes_place(&spill, problem, 0.0, course->found, scratch, error);
}

static const char spill_reason[] =
    "spill: replicas outside their group's node take what nodes cannot even out";

/* Compares `found` as it will be with its empty slots filled (plan_layers.c). */
static eplb_status fill_and_compare(window_course *course, arena *scratch, eplb_error *error)
{
    int64_t lacking;
    layer_problem fresh = *course->problem;
    layer_answer answer = {.expert = course->found, .bound = 1.0};
    fresh.current = NULL;
    fresh.max_moves = INT64_MAX;
    eplb_status status = EPLB_OK;
    if (fresh.split == EPLB_SPLIT_EQUAL)
        status = fill_slots_after(&fresh, &answer, &lacking, scratch, error);
    return status == EPLB_OK ? relabel_and_compare(course, spill_reason, scratch, error) : status;
}

/* Starts for equal shares of the sum: from the bound, then annealed between nodes, each searched on; fewer
 * where the bound is near. */
static eplb_status search_spilled(window_course *course, arena *scratch, eplb_error *error)
{
    static const double rooms[] = {0.9, 1.15, 0.8, 1.0};
    const int64_t starts = sizeof rooms / sizeof *rooms;
    bool found;
    double floor;
    eplb_status status = window_course_aim(course, scratch, error);
    if (status == EPLB_OK)
        status =
            equal_spill_plan(course->problem, &course->work, course->found, &found, &floor, scratch, error);
    if (status == EPLB_OK && found)
        status = fill_and_compare(course, scratch, error);
    if (status == EPLB_OK)
        status = plan_greedily(course, scratch, error);
    if (status == EPLB_OK)
        status = window_course_bind(course, scratch, error);
    for (int64_t i = 0; status == EPLB_OK && i < starts; i++) {
        bool near = i >= 2 && course->best_score <= floor * NEAR;
        if (layer_is_stopped(course->problem) || window_course_is_good(course) || near)
            break;
        status = spill_start(course, rooms[i], scratch, error);
        if (status != EPLB_OK)
            break;
        window_course_share_time(course, starts - i);
        window_course_anneal(course, course->steps, HEAT, false, INT64_MAX);
        status = fill_and_compare(course, scratch, error);
    }
    return status;
}

/* The search, with replicas outside their node where that is allowed. */
static eplb_status search_anew(window_course *course, bool spills, arena *scratch, eplb_error *error)
{
    if (spills && course->problem->num_windows == 1 && course->aim->any_share)
        return EPLB_OK; /* one window that is split anew needs no more than the weighted plans of spill.c */
    if (spills)
        return search_spilled(course, scratch, error);
    eplb_status status = window_course_aim(course, scratch, error);
    if (status == EPLB_OK)
        status = window_course_search(course, scratch, error);
    return status == EPLB_OK ? relabel_and_compare(course, course->aim->reason, scratch, error) : status;
}

/* What the windows say of the search: whether it may serve those that come better, and, of enough windows,
 * whether it did so when tried. */
static eplb_status try_search(window_course *course, bool *wins, bool *proved, arena *scratch,
                              eplb_error *error)
{
    const layer_problem *problem = course->problem;
    *wins = true;
    *proved = false;
    if (problem->num_windows == 1 || layer_is_stopped(problem))
        return EPLB_OK;
    eplb_status status = window_trial(problem, course->aim, course->steps, wins, scratch, error);
    *proved = *wins && problem->num_windows >= WINDOW_TRIAL_LEAST;
    return status;
}

static eplb_status plan_from_nothing(window_course *course, arena *scratch, eplb_error *error)
{
    const layer_problem *problem = course->problem;
    bool spills = problem->max_spill > 0 && layer_binds_groups(problem), wins = true, proved = false;
    eplb_status status = EPLB_OK;
    if (problem->target_imbalance > 0.0) { /* maybe nothing else is needed */
        status = window_course_on_sum(course, false, scratch, error);
        if (status != EPLB_OK || window_course_is_good(course))
            return status;
    }
    if (!spills)
        status = try_search(course, &wins, &proved, scratch, error);
    /* Where the search has won on windows not seen, the recorded ones speak for shares fitted to them. */
    if (status == EPLB_OK)
        status = window_course_on_sum(course, course->aim->any_share && !proved, scratch, error);
    if (status != EPLB_OK || !wins || layer_is_stopped(problem) || window_course_is_good(course))
        return status;
    return search_anew(course, spills, scratch, error);
}

static eplb_status plan_from_current(window_course *course, arena *scratch, eplb_error *error)
{
    const layer_problem *problem = course->problem;
    eplb_status status = keep_current(course, scratch, error);
    course->kept_empty = count_empty(course);
    if (status == EPLB_OK)
        status = window_course_compare(course, "the current placement stays", scratch, error);
    if (status != EPLB_OK)
        return status;
    /* A limit of all slots is one, too: more moves than another plan was allowed must not be worse. */
    bool stepwise = problem->max_moves < INT64_MAX || problem->target_imbalance > 0.0;
    if (!window_course_is_good(course) && stepwise)
        status = window_repair(course, scratch, error);
    if (status == EPLB_OK && !window_course_is_good(course) && problem->max_moves >= problem->num_slots)
        status = plan_from_nothing(course, scratch, error);
    return status != EPLB_OK ? status
                             : keep_slots(problem->first_slot, problem->num_ranks, problem->num_experts,
                                          problem->current, course->best, scratch, error);
}

/* What no placement with any shares comes below; with replicas outside their node, that without nodes. */
static eplb_status find_bound(window_course *course, double *bound, arena *scratch, eplb_error *error)
{
    layer_problem sum = from_nothing(course->problem, EPLB_SPLIT_WEIGHTED);
    if (course->problem->max_spill > 0 || course->best_excess > 0)
        sum.num_groups = 1;
    return window_course_weighted(course, &sum, bound, scratch, error);
}

/* What no placement with equal shares comes below that has no more replicas outside their node than
 * allowed. */
static eplb_status find_spill_bound(const window_course *course, double *bound, arena *scratch,
                                    eplb_error *error)
{
    spill_floor floor;
    const layer_problem *problem = course->problem;
    if (problem->split != EPLB_SPLIT_EQUAL || problem->max_spill == 0 || course->best_excess > 0 ||
        problem->total == 0 || !layer_binds_groups(problem))
        return EPLB_OK;
    eplb_status status = spill_floor_find(&floor, problem, scratch, error);
    *bound = status == EPLB_OK ? floor.level : 1.0;
    return status;
}

/* The layer without its groups where they do not fit on the nodes: other policies plan across nodes then, and
 * keeping to half of the nodes would lose to them. */
static eplb_status drop_misfits(layer_problem *problem, arena *scratch, eplb_error *error)
{
    bool fits;
    replica_work work;
    if (!layer_binds_groups(problem))
        return EPLB_OK;
    arena_mark mark = arena_position(scratch);
    int32_t *group_node = arena_take(scratch, (size_t)problem->num_groups, sizeof *group_node);
    if (group_node == NULL)
        return error_memory(error, (size_t)problem->num_groups * sizeof *group_node, "groups on nodes");
    eplb_status status = replica_work_init(&work, problem, scratch, error);
    if (status == EPLB_OK)
        status = group_nodes_choose(problem, &work, group_node, &fits, scratch, error);
    if (status == EPLB_OK && !fits)
        problem->num_groups = 1;
    arena_rewind(scratch, mark);
    return status;
}

eplb_status window_plan(const layer_problem *problem, const window_aim *aim, arena *scratch,
                        layer_answer *answer, eplb_error *error)
{
    layer_problem placed = *problem;
    window_course course = {
        .problem = &placed, .aim = aim, .until = 1.0, .bound = 1.0, .kept_empty = problem->num_slots};
    if (!problem->plain_cost)
        return error_text(error, EPLB_ERROR_UNSUPPORTED,
                          "policy %s: it plans for tokens only, not for tiles or activated replicas",
                          aim->name);
    eplb_status status = drop_misfits(&placed, scratch, error);
    if (status == EPLB_OK)
        status = window_course_init(&course, scratch, error);
    if (status == EPLB_OK)
        status = problem->current != NULL ? plan_from_current(&course, scratch, error)
                                          : plan_from_nothing(&course, scratch, error);
    if (status == EPLB_OK && aim->any_share && problem->total > 0)
        status = find_bound(&course, &answer->bound, scratch, error);
    if (status == EPLB_OK)
        status = find_spill_bound(&course, &answer->bound, scratch, error);
    if (status != EPLB_OK)
        return status;
    memcpy(answer->expert, course.best, (size_t)problem->num_slots * sizeof(int32_t));
    answer->reason = course.reason;
    return EPLB_OK;
}
