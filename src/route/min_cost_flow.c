/* A small minimum cost flow by the primal-dual method.
 *
 * Distances from the source by a label-correcting queue; all paths of that length are filled by blocking
 * flows before distances are taken again. With costs of a few units there are few distinct lengths, so few
 * rounds. O(rounds * nodes * arcs) at worst. Source: Ford and Fulkerson 1962; blocking flow of Dinic 1970. */
#include "route/min_cost_flow.h"

#include <string.h>

bool min_cost_flow_init(min_cost_flow *flow, int32_t num_nodes, int32_t max_arcs, arena *scratch)
{
    size_t nodes = (size_t)num_nodes, arcs = 2 * (size_t)max_arcs;
    int32_t *narrow = arena_take(scratch, 6 * nodes + 1 + 3 * arcs, sizeof *narrow);
    flow->capacity = arena_take(scratch, arcs, sizeof *flow->capacity);
    flow->queued = arena_take_zero(scratch, nodes, sizeof *flow->queued);
    if (narrow == NULL || flow->capacity == NULL || flow->queued == NULL)
        return false;
    flow->num_nodes = num_nodes;
    flow->num_arcs = 0;
    flow->head = narrow;
    flow->distance = flow->head + nodes;
    flow->level = flow->distance + nodes;
    flow->current = flow->level + nodes;
    flow->path = flow->current + nodes;
    flow->queue = flow->path + nodes;
    flow->next = flow->queue + nodes + 1;
    flow->to = flow->next + arcs;
    flow->cost = flow->to + arcs;
    memset(flow->head, -1, nodes * sizeof *flow->head);
    return true;
}

static void add_half(min_cost_flow *flow, int32_t from, int32_t to, int64_t capacity, int32_t cost)
{
    int32_t arc = flow->num_arcs++;
    flow->to[arc] = to;
    flow->capacity[arc] = capacity;
    flow->cost[arc] = cost;
    flow->next[arc] = flow->head[from];
    flow->head[from] = arc;
}

int32_t min_cost_flow_add(min_cost_flow *flow, int32_t from, int32_t to, int64_t capacity, int32_t cost)
{
    int32_t arc = flow->num_arcs;
    add_half(flow, from, to, capacity, cost);
    add_half(flow, to, from, 0, -cost);
    return arc;
}

int64_t min_cost_flow_on(const min_cost_flow *flow, int32_t arc)
{
    return flow->capacity[arc + 1];
}

/* Least cost to every node; false if the sink is out of reach. */
static bool measure_costs(min_cost_flow *flow, int32_t source, int32_t sink)
{
    int32_t ring = flow->num_nodes + 1, begin = 0, end = 1;
    for (int32_t v = 0; v < flow->num_nodes; v++)
        flow->distance[v] = INT32_MAX;
    flow->distance[source] = 0;
    flow->queue[0] = source;
    while (begin != end) {
        int32_t at = flow->queue[begin];
        begin = begin + 1 == ring ? 0 : begin + 1;
        flow->queued[at] = 0;
        for (int32_t arc = flow->head[at]; arc >= 0; arc = flow->next[arc]) {
            int32_t to = flow->to[arc], cost = flow->distance[at] + flow->cost[arc];
            if (flow->capacity[arc] == 0 || cost >= flow->distance[to])
                continue;
            flow->distance[to] = cost;
            if (!flow->queued[to]) {
                flow->queued[to] = 1;
                flow->queue[end] = to;
                end = end + 1 == ring ? 0 : end + 1;
            }
        }
    }
    return flow->distance[sink] != INT32_MAX;
}

static bool on_shortest_path(const min_cost_flow *flow, int32_t from, int32_t arc)
{
    return flow->capacity[arc] > 0 && flow->distance[flow->to[arc]] == flow->distance[from] + flow->cost[arc];
}

/* Steps to every node over arcs of shortest paths; false if the sink is out of reach. */
static bool measure_steps(min_cost_flow *flow, int32_t source, int32_t sink)
{
    int32_t begin = 0, end = 1;
    memset(flow->level, -1, (size_t)flow->num_nodes * sizeof *flow->level);
    flow->level[source] = 0;
    flow->queue[0] = source;
    while (begin < end) {
        int32_t at = flow->queue[begin++];
        for (int32_t arc = flow->head[at]; arc >= 0; arc = flow->next[arc]) {
            int32_t to = flow->to[arc];
            if (flow->level[to] < 0 && on_shortest_path(flow, at, arc)) {
                flow->level[to] = flow->level[at] + 1;
                flow->queue[end++] = to;
            }
        }
    }
    return flow->level[sink] >= 0;
}

/* Next arc of a path from `at`, or -1; arcs only move forward between two measurings. */
static int32_t advance(min_cost_flow *flow, int32_t at)
{
    int32_t arc = flow->current[at];
    while (arc >= 0 &&
           !(flow->level[flow->to[arc]] == flow->level[at] + 1 && on_shortest_path(flow, at, arc)))
        arc = flow->next[arc];
    flow->current[at] = arc;
    return arc;
}

static int64_t push(min_cost_flow *flow, int32_t depth)
{
    int64_t amount = INT64_MAX;
    for (int32_t d = 0; d < depth; d++)
        amount = flow->capacity[flow->path[d]] < amount ? flow->capacity[flow->path[d]] : amount;
    for (int32_t d = 0; d < depth; d++) {
        flow->capacity[flow->path[d]] -= amount;
        flow->capacity[flow->path[d] ^ 1] += amount;
    }
    return amount;
}

/* All paths that the levels allow. */
static int64_t block_paths(min_cost_flow *flow, int32_t source, int32_t sink)
{
    int64_t value = 0;
    memcpy(flow->current, flow->head, (size_t)flow->num_nodes * sizeof *flow->current);
    for (;;) {
        int32_t depth = 0, at = source;
        while (at != sink) {
            int32_t arc = advance(flow, at);
            if (arc >= 0) {
                flow->path[depth++] = arc;
                at = flow->to[arc];
                continue;
            }
            flow->level[at] = -1; /* a dead end */
            if (depth == 0)
                return value;
            at = flow->to[flow->path[--depth] ^ 1];
        }
        value += push(flow, depth);
    }
}

int64_t min_cost_flow_run(min_cost_flow *flow, int32_t source, int32_t sink)
{
    int64_t value = 0;
    while (measure_costs(flow, source, sink)) {
        while (measure_steps(flow, source, sink))
            value += block_paths(flow, source, sink);
    }
    return value;
}
