/* Policy `spill`: node-limited groups, of which a few replicas may live outside their group's node.
 *
 * With equal split and with batches split anew the search of window_plan.c runs under that limit, from a
 * start that spends it between nodes first (spill_nodes.c). Weighted shares come from an exact split over the
 * placement found that way; the plan without spilling is taken where it is as good. Without groups, nodes or
 * replicas to spill the layer is planned as `auto` does. */
#include <string.h>

#include "base/error.h"
#include "plan/batch_split.h"
#include "plan/policies.h"
#include "plan/spill_nodes.h"

/* The placement with spilled replicas; *fits false: groups do not fit on the nodes. */
static eplb_status place_spilled(const layer_problem *problem, double room, int32_t *expert, bool *fits,
                                 arena *scratch, eplb_error *error)
{
    replica_work work;
    spill_nodes spill;
    eplb_status status = replica_work_init(&work, problem, scratch, error);
    if (status == EPLB_OK)
        status = spill_nodes_choose(&spill, problem, &work, true, room, scratch, error);
    *fits = status == EPLB_OK && spill.fits;
    return *fits ? spill_nodes_place_weighted(&spill, problem, expert, scratch, error) : status;
}

/* The best of the weighted plan without spilling and of those with. */
static eplb_status plan_weighted(const layer_problem *problem, arena *scratch, layer_answer *answer,
                                 eplb_error *error)
{
    static const double rooms[] = {0.7, 0.8, 0.9, 1.0, 1.15};
    size_t slots = (size_t)problem->num_slots;
    int32_t *spilled = arena_take(scratch, slots, sizeof *spilled);
    if (spilled == NULL)
        return error_memory(error, slots * sizeof *spilled, "a plan with spilled replicas");
    double best, next;
    bool better = false, fits = problem->max_moves >= problem->num_slots;
    eplb_status status = plan_layer_weighted(problem, scratch, answer, error);
    if (status == EPLB_OK)
        status = batch_split_mean(problem, answer->expert, &best, scratch, error);
    answer->bound = 1.0; /* that of the plan inside nodes does not hold outside */
    for (size_t i = 0; status == EPLB_OK && fits && i < sizeof rooms / sizeof *rooms; i++) {
        status = place_spilled(problem, rooms[i], spilled, &fits, scratch, error);
        if (status == EPLB_OK && fits)
            status = batch_split_mean(problem, spilled, &next, scratch, error);
        if (status != EPLB_OK || !fits || next >= best)
            continue;
        best = next;
        better = true;
        memcpy(answer->expert, spilled, slots * sizeof *spilled);
    }
    if (status != EPLB_OK || !better)
        return status;
    memset(answer->quota, 0, slots * sizeof(int64_t));
    answer->reason = "spill: replicas outside their group's node take what nodes cannot even out";
    return batch_split_quota(problem, answer, scratch, error);
}

eplb_status plan_layer_spill(const layer_problem *problem, arena *scratch, layer_answer *answer,
                             eplb_error *error)
{
    if (problem->num_groups <= 1 || problem->num_nodes <= 1 || problem->max_spill == 0 || problem->total == 0)
        return plan_layer_auto(problem, scratch, answer, error);
    switch (problem->split) {
    case EPLB_SPLIT_WEIGHTED:
        return plan_weighted(problem, scratch, answer, error);
    case EPLB_SPLIT_BATCH:
        return plan_layer_batch(problem, scratch, answer, error);
    default:
        return plan_layer_windows(problem, scratch, answer, error);
    }
}
