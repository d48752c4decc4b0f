/* Policy `windows`: equal split over many recorded windows.
 *
 * A plan that is perfect on the sum is 1.1 to 1.4 on single steps, because experts that are hot together sit
 * on one rank. What is minimised here is the risk of every rank: its mean and standard deviation over windows
 * as window_risk.c estimates them for windows to come. Cost: window_plan.c. */
#include "base/error.h"
#include "plan/equal_bounds.h"
#include "plan/policies.h"
#include "plan/window_plan.h"

/* Imbalance of one window; 0 without tokens. `tokens` [E] is scratch for load / count, `rank` [G]. */
static double imbalance_of(const layer_problem *problem, const int64_t *load, const int32_t *expert,
                           const int32_t *count, double *rank)
{
    double total = 0.0, most = 0.0;
    for (int32_t e = 0; e < problem->num_experts; e++)
        total += (double)load[e];
    if (!(total > 0.0))
        return 0.0;
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        rank[g] = 0.0;
        for (int32_t p = problem->first_slot[g]; p < problem->first_slot[g + 1]; p++) {
            if (expert[p] >= 0)
                rank[g] += (double)load[expert[p]] / (double)count[expert[p]];
        }
        double time = rank[g] / (double)problem->rank_speed[g];
        most = time > most ? time : most;
    }
    return most / (total / (double)problem->total_speed);
}

static eplb_status mean_imbalance(const layer_problem *problem, const int32_t *expert, double *mean,
                                  arena *scratch, eplb_error *error)
{
    int32_t *count = arena_take_zero(scratch, (size_t)problem->num_experts, sizeof *count);
    double *rank = arena_take(scratch, (size_t)problem->num_ranks, sizeof *rank);
    if (count == NULL || rank == NULL)
        return error_memory(error, (size_t)problem->num_experts * sizeof *count, "window imbalance");
    for (int32_t p = 0; p < problem->num_slots; p++) {
        if (expert[p] >= 0)
            count[expert[p]]++;
    }
    double sum = 0.0;
    int32_t windows = 0;
    for (int32_t t = 0; t < problem->num_windows; t++) {
        double imbalance = imbalance_of(
            problem, problem->window_load + (size_t)t * (size_t)problem->num_experts, expert, count, rank);
        sum += imbalance;
        windows += imbalance > 0.0;
    }
    *mean = windows > 0 ? sum / (double)windows : 1.0;
    return EPLB_OK;
}

eplb_status plan_layer_windows(const layer_problem *problem, arena *scratch, layer_answer *answer,
                               eplb_error *error)
{
    static const window_aim aim = {
        .name = "windows",
        .risk = {.caution = 1.5, .floating = 1.0, .power = 24},
        .level_on_drift = 0.25,
        .score = mean_imbalance,
        .reason = "many windows: experts that are hot together go apart",
    };
    if (problem->split != EPLB_SPLIT_EQUAL)
        return error_text(error, EPLB_ERROR_UNSUPPORTED, "policy windows: it plans for the equal split only");
    if ((problem->num_windows == 1 && problem->max_spill == 0) || problem->total == 0)
        return plan_layer_equal(problem, scratch, answer, error);
    replica_work work;
    equal_bounds bounds;
    eplb_status status = window_plan(problem, &aim, scratch, answer, error);
    if (status == EPLB_OK)
        status = replica_work_init(&work, problem, scratch, error);
    if (status == EPLB_OK)
        status = equal_bounds_find(&bounds, problem, &work, scratch, error);
    if (status == EPLB_OK && bounds.imbalance > answer->bound)
        answer->bound = bounds.imbalance; /* of the sum, as the plan's metrics are */
    return status;
}
