/* The start of the search: greedy counts and greedy places, for the whole layer or node by node. */
#include "plan/equal_start.h"

#include <string.h>

#include "base/error.h"
#include "plan/lightest_first.h"
#include "plan/node_part.h"
#include "plan/replica_counts.h"

/* Slots that can hold different experts of the layer. */
static int32_t useful_slots(const layer_problem *problem, int32_t *ranks)
{
    int32_t slots = 0;
    *ranks = 0;
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        int32_t k = problem->first_slot[g + 1] - problem->first_slot[g];
        slots += k < problem->num_experts ? k : problem->num_experts;
        *ranks += k > 0;
    }
    return slots;
}

/* count[E] as asked for, greedy where fewer, larger replicas do not fit. */
static eplb_status choose_counts(const layer_problem *problem, const replica_work *work,
                                 const equal_counts *counts, int32_t *count, arena *scratch,
                                 eplb_error *error)
{
    int32_t experts = problem->num_experts, ranks, slots = useful_slots(problem, &ranks);
    if (counts->largest > 0) {
        bool fits;
        eplb_status status =
            replica_counts_large(work, experts, slots, ranks, counts->largest, count, &fits, scratch, error);
        if (status != EPLB_OK || fits)
            return status;
    }
    if (counts->known == NULL || slots != problem->num_slots || ranks != problem->num_ranks)
        return replica_counts(work, experts, slots, ranks, count, scratch, error);
    memcpy(count, counts->known, (size_t)experts * sizeof *count);
    return EPLB_OK;
}

static eplb_status start_area(const layer_problem *problem, const replica_work *work,
                              const equal_counts *counts, int32_t *expert, arena *scratch, eplb_error *error)
{
    size_t experts = (size_t)problem->num_experts;
    double *replica_load = arena_take(scratch, experts, sizeof *replica_load);
    int32_t *count = arena_take(scratch, experts, sizeof *count);
    if (count == NULL || replica_load == NULL)
        return error_memory(error, experts * sizeof *replica_load, "first placement");
    eplb_status status = choose_counts(problem, work, counts, count, scratch, error);
    if (status != EPLB_OK)
        return status;
    for (int32_t e = 0; e < problem->num_experts; e++)
        replica_load[e] = work->least_total > 0 ? replica_work_at(work, e, count[e])
                                                : 1 / (double)count[e]; /* no load: spread evenly */
    return lightest_first(problem, count, replica_load, expert, scratch, error);
}

static eplb_status start_node(const layer_problem *problem, const replica_work *whole, double largest,
                              int32_t node, const int32_t *expert_area, int32_t *expert, arena *scratch,
                              eplb_error *error)
{
    node_part part;
    replica_work work;
    eplb_status status = node_part_make(&part, problem, node, expert_area, scratch, error);
    if (status != EPLB_OK || part.problem.num_experts == 0)
        return status;
    int32_t *inside = arena_take(scratch, (size_t)part.problem.num_slots, sizeof *inside);
    if (inside == NULL)
        return error_memory(error, (size_t)part.problem.num_slots * sizeof *inside, "first placement");
    status = replica_work_init(&work, &part.problem, scratch, error);
    equal_counts counts = {NULL, largest * (work.scale / whole->scale)};
    if (status == EPLB_OK)
        status = start_area(&part.problem, &work, &counts, inside, scratch, error);
    for (int32_t p = 0; status == EPLB_OK && p < part.problem.num_slots; p++)
        expert[part.slot[p]] = inside[p] >= 0 ? part.expert[inside[p]] : -1;
    return status;
}

eplb_status equal_start(const layer_problem *problem, const replica_work *work, const equal_counts *counts,
                        const equal_areas *areas, int32_t *expert, arena *scratch, eplb_error *error)
{
    if (areas->rank_area == NULL)
        return start_area(problem, work, counts, expert, scratch, error);
    for (int32_t p = 0; p < problem->num_slots; p++)
        expert[p] = -1;
    eplb_status status = EPLB_OK;
    for (int32_t n = 0; n < problem->num_nodes && status == EPLB_OK; n++)
        status = start_node(problem, work, counts->largest, n, areas->expert_area, expert, scratch, error);
    return status;
}
