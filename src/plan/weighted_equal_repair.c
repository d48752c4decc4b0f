/* Repair for the weighted split by way of policy equal.
 *
 * With few spare slots there is little to share: experts have to change places, which weighted_repair.c, led
 * by the one set of ranks that binds, does badly. Policy equal (repair.c) sees all ranks above a goal at
 * once. Its placement under the best shares is never worse than under equal ones, and the moves that it
 * leaves go on from there. Cost: that of repair in policy equal. */
#include "plan/weighted_equal_repair.h"

#include <string.h>

#include "base/error.h"
#include "plan/policies.h"

/* Whether a placement keeps to the moves and leaves no more replicas outside their node than the origin has
 * or may have. */
static bool keeps_limits(const layer_problem *problem, const weighted_repair_limits *limits,
                         const int32_t *expert)
{
    int64_t received = 0, outside = 0;
    for (int32_t p = 0; p < problem->num_slots; p++) {
        int32_t e = expert[p], rank = problem->slot_rank[p];
        if (e < 0)
            continue;
        received += !layer_holds(problem, limits->origin, rank, e) &&
                    !layer_is_cut_off(problem, limits->cut_off, rank, e);
        outside += limits->node_of_expert != NULL && limits->node_of_expert[e] != problem->rank_node[rank];
    }
    return received <= limits->max_moves && outside <= problem->max_spill;
}

eplb_status weighted_equal_repair(const layer_problem *problem, const weighted_repair_limits *limits,
                                  int64_t moves, arena *scratch, layer_answer *answer,
                                  weighted_repair_result *result, bool *found, eplb_error *error)
{
    arena_mark mark = arena_position(scratch);
    layer_problem equal = *problem;
    layer_answer placed = {.expert = answer->expert, .bound = 1.0};
    eplb_error refused;
    equal.split = EPLB_SPLIT_EQUAL;
    equal.max_moves = moves;
    equal.num_windows = 1;
    equal.window_load = equal.load;
    memset(answer->expert, -1, (size_t)problem->num_slots * sizeof *answer->expert);
    eplb_status status = plan_layer_equal(&equal, scratch, &placed, &refused);
    arena_rewind(scratch, mark);
    *found = status == EPLB_OK && keeps_limits(problem, limits, answer->expert);
    if (status != EPLB_OK && status != EPLB_ERROR_INFEASIBLE && status != EPLB_ERROR_UNSUPPORTED) {
        if (error != NULL)
            *error = refused;
        return status;
    }
    if (*found && !weighted_repair(problem, limits, scratch, answer, result))
        return error_memory(error, (size_t)problem->num_slots * sizeof(int64_t), "the weighted planner");
    return EPLB_OK;
}
