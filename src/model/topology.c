/* Topology: ranks, nodes, slots, health and speed as one immutable value.
 *
 * All arrays live in one block behind the struct; prefix sums give first_slot, and its inverse slot_rank is
 * stored so that every room maps a slot to its rank with one load. Creation is O(G + S). */
#include <eplb/topology.h>

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/params.h"

struct eplb_topology {
    eplb_allocator allocator;
    int32_t num_ranks;
    int32_t num_nodes;
    int32_t num_slots;
    int32_t num_live_ranks;
    int32_t num_live_slots;
    int32_t uniform_slots;
    int32_t *first_slot; /* [G + 1] */
    int32_t *rank_node;  /* [G] */
    int32_t *rank_speed; /* [G] */
    int32_t *slot_rank;  /* [S] */
    uint8_t *rank_alive; /* [G] */
};

void eplb_topology_params_init(eplb_topology_params *params, size_t size)
{
    eplb_topology_params defaults = {.size = sizeof defaults, .num_nodes = 1};
    params_init(params, size, &defaults, sizeof defaults);
}

static eplb_status check_sizes(const eplb_topology_params *params, eplb_error *error)
{
    eplb_status status = params_check(params->size, sizeof *params, "topology", error);
    if (status != EPLB_OK)
        return status;
    if (params->num_ranks < 1 || params->num_ranks > EPLB_MAX_RANKS)
        return error_text(error, EPLB_ERROR_INVALID, "%d ranks: expected 1 to %d", params->num_ranks,
                          EPLB_MAX_RANKS);
    if (params->num_nodes < 1 || params->num_nodes > params->num_ranks)
        return error_text(error, EPLB_ERROR_INVALID, "%d nodes for %d ranks: expected 1 to %d",
                          params->num_nodes, params->num_ranks, params->num_ranks);
    return EPLB_OK;
}

/* Slots asked for rank g: its own entry or the common number. */
static int32_t slots_of(const eplb_topology_params *params, int32_t rank)
{
    return params->rank_slots != NULL ? params->rank_slots[rank] : params->slots_per_rank;
}

static eplb_status check_rank(const eplb_topology_params *params, int32_t rank, eplb_error *error)
{
    error_place place = {-1, -1, rank, -1, -1};
    int32_t slots = slots_of(params, rank);
    place.value = slots;
    if (slots < 0 || slots > EPLB_MAX_SLOTS)
        return error_set(error, EPLB_ERROR_INVALID, place, "rank %d has %d slots: expected 0 to %d", rank,
                         slots, EPLB_MAX_SLOTS);
    if (params->rank_node != NULL &&
        (params->rank_node[rank] < 0 || params->rank_node[rank] >= params->num_nodes)) {
        place.value = params->rank_node[rank];
        return error_set(error, EPLB_ERROR_INVALID, place, "rank %d is on node %d: expected 0 to %d", rank,
                         params->rank_node[rank], params->num_nodes - 1);
    }
    if (params->rank_alive != NULL && params->rank_alive[rank] > 1) {
        place.value = params->rank_alive[rank];
        return error_set(error, EPLB_ERROR_INVALID, place,
                         "rank %d has health %d: expected 0 (dead) or 1 (alive)", rank,
                         params->rank_alive[rank]);
    }
    if (params->rank_speed != NULL &&
        (params->rank_speed[rank] < 1 || params->rank_speed[rank] > EPLB_MAX_SPEED)) {
        place.value = params->rank_speed[rank];
        return error_set(error, EPLB_ERROR_INVALID, place, "rank %d has speed %d: expected 1 to %d", rank,
                         params->rank_speed[rank], EPLB_MAX_SPEED);
    }
    return EPLB_OK;
}

static eplb_status count_slots(const eplb_topology_params *params, int32_t *num_slots, eplb_error *error)
{
    int64_t total = 0;
    for (int32_t g = 0; g < params->num_ranks; g++) {
        eplb_status status = check_rank(params, g, error);
        if (status != EPLB_OK)
            return status;
        total += slots_of(params, g);
    }
    if (total < 1 || total > EPLB_MAX_SLOTS)
        return error_set(error, EPLB_ERROR_INVALID, (error_place){-1, -1, -1, -1, total},
                         "%lld slots in all: expected 1 to %d", (long long)total, EPLB_MAX_SLOTS);
    *num_slots = (int32_t)total;
    return EPLB_OK;
}

/* One block: the struct, then int32 arrays, then bytes. */
static eplb_topology *allocate(const eplb_allocator *given, int32_t num_ranks, int32_t num_slots,
                               eplb_error *error)
{
    eplb_allocator allocator = memory_allocator(given);
    size_t ranks = (size_t)num_ranks, slots = (size_t)num_slots;
    size_t bytes = sizeof(eplb_topology) + sizeof(int32_t) * (3 * ranks + 1 + slots) + ranks;
    eplb_topology *topology = memory_take(&allocator, 1, bytes);
    if (topology == NULL) {
        (void)error_memory(error, bytes, "a topology");
        return NULL;
    }
    topology->allocator = allocator;
    topology->num_ranks = num_ranks;
    topology->num_slots = num_slots;
    topology->first_slot = (int32_t *)(topology + 1);
    topology->rank_node = topology->first_slot + ranks + 1;
    topology->rank_speed = topology->rank_node + ranks;
    topology->slot_rank = topology->rank_speed + ranks;
    topology->rank_alive = (uint8_t *)(topology->slot_rank + slots);
    return topology;
}

/* Counts live ranks and slots after rank_alive is set. */
static void count_live(eplb_topology *topology)
{
    topology->num_live_ranks = 0;
    topology->num_live_slots = 0;
    for (int32_t g = 0; g < topology->num_ranks; g++) {
        if (!topology->rank_alive[g])
            continue;
        topology->num_live_ranks++;
        topology->num_live_slots += topology->first_slot[g + 1] - topology->first_slot[g];
    }
}

static void fill(eplb_topology *topology, const eplb_topology_params *params)
{
    topology->num_nodes = params->num_nodes;
    topology->uniform_slots = slots_of(params, 0);
    for (int32_t g = 0; g < params->num_ranks; g++) {
        int32_t slots = slots_of(params, g), first = topology->first_slot[g];
        topology->first_slot[g + 1] = first + slots;
        for (int32_t i = 0; i < slots; i++)
            topology->slot_rank[first + i] = g;
        if (slots != topology->uniform_slots)
            topology->uniform_slots = -1;
        topology->rank_node[g] = params->rank_node != NULL
                                     ? params->rank_node[g]
                                     : (int32_t)((int64_t)g * params->num_nodes / params->num_ranks);
        topology->rank_speed[g] = params->rank_speed != NULL ? params->rank_speed[g] : 1;
        topology->rank_alive[g] = params->rank_alive != NULL ? params->rank_alive[g] : 1;
    }
    count_live(topology);
}

static eplb_status check_alive(const eplb_topology *topology, eplb_error *error)
{
    if (topology->num_live_slots > 0)
        return EPLB_OK;
    return error_text(error, EPLB_ERROR_INVALID,
                      "no slot is on a live rank: all %d ranks are dead or have no slots",
                      topology->num_ranks);
}

eplb_status eplb_topology_create(eplb_topology **topology, const eplb_topology_params *params,
                                 const eplb_allocator *allocator, eplb_error *error)
{
    *topology = NULL;
    int32_t num_slots = 0;
    eplb_status status = check_sizes(params, error);
    if (status == EPLB_OK)
        status = count_slots(params, &num_slots, error);
    if (status != EPLB_OK)
        return status;
    eplb_topology *created = allocate(allocator, params->num_ranks, num_slots, error);
    if (created == NULL)
        return EPLB_ERROR_MEMORY;
    fill(created, params);
    status = check_alive(created, error);
    if (status != EPLB_OK) {
        eplb_topology_destroy(created);
        return status;
    }
    *topology = created;
    return EPLB_OK;
}

eplb_status eplb_topology_copy(eplb_topology **copy, const eplb_topology *topology,
                               const eplb_allocator *allocator, eplb_error *error)
{
    size_t ranks = (size_t)topology->num_ranks, slots = (size_t)topology->num_slots;
    *copy = allocate(allocator, topology->num_ranks, topology->num_slots, error);
    if (*copy == NULL)
        return EPLB_ERROR_MEMORY;
    (*copy)->num_nodes = topology->num_nodes;
    (*copy)->num_live_ranks = topology->num_live_ranks;
    (*copy)->num_live_slots = topology->num_live_slots;
    (*copy)->uniform_slots = topology->uniform_slots;
    memcpy((*copy)->first_slot, topology->first_slot, sizeof(int32_t) * (ranks + 1));
    memcpy((*copy)->rank_node, topology->rank_node, sizeof(int32_t) * ranks);
    memcpy((*copy)->rank_speed, topology->rank_speed, sizeof(int32_t) * ranks);
    memcpy((*copy)->slot_rank, topology->slot_rank, sizeof(int32_t) * slots);
    memcpy((*copy)->rank_alive, topology->rank_alive, ranks);
    return EPLB_OK;
}

eplb_status eplb_topology_with_dead(eplb_topology **copy, const eplb_topology *topology,
                                    const int32_t *dead_ranks, int32_t num_dead,
                                    const eplb_allocator *allocator, eplb_error *error)
{
    eplb_status status = eplb_topology_copy(copy, topology, allocator, error);
    if (status != EPLB_OK)
        return status;
    memset((*copy)->rank_alive, 1, (size_t)topology->num_ranks);
    for (int32_t i = 0; i < num_dead; i++) {
        int32_t rank = dead_ranks[i];
        if (rank < 0 || rank >= topology->num_ranks) {
            status = error_set(error, EPLB_ERROR_INVALID, (error_place){-1, -1, rank, -1, rank},
                               "dead rank %d: expected 0 to %d", rank, topology->num_ranks - 1);
            goto destroy_copy;
        }
        (*copy)->rank_alive[rank] = 0;
    }
    count_live(*copy);
    status = check_alive(*copy, error);
    if (status == EPLB_OK)
        return EPLB_OK;
destroy_copy:
    eplb_topology_destroy(*copy);
    *copy = NULL;
    return status;
}

void eplb_topology_destroy(eplb_topology *topology)
{
    if (topology == NULL)
        return;
    eplb_allocator allocator = topology->allocator;
    memory_give(&allocator, topology);
}

static bool rank_is_valid(const eplb_topology *topology, int32_t rank)
{
    if (topology->first_slot[rank + 1] < topology->first_slot[rank])
        return false;
    for (int32_t p = topology->first_slot[rank]; p < topology->first_slot[rank + 1]; p++) {
        if (topology->slot_rank[p] != rank)
            return false;
    }
    return topology->rank_node[rank] >= 0 && topology->rank_node[rank] < topology->num_nodes &&
           topology->rank_alive[rank] <= 1 && topology->rank_speed[rank] >= 1 &&
           topology->rank_speed[rank] <= EPLB_MAX_SPEED;
}

bool eplb_topology_is_valid(const eplb_topology *topology)
{
    if (topology == NULL || topology->num_ranks < 1 || topology->num_nodes < 1 ||
        topology->num_live_slots < 1)
        return false;
    if (topology->first_slot[0] != 0 || topology->first_slot[topology->num_ranks] != topology->num_slots)
        return false;
    for (int32_t g = 0; g < topology->num_ranks; g++) {
        if (!rank_is_valid(topology, g))
            return false;
    }
    return true;
}

bool eplb_topology_equal(const eplb_topology *a, const eplb_topology *b)
{
    if (a->num_ranks != b->num_ranks || a->num_nodes != b->num_nodes || a->num_slots != b->num_slots)
        return false;
    size_t ranks = (size_t)a->num_ranks;
    return memcmp(a->first_slot, b->first_slot, sizeof(int32_t) * (ranks + 1)) == 0 &&
           memcmp(a->rank_node, b->rank_node, sizeof(int32_t) * ranks) == 0 &&
           memcmp(a->rank_speed, b->rank_speed, sizeof(int32_t) * ranks) == 0 &&
           memcmp(a->rank_alive, b->rank_alive, ranks) == 0;
}

int32_t eplb_topology_num_ranks(const eplb_topology *topology)
{
    return topology->num_ranks;
}

int32_t eplb_topology_num_nodes(const eplb_topology *topology)
{
    return topology->num_nodes;
}

int32_t eplb_topology_num_slots(const eplb_topology *topology)
{
    return topology->num_slots;
}

int32_t eplb_topology_num_live_ranks(const eplb_topology *topology)
{
    return topology->num_live_ranks;
}

int32_t eplb_topology_num_live_slots(const eplb_topology *topology)
{
    return topology->num_live_slots;
}

const int32_t *eplb_topology_first_slot(const eplb_topology *topology)
{
    return topology->first_slot;
}

const int32_t *eplb_topology_slot_rank(const eplb_topology *topology)
{
    return topology->slot_rank;
}

const int32_t *eplb_topology_rank_node(const eplb_topology *topology)
{
    return topology->rank_node;
}

const uint8_t *eplb_topology_rank_alive(const eplb_topology *topology)
{
    return topology->rank_alive;
}

const int32_t *eplb_topology_rank_speed(const eplb_topology *topology)
{
    return topology->rank_speed;
}

int32_t eplb_topology_uniform_slots(const eplb_topology *topology)
{
    return topology->uniform_slots;
}
