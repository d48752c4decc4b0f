/* Router: tables per layer as flat blocks, two per layer, published by one atomic index. A reader counts
 * itself in at the block that the index names and looks again; the writer only fills the block that the index
 * does not name and nobody has counted in at. So a reader sees one whole table, never waits, and takes no
 * lock; the writer never waits either: it is told BUSY. O(1) for readers; an update is O(S + sum of rows *
 * replicas) per layer. Source: the two-slot form of epoch-based publication (left-right). */
#include "route/router.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/params.h"

void eplb_router_params_init(eplb_router_params *params, size_t size)
{
    eplb_router_params defaults = {.size = sizeof defaults, .source_rank = -1, .row_limit = 256};
    params_init(params, size, &defaults, sizeof defaults);
}

static eplb_status check_params(const eplb_router_params *params, eplb_error *error)
{
    eplb_status status = params_check(params->size, sizeof *params, "router", error);
    if (status != EPLB_OK)
        return status;
    if (!eplb_topology_is_valid(params->topology))
        return error_text(error, EPLB_ERROR_INVALID, "a router needs a valid topology");
    if (params->num_layers < 1 || params->num_layers > EPLB_MAX_LAYERS)
        return error_text(error, EPLB_ERROR_INVALID, "a router of %d layers: expected 1 to %d",
                          params->num_layers, EPLB_MAX_LAYERS);
    if (params->num_experts < 1 || params->num_experts > EPLB_MAX_EXPERTS)
        return error_text(error, EPLB_ERROR_INVALID, "a router of %d experts: expected 1 to %d",
                          params->num_experts, EPLB_MAX_EXPERTS);
    if (params->row_limit < 1 || params->row_limit > EPLB_MAX_ROW)
        return error_text(error, EPLB_ERROR_INVALID, "row limit %d: expected 1 to %d", params->row_limit,
                          EPLB_MAX_ROW);
    int32_t ranks = eplb_topology_num_ranks(params->topology);
    if (params->source_rank < -1 || params->source_rank >= ranks)
        return error_text(error, EPLB_ERROR_INVALID, "source rank %d: expected -1 to %d", params->source_rank,
                          ranks - 1);
    if (params->rule != EPLB_ROUTE_QUOTA && params->rule != EPLB_ROUTE_NEAREST)
        return error_text(error, EPLB_ERROR_INVALID, "rule %d is none", (int)params->rule);
    if (params->rule == EPLB_ROUTE_NEAREST && params->source_rank < 0)
        return error_text(error, EPLB_ERROR_INVALID, "the rule nearest needs a source rank");
    return EPLB_OK;
}

static void write_head(const eplb_router *router, int32_t *block)
{
    int32_t experts = router->num_experts, slots = eplb_topology_num_slots(router->topology);
    block[EPLB_TABLE_MAGIC] = EPLB_TABLE_MAGIC_VALUE;
    block[EPLB_TABLE_EXPERTS] = experts;
    block[EPLB_TABLE_SOURCE] = router->source_rank;
    block[EPLB_TABLE_REPLICA_FIRST] = EPLB_TABLE_HEAD;
    block[EPLB_TABLE_SLOTS] = block[EPLB_TABLE_REPLICA_FIRST] + experts + 1;
    block[EPLB_TABLE_ROW_FIRST] = block[EPLB_TABLE_SLOTS] + slots;
    block[EPLB_TABLE_ROWS] = block[EPLB_TABLE_ROW_FIRST] + experts + 1;
    block[EPLB_TABLE_NEXT] = block[EPLB_TABLE_ROWS] + (int32_t)router->row_capacity;
    block[EPLB_TABLE_ROW_INVERSE] = block[EPLB_TABLE_NEXT] + (int32_t)router->row_capacity;
    block[EPLB_TABLE_REPLICA_INVERSE] = block[EPLB_TABLE_ROW_INVERSE] + experts;
    block[EPLB_TABLE_WEIGHTS] = block[EPLB_TABLE_REPLICA_INVERSE] + experts;
    block[EPLB_TABLE_LENGTH] = (int32_t)router->block_length;
}

/* Every expert has a row; at most one expert per spare slot has a row longer than 1. */
static bool size_blocks(eplb_router *router)
{
    int64_t experts = router->num_experts, slots = eplb_topology_num_slots(router->topology);
    int64_t spare = slots > experts ? slots - experts : 0;
    int64_t replicated = spare < experts ? spare : experts;
    router->row_capacity = experts + replicated * router->row_limit;
    router->block_length =
        EPLB_TABLE_HEAD + 2 * (experts + 1) + 2 * slots + 2 * router->row_capacity + 2 * experts;
    router->block_length = (router->block_length + 15) / 16 * 16;
    return router->block_length <= INT32_MAX;
}

static bool take_memory(eplb_router *router)
{
    const eplb_allocator *allocator = &router->allocator;
    size_t layers = (size_t)router->num_layers, slots = (size_t)eplb_topology_num_slots(router->topology);
    router->layers = memory_take(allocator, layers, sizeof *router->layers);
    router->blocks =
        memory_take(allocator, 2 * layers * (size_t)router->block_length, sizeof *router->blocks);
    router->share = memory_take(allocator, slots, sizeof *router->share);
    router->weight = memory_take(allocator, slots, sizeof *router->weight);
    router->part = memory_take(allocator, slots, sizeof *router->part);
    router->left = memory_take(allocator, slots, sizeof *router->left);
    router->supply =
        memory_take(allocator, (size_t)eplb_topology_num_ranks(router->topology), sizeof *router->supply);
    router->quota = memory_take(allocator, slots, sizeof *router->quota);
    router->served = memory_take(allocator, slots, sizeof *router->served);
    router->rank = memory_take(allocator, slots, sizeof *router->rank);
    return router->layers != NULL && router->blocks != NULL && router->share != NULL &&
           router->weight != NULL && router->part != NULL && router->left != NULL && router->supply != NULL &&
           router->quota != NULL && router->served != NULL && router->rank != NULL;
}

eplb_status eplb_router_create(eplb_router **out, const eplb_router_params *params,
                               const eplb_allocator *given, eplb_error *error)
{
    *out = NULL;
    eplb_status status = check_params(params, error);
    if (status != EPLB_OK)
        return status;
    eplb_allocator allocator = memory_allocator(given);
    eplb_router *router = memory_take(&allocator, 1, sizeof *router);
    if (router == NULL)
        return error_memory(error, sizeof *router, "a router");
    router->allocator = allocator;
    router->num_layers = params->num_layers;
    router->num_experts = params->num_experts;
    router->rule = params->rule;
    router->source_rank = params->source_rank;
    router->row_limit = params->row_limit;
    status = eplb_topology_copy(&router->topology, params->topology, given, error);
    if (status == EPLB_OK && !size_blocks(router))
        status = error_text(error, EPLB_ERROR_OVERFLOW, "a table of %lld entries: lower the row limit of %d",
                            (long long)router->block_length, params->row_limit);
    else if (status == EPLB_OK && !take_memory(router))
        status = error_memory(error, 8 * (size_t)router->num_layers * (size_t)router->block_length,
                              "routing tables");
    if (status != EPLB_OK) {
        eplb_router_destroy(router);
        return status;
    }
    for (int32_t l = 0; l < router->num_layers; l++) {
        for (int b = 0; b < 2; b++) {
            router->layers[l].block[b] = router->blocks + (2 * (int64_t)l + b) * router->block_length;
            write_head(router, router->layers[l].block[b]);
            atomic_init(&router->layers[l].readers[b], 0);
        }
        atomic_init(&router->layers[l].active, 0);
    }
    *out = router;
    return EPLB_OK;
}

void eplb_router_destroy(eplb_router *router)
{
    if (router == NULL)
        return;
    eplb_allocator allocator = router->allocator;
    eplb_topology_destroy(router->topology);
    memory_give(&allocator, router->layers);
    memory_give(&allocator, router->blocks);
    memory_give(&allocator, router->share);
    memory_give(&allocator, router->weight);
    memory_give(&allocator, router->part);
    memory_give(&allocator, router->left);
    memory_give(&allocator, router->supply);
    memory_give(&allocator, router->quota);
    memory_give(&allocator, router->served);
    memory_give(&allocator, router->rank);
    memory_give(&allocator, router);
}

static eplb_status check_update(const eplb_router *router, int32_t first_layer, int32_t num_layers,
                                const eplb_placement *placement, const eplb_load *sources, eplb_error *error)
{
    const eplb_topology *topology = eplb_placement_topology(placement);
    int32_t ranks = eplb_topology_num_ranks(router->topology),
            slots = eplb_topology_num_slots(router->topology);
    if (first_layer < 0 || num_layers < 0 || first_layer > router->num_layers - num_layers)
        return error_text(error, EPLB_ERROR_INVALID, "layers %d to %d: the router has %d", first_layer,
                          first_layer + num_layers - 1, router->num_layers);
    if (eplb_placement_num_layers(placement) != router->num_layers ||
        eplb_placement_num_experts(placement) != router->num_experts)
        return error_text(error, EPLB_ERROR_INVALID,
                          "placement of %d layers and %d experts, the router has %d and %d",
                          eplb_placement_num_layers(placement), eplb_placement_num_experts(placement),
                          router->num_layers, router->num_experts);
    if (eplb_topology_num_ranks(topology) != ranks || eplb_topology_num_slots(topology) != slots)
        return error_text(error, EPLB_ERROR_INVALID,
                          "placement of %d ranks and %d slots, the router has %d and %d",
                          eplb_topology_num_ranks(topology), eplb_topology_num_slots(topology), ranks, slots);
    if (sources != NULL &&
        (eplb_load_num_windows(sources) != ranks || eplb_load_num_layers(sources) != router->num_layers ||
         eplb_load_num_experts(sources) != router->num_experts))
        return error_text(error, EPLB_ERROR_INVALID,
                          "tokens by source: %d ranks, %d layers, %d experts; expected %d, %d, %d",
                          eplb_load_num_windows(sources), eplb_load_num_layers(sources),
                          eplb_load_num_experts(sources), ranks, router->num_layers, router->num_experts);
    for (int32_t l = first_layer; l < first_layer + num_layers; l++) {
        router_layer *at = &router->layers[l];
        if (atomic_load(&at->readers[1 - atomic_load(&at->active)]) != 0)
            return error_set(error, EPLB_ERROR_BUSY, (error_place){l, -1, -1, -1, -1},
                             "layer %d: a reader still holds the table before the last one", l);
    }
    return EPLB_OK;
}

static void publish(eplb_router *router, int32_t layer)
{
    router_layer *at = &router->layers[layer];
    at->epoch++;
    at->error = at->built_error;
    atomic_store(&at->active, 1 - atomic_load(&at->active));
}

eplb_status eplb_router_update(eplb_router *router, int32_t first_layer, int32_t num_layers,
                               const eplb_placement *placement, const double *shares,
                               const eplb_load *sources, eplb_error *error)
{
    eplb_status status = check_update(router, first_layer, num_layers, placement, sources, error);
    size_t slots = (size_t)eplb_topology_num_slots(router->topology);
    for (int32_t l = first_layer; l < first_layer + num_layers && status == EPLB_OK; l++) {
        table_input input = {placement, shares != NULL ? shares + (size_t)l * slots : NULL, NULL, sources};
        status = router_build_table(router, l, &input, error);
    }
    for (int32_t l = first_layer; l < first_layer + num_layers && status == EPLB_OK; l++)
        publish(router, l);
    return status;
}

/* INVALID for a negative quota, or one of a slot that serves nothing. */
static eplb_status check_quota(const eplb_placement *placement, int32_t layer, const int64_t *quota,
                               eplb_error *error)
{
    const eplb_topology *topology = eplb_placement_topology(placement);
    const int32_t *held = eplb_placement_physical_to_logical(placement) +
                          (size_t)layer * (size_t)eplb_placement_num_slots(placement);
    for (int32_t p = 0; p < eplb_placement_num_slots(placement); p++) {
        bool live = held[p] >= 0 && eplb_topology_rank_alive(topology)[eplb_topology_slot_rank(topology)[p]];
        if (quota[p] < 0 || (quota[p] > 0 && !live))
            return error_set(error, EPLB_ERROR_INVALID, (error_place){layer, held[p], -1, p, quota[p]},
                             "layer %d, slot %d: quota %lld, expected %s", layer, p, (long long)quota[p],
                             live ? "0 or more" : "0: it holds no live replica");
    }
    return EPLB_OK;
}

eplb_status eplb_router_update_quota(eplb_router *router, int32_t layer, const eplb_placement *placement,
                                     const int64_t *quota, eplb_error *error)
{
    eplb_status status = check_update(router, layer, 1, placement, NULL, error);
    table_input input = {.placement = placement, .quota = quota};
    if (status == EPLB_OK)
        status = check_quota(placement, layer, quota, error);
    if (status == EPLB_OK)
        status = router_build_table(router, layer, &input, error);
    if (status == EPLB_OK)
        publish(router, layer);
    return status;
}

const int32_t *eplb_router_acquire(eplb_router *router, int32_t layer, uint64_t *epoch)
{
    router_layer *at = &router->layers[layer];
    for (;;) {
        int active = atomic_load(&at->active);
        (void)atomic_fetch_add(&at->readers[active], 1);
        if (atomic_load(&at->active) == active) {
            const int32_t *block = at->block[active];
            if (epoch != NULL)
                *epoch = (uint64_t)(uint32_t)block[EPLB_TABLE_EPOCH_HIGH] << 31 |
                         (uint64_t)(uint32_t)block[EPLB_TABLE_EPOCH_LOW];
            return block;
        }
        /* Published in between: the writer may be filling this block again soon. Nothing of it was read. */
        (void)atomic_fetch_sub(&at->readers[active], 1);
    }
}

void eplb_router_release(eplb_router *router, int32_t layer, const int32_t *block)
{
    router_layer *at = &router->layers[layer];
    (void)atomic_fetch_sub(&at->readers[block == at->block[1]], 1);
}

int64_t eplb_router_block_length(const eplb_router *router)
{
    return router->block_length;
}

void eplb_router_copy_block(eplb_router *router, int32_t layer, int32_t *copy)
{
    const int32_t *block = eplb_router_acquire(router, layer, NULL);
    memcpy(copy, block, (size_t)router->block_length * sizeof *copy);
    eplb_router_release(router, layer, block);
}

double eplb_router_worst_error(const eplb_router *router)
{
    double worst = 0.0;
    for (int32_t l = 0; l < router->num_layers; l++)
        worst = router->layers[l].error > worst ? router->layers[l].error : worst;
    return worst;
}

/* One expert: ranges inside the arrays, links in a ring, rows of its own replicas only. */
static bool row_is_valid(const eplb_router *router, const eplb_route_table *table, int32_t expert)
{
    int32_t begin = table->replica_first[expert], end = table->replica_first[expert + 1];
    int32_t row = table->row_first[expert], row_end = table->row_first[expert + 1];
    if (begin < 0 || end < begin || end > eplb_topology_num_slots(router->topology) || row < 0 ||
        row_end < row || row_end > router->row_capacity)
        return false;
    for (int32_t n = row; n < row_end; n++) {
        bool found = false;
        for (int32_t i = begin; i < end && !found; i++)
            found = table->slots[i] == table->rows[n];
        if (!found || table->next[n] != (n + 1 < row_end ? n + 1 : row))
            return false;
    }
    return true;
}

static bool block_is_valid(const eplb_router *router, const int32_t *block)
{
    if (block[EPLB_TABLE_MAGIC] != EPLB_TABLE_MAGIC_VALUE || block[EPLB_TABLE_EXPERTS] != router->num_experts)
        return false;
    eplb_route_table table = eplb_route_table_at(block);
    for (int32_t e = 0; e < table.num_experts; e++) {
        if (!row_is_valid(router, &table, e))
            return false;
    }
    return true;
}

bool eplb_router_is_valid(const eplb_router *router)
{
    if (router == NULL || router->layers == NULL || !eplb_topology_is_valid(router->topology))
        return false;
    for (int32_t l = 0; l < router->num_layers; l++) {
        if (!block_is_valid(router, router->layers[l].block[atomic_load(&router->layers[l].active)]))
            return false;
    }
    return true;
}
