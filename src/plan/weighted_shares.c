/* Best shares over given slots: lists the replicas by expert and calls the flow (min_max_split.c) with loads
 * scaled up, so that whole units stand for fractions of tokens. With a total near 2^56 units a rank is
 * rounded by one unit, below 1e-12 of the mean up to 65,536 ranks. Cost: O(E + S) beside the flow. */
#include "plan/weighted.h"

#include <string.h>

#define SCALED_TOTAL ((int64_t)1 << 56)

/* Multiplies loads, or drops low bits of very large ones, so that they sum to about SCALED_TOTAL. */
static void scale_loads(weighted_shares *shares)
{
    const layer_problem *problem = shares->problem;
    int64_t unit = problem->total > 0 && problem->total < SCALED_TOTAL ? SCALED_TOTAL / problem->total : 1;
    int shift = 0;
    while (problem->total >> shift > SCALED_TOTAL)
        shift++;
    shares->total = 0;
    for (int32_t e = 0; e < problem->num_experts; e++) {
        shares->load[e] = (problem->load[e] >> shift) * unit;
        shares->total += shares->load[e];
    }
}

bool weighted_shares_init(weighted_shares *shares, const layer_problem *problem, arena *scratch)
{
    size_t experts = (size_t)problem->num_experts, slots = (size_t)problem->num_slots;
    size_t ranks = (size_t)problem->num_ranks;
    *shares = (weighted_shares){.problem = problem, .max_speed = 1};
    shares->load = arena_take(scratch, experts, sizeof *shares->load);
    shares->first = arena_take(scratch, experts + 1, sizeof *shares->first);
    shares->rank = arena_take(scratch, slots, sizeof *shares->rank);
    shares->slot = arena_take(scratch, slots, sizeof *shares->slot);
    shares->quota = arena_take_zero(scratch, slots, sizeof *shares->quota);
    shares->rank_load = arena_take_zero(scratch, ranks, sizeof *shares->rank_load);
    shares->tight = arena_take_zero(scratch, ranks, sizeof *shares->tight);
    if (shares->load == NULL || shares->first == NULL || shares->rank == NULL || shares->slot == NULL ||
        shares->quota == NULL || shares->rank_load == NULL || shares->tight == NULL)
        return false;
    scale_loads(shares);
    return true;
}

static void list_replicas(weighted_shares *shares, const int32_t *expert)
{
    const layer_problem *problem = shares->problem;
    memset(shares->first, 0, ((size_t)problem->num_experts + 1) * sizeof *shares->first);
    for (int32_t s = 0; s < problem->num_slots; s++) {
        if (expert[s] >= 0)
            shares->first[expert[s] + 1]++;
    }
    for (int32_t e = 0; e < problem->num_experts; e++)
        shares->first[e + 1] += shares->first[e];
    for (int32_t s = 0; s < problem->num_slots; s++) {
        if (expert[s] < 0)
            continue;
        int32_t place = shares->first[expert[s]]++;
        shares->rank[place] = problem->slot_rank[s];
        shares->slot[place] = s;
    }
    memmove(shares->first + 1, shares->first, (size_t)problem->num_experts * sizeof *shares->first);
    shares->first[0] = 0;
}

/* Quotas of a solve over nearly the same slots, for the replicas listed now; NULL when memory is out. */
static int64_t *warm_start(const weighted_shares *shares, const weighted_shares *near, arena *scratch)
{
    size_t slots = (size_t)shares->problem->num_slots;
    int32_t experts = shares->problem->num_experts;
    int64_t *by_slot = arena_take_zero(scratch, slots, sizeof *by_slot);
    int64_t *warm = arena_take_zero(scratch, slots, sizeof *warm);
    if (by_slot == NULL || warm == NULL)
        return NULL;
    for (int32_t i = 0; i < near->first[experts]; i++)
        by_slot[near->slot[i]] = near->quota[i];
    for (int32_t i = 0; i < shares->first[experts]; i++)
        warm[i] = by_slot[shares->slot[i]];
    return warm;
}

bool weighted_shares_solve(weighted_shares *shares, const int32_t *expert, const weighted_shares *near,
                           arena *scratch)
{
    const layer_problem *problem = shares->problem;
    arena_mark mark = arena_position(scratch);
    list_replicas(shares, expert);
    int64_t *warm = near != NULL ? warm_start(shares, near, scratch) : NULL;
    min_max_graph graph;
    min_max_result result = {
        .quota = shares->quota, .rank_load = shares->rank_load, .tight_rank = shares->tight};
    bool whole =
        min_max_graph_init(&graph, problem->num_experts, problem->num_ranks, shares->first, shares->rank,
                           problem->uniform_speed ? NULL : problem->rank_speed, scratch) &&
        min_max_split(&graph, shares->load, warm, false, scratch, &result);
    arena_rewind(scratch, mark);
    if (!whole)
        return false;
    shares->max_load = result.max_load;
    shares->max_speed = result.max_speed;
    return true;
}

void weighted_shares_write(const weighted_shares *shares, int64_t *quota)
{
    memset(quota, 0, (size_t)shares->problem->num_slots * sizeof *quota);
    for (int32_t i = 0; i < shares->first[shares->problem->num_experts]; i++)
        quota[shares->slot[i]] = shares->quota[i];
}

double weighted_shares_imbalance(const weighted_shares *shares)
{
    const layer_problem *problem = shares->problem;
    if (shares->total == 0)
        return 1.0;
    int64_t speed = problem->uniform_speed ? problem->num_ranks : problem->total_speed;
    return (double)shares->max_load / (double)shares->max_speed * ((double)speed / (double)shares->total);
}
