/* The live replicas of one layer: the placement's lists without the slots of dead ranks, and their shares
 * with every rule checked, so that no table is ever built from a share that cannot be served. O(S + E). */
#include "route/replicas.h"

#include <math.h>

#include "base/error.h"

void replicas_list(const eplb_placement *placement, int32_t layer, int32_t *first, int32_t *slot)
{
    const eplb_topology *topology = eplb_placement_topology(placement);
    const uint8_t *alive = eplb_topology_rank_alive(topology);
    const int32_t *slot_rank = eplb_topology_slot_rank(topology);
    size_t experts = (size_t)eplb_placement_num_experts(placement);
    size_t slots = (size_t)eplb_placement_num_slots(placement);
    const int32_t *all_first = eplb_placement_replica_first(placement) + (size_t)layer * (experts + 1);
    const int32_t *all = eplb_placement_replica_slots(placement) + (size_t)layer * slots;
    int32_t count = 0;
    for (size_t e = 0; e < experts; e++) {
        first[e] = count;
        for (int32_t i = all_first[e]; i < all_first[e + 1]; i++) {
            if (alive[slot_rank[all[i]]])
                slot[count++] = all[i];
        }
    }
    first[experts] = count;
}

eplb_status replicas_shares(const double *shares, int32_t layer, int32_t expert, const int32_t *slot,
                            int32_t count, double *share, eplb_error *error)
{
    double sum = 0.0;
    for (int32_t i = 0; i < count; i++) {
        share[i] = shares != NULL ? shares[slot[i]] : 1.0;
        if (!isfinite(share[i]) || share[i] < 0.0 || share[i] > 1e300)
            return error_set(error, EPLB_ERROR_INVALID, (error_place){layer, expert, -1, slot[i], -1},
                             "layer %d, expert %d, slot %d: share %g, expected a finite number >= 0", layer,
                             expert, slot[i], share[i]);
        sum += share[i];
    }
    if (count > 0 && !(sum > 0.0 && isfinite(sum)))
        return error_set(
            error, EPLB_ERROR_INVALID, (error_place){layer, expert, -1, -1, -1},
            "layer %d, expert %d: the shares of its %d live replicas sum to %g, expected a positive sum",
            layer, expert, count, sum);
    return EPLB_OK;
}

eplb_status replicas_check(const int32_t *first, int32_t num_experts, int32_t layer, eplb_error *error)
{
    for (int32_t e = 0; e < num_experts; e++) {
        if (first[e] == first[e + 1])
            return error_set(error, EPLB_ERROR_INVALID, (error_place){layer, e, -1, -1, -1},
                             "layer %d, expert %d: no replica on a live rank", layer, e);
    }
    return EPLB_OK;
}
