/* Live ranks renumbered densely: dead ranks and their slots are left out, the order stays. O(G + S). */
#include "plan/live_ranks.h"

#include "base/error.h"

static bool take_arrays(live_ranks *live, arena *memory)
{
    size_t ranks = (size_t)live->num_ranks, slots = (size_t)live->num_slots;
    int32_t *block = arena_take(memory, 4 * ranks + 1 + 2 * slots, sizeof *block);
    if (block == NULL)
        return false;
    live->rank = block;
    live->rank_node = live->rank + ranks;
    live->rank_speed = live->rank_node + ranks;
    live->first_slot = live->rank_speed + ranks;
    live->slot = live->first_slot + ranks + 1;
    live->slot_rank = live->slot + slots;
    return true;
}

/* Appends rank `from` of the topology as live rank `to`, its slots starting at `slot`; returns the next
 * slot. */
static int32_t append_rank(live_ranks *live, const eplb_topology *topology, int32_t from, int32_t to,
                           int32_t slot)
{
    const int32_t *first = eplb_topology_first_slot(topology);
    live->rank[to] = from;
    live->rank_node[to] = eplb_topology_rank_node(topology)[from];
    live->rank_speed[to] = eplb_topology_rank_speed(topology)[from];
    live->first_slot[to] = slot;
    for (int32_t p = first[from]; p < first[from + 1]; p++) {
        live->slot[slot] = p;
        live->slot_rank[slot++] = to;
    }
    live->total_speed += live->rank_speed[to];
    if (live->rank_speed[to] != live->rank_speed[0])
        live->uniform_speed = false;
    if (slot - live->first_slot[to] != live->uniform_slots)
        live->uniform_slots = to == 0 ? slot : -1;
    return slot;
}

static bool count_serving_nodes(live_ranks *live, arena *memory)
{
    uint8_t *serves = arena_take_zero(memory, (size_t)live->num_nodes, sizeof *serves);
    for (int32_t p = 0; serves != NULL && p < live->num_slots; p++) {
        int32_t node = live->rank_node[live->slot_rank[p]];
        live->num_serving_nodes += !serves[node];
        serves[node] = 1;
    }
    return serves != NULL;
}

eplb_status live_ranks_create(live_ranks *live, const eplb_topology *topology, arena *memory,
                              eplb_error *error)
{
    *live = (live_ranks){.num_ranks = eplb_topology_num_live_ranks(topology),
                         .num_slots = eplb_topology_num_live_slots(topology),
                         .num_nodes = eplb_topology_num_nodes(topology),
                         .uniform_slots = -1,
                         .uniform_speed = true};
    live->all = live->num_ranks == eplb_topology_num_ranks(topology);
    if (!take_arrays(live, memory))
        return error_memory(error, (size_t)live->num_slots * 2 * sizeof(int32_t), "the live ranks");
    const uint8_t *alive = eplb_topology_rank_alive(topology);
    int32_t next = 0, slot = 0;
    for (int32_t g = 0; g < eplb_topology_num_ranks(topology); g++) {
        if (alive[g])
            slot = append_rank(live, topology, g, next++, slot);
    }
    live->first_slot[next] = slot;
    if (!count_serving_nodes(live, memory))
        return error_memory(error, (size_t)live->num_nodes, "the live ranks");
    return EPLB_OK;
}
