/* Sends recorded tokens through a rule. One select function per rule fills the slots of one layer of one
 * batch; all the rest (planned and delivered load, traffic, activated replicas) is counted in common, from
 * the slots alone. */
#include "routing.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "clock.h"
#include "failure.h"

#define TRTLLM_BLOCK 1024
#define DYNAMIC_SEED 1

struct routing {
    routing_params params;
    const eplb_topology *topology;
    int32_t num_layers, num_experts, num_slots, num_ranks, num_live;
    int32_t *live; /* [live] ranks */
    double *share; /* [L, S] over live replicas, sums to 1 */

    eplb_router *router;
    int32_t *served;        /* [L, S] counters of the shares */
    int32_t *position;      /* [G, L, E] */
    eplb_resplit **resplit; /* [L] */
    int32_t *own;           /* [G, L, E] */
    int32_t *repeat;        /* [L, E, row_limit] */
    int32_t *repeat_count;  /* [L, E] */
    random_state random;

    /* One layer of one batch. */
    int64_t num_tokens;
    const int32_t *ids;    /* [n, K] */
    int32_t *gathered;     /* [n, K] */
    int32_t *slots;        /* [n, K] */
    int32_t *source;       /* [n] */
    int64_t *counts;       /* [G, E] */
    int64_t *quota;        /* [S] */
    int64_t *part;         /* [G, S] */
    int32_t *expert_slot;  /* [E] */
    int32_t *row;          /* [n K] */
    int32_t *row_start;    /* [E] */
    int32_t *row_quota;    /* [S] */
    int32_t *row_served;   /* [S] */
    int64_t *expert_count; /* [E] */
    bool has_quota;        /* the rule planned this batch itself: quota */

    /* Totals. */
    int64_t tokens, batches, pairs;
    double *planned_slot;    /* [L, S] */
    int64_t *delivered_slot; /* [L, S] */
    int64_t *batch_slot;     /* [S] */
    double *rank_load;       /* [G] */
    double *planned;         /* [L, G] */
    int64_t *delivered;      /* [L, G] */
    double *activated;       /* [L] sums */
    double max_deviation, imbalance_sum, imbalance_worst, seconds;
    eplb_traffic traffic;
};

/* --- the rules
 * ------------------------------------------------------------------------------------------------ */

typedef eplb_status (*select_function)(routing *self, int32_t layer, eplb_error *error);

/* First token of live rank number n: blocks of equal size. */
static int64_t block_start(const routing *self, int32_t n)
{
    return self->num_tokens * n / self->num_live;
}

static eplb_status select_by_table(routing *self, int32_t layer, eplb_error *error)
{
    (void)error;
    int32_t width = self->params.width;
    for (int32_t n = 0; n < self->num_live; n++) {
        int32_t rank = self->live[n];
        int64_t begin = block_start(self, n) * width, end = block_start(self, n + 1) * width;
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
        for (int64_t i = block_start(self, n) * width; i < block_start(self, n + 1) * width; i++)
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
        int64_t begin = block_start(self, n) * width;
        for (int64_t i = begin; i < block_start(self, n + 1) * width; i++)
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
        int64_t begin = block_start(self, n) * width;
        for (int64_t i = begin; i < block_start(self, n + 1) * width; i++)
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
        for (int64_t i = block_start(self, n) * width; i < block_start(self, n + 1) * width; i++)
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
        int64_t begin = block_start(self, n) * width;
        for (int64_t i = begin; i < block_start(self, n + 1) * width; i++) {
            int64_t part = (i - begin) / TRTLLM_BLOCK;
            if ((i - begin) % TRTLLM_BLOCK == 0)
                memset(self->row_start, 0, (size_t)self->num_experts * sizeof *self->row_start);
            int32_t e = self->ids[i];
            uint32_t running = e >= 0 ? (uint32_t)self->row_start[e]++ : 0;
            self->slots[i] = eplb_select_trtllm(&table, e, running, (uint32_t)part, (uint32_t)self->live[n]);
        }
    }
    eplb_router_release(self->router, layer, block);
    return EPLB_OK;
}

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

/* --- making
 * --------------------------------------------------------------------------------------------------- */

static bool take_arrays(routing *self)
{
    size_t layers = (size_t)self->num_layers, experts = (size_t)self->num_experts;
    size_t slots = (size_t)self->num_slots, ranks = (size_t)self->num_ranks;
    size_t tokens = (size_t)self->params.max_tokens, pairs = tokens * (size_t)self->params.width;
    self->live = calloc(ranks, sizeof *self->live);
    self->share = calloc(layers * slots, sizeof *self->share);
    self->gathered = calloc(pairs + 1, sizeof *self->gathered);
    self->slots = calloc(pairs + 1, sizeof *self->slots);
    self->source = calloc(tokens + 1, sizeof *self->source);
    self->counts = calloc(ranks * experts, sizeof *self->counts);
    self->quota = calloc(slots, sizeof *self->quota);
    self->part = calloc(ranks * slots, sizeof *self->part);
    self->row = calloc(pairs + 1, sizeof *self->row);
    self->row_quota = calloc(2 * slots + 2 * experts, sizeof *self->row_quota);
    self->expert_count = calloc(experts, sizeof *self->expert_count);
    self->planned_slot = calloc(layers * slots, sizeof *self->planned_slot);
    self->delivered_slot = calloc(layers * slots + slots, sizeof *self->delivered_slot);
    self->rank_load = calloc(ranks, sizeof *self->rank_load);
    self->planned = calloc(layers * ranks + layers, sizeof *self->planned);
    self->delivered = calloc(layers * ranks, sizeof *self->delivered);
    self->position = calloc(ranks * layers * experts, sizeof *self->position);
    self->served = calloc(layers * slots, sizeof *self->served);
    const void *blocks[] = {self->live,      self->share,     self->gathered,     self->slots,
                            self->source,    self->counts,    self->quota,        self->part,
                            self->row,       self->row_quota, self->planned_slot, self->delivered_slot,
                            self->rank_load, self->planned,   self->delivered,    self->expert_count,
                            self->position,  self->served};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        if (blocks[i] == NULL)
            return false;
    }
    self->row_served = self->row_quota + slots;
    self->row_start = self->row_served + slots;
    self->expert_slot = self->row_start + experts;
    self->batch_slot = self->delivered_slot + layers * slots;
    self->activated = self->planned + layers * ranks;
    return true;
}

void routing_destroy(routing *self)
{
    if (self == NULL)
        return;
    eplb_router_destroy(self->router);
    for (int32_t l = 0; self->resplit != NULL && l < self->num_layers; l++)
        eplb_resplit_destroy(self->resplit[l]);
    void *blocks[] = {self->served,       self->resplit,      self->own,
                      self->repeat,       self->repeat_count, self->live,
                      self->share,        self->gathered,     self->slots,
                      self->source,       self->counts,       self->quota,
                      self->part,         self->row,          self->row_quota,
                      self->expert_count, self->planned_slot, self->delivered_slot,
                      self->rank_load,    self->planned,      self->delivered,
                      self->position};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        free(blocks[i]);
    free(self);
}

/* Shares of the live replicas, scaled to sum to 1: what a plan means once ranks are dead. */
static void read_shares(routing *self)
{
    const eplb_placement *placement = self->params.placement;
    size_t experts = (size_t)self->num_experts, slots = (size_t)self->num_slots;
    const int32_t *slot_rank = eplb_topology_slot_rank(self->topology);
    for (size_t l = 0; l < (size_t)self->num_layers; l++) {
        const int32_t *first = eplb_placement_replica_first(placement) + l * (experts + 1);
        const int32_t *replica = eplb_placement_replica_slots(placement) + l * slots;
        for (size_t e = 0; e < experts; e++) {
            double sum = 0.0;
            for (int pass = 0; pass < 2; pass++) {
                for (int32_t i = first[e]; i < first[e + 1]; i++) {
                    size_t at = l * slots + (size_t)replica[i];
                    if (!eplb_topology_rank_alive(self->topology)[slot_rank[replica[i]]])
                        continue;
                    double share = self->params.shares != NULL ? self->params.shares[at] : 1.0;
                    if (pass == 0)
                        sum += share;
                    else
                        self->share[at] = sum > 0.0 ? share / sum : 0.0;
                }
            }
        }
    }
}

static eplb_status make_router(routing *self, eplb_error *error)
{
    eplb_router_params params;
    eplb_router_params_init(&params, sizeof params);
    params.topology = self->topology;
    params.num_layers = self->num_layers;
    params.num_experts = self->num_experts;
    params.row_limit = self->params.row_limit;
    eplb_status status = eplb_router_create(&self->router, &params, NULL, error);
    if (status == EPLB_OK)
        status = eplb_router_update(self->router, 0, self->num_layers, self->params.placement,
                                    self->params.shares, NULL, error);
    return status;
}

/* Counters of the ranks start apart. */
static void start_counters(routing *self)
{
    if (self->params.rule != ROUTING_TABLE)
        return;
    for (int32_t l = 0; l < self->num_layers; l++) {
        const int32_t *block = eplb_router_acquire(self->router, l, NULL);
        for (int32_t g = 0; g < self->num_ranks; g++)
            eplb_route_start(block, g,
                             self->position + ((size_t)g * (size_t)self->num_layers + (size_t)l) *
                                                  (size_t)self->num_experts);
        eplb_router_release(self->router, l, block);
    }
}

static eplb_status make_resplits(routing *self, eplb_error *error)
{
    self->resplit = calloc((size_t)self->num_layers, sizeof *self->resplit);
    if (self->resplit == NULL)
        return no_memory(error);
    eplb_status status = EPLB_OK;
    for (int32_t l = 0; l < self->num_layers && status == EPLB_OK; l++)
        status = eplb_resplit_create(&self->resplit[l], self->params.placement, l, NULL, error);
    return status;
}

static eplb_status make_engine_tables(routing *self, eplb_error *error)
{
    size_t cells = (size_t)self->num_layers * (size_t)self->num_experts;
    if (self->params.rule == ROUTING_SGLANG_STATIC) {
        self->own = calloc(cells * (size_t)self->num_ranks, sizeof *self->own);
        return self->own == NULL ? no_memory(error)
                                 : eplb_sglang_static(self->params.placement, self->own, NULL, error);
    }
    self->repeat = calloc(cells * (size_t)self->params.row_limit, sizeof *self->repeat);
    self->repeat_count = calloc(cells, sizeof *self->repeat_count);
    if (self->repeat == NULL || self->repeat_count == NULL)
        return no_memory(error);
    return eplb_repeat_table_int32(self->params.placement, self->params.shares, self->params.row_limit,
                                   self->repeat, self->repeat_count, NULL, NULL, error);
}

eplb_status routing_create(routing **out, const routing_params *params, eplb_error *error)
{
    *out = NULL;
    routing *self = calloc(1, sizeof *self);
    if (self == NULL)
        return no_memory(error);
    self->params = *params;
    self->topology = eplb_placement_topology(params->placement);
    self->num_layers = eplb_placement_num_layers(params->placement);
    self->num_experts = eplb_placement_num_experts(params->placement);
    self->num_slots = eplb_placement_num_slots(params->placement);
    self->num_ranks = eplb_topology_num_ranks(self->topology);
    self->random = random_seed(DYNAMIC_SEED);
    eplb_status status = take_arrays(self) ? EPLB_OK : no_memory(error);
    if (status == EPLB_OK) {
        for (int32_t g = 0; g < self->num_ranks; g++) {
            if (eplb_topology_rank_alive(self->topology)[g])
                self->live[self->num_live++] = g;
        }
        read_shares(self);
        status = make_router(self, error); /* also checks placement and shares */
    }
    if (status == EPLB_OK)
        start_counters(self);
    if (status == EPLB_OK && (params->rule == ROUTING_NEAREST || params->rule == ROUTING_ACTIVATED ||
                              params->rule == ROUTING_RESPLIT))
        status = make_resplits(self, error);
    if (status == EPLB_OK && (params->rule == ROUTING_SGLANG_STATIC || params->rule == ROUTING_REPEAT))
        status = make_engine_tables(self, error);
    if (status != EPLB_OK) {
        routing_destroy(self);
        return status;
    }
    *out = self;
    return EPLB_OK;
}

/* --- running
 * --------------------------------------------------------------------------------------------------- */

/* What each slot should get: the rule's own quotas, or the expert's pairs times the share. */
static void add_planned(routing *self, int32_t layer)
{
    size_t slots = (size_t)self->num_slots;
    const int32_t *held = eplb_placement_physical_to_logical(self->params.placement) + (size_t)layer * slots;
    double *planned = self->planned_slot + (size_t)layer * slots;
    memset(self->expert_count, 0, (size_t)self->num_experts * sizeof *self->expert_count);
    for (int64_t i = 0; i < self->num_tokens * self->params.width; i++) {
        if (self->ids[i] >= 0)
            self->expert_count[self->ids[i]]++;
    }
    for (size_t p = 0; p < slots; p++) {
        if (self->has_quota)
            planned[p] += (double)self->quota[p];
        else if (held[p] >= 0)
            planned[p] += self->share[(size_t)layer * slots + p] * (double)self->expert_count[held[p]];
    }
}

/* Slots of one layer to all totals. */
static void add_delivered(routing *self, int32_t layer)
{
    size_t slots = (size_t)self->num_slots, ranks = (size_t)self->num_ranks;
    const int32_t *slot_rank = eplb_topology_slot_rank(self->topology);
    int64_t *delivered = self->delivered_slot + (size_t)layer * slots, most = 0;
    memset(self->batch_slot, 0, slots * sizeof *self->batch_slot);
    for (int64_t i = 0; i < self->num_tokens * self->params.width; i++) {
        if (self->slots[i] >= 0)
            self->batch_slot[self->slots[i]]++;
    }
    for (size_t g = 0; g < ranks; g++)
        self->rank_load[g] = 0.0;
    int32_t *activated = self->row_quota; /* free between batches */
    memset(activated, 0, ranks * sizeof *activated);
    for (size_t p = 0; p < slots; p++) {
        self->rank_load[slot_rank[p]] += (double)self->batch_slot[p];
        activated[slot_rank[p]] += self->batch_slot[p] > 0;
        most = activated[slot_rank[p]] > most ? activated[slot_rank[p]] : most;
        delivered[p] += self->batch_slot[p];
        self->pairs += self->batch_slot[p];
        double off = (double)delivered[p] - self->planned_slot[(size_t)layer * slots + p];
        off = off < 0.0 ? -off : off;
        self->max_deviation = off > self->max_deviation ? off : self->max_deviation;
    }
    double imbalance = eplb_imbalance(self->topology, self->rank_load);
    self->imbalance_sum += imbalance;
    self->imbalance_worst = imbalance > self->imbalance_worst ? imbalance : self->imbalance_worst;
    self->activated[layer] += (double)most;
}

eplb_status routing_batch(routing *self, const int32_t *ids, int64_t num_tokens, eplb_error *error)
{
    size_t width = (size_t)self->params.width, layers = (size_t)self->num_layers;
    self->num_tokens = num_tokens;
    for (int32_t n = 0; n < self->num_live; n++) {
        for (int64_t t = block_start(self, n); t < block_start(self, n + 1); t++)
            self->source[t] = self->live[n];
    }
    for (size_t l = 0; l < layers; l++) {
        for (size_t t = 0; t < (size_t)num_tokens; t++)
            memcpy(self->gathered + t * width, ids + (t * layers + l) * width, width * sizeof *ids);
        self->ids = self->gathered;
        self->has_quota = false;
        double start = clock_seconds();
        eplb_status status = select_functions[self->params.rule](self, (int32_t)l, error);
        self->seconds += clock_seconds() - start;
        if (status == EPLB_OK)
            status = eplb_traffic_add(self->topology, self->slots, num_tokens, self->params.width,
                                      self->source, &self->traffic, NULL, error);
        if (status != EPLB_OK)
            return status;
        add_planned(self, (int32_t)l);
        add_delivered(self, (int32_t)l);
    }
    self->tokens += num_tokens;
    self->batches++;
    return EPLB_OK;
}

const int32_t *routing_slots(const routing *self)
{
    return self->slots;
}

void routing_finish(const routing *self, routing_result *result)
{
    size_t slots = (size_t)self->num_slots, ranks = (size_t)self->num_ranks,
           layers = (size_t)self->num_layers;
    const int32_t *slot_rank = eplb_topology_slot_rank(self->topology);
    double batches = self->batches > 0 ? (double)self->batches : 1.0;
    memset(self->planned, 0, layers * ranks * sizeof *self->planned);
    memset(self->delivered, 0, layers * ranks * sizeof *self->delivered);
    for (size_t i = 0; i < layers * slots; i++) {
        size_t at = i / slots * ranks + (size_t)slot_rank[i % slots];
        self->planned[at] += self->planned_slot[i];
        self->delivered[at] += self->delivered_slot[i];
    }
    for (size_t l = 0; l < layers; l++)
        self->activated[l] /= batches;
    *result = (routing_result){
        .tokens = self->tokens,
        .batches = self->batches,
        .pairs = self->pairs,
        .planned = self->planned,
        .delivered = self->delivered,
        .max_deviation = self->max_deviation,
        .imbalance_mean = self->batches > 0 ? self->imbalance_sum / (batches * (double)layers) : 1.0,
        .imbalance_worst = self->batches > 0 ? self->imbalance_worst : 1.0,
        .cross_rank = self->traffic.cross_rank,
        .cross_node = self->traffic.cross_node,
        .activated = self->activated,
        .seconds = self->seconds,
    };
}
