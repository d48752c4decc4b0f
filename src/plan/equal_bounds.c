/* Bounds that hold for every choice of counts, so that they can be printed as certificates.
 *
 * The mean: all work, with one replica each, over all speed. The largest replica: some rank, at best the
 * fastest, holds a replica of each expert, and the least possible largest replica follows from the greedy
 * counts, which are optimal for it; equivalently the smallest T with sum of ceil(w / T) <= S and each
 * ceil(w / T) <= G. Groups that may not leave a node: a node, at best the fastest, carries a whole group, and
 * where they are few, the fullest node of the best of all assignments (weighted_nodes.c). O(E + R log E)
 * beside that search. */
#include "plan/equal_bounds.h"

#include "base/error.h"
#include "plan/replica_counts.h"
#include "plan/weighted_nodes.h"

static double fastest_rank(const layer_problem *problem)
{
    int32_t most = 1;
    for (int32_t g = 0; g < problem->num_ranks; g++)
        most = problem->rank_speed[g] > most ? problem->rank_speed[g] : most;
    return most;
}

/* Speed of all ranks of the fastest node; 0 when memory is out. */
static double fastest_node(const layer_problem *problem, arena *scratch)
{
    int64_t *speed = arena_take_zero(scratch, (size_t)problem->num_nodes, sizeof *speed), most = 0;
    if (speed == NULL)
        return 0;
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        int64_t *node = &speed[problem->rank_node[g]];
        *node += problem->first_slot[g + 1] > problem->first_slot[g] ? problem->rank_speed[g] : 0;
        most = *node > most ? *node : most;
    }
    return (double)most;
}

static double heaviest_group(const int64_t *load, int32_t num_experts, int32_t num_groups)
{
    double most = 0;
    int32_t size = num_experts / num_groups;
    for (int32_t group = 0; group < num_groups; group++) {
        double sum = 0;
        for (int32_t e = group * size; e < (group + 1) * size; e++)
            sum += (double)load[e];
        most = sum > most ? sum : most;
    }
    return most;
}

/* Least time of the hottest rank for these costs. */
static eplb_status least_time(double *time, const layer_problem *problem, const replica_work *work,
                              int32_t *count, arena *scratch, eplb_error *error)
{
    eplb_status status = replica_counts(work, problem->num_experts, problem->num_slots, problem->num_ranks,
                                        count, scratch, error);
    if (status != EPLB_OK)
        return status;
    double largest = 0;
    for (int32_t e = 0; e < problem->num_experts; e++) {
        double replica = replica_work_at(work, e, count[e]);
        largest = replica > largest ? replica : largest;
    }
    largest /= fastest_rank(problem);
    double mean = work->least_total / (double)problem->total_speed;
    *time = largest > mean ? largest : mean;
    return EPLB_OK;
}

/* A node carries a whole group, and the nodes carry all of them. */
static eplb_status find_groups(equal_bounds *bounds, const layer_problem *problem, arena *scratch,
                               eplb_error *error)
{
    size_t experts = (size_t)problem->num_experts;
    weighted_homes homes = {.node_of_expert = arena_take(scratch, experts, sizeof(int32_t)), .floor = 1.0};
    double speed = fastest_node(problem, scratch);
    if (speed <= 0 || homes.node_of_expert == NULL)
        return error_memory(error, experts * sizeof(int32_t), "bounds");
    double group = heaviest_group(problem->load, problem->num_experts, problem->num_groups);
    bounds->groups = group / speed / ((double)problem->total / (double)problem->total_speed);
    if (!layer_binds_groups(problem))
        return EPLB_OK;
    eplb_status status = weighted_nodes_assign(problem, scratch, &homes, error);
    bounds->groups = homes.floor > bounds->groups ? homes.floor : bounds->groups;
    return status;
}

eplb_status equal_bounds_find(equal_bounds *bounds, const layer_problem *problem, const replica_work *work,
                              arena *scratch, eplb_error *error)
{
    size_t experts = (size_t)problem->num_experts;
    bounds->count = arena_take(scratch, experts, sizeof *bounds->count);
    if (bounds->count == NULL)
        return error_memory(error, experts * sizeof *bounds->count, "bounds");
    eplb_status status = least_time(&bounds->work_time, problem, work, bounds->count, scratch, error);
    bounds->imbalance = 1;
    bounds->groups = 1;
    if (status != EPLB_OK || problem->total == 0)
        return status;
    double tokens_time = bounds->work_time, tokens_mean = work->least_total / (double)problem->total_speed;
    if (!problem->plain_cost) {
        layer_problem plain = *problem;
        plain.plain_cost = true;
        replica_work tokens;
        int32_t *count = arena_take(scratch, experts, sizeof *count);
        if (count == NULL)
            return error_memory(error, experts * sizeof *count, "bounds");
        status = replica_work_init(&tokens, &plain, scratch, error);
        if (status == EPLB_OK)
            status = least_time(&tokens_time, &plain, &tokens, count, scratch, error);
        if (status != EPLB_OK)
            return status;
        tokens_mean = tokens.least_total / (double)problem->total_speed;
    }
    double ratio = tokens_time / tokens_mean;
    bounds->imbalance = ratio > 1 ? ratio : 1;
    return problem->num_groups > 1 && problem->max_spill == 0 ? find_groups(bounds, problem, scratch, error)
                                                              : EPLB_OK;
}
