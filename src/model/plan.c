/* Plan: a placement with the shares of its replicas, its certificate and its cost, as one immutable value.
 *
 * Built by the planner from its parts (plan_parts.h). The hash is taken at once: slots are hashed two to a
 * word, and shares where the split is weighted; elsewhere they follow from the slots or from each batch. All
 * numbers of a plan live in one block. O(L (S + E)). */
#include <eplb/plan.h>

#include <stdio.h>
#include <string.h>

#include <eplb/metrics.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "model/plan_parts.h"

struct eplb_plan {
    eplb_allocator allocator;
    eplb_placement *placement;
    eplb_split split;
    int32_t num_groups;
    bool may_duplicate;
    const char *policy; /* static text */
    char reason[PLAN_REASON_BYTES];
    double *shares;      /* [L, S] */
    double *imbalance;   /* [L] */
    double *lower_bound; /* [L] */
    eplb_move_count moves;
    int64_t spilled;
    double seconds;
    uint64_t hash;
};

static size_t num_layers_of(const eplb_plan *plan)
{
    return (size_t)eplb_placement_num_layers(plan->placement);
}

static size_t num_shares_of(const eplb_plan *plan)
{
    return num_layers_of(plan) * (size_t)eplb_placement_num_slots(plan->placement);
}

/* 1 / replica_count in every live slot that holds an expert. */
static void share_equally(eplb_plan *plan)
{
    const eplb_topology *topology = eplb_placement_topology(plan->placement);
    const int32_t *slot_rank = eplb_topology_slot_rank(topology);
    const uint8_t *alive = eplb_topology_rank_alive(topology);
    size_t slots = (size_t)eplb_placement_num_slots(plan->placement);
    size_t experts = (size_t)eplb_placement_num_experts(plan->placement);
    const int32_t *held = eplb_placement_physical_to_logical(plan->placement);
    const int32_t *count = eplb_placement_replica_count(plan->placement);
    double *share = plan->shares;
    for (size_t l = 0; l < num_layers_of(plan); l++) {
        for (size_t p = 0; p < slots; p++) {
            bool serves = held[p] >= 0 && alive[slot_rank[p]];
            share[p] = serves ? 1.0 / (double)count[held[p]] : 0.0;
        }
        held += slots;
        share += slots;
        count += experts;
    }
}

uint64_t eplb_plan_hash_of(const eplb_topology *topology, int32_t num_layers, int32_t num_experts,
                           eplb_split split, const int32_t *physical_to_logical, const double *shares)
{
    const int32_t *held = physical_to_logical;
    size_t count = (size_t)num_layers * (size_t)eplb_topology_num_slots(topology);
    uint64_t hash = HASH_START;
    hash = hash_add(hash, (uint64_t)num_layers);
    hash = hash_add(hash, (uint64_t)num_experts);
    hash = hash_add(hash, (uint64_t)eplb_topology_num_slots(topology));
    hash = hash_add(hash, (uint64_t)eplb_topology_num_ranks(topology));
    hash = hash_add(hash, (uint64_t)split);
    for (size_t i = 0; i + 1 < count; i += 2)
        hash = hash_add(hash, (uint64_t)(uint32_t)held[i] << 32 | (uint32_t)held[i + 1]);
    if (count % 2 != 0)
        hash = hash_add(hash, (uint32_t)held[count - 1]);
    for (size_t i = 0; i < count && split == EPLB_SPLIT_WEIGHTED && shares != NULL; i++) {
        uint64_t bits;
        memcpy(&bits, &shares[i], sizeof bits);
        hash = hash_add(hash, bits);
    }
    return hash_finish(hash);
}

/* One block: the struct, then the numbers of `layers` layers of `slots` slots. */
static eplb_plan *allocate(size_t layers, size_t slots, const eplb_allocator *given, eplb_error *error)
{
    eplb_allocator allocator = memory_allocator(given);
    size_t numbers = layers * slots + 2 * layers, bytes = sizeof(eplb_plan) + numbers * sizeof(double);
    eplb_plan *plan = memory_take(&allocator, 1, bytes);
    if (plan == NULL) {
        (void)error_memory(error, bytes, "a plan");
        return NULL;
    }
    plan->allocator = allocator;
    plan->imbalance = (double *)(plan + 1);
    plan->lower_bound = plan->imbalance + layers;
    plan->shares = plan->lower_bound + layers;
    return plan;
}

eplb_status plan_from_parts(eplb_plan **plan, const plan_parts *parts, const eplb_allocator *allocator,
                            eplb_error *error)
{
    *plan = NULL;
    size_t layers = (size_t)parts->num_layers, slots = (size_t)eplb_topology_num_slots(parts->topology);
    eplb_plan *created = allocate(layers, slots, allocator, error);
    if (created == NULL)
        return EPLB_ERROR_MEMORY;
    eplb_status status =
        eplb_placement_create(&created->placement, parts->topology, parts->num_layers, parts->num_experts,
                              parts->physical_to_logical, allocator, error);
    if (status != EPLB_OK) {
        eplb_plan_destroy(created);
        return status;
    }
    created->split = parts->split;
    created->policy = parts->policy;
    created->num_groups = parts->num_groups;
    created->may_duplicate = parts->may_duplicate;
    (void)snprintf(created->reason, sizeof created->reason, "%s", parts->reason);
    for (size_t l = 0; l < layers; l++) {
        created->imbalance[l] = 1.0;
        created->lower_bound[l] = parts->lower_bound[l];
    }
    if (parts->shares != NULL)
        memcpy(created->shares, parts->shares, layers * slots * sizeof(double));
    else
        share_equally(created);
    created->hash = eplb_plan_hash_of(parts->topology, parts->num_layers, parts->num_experts, parts->split,
                                      parts->physical_to_logical, created->shares);
    *plan = created;
    return EPLB_OK;
}

eplb_status plan_measure(eplb_plan *plan, const eplb_load *load, eplb_error *error)
{
    return eplb_imbalance_per_layer(load, plan->placement,
                                    plan->split == EPLB_SPLIT_EQUAL ? NULL : plan->shares, plan->imbalance,
                                    &plan->allocator, error);
}

eplb_status plan_count_moves(eplb_plan *plan, const eplb_placement *current, eplb_error *error)
{
    if (current == NULL)
        return EPLB_OK;
    return eplb_placement_count_moves(current, plan->placement, &plan->moves, NULL, &plan->allocator, error);
}

/* Counts of one layer: replicas[groups, N]. Replicas outside each group's home are added up. */
static int64_t spilled_in_layer(const eplb_plan *plan, const int32_t *held, int32_t *replicas)
{
    const eplb_topology *topology = eplb_placement_topology(plan->placement);
    const int32_t *slot_rank = eplb_topology_slot_rank(topology), *node = eplb_topology_rank_node(topology);
    size_t groups = (size_t)plan->num_groups, nodes = (size_t)eplb_topology_num_nodes(topology);
    int32_t group_size = eplb_placement_num_experts(plan->placement) / plan->num_groups;
    memset(replicas, 0, groups * nodes * sizeof *replicas);
    for (int32_t p = 0; p < eplb_placement_num_slots(plan->placement); p++) {
        if (held[p] >= 0)
            replicas[(size_t)(held[p] / group_size) * nodes + (size_t)node[slot_rank[p]]]++;
    }
    int64_t spilled = 0;
    for (size_t i = 0; i < groups; i++) {
        int32_t most = 0;
        for (size_t n = 0; n < nodes; n++) {
            spilled += replicas[i * nodes + n];
            most = replicas[i * nodes + n] > most ? replicas[i * nodes + n] : most;
        }
        spilled -= most;
    }
    return spilled;
}

eplb_status plan_count_spilled(eplb_plan *plan, eplb_error *error)
{
    size_t nodes = (size_t)eplb_topology_num_nodes(eplb_placement_topology(plan->placement));
    if (plan->num_groups < 2 || nodes < 2)
        return EPLB_OK;
    size_t count = (size_t)plan->num_groups * nodes;
    int32_t *replicas = memory_take(&plan->allocator, count, sizeof *replicas);
    if (replicas == NULL)
        return error_memory(error, count * sizeof *replicas, "the replicas of groups on nodes");
    const int32_t *held = eplb_placement_physical_to_logical(plan->placement);
    plan->spilled = 0;
    for (size_t l = 0; l < num_layers_of(plan); l++)
        plan->spilled +=
            spilled_in_layer(plan, held + l * (size_t)eplb_placement_num_slots(plan->placement), replicas);
    memory_give(&plan->allocator, replicas);
    return EPLB_OK;
}

void plan_set_seconds(eplb_plan *plan, double seconds)
{
    plan->seconds = seconds;
}

eplb_status eplb_plan_copy(eplb_plan **copy, const eplb_plan *plan, const eplb_allocator *allocator,
                           eplb_error *error)
{
    *copy = NULL;
    size_t layers = num_layers_of(plan), slots = (size_t)eplb_placement_num_slots(plan->placement);
    eplb_plan *created = allocate(layers, slots, allocator, error);
    if (created == NULL)
        return EPLB_ERROR_MEMORY;
    eplb_plan blocks = *created;
    *created = *plan;
    created->allocator = blocks.allocator;
    created->imbalance = blocks.imbalance;
    created->lower_bound = blocks.lower_bound;
    created->shares = blocks.shares;
    created->placement = NULL;
    memcpy(created->imbalance, plan->imbalance, (layers * slots + 2 * layers) * sizeof(double));
    eplb_status status = eplb_placement_copy(&created->placement, plan->placement, allocator, error);
    if (status != EPLB_OK) {
        eplb_plan_destroy(created);
        return status;
    }
    *copy = created;
    return EPLB_OK;
}

void eplb_plan_destroy(eplb_plan *plan)
{
    if (plan == NULL)
        return;
    eplb_allocator allocator = plan->allocator;
    eplb_placement_destroy(plan->placement);
    memory_give(&allocator, plan);
}

/* The first finding that counts for this plan. */
typedef struct finding {
    bool tolerate_duplicates;
    bool found;
    eplb_problem problem;
} finding;

static bool note_problem(void *context, const eplb_problem *problem)
{
    finding *first = context;
    if (problem->kind == EPLB_PROBLEM_EMPTY_SLOT ||
        (problem->kind == EPLB_PROBLEM_DUPLICATE && first->tolerate_duplicates))
        return true;
    first->found = true;
    first->problem = *problem;
    return false;
}

static eplb_status check_placement(const eplb_plan *plan, eplb_error *error)
{
    finding first = {.tolerate_duplicates = plan->may_duplicate};
    eplb_error detail;
    eplb_status status = eplb_placement_check(
        eplb_placement_topology(plan->placement), eplb_placement_num_layers(plan->placement),
        eplb_placement_num_experts(plan->placement), eplb_placement_physical_to_logical(plan->placement),
        note_problem, &first, &plan->allocator, &detail);
    if (status == EPLB_OK || (status == EPLB_ERROR_INVALID && !first.found))
        return EPLB_OK;
    if (status != EPLB_ERROR_INVALID)
        return error_text(error, status, "%s", detail.text);
    const eplb_problem *p = &first.problem;
    return error_set(error, EPLB_ERROR_INVALID,
                     (error_place){p->layer, p->expert, p->rank, p->slot, p->expert},
                     "layer %d: %s (expert %d, rank %d, slot %d)", p->layer, eplb_problem_name(p->kind),
                     p->expert, p->rank, p->slot);
}

/* True if every share of one expert's slots lies in [0, 1] and they sum to 1. */
static bool shares_add_up(const double *share, const int32_t *slots, int32_t count, double *sum)
{
    bool in_range = true;
    *sum = 0.0;
    for (int32_t i = 0; i < count; i++) {
        in_range = in_range && share[slots[i]] >= 0.0 && share[slots[i]] <= 1.0;
        *sum += share[slots[i]];
    }
    return in_range && *sum >= 1.0 - 1e-9 && *sum <= 1.0 + 1e-9;
}

static eplb_status check_layer(const eplb_plan *plan, int32_t layer, eplb_error *error)
{
    size_t slots = (size_t)eplb_placement_num_slots(plan->placement), at = (size_t)layer;
    int32_t experts = eplb_placement_num_experts(plan->placement);
    const int32_t *first = eplb_placement_replica_first(plan->placement) + at * ((size_t)experts + 1);
    const int32_t *list = eplb_placement_replica_slots(plan->placement) + at * slots;
    const double *share = plan->shares + at * slots;
    double sum;
    for (int32_t e = 0; e < experts; e++) {
        if (!shares_add_up(share, list + first[e], first[e + 1] - first[e], &sum))
            return error_set(
                error, EPLB_ERROR_INVALID, (error_place){layer, e, -1, -1, -1},
                "layer %d, expert %d: shares sum to %.12g, expected numbers of 0 to 1 that sum to 1", layer,
                e, sum);
    }
    if (!(plan->lower_bound[at] <= plan->imbalance[at] * (1.0 + 1e-9)))
        return error_set(error, EPLB_ERROR_INVALID, (error_place){layer, -1, -1, -1, -1},
                         "layer %d: lower bound %.12g exceeds the imbalance reached, %.12g", layer,
                         plan->lower_bound[at], plan->imbalance[at]);
    return EPLB_OK;
}

eplb_status eplb_plan_is_valid(const eplb_plan *plan, eplb_error *error)
{
    if (plan == NULL)
        return error_text(error, EPLB_ERROR_INVALID, "the plan is NULL");
    eplb_status status = check_placement(plan, error);
    for (int32_t l = 0; status == EPLB_OK && l < eplb_placement_num_layers(plan->placement); l++)
        status = check_layer(plan, l, error);
    return status;
}

bool eplb_plan_equal(const eplb_plan *a, const eplb_plan *b)
{
    return a->split == b->split && eplb_placement_equal(a->placement, b->placement) &&
           memcmp(a->shares, b->shares, num_shares_of(a) * sizeof(double)) == 0;
}

const eplb_placement *eplb_plan_placement(const eplb_plan *plan)
{
    return plan->placement;
}

eplb_split eplb_plan_split(const eplb_plan *plan)
{
    return plan->split;
}

const char *eplb_plan_policy(const eplb_plan *plan)
{
    return plan->policy;
}

const char *eplb_plan_reason(const eplb_plan *plan)
{
    return plan->reason;
}

const double *eplb_plan_shares(const eplb_plan *plan)
{
    return plan->shares;
}

const double *eplb_plan_imbalance(const eplb_plan *plan)
{
    return plan->imbalance;
}

const double *eplb_plan_lower_bound(const eplb_plan *plan)
{
    return plan->lower_bound;
}

int32_t eplb_plan_num_groups(const eplb_plan *plan)
{
    return plan->num_groups;
}

eplb_move_count eplb_plan_moves(const eplb_plan *plan)
{
    return plan->moves;
}

int64_t eplb_plan_spilled(const eplb_plan *plan)
{
    return plan->spilled;
}

double eplb_plan_seconds(const eplb_plan *plan)
{
    return plan->seconds;
}

uint64_t eplb_plan_hash(const eplb_plan *plan)
{
    return plan->hash;
}
