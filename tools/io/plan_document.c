/* A document of a plan: copies of what the plan says, so that a file can be written after it is gone. Arrays
 * that only repeat a default are left out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/placement.h"

/* A copy of count items; *failed when memory is out. NULL in, NULL out. */
static void *copy(const void *from, size_t count, size_t size, bool *failed)
{
    if (from == NULL)
        return NULL;
    void *to = malloc(count * size + 1);
    if (to == NULL)
        *failed = true;
    else
        memcpy(to, from, count * size);
    return to;
}

static bool default_nodes(const int32_t *rank_node, int64_t ranks, int64_t nodes)
{
    for (int64_t rank = 0; rank < ranks; rank++)
        if (rank_node[rank] != rank * nodes / ranks)
            return false;
    return true;
}

static bool all_alive(const uint8_t *alive, int32_t ranks)
{
    for (int32_t rank = 0; rank < ranks; rank++)
        if (!alive[rank])
            return false;
    return true;
}

static bool all_one(const int32_t *speed, int32_t ranks)
{
    for (int32_t rank = 0; rank < ranks; rank++)
        if (speed[rank] != 1)
            return false;
    return true;
}

static void take_topology(const eplb_topology *topology, io_document *document, bool *failed)
{
    int32_t ranks = eplb_topology_num_ranks(topology), nodes = eplb_topology_num_nodes(topology);
    size_t count = (size_t)ranks;
    document->num_ranks = ranks;
    document->num_nodes = nodes;
    if (eplb_topology_uniform_slots(topology) < 0) {
        document->rank_slots = copy(eplb_topology_first_slot(topology), count, sizeof(int32_t), failed);
        const int32_t *first = eplb_topology_first_slot(topology);
        for (int32_t rank = 0; rank < ranks && document->rank_slots != NULL; rank++)
            document->rank_slots[rank] = first[rank + 1] - first[rank];
    }
    if (!default_nodes(eplb_topology_rank_node(topology), ranks, nodes))
        document->rank_node = copy(eplb_topology_rank_node(topology), count, sizeof(int32_t), failed);
    if (!all_alive(eplb_topology_rank_alive(topology), ranks))
        document->rank_alive = copy(eplb_topology_rank_alive(topology), count, 1, failed);
    if (!all_one(eplb_topology_rank_speed(topology), ranks))
        document->rank_speed = copy(eplb_topology_rank_speed(topology), count, sizeof(int32_t), failed);
}

static void take_placement(const eplb_placement *placement, io_document *document, bool *failed)
{
    memset(document, 0, sizeof *document);
    document->plan_seconds = -1.0;
    document->mean = document->worst = NAN; /* the writer works them out */
    document->num_layers = eplb_placement_num_layers(placement);
    document->num_experts = eplb_placement_num_experts(placement);
    document->num_slots = eplb_placement_num_slots(placement);
    document->physical_to_logical =
        copy(eplb_placement_physical_to_logical(placement),
             (size_t)document->num_layers * (size_t)document->num_slots, sizeof(int32_t), failed);
    take_topology(eplb_placement_topology(placement), document, failed);
}

static eplb_status finish(io_document *document, bool failed, io_error *error)
{
    if (!failed)
        return EPLB_OK;
    io_document_clear(document);
    return io_fail_memory(error, "the plan", "a copy to write");
}

eplb_status io_document_from_plan(const eplb_plan *plan, bool with_moves, io_document *document,
                                  io_error *error)
{
    bool failed = false;
    take_placement(eplb_plan_placement(plan), document, &failed);
    size_t layers = (size_t)document->num_layers;
    document->split = eplb_plan_split(plan);
    if (document->split == EPLB_SPLIT_WEIGHTED)
        document->shares =
            copy(eplb_plan_shares(plan), layers * (size_t)document->num_slots, sizeof(double), &failed);
    document->imbalance = copy(eplb_plan_imbalance(plan), layers, sizeof(double), &failed);
    document->lower_bound = copy(eplb_plan_lower_bound(plan), layers, sizeof(double), &failed);
    const char *policy = eplb_plan_policy(plan), *reason = eplb_plan_reason(plan);
    document->policy = copy(policy, policy != NULL ? strlen(policy) + 1 : 0, 1, &failed);
    document->reason = copy(reason, reason != NULL ? strlen(reason) + 1 : 0, 1, &failed);
    document->num_groups = eplb_plan_num_groups(plan);
    document->has_moves = with_moves;
    document->moves = eplb_plan_moves(plan);
    document->spilled = eplb_plan_spilled(plan);
    document->plan_seconds = eplb_plan_seconds(plan);
    document->has_hash = true;
    document->hash = eplb_plan_hash(plan);
    return finish(document, failed, error);
}

eplb_status io_document_take_windows(io_document *document, const io_window_figures *figures, io_error *error)
{
    bool failed = false;
    size_t layers = (size_t)document->num_layers;
    io_window_figures *own = &document->windows;
    own->num_windows = figures->num_windows;
    own->mean = copy(figures->mean, layers, sizeof(double), &failed);
    own->percentile95 = copy(figures->percentile95, layers, sizeof(double), &failed);
    own->before_imbalance = copy(figures->before_imbalance, layers, sizeof(double), &failed);
    own->before_mean = copy(figures->before_mean, layers, sizeof(double), &failed);
    own->before_percentile95 = copy(figures->before_percentile95, layers, sizeof(double), &failed);
    return finish(document, failed, error);
}
