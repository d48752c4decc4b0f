/* The frontier of a plan, by plans with a doubling budget. Every point is a plan that `--max-moves` gives, so
 * that whoever chooses one gets it; eplb/frontier.h follows a layer's moves one by one, faster and a little
 * short of what a plan finds. */
#include "frontier.h"

#include <stdlib.h>

#include "failure.h"
#include "report/summary.h"
#include "window_spread.h"

enum { MOST_POINTS = 40 }; /* budgets double: more than any number of slots needs */

/* The plan's imbalance: on the sum, or over the windows where there are several. */
static eplb_status describe(const eplb_load *load, const eplb_plan *plan, int64_t max_moves,
                            io_frontier_point *point, eplb_error *error)
{
    const eplb_placement *placement = eplb_plan_placement(plan);
    eplb_move_count moves = eplb_plan_moves(plan);
    summary s = summarize(eplb_plan_imbalance(plan), eplb_placement_num_layers(placement));
    *point = (io_frontier_point){max_moves, moves.received, moves.cross_node, s.mean, s.worst};
    if (eplb_load_num_windows(load) == 1)
        return EPLB_OK;
    const double *shares = eplb_plan_split(plan) == EPLB_SPLIT_WEIGHTED ? eplb_plan_shares(plan) : NULL;
    window_spread spread;
    eplb_status status =
        window_spread_measure(load, placement, eplb_plan_split(plan), shares, &spread, error);
    if (status != EPLB_OK)
        return status;
    point->mean = spread.mean;
    point->worst = spread.worst;
    window_spread_clear(&spread);
    return EPLB_OK;
}

/* Appends the point unless one with no more moves is as good. */
static void append(io_document *document, io_frontier_point point)
{
    const io_frontier_point *last =
        document->num_frontier > 0 ? &document->frontier[document->num_frontier - 1] : NULL;
    if (last == NULL || point.mean < last->mean)
        document->frontier[document->num_frontier++] = point;
}

int frontier_trace(const command *self, const eplb_load *load, const eplb_topology *topology,
                   const eplb_plan_params *params, io_document *document)
{
    eplb_plan_params bounded = *params;
    int64_t limit = params->max_moves_per_layer, slots = eplb_topology_num_slots(topology), budget = 0;
    bool more = true;
    bounded.progress = NULL;
    bounded.target_imbalance = 0.0; /* what is possible, also beyond it */
    document->frontier = malloc(MOST_POINTS * sizeof *document->frontier);
    document->num_frontier = 0;
    if (document->frontier == NULL)
        return fail_memory(self);
    limit = limit < 0 || limit > slots ? slots : limit;
    for (int64_t received = -1; more; budget = budget == 0 ? 1 : 2 * budget) {
        eplb_plan *plan;
        eplb_error error;
        bounded.max_moves_per_layer = budget < limit ? budget : limit;
        eplb_status status = eplb_plan_create(&plan, load, topology, &bounded, NULL, &error);
        more = budget < limit;
        if (status == EPLB_ERROR_INFEASIBLE && more) /* lost experts need more moves than these */
            continue;
        if (status != EPLB_OK)
            return fail_library(self, &error);
        io_frontier_point point;
        status = describe(load, plan, bounded.max_moves_per_layer, &point, &error);
        eplb_plan_destroy(plan);
        if (status != EPLB_OK)
            return fail_library(self, &error);
        append(document, point);
        if (budget > 0 && point.received <= received) /* more moves find nothing: only all may */
            budget = limit;
        received = point.received;
    }
    return PARSED;
}
