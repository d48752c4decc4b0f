/* The rules of routing: one function each fills the slots of one layer of a batch, rank by rank where a rank
 * counts on its own. The rules of engines are told in docs/routing.md with their sources. */
#include <string.h>

#include "routing_state.h"

#define TRTLLM_BLOCK 1024

static eplb_status select_by_table(routing *self, int32_t layer, eplb_error *error)
{
    (void)error;
    int32_t width = self->params.width;
    for (int32_t n = 0; n < self->num_live; n++) {
        int32_t rank = self->live[n];
        int64_t begin = routing_block_start(self, n) * width, end = routing_block_start(self, n + 1) * width;
        int32_t *position = self->position + ((size_t)rank * (size_t)self->num_layers + (size_t)layer) *
                                                 (size_t)self->num_experts;
        const int32_t *block = eplb_router_acquire(self->router, layer, NULL);
        eplb_route_ids(block, position, self->ids + begin, end - begin, self->slots + begin);
        eplb_router_release(self->router, layer, block);
    }
    return EPLB_OK;
}

static eplb_status select_invariant(routing *self, int32_t layer, eplb_error *error)
{
    (void)error;
    int32_t width = self->params.width;
    const int32_t *block = eplb_router_acquire(self->router, layer, NULL);
    eplb_route_table table = eplb_route_table_at(block);
    for (int64_t i = 0; i < self->num_tokens * width; i++)
        self->slots[i] = eplb_select_invariant(&table, self->ids[i], (uint32_t)(i / width));
    eplb_router_release(self->router, layer, block);
    return EPLB_OK;
}

/* Counts by source rank, and over all. */
static void count_sources(routing *self)
{
    size_t experts = (size_t)self->num_experts;
    int32_t width = self->params.width;
    memset(self->counts, 0, (size_t)self->num_ranks * experts * sizeof *self->counts);
    memset(self->expert_count, 0, experts * sizeof *self->expert_count);
    for (int64_t t = 0; t < self->num_tokens; t++) {
        int64_t *counts = self->counts + (size_t)self->source[t] * experts;
        for (int32_t k = 0; k < width; k++) {
            int32_t e = self->ids[t * width + k];
            if (e < 0)
                continue;
            counts[e]++;
            self->expert_count[e]++;
        }
    }
}

static eplb_status select_activated(routing *self, int32_t layer, eplb_error *error)
{
    count_sources(self);
    eplb_status status =
        eplb_resplit_activate(self->resplit[layer], self->expert_count, self->expert_slot, NULL, error);
    if (status != EPLB_OK)
        return status;
    memset(self->quota, 0, (size_t)self->num_slots * sizeof *self->quota);
    for (int32_t e = 0; e < self->num_experts; e++) {
        if (self->expert_slot[e] >= 0)
            self->quota[self->expert_slot[e]] = self->expert_count[e];
    }
    for (int64_t i = 0; i < self->num_tokens * self->params.width; i++)
        self->slots[i] = self->ids[i] >= 0 ? self->expert_slot[self->ids[i]] : -1;
    self->has_quota = true;
    return EPLB_OK;
}

/* Rows of exactly this batch's quotas for one source, one after the other. */
static void make_batch_rows(routing *self, int32_t layer, int32_t source)
{
    size_t experts = (size_t)self->num_experts, slots = (size_t)self->num_slots;
    const int32_t *first =
        eplb_placement_replica_first(self->params.placement) + (size_t)layer * (experts + 1);
    const int32_t *replica = eplb_placement_replica_slots(self->params.placement) + (size_t)layer * slots;
    const int64_t *part = self->part + (size_t)source * slots;
    int32_t used = 0;
    for (size_t e = 0; e < experts; e++) {
        int32_t count = first[e + 1] - first[e], length = 0;
        self->row_start[e] = used;
        for (int32_t i = 0; i < count; i++) {
            self->row_quota[i] = (int32_t)part[replica[first[e] + i]];
            length += self->row_quota[i];
        }
        eplb_route_row(self->row_quota, count, self->row + used, self->row_served);
        for (int32_t n = 0; n < length; n++)
            self->row[used + n] = replica[first[e] + self->row[used + n]];
        used += length;
    }
}

/* Divides self->quota among the sources and lets each choose by rows of its part. */
static eplb_status select_by_part(routing *self, int32_t layer, eplb_error *error)
{
    eplb_status status =
        eplb_resplit_by_source(self->resplit[layer], self->counts, self->quota, self->part, error);
    if (status != EPLB_OK)
        return status;
    int32_t width = self->params.width;
    for (int32_t n = 0; n < self->num_live; n++) {
        make_batch_rows(self, layer, self->live[n]);
        for (int64_t i = routing_block_start(self, n) * width; i < routing_block_start(self, n + 1) * width;
             i++)
            self->slots[i] = self->ids[i] >= 0 ? self->row[self->row_start[self->ids[i]]++] : -1;
    }
    return EPLB_OK;
}

static eplb_status select_resplit(routing *self, int32_t layer, eplb_error *error)
{
    count_sources(self);
    eplb_status status =
        eplb_resplit_solve_local(self->resplit[layer], self->counts, self->quota, NULL, error);
    self->has_quota = true;
    return status == EPLB_OK ? select_by_part(self, layer, error) : status;
}

/* All ranks follow the shares together: what a rank reaches when it knows how many tokens of each expert the
 * ranks before it have. */
static eplb_status select_quota(routing *self, int32_t layer, eplb_error *error)
{
    (void)error;
    int32_t *served = self->served + (size_t)layer * (size_t)self->num_slots;
    const int32_t *block = eplb_router_acquire(self->router, layer, NULL);
    eplb_route_table table = eplb_route_table_at(block);
    for (int64_t i = 0; i < self->num_tokens * self->params.width; i++)
        self->slots[i] = eplb_select_exact(&table, served, self->ids[i]);
    eplb_router_release(self->router, layer, block);
    return EPLB_OK;
}

/* The tokens that `quota` gives to each slot, divided among the sources by what they hold. */
static eplb_status select_nearest(routing *self, int32_t layer, eplb_error *error)
{
    count_sources(self);
    eplb_status status = select_quota(self, layer, error);
    memset(self->quota, 0, (size_t)self->num_slots * sizeof *self->quota);
    for (int64_t i = 0; i < self->num_tokens * self->params.width; i++) {
        if (self->slots[i] >= 0)
            self->quota[self->slots[i]]++;
    }
    return status == EPLB_OK ? select_by_part(self, layer, error) : status;
}

static eplb_status select_vllm(routing *self, int32_t layer, eplb_error *error)
{
    (void)error;
    int32_t width = self->params.width;
    const int32_t *block = eplb_router_acquire(self->router, layer, NULL);
    eplb_route_table table = eplb_route_table_at(block);
    for (int32_t n = 0; n < self->num_live; n++) {
        int64_t begin = routing_block_start(self, n) * width;
        for (int64_t i = begin; i < routing_block_start(self, n + 1) * width; i++)
            self->slots[i] = eplb_select_vllm(&table, self->ids[i], (uint32_t)((i - begin) / width));
    }
    eplb_router_release(self->router, layer, block);
    return EPLB_OK;
}

static eplb_status select_repeat(routing *self, int32_t layer, eplb_error *error)
{
    (void)error;
    int32_t width = self->params.width, limit = self->params.row_limit;
    const int32_t *count = self->repeat_count + (size_t)layer * (size_t)self->num_experts;
    const int32_t *dense = self->repeat + (size_t)layer * (size_t)self->num_experts * (size_t)limit;
    for (int32_t n = 0; n < self->num_live; n++) {
        int64_t begin = routing_block_start(self, n) * width;
        for (int64_t i = begin; i < routing_block_start(self, n + 1) * width; i++)
            self->slots[i] = eplb_select_dense(dense, count, limit, self->num_experts, self->ids[i],
                                               (uint32_t)((i - begin) / width));
    }
    return EPLB_OK;
}

static eplb_status select_sglang_static(routing *self, int32_t layer, eplb_error *error)
{
    (void)error;
    size_t experts = (size_t)self->num_experts;
    int32_t width = self->params.width;
    for (int32_t n = 0; n < self->num_live; n++) {
        const int32_t *own =
            self->own + ((size_t)self->live[n] * (size_t)self->num_layers + (size_t)layer) * experts;
        for (int64_t i = routing_block_start(self, n) * width; i < routing_block_start(self, n + 1) * width;
             i++)
            self->slots[i] = eplb_select_sglang_static(own, self->num_experts, self->ids[i]);
    }
    return EPLB_OK;
}

static eplb_status select_sglang_dynamic(routing *self, int32_t layer, eplb_error *error)
{
    (void)error;
    const int32_t *block = eplb_router_acquire(self->router, layer, NULL);
    eplb_route_table table = eplb_route_table_at(block);
    for (int64_t i = 0; i < self->num_tokens * self->params.width; i++)
        self->slots[i] =
            eplb_select_sglang_dynamic(&table, self->ids[i], (uint32_t)(random_next(&self->random) >> 48));
    eplb_router_release(self->router, layer, block);
    return EPLB_OK;
}

static eplb_status select_trtllm(routing *self, int32_t layer, eplb_error *error)
{
    (void)error;
    int32_t width = self->params.width;
    const int32_t *block = eplb_router_acquire(self->router, layer, NULL);
    eplb_route_table table = eplb_route_table_at(block);
    for (int32_t n = 0; n < self->num_live; n++) {
        int64_t begin = routing_block_start(self, n) * width;
        for (int64_t i = begin; i < routing_block_start(self, n + 1) * width; i++) {
            int64_t part = (i - begin) / TRTLLM_BLOCK;
            if ((i - begin) % TRTLLM_BLOCK == 0)
                memset(self->running, 0, (size_t)self->num_experts * sizeof *self->running);
            int32_t e = self->ids[i];
            uint32_t running = e >= 0 ? (uint32_t)self->running[e]++ : 0;
            self->slots[i] = eplb_select_trtllm(&table, e, running, (uint32_t)part, (uint32_t)self->live[n]);
        }
    }
    eplb_router_release(self->router, layer, block);
    return EPLB_OK;
}

typedef eplb_status (*select_function)(routing *self, int32_t layer, eplb_error *error);

static const select_function select_functions[] = {
    [ROUTING_QUOTA] = select_quota,
    [ROUTING_TABLE] = select_by_table,
    [ROUTING_NEAREST] = select_nearest,
    [ROUTING_INVARIANT] = select_invariant,
    [ROUTING_ACTIVATED] = select_activated,
    [ROUTING_RESPLIT] = select_resplit,
    [ROUTING_VLLM] = select_vllm,
    [ROUTING_SGLANG_STATIC] = select_sglang_static,
    [ROUTING_SGLANG_DYNAMIC] = select_sglang_dynamic,
    [ROUTING_TRTLLM] = select_trtllm,
    [ROUTING_REPEAT] = select_repeat,
};

eplb_status routing_select(routing *self, int32_t layer, eplb_error *error)
{
    self->has_quota = false;
    return select_functions[self->params.rule](self, layer, error);
}
