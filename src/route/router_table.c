/* One layer's table: shares, or quotas of a batch, to weights, rows and what selection needs beside them.
 *
 * A row is as long as rounds the shares best within the limit (row.c); with the rule `nearest` the weights
 * are first cut to the part of the router's own source (source_part.c). O(S + sum of rows * replicas). */
#include "route/router.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "route/replicas.h"
#include "route/row.h"
#include "route/source_part.h"

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

/* Weights of one expert's live replicas. */
static eplb_status read_weights(eplb_router *router, int32_t layer, int32_t expert, const table_input *input,
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

eplb_status router_build_table(eplb_router *router, int32_t layer, const table_input *input,
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
