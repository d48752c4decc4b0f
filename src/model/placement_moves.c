/* What it takes to go from one placement to another: slots that change, experts that ranks receive, and of
 * these those that cross nodes or have no live source. Holders are marked with stamps, so a layer costs O(S)
 * without clearing. */
#include <eplb/placement.h>

#include "base/error.h"
#include "base/memory.h"

/* Working arrays of one comparison. */
typedef struct comparison {
    const eplb_placement *before;
    const eplb_placement *after;
    int32_t *rank_stamp; /* [E] rank + 1 that last was seen to hold the expert */
    int32_t *node_first; /* [E + 1] CSR of nodes that hold each expert live, one layer */
    int32_t *node_list;  /* [S] */
    int32_t *received;   /* [E] rank + 1 that received it last: a second slot of it is no second receive */
} comparison;

static eplb_status check_sizes(const eplb_placement *before, const eplb_placement *after, eplb_error *error)
{
    if (eplb_placement_num_layers(before) != eplb_placement_num_layers(after) ||
        eplb_placement_num_experts(before) != eplb_placement_num_experts(after) ||
        eplb_placement_num_slots(before) != eplb_placement_num_slots(after))
        return error_text(
            error, EPLB_ERROR_INVALID,
            "placements differ in size: %d x %d experts in %d slots before, %d x %d in %d after",
            eplb_placement_num_layers(before), eplb_placement_num_experts(before),
            eplb_placement_num_slots(before), eplb_placement_num_layers(after),
            eplb_placement_num_experts(after), eplb_placement_num_slots(after));
    const int32_t *a = eplb_topology_first_slot(eplb_placement_topology(before));
    const int32_t *b = eplb_topology_first_slot(eplb_placement_topology(after));
    int32_t ranks = eplb_topology_num_ranks(eplb_placement_topology(before));
    if (ranks != eplb_topology_num_ranks(eplb_placement_topology(after)))
        return error_text(error, EPLB_ERROR_INVALID, "placements differ in ranks: %d before, %d after", ranks,
                          eplb_topology_num_ranks(eplb_placement_topology(after)));
    for (int32_t g = 0; g <= ranks; g++) {
        if (a[g] != b[g])
            return error_set(error, EPLB_ERROR_INVALID, (error_place){-1, -1, g, a[g], b[g]},
                             "rank %d starts at slot %d before and at slot %d after", g, a[g], b[g]);
    }
    return EPLB_OK;
}

/* Lists, for every expert, the nodes of the ranks that held it before and are alive now. */
static void list_sources(const comparison *c, const int32_t *held)
{
    const eplb_topology *now = eplb_placement_topology(c->after);
    const int32_t *slot_rank = eplb_topology_slot_rank(now), *rank_node = eplb_topology_rank_node(now);
    const uint8_t *alive = eplb_topology_rank_alive(now);
    const uint8_t *was_alive = eplb_topology_rank_alive(eplb_placement_topology(c->before));
    int32_t experts = eplb_placement_num_experts(c->before), slots = eplb_placement_num_slots(c->before);
    for (int32_t e = 0; e <= experts; e++)
        c->node_first[e] = 0;
    for (int32_t p = 0; p < slots; p++) {
        if (held[p] >= 0 && alive[slot_rank[p]] && was_alive[slot_rank[p]])
            c->node_first[held[p] + 1]++;
    }
    for (int32_t e = 0; e < experts; e++)
        c->node_first[e + 1] += c->node_first[e];
    for (int32_t p = 0; p < slots; p++) { /* fills while moving the starts forward */
        if (held[p] >= 0 && alive[slot_rank[p]] && was_alive[slot_rank[p]])
            c->node_list[c->node_first[held[p]]++] = rank_node[slot_rank[p]];
    }
    for (int32_t e = experts; e > 0; e--)
        c->node_first[e] = c->node_first[e - 1];
    c->node_first[0] = 0;
}

static bool node_holds(const comparison *c, int32_t expert, int32_t node)
{
    for (int32_t i = c->node_first[expert]; i < c->node_first[expert + 1]; i++) {
        if (c->node_list[i] == node)
            return true;
    }
    return false;
}

/* Counts what one rank receives; first and last bound its slots. */
static int64_t count_rank(comparison *c, int32_t rank, const int32_t *old, const int32_t *new,
                          eplb_move_count *count)
{
    const eplb_topology *now = eplb_placement_topology(c->after);
    const int32_t *first = eplb_topology_first_slot(now);
    int32_t node = eplb_topology_rank_node(now)[rank];
    bool kept = eplb_topology_rank_alive(eplb_placement_topology(c->before))[rank] != 0;
    int64_t received = 0;
    for (int32_t p = first[rank]; p < first[rank + 1]; p++) {
        if (old[p] >= 0 && kept)
            c->rank_stamp[old[p]] = rank + 1;
    }
    for (int32_t p = first[rank]; p < first[rank + 1]; p++) {
        int32_t e = new[p];
        if (e != old[p] && (e >= 0 || kept)) /* an emptied slot has changed, too */
            count->slots++;
        if (e < 0 || c->rank_stamp[e] == rank + 1 || c->received[e] == rank + 1)
            continue;
        c->received[e] = rank + 1;
        received++;
        if (c->node_first[e] == c->node_first[e + 1])
            count->lost++;
        if (!node_holds(c, e, node))
            count->cross_node++;
    }
    return received;
}

static void count_layer(comparison *c, int32_t layer, eplb_move_count *count)
{
    const eplb_topology *now = eplb_placement_topology(c->after);
    size_t slots = (size_t)eplb_placement_num_slots(c->before);
    const int32_t *old = eplb_placement_physical_to_logical(c->before) + (size_t)layer * slots;
    const int32_t *new = eplb_placement_physical_to_logical(c->after) + (size_t)layer *slots;
    *count = (eplb_move_count){0};
    list_sources(c, old);
    for (int32_t e = 0; e < eplb_placement_num_experts(c->before); e++)
        c->rank_stamp[e] = c->received[e] = 0;
    for (int32_t g = 0; g < eplb_topology_num_ranks(now); g++) {
        if (!eplb_topology_rank_alive(now)[g])
            continue;
        int64_t received = count_rank(c, g, old, new, count);
        count->received += received;
        if (received > count->max_received_per_rank)
            count->max_received_per_rank = received;
    }
}

static void add_count(eplb_move_count *total, const eplb_move_count *layer)
{
    total->slots += layer->slots;
    total->received += layer->received;
    total->cross_node += layer->cross_node;
    total->lost += layer->lost;
    if (layer->max_received_per_rank > total->max_received_per_rank)
        total->max_received_per_rank = layer->max_received_per_rank;
}

eplb_status eplb_placement_count_moves(const eplb_placement *before, const eplb_placement *after,
                                       eplb_move_count *total, eplb_move_count *per_layer,
                                       const eplb_allocator *allocator, eplb_error *error)
{
    eplb_status status = check_sizes(before, after, error);
    if (status != EPLB_OK)
        return status;
    eplb_allocator chosen = memory_allocator(allocator);
    size_t experts = (size_t)eplb_placement_num_experts(before),
           slots = (size_t)eplb_placement_num_slots(before);
    size_t count = 3 * experts + 1 + slots;
    int32_t *block = memory_take(&chosen, count, sizeof *block);
    if (block == NULL)
        return error_memory(error, count * sizeof *block, "the comparison of two placements");
    comparison c = {before, after, block, block + experts, block + 3 * experts + 1, block + 2 * experts + 1};
    *total = (eplb_move_count){0};
    for (int32_t l = 0; l < eplb_placement_num_layers(before); l++) {
        eplb_move_count layer;
        count_layer(&c, l, &layer);
        add_count(total, &layer);
        if (per_layer != NULL)
            per_layer[l] = layer;
    }
    memory_give(&chosen, block);
    return EPLB_OK;
}
