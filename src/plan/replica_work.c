/* Replica costs: tokens, tokens rounded up to tiles, an amount per activated replica, and mixtures of them.
 *
 * Each replica of an expert with load w and c replicas serves w / c tokens; its cost is
 * tokens * w/c + tiles * tile_tokens * ceil(w/c / tile_tokens) + activated * [w > 0]. Tiles are counted with
 * integers, so no rounding decides one. Where tokens cost nothing they break ties: all tokens of the layer
 * together cost half a unit, so that ranks with as many tiles or active replicas even out their tokens. O(1)
 * per replica. Prefill pays per token and tile (DeepGEMM's staircase), decode per activated replica (METRO,
 * arXiv 2512.09277). */
#include "plan/replica_work.h"

#include "base/error.h"

#define WORK_LIMIT 0x1p52

/* Cost of one replica before scaling. */
static double raw_cost(const eplb_cost *cost, double tie, int64_t load, int32_t count)
{
    if (load == 0)
        return 0;
    int64_t tile = cost->tile_tokens;
    int64_t per_tile = tile * count;
    int64_t tiles = load / per_tile + (load % per_tile != 0);
    return ((double)cost->tokens + tie) * ((double)load / count) +
           (double)cost->tiles * ((double)tile * (double)tiles) + (double)cost->activated;
}

double replica_work_mixed(const replica_work *work, int32_t expert, int32_t count)
{
    return (double)(int64_t)(raw_cost(&work->cost, work->tie, work->load[expert], count) * work->scale);
}

/* An upper bound of all work of the layer, whatever the counts. */
static double largest_total(const layer_problem *problem, double tie)
{
    if (problem->plain_cost)
        return (double)problem->total;
    double total = 0;
    for (int32_t e = 0; e < problem->num_experts; e++)
        total += raw_cost(&problem->cost, tie, problem->load[e], 1);
    double per_replica = (double)problem->cost.tiles * problem->cost.tile_tokens + problem->cost.activated;
    return total + per_replica * problem->num_slots;
}

eplb_status replica_work_init(replica_work *work, const layer_problem *problem, arena *scratch,
                              eplb_error *error)
{
    int32_t n = problem->num_experts;
    *work = (replica_work){problem->load, NULL, 1, problem->cost, problem->plain_cost, 0, 0};
    if (!problem->plain_cost && problem->cost.tokens == 0 && problem->total > 0)
        work->tie = 0.5 / (double)problem->total;
    work->tokens = arena_take(scratch, (size_t)n, sizeof *work->tokens);
    if (work->tokens == NULL)
        return error_memory(error, (size_t)n * sizeof *work->tokens, "scaled loads");
    double total = largest_total(problem, work->tie);
    while (total > 0 && total * work->scale * 2 < WORK_LIMIT)
        work->scale *= 2;
    while (total * work->scale >= WORK_LIMIT)
        work->scale *= 0.5;
    for (int32_t e = 0; e < n; e++) /* where tokens cost nothing, the scale would carry them past int64 */
        work->tokens[e] = work->plain ? (double)(int64_t)((double)problem->load[e] * work->scale) : 0.0;
    for (int32_t e = 0; e < n; e++)
        work->least_total += replica_work_at(work, e, 1);
    return EPLB_OK;
}
