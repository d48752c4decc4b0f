/* Repair of a placement for many windows, for more and more moves.
 *
 * Budgets 1, 2, 3, 4, 6, 8, 12 ... are worked through in turn, each from the best of the one before: changes
 * of most gain per received expert, judged by the windows one by one, then annealing, then what a repair on
 * the sum finds. What a budget finds does not depend on how many moves are allowed beyond it, so that more
 * moves never make a plan worse. With a target imbalance the first state on this way that the windows judge
 * to be there is the answer. Cost: a third of a search per budget. */
#include <string.h>

#include "base/error.h"
#include "plan/policies.h"
#include "plan/window_course.h"

#define STEPS_PART  3
#define REPAIR_HEAT 0.0003

static int64_t next_budget(int64_t budget)
{
    bool power = (budget & (budget - 1)) == 0;
    return budget < 4 ? budget + 1 : power ? budget + budget / 2 : budget / 3 * 4;
}

/* From the best, until more than `budget` were received or nothing helps. Every state on the way is
 * judged. */
static eplb_status descend(window_course *course, int64_t budget, arena *scratch, eplb_error *error)
{
    const layer_problem *problem = course->problem;
    risk_search *search = &course->search;
    eplb_status status = EPLB_OK;
    layout_set(&course->seats, course->best);
    search->home = course->home;
    search->purse = INT64_MAX; /* the way does not depend on the budget, only its end */
    search->max_outside = problem->max_spill;
    risk_search_read(search);
    for (int32_t i = 0; status == EPLB_OK && i < 2 * problem->num_slots; i++) {
        if (layer_is_stopped(problem) || !risk_search_improve(search) || search->received > budget)
            break;
        memcpy(course->found, course->seats.expert, (size_t)problem->num_slots * sizeof(int32_t));
        status = window_course_compare(course, "repair: most gain per move first", scratch, error);
        if (window_course_is_good(course))
            break;
    }
    return status;
}

/* How many budgets there are from this one on. */
static int64_t budgets_left(const layer_problem *problem, int64_t budget)
{
    int64_t most = problem->max_moves < problem->num_slots ? problem->max_moves : problem->num_slots,
            left = 1;
    while ((budget = next_budget(budget)) <= most)
        left++;
    return left;
}

static eplb_status anneal(window_course *course, int64_t budget, arena *scratch, eplb_error *error)
{
    if (window_course_is_good(course))
        return EPLB_OK;
    memcpy(course->found, course->best, (size_t)course->problem->num_slots * sizeof(int32_t));
    window_course_share_time(course, budgets_left(course->problem, budget));
    window_course_anneal(course, course->steps / STEPS_PART, REPAIR_HEAT, true, budget);
    if (course->search.received > budget)
        return EPLB_OK;
    eplb_status status =
        window_course_finish(course, course->steps / STEPS_PART, true, budget, scratch, error);
    return status == EPLB_OK
               ? window_course_compare(course, "repair: a search within the moves", scratch, error)
               : status;
}

/* What the policy for the sum makes of so many moves in so much work; it may need more moves to serve every
 * expert. */
static eplb_status repair_sum(window_course *course, int64_t budget, int64_t work, arena *scratch,
                              eplb_error *error)
{
    layer_problem sum = *course->problem;
    layer_answer answer = {.expert = course->found, .bound = 1.0};
    eplb_error ignored;
    if (window_course_is_good(course))
        return EPLB_OK;
    if (sum.num_windows > 1)
        sum.target_imbalance = 0.0; /* it is one for windows */
    sum.num_windows = 1;
    sum.window_load = sum.load;
    sum.max_moves = budget;
    if (course->best_excess > 0)
        sum.max_spill = 0; /* they go back; else they may stay */
    sum.work_limit = work;
    sum.split = course->aim->any_share ? EPLB_SPLIT_WEIGHTED : EPLB_SPLIT_EQUAL;
    memset(course->found, -1, (size_t)sum.num_slots * sizeof(int32_t));
    eplb_status status = course->aim->any_share
                             ? window_course_weighted(course, &sum, NULL, scratch, &ignored)
                             : plan_layer_equal(&sum, scratch, &answer, &ignored);
    if (status == EPLB_ERROR_INFEASIBLE)
        return EPLB_OK;
    if (status != EPLB_OK)
        return error_memory(error, (size_t)sum.num_slots * sizeof(int64_t), "repair on the sum");
    layout_set(&course->seats, course->found);
    course->search.home = course->home;
    risk_search_read(&course->search);
    if (course->search.received > budget)
        return EPLB_OK;
    return window_course_compare(course, "repair of the plan on the sum", scratch, error);
}

/* One budget, from the best of the one before. With a target every budget counts, else the plans on the sum
 * are made for every other one. */
static eplb_status work_through(window_course *course, int64_t budget, bool search, arena *scratch,
                                eplb_error *error)
{
    eplb_status status = EPLB_OK;
    if (search)
        status = descend(course, budget, scratch, error);
    if (status == EPLB_OK && search)
        status = anneal(course, budget, scratch, error);
    if (status == EPLB_OK && (course->problem->target_imbalance > 0.0 || (budget & (budget - 1)) == 0))
        status = repair_sum(course, budget, course->steps / STEPS_PART, scratch, error);
    return status;
}

eplb_status window_repair(window_course *course, arena *scratch, eplb_error *error)
{
    const layer_problem *problem = course->problem;
    int64_t most = problem->max_moves < problem->num_slots ? problem->max_moves : problem->num_slots;
    eplb_status status = window_course_aim(course, scratch, error);
    if (status == EPLB_OK)
        status = window_course_bind(course, scratch, error);
    bool wins = true;
    if (status == EPLB_OK && most > 0)
        status = window_trial(problem, course->aim, course->steps, &wins, scratch, error);
    arena_mark mark = arena_position(scratch);
    for (int64_t budget = 1; status == EPLB_OK && budget <= most; budget = next_budget(budget)) {
        if (layer_is_stopped(problem) || window_course_is_good(course))
            return status;
        status = work_through(course, budget, wins, scratch, error);
        arena_rewind(scratch, mark);
    }
    if (status == EPLB_OK && wins && !window_course_is_good(course))
        status = descend(course, most, scratch, error);
    /* One window is its sum: the repair that knows nothing else gets all moves and its own time. */
    return status == EPLB_OK && most > 0 && problem->num_windows == 1
               ? repair_sum(course, most, problem->work_limit, scratch, error)
               : status;
}
