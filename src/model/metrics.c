/* Metrics: rank loads and imbalance recomputed from loads, slots and shares alone, so that every claim of a
 * planner can be checked by code that knows nothing of it. One pass over the slots in ascending order fixes
 * the rounding. */
#include <eplb/metrics.h>

#include "base/error.h"
#include "base/memory.h"

static eplb_status check_sizes(const eplb_load *load, const eplb_placement *placement, eplb_error *error)
{
    if (eplb_load_num_layers(load) != eplb_placement_num_layers(placement))
        return error_text(error, EPLB_ERROR_INVALID, "the load has %d layers, the placement %d",
                          eplb_load_num_layers(load), eplb_placement_num_layers(placement));
    if (eplb_load_num_experts(load) != eplb_placement_num_experts(placement))
        return error_text(error, EPLB_ERROR_INVALID, "the load has %d experts, the placement %d",
                          eplb_load_num_experts(load), eplb_placement_num_experts(placement));
    return EPLB_OK;
}

static void add_slots(const eplb_placement *placement, int32_t layer, const int64_t *count,
                      const double *shares, double *rank_load)
{
    const eplb_topology *topology = eplb_placement_topology(placement);
    int32_t num_slots = eplb_placement_num_slots(placement),
            num_experts = eplb_placement_num_experts(placement);
    const int32_t *slots = eplb_placement_physical_to_logical(placement) + (size_t)layer * (size_t)num_slots;
    const int32_t *replicas = eplb_placement_replica_count(placement) + (size_t)layer * (size_t)num_experts;
    const int32_t *slot_rank = eplb_topology_slot_rank(topology);
    const uint8_t *alive = eplb_topology_rank_alive(topology);
    for (int32_t g = 0; g < eplb_topology_num_ranks(topology); g++)
        rank_load[g] = 0.0;
    for (int32_t p = 0; p < num_slots; p++) {
        int32_t e = slots[p], g = slot_rank[p];
        if (e < 0 || !alive[g])
            continue;
        double tokens = (double)count[e];
        rank_load[g] += shares != NULL ? tokens * shares[p] : tokens / (double)replicas[e];
    }
}

static void read_counts(const eplb_load *load, int32_t layer, int32_t window, int64_t *count)
{
    if (window < 0) {
        eplb_load_sum(load, layer, count);
        return;
    }
    for (int32_t e = 0; e < eplb_load_num_experts(load); e++)
        count[e] = eplb_load_at(load, window, layer, e);
}

eplb_status eplb_rank_load(const eplb_load *load, int32_t layer, int32_t window,
                           const eplb_placement *placement, const double *shares, double *rank_load,
                           const eplb_allocator *allocator, eplb_error *error)
{
    eplb_status status = check_sizes(load, placement, error);
    if (status != EPLB_OK)
        return status;
    if (layer < 0 || layer >= eplb_load_num_layers(load) || window < -1 ||
        window >= eplb_load_num_windows(load))
        return error_text(error, EPLB_ERROR_INVALID, "layer %d, window %d: expected below %d and %d", layer,
                          window, eplb_load_num_layers(load), eplb_load_num_windows(load));
    eplb_allocator chosen = memory_allocator(allocator);
    size_t experts = (size_t)eplb_load_num_experts(load);
    int64_t *count = memory_take(&chosen, experts, sizeof *count);
    if (count == NULL)
        return error_memory(error, experts * sizeof *count, "the counts of a layer");
    read_counts(load, layer, window, count);
    add_slots(placement, layer, count, shares, rank_load);
    memory_give(&chosen, count);
    return EPLB_OK;
}

double eplb_imbalance(const eplb_topology *topology, const double *rank_load)
{
    const uint8_t *alive = eplb_topology_rank_alive(topology);
    const int32_t *speed = eplb_topology_rank_speed(topology);
    double total = 0.0, total_speed = 0.0, most = 0.0;
    for (int32_t g = 0; g < eplb_topology_num_ranks(topology); g++) {
        if (!alive[g])
            continue;
        double time = rank_load[g] / (double)speed[g];
        total += rank_load[g];
        total_speed += (double)speed[g];
        if (time > most)
            most = time;
    }
    return total > 0.0 ? most / (total / total_speed) : 1.0;
}

eplb_status eplb_imbalance_per_layer(const eplb_load *load, const eplb_placement *placement,
                                     const double *shares, double *imbalance, const eplb_allocator *allocator,
                                     eplb_error *error)
{
    eplb_status status = check_sizes(load, placement, error);
    if (status != EPLB_OK)
        return status;
    const eplb_topology *topology = eplb_placement_topology(placement);
    eplb_allocator chosen = memory_allocator(allocator);
    size_t experts = (size_t)eplb_load_num_experts(load), ranks = (size_t)eplb_topology_num_ranks(topology);
    size_t slots = (size_t)eplb_placement_num_slots(placement);
    int64_t *count = memory_take(&chosen, experts + ranks, sizeof *count);
    if (count == NULL)
        return error_memory(error, (experts + ranks) * sizeof *count, "the counts of a layer");
    double *rank_load = (double *)(count + experts); /* both elements have 8 bytes */
    for (int32_t l = 0; l < eplb_load_num_layers(load); l++) {
        eplb_load_sum(load, l, count);
        add_slots(placement, l, count, shares != NULL ? shares + (size_t)l * slots : NULL, rank_load);
        imbalance[l] = eplb_imbalance(topology, rank_load);
    }
    memory_give(&chosen, count);
    return EPLB_OK;
}
