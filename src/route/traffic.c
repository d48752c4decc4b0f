/* Traffic: what a dispatch of given slots sends. A token goes to each rank once, so its earlier choices are
 * looked through for the same rank; top-k is small, which makes that cheaper than any table. O(N K^2), no
 * memory. */
#include <eplb/route.h>

#include "base/error.h"

static eplb_status check(const eplb_topology *topology, const int32_t *slots, int64_t num_tokens,
                         int32_t width, const int32_t *source, eplb_error *error)
{
    int32_t num_slots = eplb_topology_num_slots(topology), ranks = eplb_topology_num_ranks(topology);
    if (num_tokens < 0 || width < 0)
        return error_text(error, EPLB_ERROR_INVALID, "%lld tokens of %d choices", (long long)num_tokens,
                          width);
    for (int64_t t = 0; t < num_tokens; t++) {
        if (source[t] < 0 || source[t] >= ranks)
            return error_set(error, EPLB_ERROR_INVALID, (error_place){-1, -1, source[t], -1, t},
                             "token %lld: source rank %d, expected 0 to %d", (long long)t, source[t],
                             ranks - 1);
    }
    for (int64_t i = 0; i < num_tokens * width; i++) {
        if (slots[i] < -1 || slots[i] >= num_slots)
            return error_set(error, EPLB_ERROR_INVALID, (error_place){-1, -1, -1, slots[i], i},
                             "token %lld, choice %lld: slot %d, expected -1 to %d", (long long)(i / width),
                             (long long)(i % width), slots[i], num_slots - 1);
    }
    return EPLB_OK;
}

/* One token: its distinct ranks and nodes. */
static void add_token(const eplb_topology *topology, const int32_t *slots, int32_t width, int32_t source,
                      eplb_traffic *traffic, int64_t *matrix)
{
    const int32_t *slot_rank = eplb_topology_slot_rank(topology),
                  *rank_node = eplb_topology_rank_node(topology);
    for (int32_t k = 0; k < width; k++) {
        if (slots[k] < 0)
            continue;
        traffic->pairs++;
        int32_t rank = slot_rank[slots[k]], node = rank_node[rank];
        bool new_rank = true, new_node = true;
        for (int32_t j = 0; j < k && new_rank; j++) {
            if (slots[j] < 0)
                continue;
            new_rank = slot_rank[slots[j]] != rank;
            new_node = new_node && rank_node[slot_rank[slots[j]]] != node;
        }
        if (!new_rank)
            continue;
        traffic->rank_sends++;
        traffic->cross_rank += rank != source;
        traffic->node_sends += new_node;
        traffic->cross_node += new_node && node != rank_node[source];
        if (matrix != NULL)
            matrix[(int64_t)source * eplb_topology_num_ranks(topology) + rank]++;
    }
}

eplb_status eplb_traffic_add(const eplb_topology *topology, const int32_t *slots, int64_t num_tokens,
                             int32_t width, const int32_t *source, eplb_traffic *traffic, int64_t *matrix,
                             eplb_error *error)
{
    eplb_status status = check(topology, slots, num_tokens, width, source, error);
    if (status != EPLB_OK)
        return status;
    for (int64_t t = 0; t < num_tokens; t++)
        add_token(topology, slots + t * width, width, source[t], traffic, matrix);
    traffic->tokens += num_tokens;
    return EPLB_OK;
}
