/* What it takes to go from one placement to another: slots that change, experts that ranks receive, and of
 * these those that cross nodes or have no live source. A rank holds what any of its slots held, also those it
 * no longer has; ranks beyond the last one leave, and send before they go. Holders are marked with stamps, so
 * a layer costs O(S) without clearing. */
#include <eplb/placement.h>

#include "base/error.h"
#include "base/memory.h"

/* Working arrays of one comparison. */
typedef struct comparison {
    const eplb_placement *before;
    const eplb_placement *after;
    int32_t *rank_stamp; /* [E] rank + 1 that last was seen to hold the expert */
    int32_t *received;   /* [E] rank + 1 that received it last: a second slot of it is no second receive */
    int32_t *node_first; /* [E + 1] CSR of nodes that hold each expert live, one layer */
    int32_t *node_list;  /* [S before] */
} comparison;

static eplb_status check_sizes(const eplb_placement *before, const eplb_placement *after, eplb_error *error)
{
    if (eplb_placement_num_layers(before) == eplb_placement_num_layers(after) &&
        eplb_placement_num_experts(before) == eplb_placement_num_experts(after))
        return EPLB_OK;
    return error_text(error, EPLB_ERROR_INVALID,
                      "placements are of different models: %d x %d layers and experts before, %d x %d after",
                      eplb_placement_num_layers(before), eplb_placement_num_experts(before),
                      eplb_placement_num_layers(after), eplb_placement_num_experts(after));
}

/* The node of a rank that can send what it held before: one that lived then and lives now, or leaves; else
 * -1. */
static int32_t source_node(const comparison *c, int32_t rank)
{
    const eplb_topology *was = eplb_placement_topology(c->before), *now = eplb_placement_topology(c->after);
    if (!eplb_topology_rank_alive(was)[rank])
        return -1;
    if (rank >= eplb_topology_num_ranks(now))
        return eplb_topology_rank_node(was)[rank];
    return eplb_topology_rank_alive(now)[rank] ? eplb_topology_rank_node(now)[rank] : -1;
}

/* Lists, for every expert, the nodes of the ranks that held it before and can send it. */
static void list_sources(const comparison *c, const int32_t *held)
{
    const int32_t *slot_rank = eplb_topology_slot_rank(eplb_placement_topology(c->before));
    int32_t experts = eplb_placement_num_experts(c->before), slots = eplb_placement_num_slots(c->before);
    for (int32_t e = 0; e <= experts; e++)
        c->node_first[e] = 0;
    for (int32_t p = 0; p < slots; p++) {
        if (held[p] >= 0 && source_node(c, slot_rank[p]) >= 0)
            c->node_first[held[p] + 1]++;
    }
    for (int32_t e = 0; e < experts; e++)
        c->node_first[e + 1] += c->node_first[e];
    for (int32_t p = 0; p < slots; p++) { /* fills while moving the starts forward */
        int32_t node = held[p] >= 0 ? source_node(c, slot_rank[p]) : -1;
        if (node >= 0)
            c->node_list[c->node_first[held[p]]++] = node;
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

/* The slots that the rank had, among those of the layer; none if it is new. */
static const int32_t *slots_before(const comparison *c, int32_t rank, const int32_t *slots, int32_t *count)
{
    const eplb_topology *was = eplb_placement_topology(c->before);
    const int32_t *first = eplb_topology_first_slot(was);
    *count = rank < eplb_topology_num_ranks(was) ? first[rank + 1] - first[rank] : 0;
    return *count > 0 ? slots + first[rank] : slots;
}

static void stamp_held(comparison *c, int32_t rank, const int32_t *slots, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (slots[i] >= 0)
            c->rank_stamp[slots[i]] = rank + 1;
    }
}

/* Counts what one rank receives; `old` and `new` are the layer's slots. */
static int64_t count_rank(comparison *c, int32_t rank, const int32_t *old, const int32_t *new,
                          eplb_move_count *count)
{
    const eplb_topology *now = eplb_placement_topology(c->after);
    const int32_t *first = eplb_topology_first_slot(now), node = eplb_topology_rank_node(now)[rank];
    int32_t had;
    const int32_t *old_slots = slots_before(c, rank, old, &had);
    bool kept = had > 0 && eplb_topology_rank_alive(eplb_placement_topology(c->before))[rank] != 0;
    int64_t received = 0;
    stamp_held(c, rank, old_slots, kept ? had : 0);
    for (int32_t p = first[rank], i = 0; p < first[rank + 1]; p++, i++) {
        int32_t e = new[p], held = i < had ? old_slots[i] : -1;
        if (e != held && (e >= 0 || kept)) /* an emptied slot has changed, too */
            count->slots++;
        if (e < 0 || c->rank_stamp[e] == rank + 1 || c->received[e] == rank + 1)
            continue;
        c->received[e] = rank + 1;
        received++;
        if (c->node_first[e] == c->node_first[e + 1])
            count->lost++;
        else if (!node_holds(c, e, node))
            count->cross_node++;
    }
    return received;
}

static void count_layer(comparison *c, int32_t layer, eplb_move_count *count)
{
    const eplb_topology *now = eplb_placement_topology(c->after);
    const int32_t *old = eplb_placement_physical_to_logical(c->before) +
                         (size_t)layer * (size_t)eplb_placement_num_slots(c->before);
    const int32_t *new = eplb_placement_physical_to_logical(c->after) +
                         (size_t)layer *(size_t)eplb_placement_num_slots(c->after);
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
    comparison c = {before, after, block, block + experts, block + 2 * experts, block + 3 * experts + 1};
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
