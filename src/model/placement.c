/* Placement: slots and their inverses, built once by counting sort and never changed.
 *
 * logical_to_physical is kept compact (first, slots): O(L (S + E)) memory however hot an expert is; the dense
 * padded form that engines want is written on request. Replicas on dead ranks do not count in any inverse. */
#include <eplb/placement.h>

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

struct eplb_placement {
    eplb_allocator allocator;
    eplb_topology *topology;
    int32_t num_layers;
    int32_t num_experts;
    int32_t num_slots;
    int32_t max_replicas;
    int32_t *physical_to_logical; /* [L, S] */
    int32_t *replica_slots;       /* [L, S] */
    int32_t *replica_count;       /* [L, E] */
    int32_t *replica_first;       /* [L, E + 1] */
};

static eplb_status check_sizes(int32_t num_layers, int32_t num_experts, eplb_error *error)
{
    if (num_layers < 1 || num_layers > EPLB_MAX_LAYERS)
        return error_text(error, EPLB_ERROR_INVALID, "a placement of %d layers: expected 1 to %d", num_layers,
                          EPLB_MAX_LAYERS);
    if (num_experts < 1 || num_experts > EPLB_MAX_EXPERTS)
        return error_text(error, EPLB_ERROR_INVALID, "a placement of %d experts: expected 1 to %d",
                          num_experts, EPLB_MAX_EXPERTS);
    return EPLB_OK;
}

/* Memory for all maps; slots are not filled. */
static eplb_status allocate(eplb_placement **placement, const eplb_topology *topology, int32_t num_layers,
                            int32_t num_experts, const eplb_allocator *given, eplb_error *error)
{
    eplb_allocator allocator = memory_allocator(given);
    size_t layers = (size_t)num_layers, slots = (size_t)eplb_topology_num_slots(topology),
           experts = (size_t)num_experts;
    eplb_placement *created = memory_take(&allocator, 1, sizeof *created);
    if (created == NULL)
        return error_memory(error, sizeof *created, "a placement");
    created->allocator = allocator;
    created->num_layers = num_layers;
    created->num_experts = num_experts;
    created->num_slots = (int32_t)slots;
    size_t count = layers * (2 * slots + 2 * experts + 1);
    created->physical_to_logical = memory_take(&allocator, count, sizeof(int32_t));
    if (created->physical_to_logical == NULL) {
        (void)error_memory(error, count * sizeof(int32_t), "the maps of a placement");
        goto destroy_created;
    }
    created->replica_slots = created->physical_to_logical + layers * slots;
    created->replica_count = created->replica_slots + layers * slots;
    created->replica_first = created->replica_count + layers * experts;
    if (eplb_topology_copy(&created->topology, topology, given, error) != EPLB_OK)
        goto destroy_created;
    *placement = created;
    return EPLB_OK;
destroy_created:
    eplb_placement_destroy(created);
    return EPLB_ERROR_MEMORY;
}

/* Fills the inverses of one layer by counting sort over live slots. */
static void invert_layer(eplb_placement *placement, int32_t layer)
{
    size_t slots = (size_t)placement->num_slots, experts = (size_t)placement->num_experts, l = (size_t)layer;
    const int32_t *held = placement->physical_to_logical + l * slots;
    int32_t *count = placement->replica_count + l * experts,
            *first = placement->replica_first + l * (experts + 1);
    int32_t *sorted = placement->replica_slots + l * slots;
    const int32_t *slot_rank = eplb_topology_slot_rank(placement->topology);
    const uint8_t *alive = eplb_topology_rank_alive(placement->topology);
    for (size_t p = 0; p < slots; p++) {
        if (held[p] >= 0 && alive[slot_rank[p]])
            count[held[p]]++;
    }
    for (size_t e = 0; e < experts; e++) {
        first[e + 1] = first[e] + count[e];
        if (count[e] > placement->max_replicas)
            placement->max_replicas = count[e];
        count[e] = 0;
    }
    for (size_t p = 0; p < slots; p++) {
        int32_t e = held[p];
        if (e >= 0 && alive[slot_rank[p]])
            sorted[first[e] + count[e]++] = (int32_t)p;
    }
    for (size_t p = (size_t)first[experts]; p < slots; p++)
        sorted[p] = -1;
}

eplb_status eplb_placement_create(eplb_placement **placement, const eplb_topology *topology,
                                  int32_t num_layers, int32_t num_experts, const int32_t *physical_to_logical,
                                  const eplb_allocator *allocator, eplb_error *error)
{
    *placement = NULL;
    eplb_status status = check_sizes(num_layers, num_experts, error);
    if (status != EPLB_OK)
        return status;
    int32_t num_slots = eplb_topology_num_slots(topology);
    size_t total = (size_t)num_layers * (size_t)num_slots;
    for (size_t i = 0; i < total; i++) {
        int32_t e = physical_to_logical[i];
        if (e < -1 || e >= num_experts) {
            int32_t layer = (int32_t)(i / (size_t)num_slots), slot = (int32_t)(i % (size_t)num_slots);
            return error_set(error, EPLB_ERROR_INVALID, (error_place){layer, e, -1, slot, e},
                             "layer %d, slot %d holds expert %d: expected -1 (empty) to %d", layer, slot, e,
                             num_experts - 1);
        }
    }
    status = allocate(placement, topology, num_layers, num_experts, allocator, error);
    if (status != EPLB_OK)
        return status;
    memcpy((*placement)->physical_to_logical, physical_to_logical, total * sizeof(int32_t));
    for (int32_t l = 0; l < num_layers; l++)
        invert_layer(*placement, l);
    return EPLB_OK;
}

eplb_status eplb_placement_create_initial(eplb_placement **placement, const eplb_topology *topology,
                                          int32_t num_layers, int32_t num_experts,
                                          const eplb_allocator *allocator, eplb_error *error)
{
    *placement = NULL;
    eplb_status status = check_sizes(num_layers, num_experts, error);
    if (status != EPLB_OK)
        return status;
    if (eplb_topology_num_live_slots(topology) < num_experts)
        return error_set(error, EPLB_ERROR_INFEASIBLE,
                         (error_place){-1, -1, -1, -1, eplb_topology_num_live_slots(topology)},
                         "%d experts need as many slots, but %d are on live ranks", num_experts,
                         eplb_topology_num_live_slots(topology));
    status = allocate(placement, topology, num_layers, num_experts, allocator, error);
    if (status != EPLB_OK)
        return status;
    const int32_t *slot_rank = eplb_topology_slot_rank(topology);
    const uint8_t *alive = eplb_topology_rank_alive(topology);
    int32_t *row = (*placement)->physical_to_logical;
    size_t slots = (size_t)(*placement)->num_slots;
    int32_t next = 0;
    for (size_t p = 0; p < slots; p++)
        row[p] = alive[slot_rank[p]] ? next++ % num_experts : -1;
    for (int32_t l = 0; l < num_layers; l++) {
        if (l > 0)
            memcpy(row + (size_t)l * slots, row, slots * sizeof *row);
        invert_layer(*placement, l);
    }
    return EPLB_OK;
}

eplb_status eplb_placement_copy(eplb_placement **copy, const eplb_placement *placement,
                                const eplb_allocator *allocator, eplb_error *error)
{
    return eplb_placement_create(copy, placement->topology, placement->num_layers, placement->num_experts,
                                 placement->physical_to_logical, allocator, error);
}

void eplb_placement_destroy(eplb_placement *placement)
{
    if (placement == NULL)
        return;
    eplb_allocator allocator = placement->allocator;
    eplb_topology_destroy(placement->topology);
    memory_give(&allocator, placement->physical_to_logical);
    memory_give(&allocator, placement);
}

bool eplb_placement_equal(const eplb_placement *a, const eplb_placement *b)
{
    size_t count = (size_t)a->num_layers * (size_t)a->num_slots;
    return a->num_layers == b->num_layers && a->num_experts == b->num_experts &&
           a->num_slots == b->num_slots && eplb_topology_equal(a->topology, b->topology) &&
           memcmp(a->physical_to_logical, b->physical_to_logical, count * sizeof(int32_t)) == 0;
}

eplb_status eplb_placement_is_valid(const eplb_placement *placement, eplb_error *error)
{
    if (placement == NULL)
        return error_text(error, EPLB_ERROR_INVALID, "the placement is NULL");
    return eplb_placement_check(placement->topology, placement->num_layers, placement->num_experts,
                                placement->physical_to_logical, NULL, NULL, &placement->allocator, error);
}

const eplb_topology *eplb_placement_topology(const eplb_placement *placement)
{
    return placement->topology;
}

int32_t eplb_placement_num_layers(const eplb_placement *placement)
{
    return placement->num_layers;
}

int32_t eplb_placement_num_experts(const eplb_placement *placement)
{
    return placement->num_experts;
}

int32_t eplb_placement_num_slots(const eplb_placement *placement)
{
    return placement->num_slots;
}

int32_t eplb_placement_max_replicas(const eplb_placement *placement)
{
    return placement->max_replicas;
}

const int32_t *eplb_placement_physical_to_logical(const eplb_placement *placement)
{
    return placement->physical_to_logical;
}

const int32_t *eplb_placement_replica_count(const eplb_placement *placement)
{
    return placement->replica_count;
}

const int32_t *eplb_placement_replica_first(const eplb_placement *placement)
{
    return placement->replica_first;
}

const int32_t *eplb_placement_replica_slots(const eplb_placement *placement)
{
    return placement->replica_slots;
}

static eplb_status check_width(const eplb_placement *placement, int32_t width, eplb_error *error)
{
    if (width >= placement->max_replicas)
        return EPLB_OK;
    return error_set(error, EPLB_ERROR_INVALID, (error_place){-1, -1, -1, -1, width},
                     "dense width %d is less than the largest number of replicas, %d", width,
                     placement->max_replicas);
}

/* Slot number i of expert e of layer l, or -1 past its last replica. */
static int32_t replica_at(const eplb_placement *placement, size_t l, size_t e, int32_t i)
{
    size_t experts = (size_t)placement->num_experts;
    const int32_t *first = placement->replica_first + l * (experts + 1);
    if (i >= first[e + 1] - first[e])
        return -1;
    return placement->replica_slots[l * (size_t)placement->num_slots + (size_t)(first[e] + i)];
}

/* Fills one of the two, the other is NULL. */
static eplb_status write_dense(const eplb_placement *placement, int32_t width, int32_t *narrow, int64_t *wide,
                               eplb_error *error)
{
    eplb_status status = check_width(placement, width, error);
    if (status != EPLB_OK)
        return status;
    for (size_t l = 0; l < (size_t)placement->num_layers; l++) {
        for (size_t e = 0; e < (size_t)placement->num_experts; e++) {
            for (int32_t i = 0; i < width; i++) {
                int32_t slot = replica_at(placement, l, e, i);
                if (narrow != NULL)
                    *narrow++ = slot;
                else
                    *wide++ = slot;
            }
        }
    }
    return EPLB_OK;
}

eplb_status eplb_placement_dense_int32(const eplb_placement *placement, int32_t width, int32_t *out,
                                       eplb_error *error)
{
    return write_dense(placement, width, out, NULL, error);
}

eplb_status eplb_placement_dense_int64(const eplb_placement *placement, int32_t width, int64_t *out,
                                       eplb_error *error)
{
    return write_dense(placement, width, NULL, out, error);
}
