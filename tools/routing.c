/* Sends recorded tokens through a rule. The rule (routing_rules.c) fills the slots of one layer of one batch;
 * all the rest (planned and delivered load, traffic, activated replicas) is counted here, from the slots
 * alone, in the same way for every rule. */
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "failure.h"
#include "routing_state.h"

#define DYNAMIC_SEED 1

/* A zeroed array that is freed with the routing; NULL, and noted, when memory is out. */
static void *take(routing *self, size_t count, size_t size)
{
    void *block = calloc(count + 1, size);
    if (block == NULL)
        self->no_memory = true;
    else
        self->blocks[self->num_blocks++] = block;
    return block;
}

static void take_arrays(routing *self)
{
    size_t layers = (size_t)self->num_layers, experts = (size_t)self->num_experts;
    size_t slots = (size_t)self->num_slots, ranks = (size_t)self->num_ranks;
    size_t tokens = (size_t)self->params.max_tokens, pairs = tokens * (size_t)self->params.width;
    self->live = take(self, ranks, sizeof *self->live);
    self->share = take(self, layers * slots, sizeof *self->share);
    self->served = take(self, layers * slots, sizeof *self->served);
    self->position = take(self, ranks * layers * experts, sizeof *self->position);
    self->ids = take(self, pairs, sizeof *self->ids);
    self->source = take(self, tokens, sizeof *self->source);
    self->slots = take(self, pairs, sizeof *self->slots);
    self->quota = take(self, slots, sizeof *self->quota);
    self->counts = take(self, ranks * experts, sizeof *self->counts);
    self->expert_count = take(self, experts, sizeof *self->expert_count);
    self->part = take(self, ranks * slots, sizeof *self->part);
    self->expert_slot = take(self, experts, sizeof *self->expert_slot);
    self->running = take(self, experts, sizeof *self->running);
    self->row = take(self, pairs, sizeof *self->row);
    self->row_start = take(self, experts, sizeof *self->row_start);
    self->row_quota = take(self, slots, sizeof *self->row_quota);
    self->row_served = take(self, slots, sizeof *self->row_served);
    self->planned_slot = take(self, layers * slots, sizeof *self->planned_slot);
    self->delivered_slot = take(self, layers * slots, sizeof *self->delivered_slot);
    self->planned = take(self, layers * ranks, sizeof *self->planned);
    self->delivered = take(self, layers * ranks, sizeof *self->delivered);
    self->activated = take(self, layers, sizeof *self->activated);
    self->batch_slot = take(self, slots, sizeof *self->batch_slot);
    self->rank_load = take(self, ranks, sizeof *self->rank_load);
    self->rank_activated = take(self, ranks, sizeof *self->rank_activated);
}

void routing_destroy(routing *self)
{
    if (self == NULL)
        return;
    eplb_router_destroy(self->router);
    for (int32_t l = 0; self->resplit != NULL && l < self->num_layers; l++)
        eplb_resplit_destroy(self->resplit[l]);
    while (self->num_blocks > 0)
        free(self->blocks[--self->num_blocks]);
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
    self->resplit = take(self, (size_t)self->num_layers, sizeof *self->resplit);
    eplb_status status = self->no_memory ? no_memory(error) : EPLB_OK;
    for (int32_t l = 0; l < self->num_layers && status == EPLB_OK; l++)
        status = eplb_resplit_create(&self->resplit[l], self->params.placement, l, NULL, error);
    return status;
}

static eplb_status make_own_table(routing *self, eplb_error *error)
{
    size_t cells = (size_t)self->num_ranks * (size_t)self->num_layers * (size_t)self->num_experts;
    self->own = take(self, cells, sizeof *self->own);
    return self->no_memory ? no_memory(error)
                           : eplb_sglang_static(self->params.placement, self->own, NULL, error);
}

static eplb_status make_repeat_table(routing *self, eplb_error *error)
{
    size_t cells = (size_t)self->num_layers * (size_t)self->num_experts;
    self->repeat = take(self, cells * (size_t)self->params.row_limit, sizeof *self->repeat);
    self->repeat_count = take(self, cells, sizeof *self->repeat_count);
    if (self->no_memory)
        return no_memory(error);
    return eplb_repeat_table_int32(self->params.placement, self->params.shares, self->params.row_limit,
                                   self->repeat, self->repeat_count, NULL, NULL, error);
}

/* What the rule needs besides the router. */
static eplb_status prepare_rule(routing *self, eplb_error *error)
{
    switch (self->params.rule) {
    case ROUTING_TABLE:
        start_counters(self);
        return EPLB_OK;
    case ROUTING_NEAREST:
    case ROUTING_ACTIVATED:
    case ROUTING_RESPLIT:
        return make_resplits(self, error);
    case ROUTING_SGLANG_STATIC:
        return make_own_table(self, error);
    case ROUTING_REPEAT:
        return make_repeat_table(self, error);
    default:
        return EPLB_OK;
    }
}

static void list_live(routing *self)
{
    for (int32_t g = 0; g < self->num_ranks; g++)
        if (eplb_topology_rank_alive(self->topology)[g])
            self->live[self->num_live++] = g;
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
    take_arrays(self);
    eplb_status status = self->no_memory ? no_memory(error) : EPLB_OK;
    if (status == EPLB_OK) {
        list_live(self);
        read_shares(self);
        status = make_router(self, error); /* also checks placement and shares */
    }
    if (status == EPLB_OK)
        status = prepare_rule(self, error);
    if (status != EPLB_OK) {
        routing_destroy(self);
        return status;
    }
    *out = self;
    return EPLB_OK;
}

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
    int32_t *activated = self->rank_activated;
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
        for (int64_t t = routing_block_start(self, n); t < routing_block_start(self, n + 1); t++)
            self->source[t] = self->live[n];
    }
    for (size_t l = 0; l < layers; l++) {
        for (size_t t = 0; t < (size_t)num_tokens; t++)
            memcpy(self->ids + t * width, ids + (t * layers + l) * width, width * sizeof *ids);
        double start = clock_seconds();
        eplb_status status = routing_select(self, (int32_t)l, error);
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
