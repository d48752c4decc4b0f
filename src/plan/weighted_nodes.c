/* Node-limited routing: every group of experts lives on one node.
 *
 * Groups go to nodes so that the largest load per speed is least: largest first, then exchanges and moves of
 * groups, then, where there are few, a search of all assignments that proves the floor: no node-limited plan
 * is better, however its nodes are planned inside. A node takes at most as many groups as its slots hold, and
 * no more than it can balance exactly if all groups fit so. Then each node is a layer of its own. Cost:
 * O(groups * nodes) and at most SEARCH_STEPS of search. Source: number partitioning by branch and bound (Korf
 * 2009); the hierarchy is DeepSeek's. */
#include "plan/weighted_nodes.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "plan/node_part.h"

enum { SEARCH_STEPS = 20000 };

typedef struct nodes {
    const layer_problem *problem;
    int32_t group_size;
    int32_t num_groups;
    int32_t num_nodes;
    int64_t *group_load; /* [groups] */
    int32_t *order;      /* [groups] largest first */
    int32_t *home;       /* [groups] node */
    int32_t *chosen;     /* [groups] of the search, by place in order */
    int64_t *load;       /* [N] */
    int64_t *speed;      /* [N] of live ranks */
    int32_t *slots;      /* [N] */
    int32_t *ranks;      /* [N] with slots */
    int32_t *limit;      /* [N] most groups */
    int32_t *count;      /* [N] groups */
    bool full_limits;    /* the limits are those of the slots, not tighter */
} nodes;

static bool take(nodes *work, arena *scratch)
{
    size_t groups = (size_t)work->num_groups, count = (size_t)work->num_nodes;
    work->group_load = arena_take_zero(scratch, groups, sizeof *work->group_load);
    work->order = arena_take(scratch, groups, sizeof *work->order);
    work->home = arena_take(scratch, groups, sizeof *work->home);
    work->chosen = arena_take(scratch, groups, sizeof *work->chosen);
    work->load = arena_take_zero(scratch, count, sizeof *work->load);
    work->speed = arena_take_zero(scratch, count, sizeof *work->speed);
    work->slots = arena_take_zero(scratch, count, sizeof *work->slots);
    work->ranks = arena_take_zero(scratch, count, sizeof *work->ranks);
    work->limit = arena_take_zero(scratch, count, sizeof *work->limit);
    work->count = arena_take_zero(scratch, count, sizeof *work->count);
    return work->group_load != NULL && work->order != NULL && work->home != NULL && work->chosen != NULL &&
           work->load != NULL && work->speed != NULL && work->slots != NULL && work->ranks != NULL &&
           work->limit != NULL && work->count != NULL;
}

static void measure(nodes *work)
{
    const layer_problem *problem = work->problem;
    for (int32_t e = 0; e < problem->num_experts; e++)
        work->group_load[e / work->group_size] += problem->load[e];
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        int32_t slots = problem->first_slot[g + 1] - problem->first_slot[g], n = problem->rank_node[g];
        if (problem->first_slot[g + 1] > problem->first_slot[g]) /* others serve nothing */
            work->speed[n] += problem->rank_speed[g];
        work->slots[n] += slots;
        work->ranks[n] += slots > 0 ? 1 : 0;
    }
}

/* False if the groups do not fit at all. */
static bool set_limits(nodes *work)
{
    int64_t exact = 0, all = 0;
    work->full_limits = true;
    for (int32_t n = 0; n < work->num_nodes; n++) {
        int32_t spare = work->slots[n] - work->ranks[n] + 1;
        work->limit[n] = work->ranks[n] > 0 ? spare / work->group_size : 0;
        exact += work->limit[n];
        all += work->slots[n] / work->group_size;
        if (work->limit[n] != work->slots[n] / work->group_size)
            work->full_limits = false;
    }
    if (exact >= work->num_groups || all < work->num_groups)
        return all >= work->num_groups;
    for (int32_t n = 0; n < work->num_nodes; n++)
        work->limit[n] = work->slots[n] / work->group_size;
    work->full_limits = true;
    return true;
}

/* Compares (load a + more a) / speed a with the same of b. */
static int compare_heights(const nodes *work, int32_t a, int64_t more_a, int32_t b, int64_t more_b)
{
    return fraction_compare(work->load[a] + more_a, work->speed[a], work->load[b] + more_b, work->speed[b]);
}

static int32_t fullest(const nodes *work)
{
    int32_t full = -1;
    for (int32_t n = 0; n < work->num_nodes; n++) {
        if (work->speed[n] > 0 && (full < 0 || compare_heights(work, n, 0, full, 0) > 0))
            full = n;
    }
    return full;
}

/* Insertion sort, largest first; groups are few. */
static void sort_groups(nodes *work)
{
    for (int32_t i = 0; i < work->num_groups; i++) {
        int32_t j = i;
        for (; j > 0 && work->group_load[work->order[j - 1]] < work->group_load[i]; j--)
            work->order[j] = work->order[j - 1];
        work->order[j] = i;
    }
}

static void largest_first(nodes *work)
{
    for (int32_t i = 0; i < work->num_groups; i++) {
        int32_t group = work->order[i], best = -1;
        int64_t load = work->group_load[group];
        for (int32_t n = 0; n < work->num_nodes; n++) {
            if (work->count[n] < work->limit[n] &&
                (best < 0 || compare_heights(work, n, load, best, load) < 0))
                best = n;
        }
        work->home[group] = best;
        work->load[best] += load;
        work->count[best]++;
    }
}

/* Larger of the two nodes' heights, as a node to compare with, if `shift` goes from full to other: true if it
 * is below what full has now. */
static bool lowers(const nodes *work, int32_t full, int32_t other, int64_t shift)
{
    return shift > 0 && compare_heights(work, other, shift, full, 0) < 0;
}

static void shift_group(nodes *work, int32_t group, int32_t to)
{
    work->load[work->home[group]] -= work->group_load[group];
    work->count[work->home[group]]--;
    work->home[group] = to;
    work->load[to] += work->group_load[group];
    work->count[to]++;
}

/* Moves one group out of the fullest node, or exchanges it for a smaller one; false if nothing lowers it. */
static bool improve(nodes *work)
{
    int32_t full = fullest(work);
    for (int32_t a = 0; a < work->num_groups; a++) {
        if (work->home[a] != full)
            continue;
        for (int32_t n = 0; n < work->num_nodes; n++) {
            if (n != full && work->count[n] < work->limit[n] && lowers(work, full, n, work->group_load[a])) {
                shift_group(work, a, n);
                return true;
            }
        }
        for (int32_t b = 0; b < work->num_groups; b++) {
            int32_t other = work->home[b];
            if (other != full && lowers(work, full, other, work->group_load[a] - work->group_load[b])) {
                shift_group(work, a, other);
                shift_group(work, b, full);
                return true;
            }
        }
    }
    return false;
}

/* A node like an earlier one (same load, groups, speed, limit) needs no try of its own. */
static bool repeats_earlier(const nodes *work, int32_t node)
{
    for (int32_t n = 0; n < node; n++) {
        if (work->load[n] == work->load[node] && work->count[n] == work->count[node] &&
            work->speed[n] == work->speed[node] && work->limit[n] == work->limit[node])
            return true;
    }
    return false;
}

typedef struct node_height {
    int64_t load;
    int64_t speed;
} node_height;

static bool can_take(const nodes *work, int32_t node, int64_t load, node_height best)
{
    return work->count[node] < work->limit[node] &&
           fraction_compare(work->load[node] + load, work->speed[node], best.load, best.speed) < 0 &&
           !repeats_earlier(work, node);
}

/* Depth-first over all assignments below the best height, which it lowers; true if it finished, so that none
 * is better. Leaves the best in `home`. */
static bool search(nodes *work, node_height *best)
{
    int32_t depth = 0;
    memset(work->load, 0, (size_t)work->num_nodes * sizeof *work->load);
    memset(work->count, 0, (size_t)work->num_nodes * sizeof *work->count);
    work->chosen[0] = -1;
    for (int32_t steps = 0; steps < SEARCH_STEPS; steps++) {
        if (depth == work->num_groups) {
            int32_t full = fullest(work);
            *best = (node_height){work->load[full], work->speed[full]};
            for (int32_t i = 0; i < work->num_groups; i++)
                work->home[work->order[i]] = work->chosen[i];
            depth--;
        }
        int64_t load = work->group_load[work->order[depth]];
        int32_t node = work->chosen[depth];
        if (node >= 0) { /* take it back */
            work->load[node] -= load;
            work->count[node]--;
        }
        do
            node++;
        while (node < work->num_nodes && !can_take(work, node, load, *best));
        if (node == work->num_nodes) {
            if (depth == 0)
                return true;
            depth--;
            continue;
        }
        work->chosen[depth] = node;
        work->load[node] += load;
        work->count[node]++;
        depth++;
        if (depth < work->num_groups)
            work->chosen[depth] = -1;
    }
    return false;
}

eplb_status weighted_nodes_assign(const layer_problem *problem, arena *scratch, weighted_homes *homes,
                                  eplb_error *error)
{
    arena_mark mark = arena_position(scratch);
    nodes work = {.problem = problem,
                  .group_size = problem->num_experts / problem->num_groups,
                  .num_groups = problem->num_groups,
                  .num_nodes = problem->num_nodes};
    if (!take(&work, scratch))
        return error_memory(error, (size_t)problem->num_groups * sizeof(int64_t), "groups on nodes");
    measure(&work);
    homes->fits = set_limits(&work);
    homes->floor = 1.0;
    if (homes->fits) {
        sort_groups(&work);
        largest_first(&work);
        while (improve(&work))
            continue;
        int32_t full = fullest(&work);
        node_height best = {work.load[full], work.speed[full]};
        bool proved = search(&work, &best);
        double mean = (double)problem->total / (double)problem->total_speed;
        if (proved && work.full_limits && problem->total > 0)
            homes->floor = (double)best.load / (double)best.speed / mean * (1.0 - 0x1p-50);
        homes->floor = homes->floor > 1.0 ? homes->floor : 1.0;
        for (int32_t e = 0; e < problem->num_experts; e++)
            homes->node_of_expert[e] = work.home[e / work.group_size];
    }
    arena_rewind(scratch, mark);
    return EPLB_OK;
}

/* --- a node as a layer of its own -------------------------------------------------------------------- */

/* Plans one node and copies it to the whole; *height is its largest load per speed over the layer's mean. */
static eplb_status plan_node(const layer_problem *problem, const int32_t *node_of_expert, int32_t wanted,
                             weighted_area_planner plan, arena *scratch, layer_answer *answer, double *height,
                             eplb_error *error)
{
    node_part node;
    eplb_status status = node_part_make(&node, problem, wanted, node_of_expert, scratch, error);
    if (status != EPLB_OK || node.problem.num_experts == 0 || node.problem.num_slots == 0)
        return status;
    size_t slots = (size_t)node.problem.num_slots;
    layer_answer inside = {.expert = arena_take(scratch, slots, sizeof(int32_t)),
                           .quota = arena_take_zero(scratch, slots, sizeof(int64_t)),
                           .bound = 1.0};
    if (inside.expert == NULL || inside.quota == NULL)
        return error_memory(error, slots * sizeof(int64_t), "a node's slots");
    for (size_t s = 0; s < slots; s++)
        inside.expert[s] = -1;
    double imbalance = 1.0;
    status = plan(&node.problem, scratch, &inside, &imbalance, error);
    if (status != EPLB_OK)
        return status;
    for (size_t s = 0; s < slots; s++) {
        answer->expert[node.slot[s]] = inside.expert[s] >= 0 ? node.expert[inside.expert[s]] : -1;
        answer->quota[node.slot[s]] = inside.quota[s];
    }
    if (problem->total > 0)
        *height = imbalance * ((double)node.problem.total / (double)node.problem.total_speed) /
                  ((double)problem->total / (double)problem->total_speed);
    return EPLB_OK;
}

eplb_status weighted_nodes_plan(const layer_problem *problem, const int32_t *node_of_expert,
                                weighted_area_planner plan, arena *scratch, layer_answer *answer,
                                double *height, eplb_error *error)
{
    for (int32_t n = 0; n < problem->num_nodes; n++) {
        arena_mark mark = arena_position(scratch);
        height[n] = 0.0;
        eplb_status status = plan_node(problem, node_of_expert, n, plan, scratch, answer, &height[n], error);
        if (status != EPLB_OK)
            return status;
        arena_rewind(scratch, mark);
    }
    return EPLB_OK;
}
