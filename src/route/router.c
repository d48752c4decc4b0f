/* Router: tables per layer as flat blocks, two per layer, published by one atomic index.
 * A reader counts itself in at the block that the index names and looks again; the writer only fills the
 * block that the index does not name and nobody has counted in at. So a reader sees one whole table, never
 * waits, and takes no lock; the writer never waits either: it is told BUSY. O(1) for readers; an update is
 * O(S + sum of rows * replicas) per layer. Source: the two-slot form of epoch-based publication (left-right).
 */
#include <eplb/route.h>

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/params.h"
#include "route/replicas.h"
#include "route/row.h"
#include "route/source_part.h"

typedef struct router_layer {
    atomic_int active; /* block that readers take */
    atomic_int readers[2];
    int32_t *block[2];
    uint64_t epoch;
    double error;       /* of the current table */
    double built_error; /* of the table being built */
} router_layer;

struct eplb_router {
    eplb_allocator allocator;
    eplb_topology *topology;
    int32_t num_layers;
    int32_t num_experts;
    eplb_route_rule rule;
    int32_t source_rank;
    int32_t row_limit;
    int64_t row_capacity;
    int64_t block_length;
    router_layer *layers;
    int32_t *blocks;
    /* Scratch of the updating thread. */
    bool wants_quota; /* rows of whole quotas, where they fit */
    double *share;    /* [S] */
    int64_t *weight;  /* [S] */
    int64_t *part;    /* [S] */
    int64_t *left;    /* [S] */
    int64_t *supply;  /* [G] */
    int32_t *quota;   /* [S] */
    int32_t *served;  /* [S] */
    int32_t *rank;    /* [S] */
};

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

/* --- building ---------------------------------------------------------------------------------------- */

/* Tokens of one expert by source rank; equal for all live ranks where nothing is known of it. */
static int64_t read_supply(eplb_router *router, const eplb_placement *placement, const eplb_load *sources,
                           int32_t layer, int32_t expert)
{
    const uint8_t *alive = eplb_topology_rank_alive(eplb_placement_topology(placement));
    int32_t ranks = eplb_topology_num_ranks(router->topology);
    int64_t total = 0;
    for (int32_t g = 0; g < ranks; g++) {
        router->supply[g] = sources != NULL ? eplb_load_at(sources, g, layer, expert) : 0;
        total += router->supply[g];
    }
    if (total == 0) {
        for (int32_t g = 0; g < ranks; g++)
            router->supply[g] = alive[g] != 0;
    }
    row_scale_weights(router->supply, ranks);
    total = 0;
    for (int32_t g = 0; g < ranks; g++)
        total += router->supply[g];
    /* Fine enough that rounding a replica's quota to one of these units is below any row's resolution. */
    int64_t fine = total > 0 ? ROW_WEIGHT_LIMIT / total : 0;
    for (int32_t g = 0; g < ranks; g++)
        router->supply[g] *= fine;
    return total * fine;
}

/* Turns the weights of an expert's replicas into the part of the router's own source. The part may be empty
 * (the source sends none of this expert): the weights then stay. */
static void take_own_part(eplb_router *router, const eplb_placement *placement, const eplb_load *sources,
                          int32_t layer, int32_t expert, const int32_t *slot, int32_t count)
{
    int64_t total = read_supply(router, placement, sources, layer, expert);
    int64_t sum = 0, before = 0, own = 0;
    for (int32_t i = 0; i < count; i++)
        sum += router->weight[i];
    int64_t given = 0;
    for (int32_t i = 0; i < count; i++) {
        /* Cumulative rounding: quotas sum to the supply. Both factors are at most 2^31. */
        before += router->weight[i];
        router->left[i] = before * total / sum - given;
        given += router->left[i];
        router->part[i] = 0;
        router->rank[i] = eplb_topology_slot_rank(router->topology)[slot[i]];
    }
    source_part_output output = {.part = router->part, .only = router->source_rank};
    source_part(eplb_topology_num_ranks(router->topology), eplb_topology_rank_node(router->topology),
                router->rank, count, router->supply, router->left, &output);
    for (int32_t i = 0; i < count; i++)
        own += router->part[i];
    if (own > 0)
        memcpy(router->weight, router->part, (size_t)count * sizeof *router->weight);
}

/* Weights that are the quotas of a batch and fit a row: the row's length, 0 if there is none. */
static int32_t whole_quotas(eplb_router *router, int32_t count, double *error)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < count && router->wants_quota; i++)
        sum += router->weight[i]; /* at most 2^31 each */
    if (sum > router->row_limit)
        return 0;
    for (int32_t i = 0; i < count; i++)
        router->quota[i] = (int32_t)router->weight[i];
    *error = 0.0;
    return (int32_t)sum;
}

/* Writes the row of one expert; returns its length and keeps the largest error. */
static int32_t write_row(eplb_router *router, const int32_t *slot, int32_t count, int32_t *row, double *worst)
{
    double error;
    if (count == 1) {
        row[0] = slot[0];
        return 1;
    }
    int32_t length = whole_quotas(router, count, &error);
    if (length == 0)
        length = row_choose(router->weight, count, router->row_limit, router->quota, &error);
    eplb_route_row(router->quota, count, row, router->served);
    for (int32_t n = 0; n < length; n++)
        row[n] = slot[row[n]];
    *worst = error > *worst ? error : *worst;
    return length;
}

/* Weights as int32 whose sum is below 2^31, for eplb_select_exact. */
static void write_weights(const eplb_router *router, int32_t count, int32_t *weights)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < count; i++)
        sum += router->weight[i];
    int shift = sum > INT32_MAX; /* row_scale_weights keeps the sum within 2^31 */
    for (int32_t i = 0; i < count; i++)
        weights[i] = (int32_t)(router->weight[i] >> shift);
}

static int32_t inverse_of(int32_t length)
{
    return length > 0 ? (int32_t)(UINT32_MAX / (uint32_t)length) : 0;
}

/* What follows from the rows: the place after each, and the inverses for selection without division. */
static void link_rows(int32_t *block)
{
    const int32_t *first = block + block[EPLB_TABLE_REPLICA_FIRST],
                  *row_first = block + block[EPLB_TABLE_ROW_FIRST];
    int32_t *next = block + block[EPLB_TABLE_NEXT];
    for (int32_t e = 0; e < block[EPLB_TABLE_EXPERTS]; e++) {
        for (int32_t n = row_first[e]; n < row_first[e + 1]; n++)
            next[n] = n + 1 < row_first[e + 1] ? n + 1 : row_first[e];
        block[block[EPLB_TABLE_ROW_INVERSE] + e] = inverse_of(row_first[e + 1] - row_first[e]);
        block[block[EPLB_TABLE_REPLICA_INVERSE] + e] = inverse_of(first[e + 1] - first[e]);
    }
}

/* What a layer's table is made of. */
typedef struct build_input {
    const eplb_placement *placement;
    const double *shares;     /* [S] or NULL: equal */
    const int64_t *quota;     /* [S] instead of shares, or NULL */
    const eplb_load *sources; /* or NULL */
} build_input;

/* Weights of one expert's live replicas. */
static eplb_status read_weights(eplb_router *router, int32_t layer, int32_t expert, const build_input *input,
                                const int32_t *slot, int32_t count, eplb_error *error)
{
    int64_t sum = 0;
    for (int32_t i = 0; input->quota != NULL && i < count; i++) {
        router->weight[i] = input->quota[slot[i]];
        if (!checked_add(sum, router->weight[i], &sum))
            return error_set(error, EPLB_ERROR_INVALID, (error_place){layer, expert, -1, slot[i], -1},
                             "layer %d, expert %d: the quotas do not fit int64", layer, expert);
    }
    if (sum > 0) {
        row_scale_weights(router->weight, count);
        return EPLB_OK;
    }
    eplb_status status = replicas_shares(input->shares, layer, expert, slot, count, router->share, error);
    if (status == EPLB_OK)
        row_weights_of_shares(router->share, count, router->weight);
    if (status == EPLB_OK && router->rule == EPLB_ROUTE_NEAREST && count > 1 && input->quota == NULL)
        take_own_part(router, input->placement, input->sources, layer, expert, slot, count);
    return status;
}

/* Fills the block that nobody reads. */
static eplb_status build_layer(eplb_router *router, int32_t layer, const build_input *input,
                               eplb_error *error)
{
    router->wants_quota = input->quota != NULL;
    router_layer *at = &router->layers[layer];
    int32_t *block = at->block[1 - atomic_load(&at->active)];
    int32_t *first = block + block[EPLB_TABLE_REPLICA_FIRST], *slots = block + block[EPLB_TABLE_SLOTS];
    int32_t *row_first = block + block[EPLB_TABLE_ROW_FIRST], *rows = block + block[EPLB_TABLE_ROWS];
    replicas_list(input->placement, layer, first, slots);
    eplb_status status = replicas_check(first, router->num_experts, layer, error);
    int32_t used = 0;
    at->built_error = 0.0;
    for (int32_t e = 0; e < router->num_experts && status == EPLB_OK; e++) {
        int32_t count = first[e + 1] - first[e];
        const int32_t *slot = slots + first[e];
        row_first[e] = used;
        status = read_weights(router, layer, e, input, slot, count, error);
        if (status != EPLB_OK)
            break;
        write_weights(router, count, block + block[EPLB_TABLE_WEIGHTS] + first[e]);
        used += write_row(router, slot, count, rows + used, &at->built_error);
    }
    row_first[router->num_experts] = used;
    if (status == EPLB_OK)
        link_rows(block);
    uint64_t epoch = at->epoch + 1;
    block[EPLB_TABLE_EPOCH_LOW] = (int32_t)(epoch & 0x7fffffffu);
    block[EPLB_TABLE_EPOCH_HIGH] = (int32_t)(epoch >> 31);
    return status;
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
        build_input input = {placement, shares != NULL ? shares + (size_t)l * slots : NULL, NULL, sources};
        status = build_layer(router, l, &input, error);
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
    build_input input = {.placement = placement, .quota = quota};
    if (status == EPLB_OK)
        status = check_quota(placement, layer, quota, error);
    if (status == EPLB_OK)
        status = build_layer(router, layer, &input, error);
    if (status == EPLB_OK)
        publish(router, layer);
    return status;
}

/* --- reading ----------------------------------------------------------------------------------------- */

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

/* Counters to places in the rows, and back. False (nothing changed) if an expert has no row. */
static bool enter_rows(const eplb_route_table *table, int32_t *position)
{
    for (int32_t e = 0; e < table->num_experts; e++) {
        if (table->row_first[e + 1] == table->row_first[e])
            return false;
    }
    for (int32_t e = 0; e < table->num_experts; e++) {
        int32_t begin = table->row_first[e], length = table->row_first[e + 1] - begin;
        position[e] = begin + ((uint32_t)position[e] < (uint32_t)length ? position[e] : 0);
    }
    return true;
}

static void leave_rows(const eplb_route_table *table, int32_t *position)
{
    for (int32_t e = 0; e < table->num_experts; e++)
        position[e] -= table->row_first[e];
}

/* One choice by links between places; position holds places. */
static inline int32_t follow(const eplb_route_table *table, int32_t *position, int32_t expert)
{
    if (!eplb_route_knows(table, expert))
        return -1;
    int32_t at = position[expert];
    position[expert] = table->next[at];
    return table->rows[at];
}

/* One choice of a known expert. */
static inline uint32_t step(const eplb_route_table *table, int32_t *position, uint32_t expert)
{
    uint32_t at = (uint32_t)position[expert];
    position[expert] = table->next[at];
    return (uint32_t)table->rows[at];
}

/* Four at a time: the time goes into comparisons, loads and stores, so four ids are compared at once and
 * slots are stored in pairs. */
static void follow_all(const eplb_route_table *table, int32_t *position, const int32_t *ids, int64_t count,
                       int32_t *slots)
{
    uint32_t experts = (uint32_t)table->num_experts;
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        uint32_t id[4], four[4];
        memcpy(id, ids + i, sizeof id);
        if (id[0] < experts && id[1] < experts && id[2] < experts && id[3] < experts) {
            four[0] = step(table, position, id[0]);
            four[1] = step(table, position, id[1]);
            four[2] = step(table, position, id[2]);
            four[3] = step(table, position, id[3]);
            memcpy(slots + i, four, sizeof four);
            continue;
        }
        for (int k = 0; k < 4; k++)
            slots[i + k] = follow(table, position, ids[i + k]);
    }
    for (; i < count; i++)
        slots[i] = follow(table, position, ids[i]);
}

void eplb_route_ids(const int32_t *block, int32_t *position, const int32_t *ids, int64_t count,
                    int32_t *slots)
{
    eplb_route_table table = eplb_route_table_at(block);
    /* A large batch follows the links between places: half the time of comparing counters with lengths. */
    if (count < 2 * (int64_t)table.num_experts || !enter_rows(&table, position)) {
        for (int64_t i = 0; i < count; i++)
            slots[i] = eplb_select_next(&table, position, ids[i]);
        return;
    }
    follow_all(&table, position, ids, count, slots);
    leave_rows(&table, position);
}

void eplb_route_start(const int32_t *block, int32_t rank, int32_t *position)
{
    eplb_route_table table = eplb_route_table_at(block);
    /* Neighbouring ranks start at neighbouring places: their first tokens read a piece of the row in order.
     */
    for (int32_t e = 0; e < table.num_experts; e++) {
        int32_t length = table.row_first[e + 1] - table.row_first[e];
        position[e] = length > 0 ? rank % length : 0;
    }
}
