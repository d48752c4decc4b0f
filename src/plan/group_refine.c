/* Moving and exchanging groups between nodes by a bound on what each node can reach inside.
 *
 * Load over speed judges nodes of like ranks well. Where slots or speeds differ, a slow rank with many slots
 * must hold many experts, a fast one with few slots cannot take much, and an expert cannot be split over more
 * ranks than the node has. The bound of weighted_bound.c knows all that. So the change that lowers the worse
 * bound of two nodes most, one of them the worst of all, is made until none does. Cost: a bound, O(E log E),
 * for two nodes per change looked at; some hundreds of changes a step. */
#include "plan/group_refine.h"

#include <math.h>

#include "base/error.h"
#include "plan/node_part.h"
#include "plan/weighted.h"

#define MOST_BOUNDS 4000 /* computed for a layer */

typedef struct refinement {
    const layer_problem *problem;
    int32_t *group_node;
    int32_t *expert_area; /* [E] node of each expert */
    double *time;         /* [N] bound of each node: load per speed */
    int32_t size;         /* experts of a group */
    int32_t bounds_left;
    arena *scratch;
    eplb_error *error;
    eplb_status status;
} refinement;

/* A group to another node, where `other`, if not -1, comes back from. */
typedef struct change {
    int32_t group;
    int32_t other;
    int32_t node;
    double here; /* times afterwards */
    double there;
} change;

/* Least time that the node's ranks can reach; INFINITY if its experts do not fit. */
static double node_time(refinement *work, int32_t node)
{
    node_part part;
    double bound = 1, time = 0;
    arena_mark mark = arena_position(work->scratch);
    work->bounds_left--;
    if (work->status == EPLB_OK)
        work->status =
            node_part_make(&part, work->problem, node, work->expert_area, work->scratch, work->error);
    if (work->status != EPLB_OK)
        return INFINITY;
    if (part.problem.num_experts > part.problem.num_slots)
        time = INFINITY;
    else if (part.problem.total > 0 && !weighted_floor(&part.problem, &bound, work->scratch))
        work->status = error_memory(work->error, (size_t)part.problem.num_experts, "groups on nodes");
    else if (part.problem.total > 0)
        time = bound * ((double)part.problem.total / (double)part.problem.total_speed);
    arena_rewind(work->scratch, mark);
    return time;
}

static void put(refinement *work, int32_t group, int32_t node)
{
    work->group_node[group] = node;
    for (int32_t e = group * work->size; e < (group + 1) * work->size; e++)
        work->expert_area[e] = node;
}

static void try_change(refinement *work, change candidate, int32_t hot, change *best)
{
    put(work, candidate.group, candidate.node);
    if (candidate.other >= 0)
        put(work, candidate.other, hot);
    candidate.here = node_time(work, hot);
    if (candidate.here < (best->here > best->there ? best->here : best->there)) {
        candidate.there = node_time(work, candidate.node);
        if ((candidate.here > candidate.there ? candidate.here : candidate.there) <
            (best->here > best->there ? best->here : best->there))
            *best = candidate;
    }
    put(work, candidate.group, hot);
    if (candidate.other >= 0)
        put(work, candidate.other, candidate.node);
}

static int32_t worst_node(const refinement *work)
{
    int32_t worst = 0;
    for (int32_t n = 1; n < work->problem->num_nodes; n++)
        worst = work->time[n] > work->time[worst] ? n : worst;
    return worst;
}

/* Makes the best change at the worst node; false if none helps. */
static bool improve(refinement *work)
{
    int32_t hot = worst_node(work), groups = work->problem->num_groups;
    change best = {-1, -1, -1, work->time[hot], 0};
    for (int32_t group = 0; group < groups; group++) {
        for (int32_t n = 0; work->group_node[group] == hot && n < work->problem->num_nodes; n++) {
            if (n != hot && work->bounds_left > 0)
                try_change(work, (change){group, -1, n, 0, 0}, hot, &best);
        }
        for (int32_t other = 0; work->group_node[group] == hot && other < groups; other++) {
            if (work->group_node[other] != hot && work->bounds_left > 0)
                try_change(work, (change){group, other, work->group_node[other], 0, 0}, hot, &best);
        }
    }
    if (best.group < 0 || work->status != EPLB_OK)
        return false;
    put(work, best.group, best.node);
    if (best.other >= 0)
        put(work, best.other, hot);
    work->time[hot] = best.here;
    work->time[best.node] = best.there;
    return true;
}

eplb_status group_refine(const layer_problem *problem, int32_t *group_node, arena *scratch, eplb_error *error)
{
    arena_mark mark = arena_position(scratch);
    refinement work = {.problem = problem,
                       .group_node = group_node,
                       .expert_area = arena_take(scratch, (size_t)problem->num_experts, sizeof(int32_t)),
                       .time = arena_take(scratch, (size_t)problem->num_nodes, sizeof(double)),
                       .size = problem->num_experts / problem->num_groups,
                       .bounds_left = MOST_BOUNDS,
                       .scratch = scratch,
                       .error = error};
    if (work.expert_area == NULL || work.time == NULL)
        return error_memory(error, (size_t)problem->num_experts * sizeof(int32_t), "groups on nodes");
    for (int32_t i = 0; i < problem->num_groups; i++)
        put(&work, i, group_node[i]);
    for (int32_t n = 0; n < problem->num_nodes; n++)
        work.time[n] = node_time(&work, n);
    while (work.bounds_left > 0 && improve(&work))
        continue;
    if (work.status == EPLB_OK)
        arena_rewind(scratch, mark);
    return work.status;
}
