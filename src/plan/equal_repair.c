/* Equal split from a current placement, and what it reaches with how many moves.
 *
 * Repair first, in order of gain per received expert; what that cannot reach is tried by search and by a
 * replan from nothing with ranks relabelled, each within the allowed moves. The frontier is what the descents
 * of repair pass on their way. Never worse than keeping. Costs: docs/planning/repair.md. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "plan/equal_plan.h"
#include "plan/equal_search.h"
#include "plan/keep_slots.h"
#include "plan/policies.h"
#include "plan/relabel.h"
#include "plan/repair.h"

#define STEPWISE_SLOTS 160   /* of layers whose repair is tried with fewer moves, too */
#define MISLED         0.002 /* of the maximum: so much worse more moves may be */
#define LIMITED_PART   8
/* Of the mean: without a limit or a target, more received experts must lower the hottest rank by more. */
#define HAIR 1e-3

static void visit_plan(void *context, const repair *state, double hottest)
{
    equal_plan *plan = context;
    const char *reason = state->moves > state->forced ? "repair: most balance per received expert first"
                         : state->doubles > 0
                             ? "repair: the current placement stays, but for experts twice on a rank"
                             : "repair: the current placement stays";
    equal_plan_keep(plan, hottest, state->moves, reason);
}

/* Searches on from the best placement, within the moves where they are limited. */
static eplb_status search_on(equal_plan *plan, const repair *state, int64_t max_moves, arena *scratch,
                             eplb_error *error)
{
    double hottest;
    bool limited = max_moves != INT64_MAX;
    /* With prices no swap is good enough to stop looking, and few moves soon leave nothing to find. */
    int64_t work = limited ? plan->work_limit / LIMITED_PART : plan->work_limit;
    equal_search_limits limits = {plan->floor, plan->goal, work, plan->moves, max_moves};
    layout_set(&plan->seats, plan->best);
    plan->around.home = limited ? state->home : NULL;
    eplb_status status = equal_search(&plan->around, plan->problem, &limits, &hottest, scratch, error);
    if (status == EPLB_OK && repair_received(state) <= max_moves)
        equal_plan_keep(plan, hottest, repair_received(state), "repair, then search over counts and places");
    return status;
}

/* True if groups are bound to nodes and the best placement does not keep to that. */
static bool is_scattered(const equal_plan *plan)
{
    const layer_problem *problem = plan->problem;
    if (!layer_binds_groups(problem) || problem->max_spill > 0)
        return false;
    return plan->areas.rank_area == NULL || !equal_plan_is_inside(plan, plan->best);
}

/* Plans from nothing and relabels the ranks; taken if the moves allow it and it is better, or brings together
 * groups that are scattered over nodes. */
static eplb_status replan(equal_plan *plan, const repair *state, bool scattered, arena *scratch,
                          eplb_error *error)
{
    double hottest, goal = plan->goal;
    int32_t *expert = arena_take(scratch, (size_t)plan->problem->num_slots, sizeof *expert);
    if (expert == NULL)
        return error_memory(error, (size_t)plan->problem->num_slots * sizeof *expert, "replan");
    eplb_status status = equal_plan_aim(plan, false, scratch, error);
    if (status == EPLB_OK)
        status = equal_plan_anew(plan, &hottest, scratch, error);
    if (status != EPLB_OK)
        return status;
    memcpy(expert, plan->seats.expert, (size_t)plan->problem->num_slots * sizeof *expert);
    status = relabel_ranks(plan->problem, plan->areas.rank_area, state->home, plan->seats.words, expert,
                           scratch, error);
    if (status != EPLB_OK)
        return status;
    for (int32_t p = 0; p < plan->problem->num_slots; p++) { /* groups went along with their nodes */
        if (plan->areas.rank_area != NULL && expert[p] >= 0)
            plan->areas.expert_area[expert[p]] = plan->areas.rank_area[plan->problem->slot_rank[p]];
    }
    layout_set(&plan->seats, expert);
    int64_t received = repair_received(state);
    plan->goal = goal; /* compared as the repairs were */
    if (received <= plan->problem->max_moves && scattered && plan->areas.rank_area != NULL)
        plan->hottest = INFINITY;
    if (received <= plan->problem->max_moves)
        equal_plan_keep(plan, hottest, received, "replan from nothing, ranks relabelled for most overlap");
    return EPLB_OK;
}

/* Moves are left, or ranks may have back what they let go. */
static bool may_change(const layer_problem *problem, const repair *state, int64_t max_moves)
{
    return state->forced < max_moves || problem->cut_off != NULL || problem->fresh != NULL;
}

/* What must not be exceeded for more moves to be worth looking for. */
static double good_enough(const equal_plan *plan)
{
    return plan->floor + plan->hair > plan->goal ? plan->floor + plan->hair : plan->goal;
}

/* Repairs and searches within so many moves. */
static eplb_status repair_within(equal_plan *plan, repair *state, int64_t max_moves, arena *scratch,
                                 eplb_error *error)
{
    repair_sweep(state, plan->goal, max_moves, visit_plan, plan);
    return plan->hottest > good_enough(plan) && may_change(plan->problem, state, max_moves)
               ? search_on(plan, state, max_moves, scratch, error)
               : EPLB_OK;
}

/* The next number of moves that is tried: up to 8 all, then every fourth part of a power of two. */
static int64_t next_budget(int64_t budget)
{
    int64_t step = 1;
    while (step * 8 <= budget)
        step *= 2;
    return budget + step;
}

/* A placement that was the best, kept aside while another number of moves is tried. */
typedef struct aside {
    int32_t *expert; /* [S] */
    double hottest;
    int64_t moves;
    const char *reason;
} aside;

static void set_aside(aside *kept, const equal_plan *plan)
{
    memcpy(kept->expert, plan->best, (size_t)plan->problem->num_slots * sizeof *kept->expert);
    kept->hottest = plan->hottest;
    kept->moves = plan->moves;
    kept->reason = plan->reason;
}

static void take_back(equal_plan *plan, const aside *kept)
{
    memcpy(plan->best, kept->expert, (size_t)plan->problem->num_slots * sizeof *plan->best);
    plan->hottest = kept->hottest;
    plan->moves = kept->moves;
    plan->reason = kept->reason;
}

/* In small layers one more move can mislead a search: fewer moves, from half of them on, are tried as well,
 * and a placement with fewer is taken where it is clearly better. */
static eplb_status repair_in_steps(equal_plan *plan, repair *state, arena *scratch, eplb_error *error)
{
    int64_t most = plan->problem->max_moves, start = most / 2;
    size_t slots = (size_t)plan->problem->num_slots;
    aside fewer = {.hottest = INFINITY, .expert = arena_take(scratch, slots, sizeof(int32_t))};
    if (fewer.expert == NULL)
        return error_memory(error, slots * sizeof(int32_t), "repair with fewer moves");
    for (int64_t moves = start > state->forced ? start : state->forced + 1; moves < most;
         moves = next_budget(moves)) {
        plan->hottest = INFINITY;
        eplb_status status = repair_within(plan, state, moves, scratch, error);
        if (status != EPLB_OK || plan->hottest <= good_enough(plan))
            return status;
        if (plan->hottest < fewer.hottest)
            set_aside(&fewer, plan);
    }
    plan->hottest = INFINITY;
    eplb_status status = repair_within(plan, state, most, scratch, error);
    if (status == EPLB_OK && fewer.hottest < plan->hottest * (1 - MISLED))
        take_back(plan, &fewer);
    return status;
}

eplb_status equal_plan_repair(equal_plan *plan, arena *scratch, eplb_error *error)
{
    repair state;
    const layer_problem *problem = plan->problem;
    eplb_status status = equal_plan_aim(plan, true, scratch, error);
    if (status == EPLB_OK)
        status = repair_init(&state, &plan->around, problem, scratch, error);
    if (status != EPLB_OK)
        return status;
    if (problem->max_spill == 0)
        status = repair_mend_areas(&state, scratch, error);
    if (status != EPLB_OK)
        return status;
    if (problem->max_moves == INT64_MAX && problem->target_imbalance <= 0)
        plan->hair = HAIR * (plan->work.least_total / (double)problem->total_speed);
    bool stepwise = problem->max_moves != INT64_MAX && problem->num_slots <= STEPWISE_SLOTS;
    status = stepwise && problem->target_imbalance <= 0
                 ? repair_in_steps(plan, &state, scratch, error)
                 : repair_within(plan, &state, problem->max_moves, scratch, error);
    bool scattered = is_scattered(plan);
    if (status == EPLB_OK && (plan->hottest > good_enough(plan) || scattered) &&
        problem->max_moves > problem->num_experts / 4)
        status = replan(plan, &state, scattered, scratch, error);
    if (status != EPLB_OK)
        return status;
    return keep_slots(problem->first_slot, problem->num_ranks, problem->num_experts, problem->current,
                      plan->best, scratch, error);
}

/* The least hottest rank for each number of moves, [S + 1]; INFINITY where not seen. */
typedef struct frontier_record {
    double *hottest;
    int64_t most;
} frontier_record;

static void visit_frontier(void *context, const repair *state, double hottest)
{
    frontier_record *record = context;
    if (state->peak <= record->most && hottest < record->hottest[state->peak])
        record->hottest[state->peak] = hottest;
}

/* A replan's point, if it is within reach. */
static eplb_status record_replan(equal_plan *plan, const repair *state, frontier_record *record,
                                 arena *scratch, eplb_error *error)
{
    plan->hottest = INFINITY;
    plan->goal = 0;
    eplb_status status = replan(plan, state, false, scratch, error);
    if (status == EPLB_OK && plan->hottest < INFINITY && plan->hottest < record->hottest[plan->moves])
        record->hottest[plan->moves] = plan->hottest;
    return status;
}

eplb_status plan_frontier_equal(const layer_problem *paid, arena *scratch, frontier_point *points,
                                int32_t capacity, int32_t *num_points, eplb_error *error)
{
    const layer_problem whole = repair_problem(paid), *problem = &whole;
    equal_plan plan;
    repair state;
    frontier_record record = {arena_take(scratch, (size_t)problem->num_slots + 1, sizeof(double)),
                              problem->num_slots};
    if (record.hottest == NULL)
        return error_memory(error, (size_t)problem->num_slots * sizeof(double), "frontier");
    for (int32_t i = 0; i <= problem->num_slots; i++)
        record.hottest[i] = INFINITY;
    eplb_status status = equal_plan_init(&plan, problem, scratch, error);
    if (status == EPLB_OK)
        status = equal_plan_aim(&plan, true, scratch, error);
    if (status == EPLB_OK)
        status = repair_init(&state, &plan.around, problem, scratch, error);
    if (status != EPLB_OK)
        return status;
    int64_t most = problem->max_moves < problem->num_slots ? problem->max_moves : problem->num_slots;
    record.most = most;
    (void)repair_descend(&state, plan.goal, most, visit_frontier, &record);
    repair_levels(&state, plan.goal, most, visit_frontier, &record);
    if (most > problem->num_experts / 4)
        status = record_replan(&plan, &state, &record, scratch, error);
    double mean = plan.work.least_total / (double)problem->total_speed, least = INFINITY;
    *num_points = 0;
    for (int64_t m = 0; m <= most && status == EPLB_OK; m++) {
        if (!(record.hottest[m] < least) || *num_points == capacity)
            continue;
        least = record.hottest[m];
        points[(*num_points)++] = (frontier_point){m, mean > 0 ? least / mean : 1};
    }
    return status;
}
