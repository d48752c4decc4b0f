/* Splitting every window exactly over a placement, by flow (min_max_split.c).
 *
 * The least maximum T* = max over expert sets of load / reachable ranks, the fractional optimum that the flow
 * certifies, is what a placement is judged by where batches are split anew or shares follow the load. Cost:
 * one solve per window. */
#include "plan/batch_split.h"

#include "base/error.h"
#include "plan/min_max_split.h"

#define MOST_UNITS (INT64_C(1) << 24)

/* A placement as a graph: replicas of each expert in order of their slots. */
typedef struct split_case {
    min_max_graph graph;
    int32_t *slot; /* [replicas] slot of each replica */
    min_max_result result;
} split_case;

static eplb_status split_case_init(split_case *split, const layer_problem *problem, const int32_t *expert,
                                   arena *scratch, eplb_error *error)
{
    size_t experts = (size_t)problem->num_experts, slots = (size_t)problem->num_slots;
    int32_t *first = arena_take_zero(scratch, experts + 2, sizeof *first);
    int32_t *rank = arena_take(scratch, slots, sizeof *rank);
    *split = (split_case){.slot = arena_take(scratch, slots, sizeof(int32_t))};
    split->result.quota = arena_take_zero(scratch, slots, sizeof(int64_t));
    split->result.rank_load = arena_take_zero(scratch, (size_t)problem->num_ranks, sizeof(int64_t));
    if (first == NULL || rank == NULL || split->slot == NULL || split->result.quota == NULL ||
        split->result.rank_load == NULL)
        return error_memory(error, slots * sizeof(int64_t), "split of a batch");
    for (int32_t p = 0; p < problem->num_slots; p++) {
        if (expert[p] >= 0)
            first[expert[p] + 2]++;
    }
    for (size_t e = 2; e < experts + 2; e++)
        first[e] += first[e - 1];
    for (int32_t p = 0; p < problem->num_slots; p++) {
        if (expert[p] < 0)
            continue;
        int32_t i = first[expert[p] + 1]++;
        rank[i] = problem->slot_rank[p];
        split->slot[i] = p;
    }
    if (!min_max_graph_init(&split->graph, problem->num_experts, problem->num_ranks, first, rank,
                            problem->uniform_speed ? NULL : problem->rank_speed, scratch))
        return error_memory(error, slots * sizeof(int64_t), "split of a batch");
    return EPLB_OK;
}

/* Imbalance of the exact split of one load; 0 without tokens, negative when memory is out. */
static double split_imbalance(split_case *split, const layer_problem *problem, const int64_t *load,
                              arena *scratch)
{
    int64_t total = 0;
    for (int32_t e = 0; e < problem->num_experts; e++)
        total += load[e];
    if (total == 0)
        return 0.0;
    if (!min_max_split(&split->graph, load, NULL, true, scratch, &split->result))
        return -1.0;
    int64_t speed = split->graph.rank_speed == NULL ? problem->num_ranks : problem->total_speed;
    return (double)split->result.bound_load / (double)split->result.bound_speed /
           ((double)total / (double)speed);
}

eplb_status batch_split_mean(const layer_problem *problem, const int32_t *expert, double *mean,
                             arena *scratch, eplb_error *error)
{
    split_case split;
    eplb_status status = split_case_init(&split, problem, expert, scratch, error);
    if (status != EPLB_OK)
        return status;
    arena_mark mark = arena_position(scratch);
    double sum = 0.0;
    int32_t windows = 0;
    for (int32_t t = 0; t < problem->num_windows; t++) {
        const int64_t *load = problem->window_load + (size_t)t * (size_t)problem->num_experts;
        double imbalance = split_imbalance(&split, problem, load, scratch);
        arena_rewind(scratch, mark);
        if (imbalance < 0.0)
            return error_memory(error, (size_t)problem->num_slots * sizeof(int64_t), "split of a batch");
        sum += imbalance;
        windows += imbalance > 0.0;
    }
    *mean = windows > 0 ? sum / (double)windows : 1.0;
    return EPLB_OK;
}

eplb_status batch_split_quota(const layer_problem *problem, layer_answer *answer, arena *scratch,
                              eplb_error *error)
{
    split_case split;
    size_t experts = (size_t)problem->num_experts;
    int64_t *load = arena_take(scratch, experts, sizeof *load);
    if (load == NULL)
        return error_memory(error, experts * sizeof *load, "split of a batch");
    int64_t unit = 1; /* units per token: shares need not be whole tokens */
    while (unit < MOST_UNITS && problem->total <= INT64_MAX / 8 / unit)
        unit *= 2;
    for (size_t e = 0; e < experts; e++)
        load[e] = problem->load[e] * unit;
    eplb_status status = split_case_init(&split, problem, answer->expert, scratch, error);
    if (status != EPLB_OK)
        return status;
    double imbalance = split_imbalance(&split, problem, load, scratch);
    if (imbalance < 0.0)
        return error_memory(error, (size_t)problem->num_slots * sizeof(int64_t), "split of a batch");
    for (int32_t i = 0; i < split.graph.num_replicas; i++)
        answer->quota[split.slot[i]] = imbalance > 0.0 ? split.result.quota[i] : 0;
    return EPLB_OK;
}
