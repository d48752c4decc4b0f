/* Policy `batch`: a placement for engines that re-split every batch exactly (eplb/route.h).
 *
 * The least maximum of a batch is T* = max over expert sets of load / reachable ranks. On recorded traffic
 * the set that binds is nearly always the experts pinned to one rank, those without a second replica: so
 * redundancy goes where it frees the ranks' pinned load in mean and deviation, most of every mean levelled
 * since the future looks less like the past than the mean does. Of the results the exact T* of the windows
 * chooses. Cost: window_plan.c, and one min-max split per window and result. */
#include "base/error.h"
#include "plan/batch_join.h"
#include "plan/batch_split.h"
#include "plan/policies.h"
#include "plan/window_plan.h"

eplb_status batch_search(const layer_problem *problem, arena *scratch, layer_answer *answer,
                         eplb_error *error)
{
    static const window_aim aim = {
        .name = "batch",
        .risk = {.caution = 0.4, .floating = 0.3, .room = 0.25, .power = 8},
        .level = 0.7,
        .score = batch_split_mean,
        .finish = batch_join,
        .any_share = true,
        .reason = "batches are split anew: replicas free the ranks' pinned load",
    };
    eplb_status status = window_plan(problem, &aim, scratch, answer, error);
    return status == EPLB_OK ? batch_split_quota(problem, answer, scratch, error) : status;
}

eplb_status plan_layer_batch(const layer_problem *problem, arena *scratch, layer_answer *answer,
                             eplb_error *error)
{
    if (problem->split != EPLB_SPLIT_BATCH)
        return error_text(error, EPLB_ERROR_UNSUPPORTED,
                          "policy batch: it plans for engines that split every batch (split batch)");
    bool spills = problem->max_spill > 0 && layer_binds_groups(problem);
    return spills && problem->plain_cost && problem->total > 0
               ? plan_layer_spill(problem, scratch, answer, error)
               : batch_search(problem, scratch, answer, error);
}
