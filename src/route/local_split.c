/* The most local of the exact splits: minimum cost flow under the rank capacities of the min-max level.
 *
 * Each movable expert sends its tokens to one hub per node that holds it, and from there to the ranks. The
 * first tokens into a hub, as many as start on that node, are free, further ones leave their node; the first
 * tokens to a rank, as many as start on it, are free, further ones leave their rank. Costs only grow with the
 * flow, so the flow is exact. Some ten microseconds for 32 replicated experts on 32 ranks. */
#include "route/min_cost_flow.h"
#include "route/resplit.h"

/* Tokens of an expert that start on a rank, or on a node. */
static int64_t from_rank(const eplb_resplit *resplit, const int64_t *source_load, int32_t expert,
                         int32_t rank)
{
    return source_load[(size_t)rank * (size_t)resplit->num_experts + (size_t)expert];
}

static int64_t from_node(const eplb_resplit *resplit, const int64_t *source_load, int32_t expert,
                         int32_t node)
{
    const int32_t *rank_node = eplb_topology_rank_node(resplit->topology);
    int64_t sum = 0;
    for (int32_t g = 0; g < resplit->num_ranks; g++)
        sum += rank_node[g] == node ? from_rank(resplit, source_load, expert, g) : 0;
    return sum;
}

/* The first edge of the same expert on the same node as edge i. */
static int32_t first_of_node(const eplb_resplit *resplit, int32_t begin, int32_t i)
{
    int32_t first = begin;
    while (resplit->live_node[resplit->graph.edge_rank[first]] !=
           resplit->live_node[resplit->graph.edge_rank[i]])
        first++;
    return first;
}

/* Node numbers: source, sink, movable experts, live ranks, then a hub per edge that is the first of its
 * node. */
#define SOURCE 0
#define SINK   1

static void add_expert(const eplb_resplit *resplit, const int64_t *source_load, int32_t movable,
                       min_cost_flow *flow, int32_t *own_arc)
{
    const min_max_graph *graph = &resplit->graph;
    int32_t expert = graph->movable_expert[movable], begin = graph->edge_first[movable];
    int32_t expert_node = 2 + movable, rank_nodes = 2 + graph->num_movable,
            hubs = rank_nodes + graph->num_ranks;
    int64_t tokens = resplit->load[expert];
    (void)min_cost_flow_add(flow, SOURCE, expert_node, tokens, 0);
    for (int32_t i = begin; i < graph->edge_first[movable + 1]; i++) {
        int32_t rank = graph->edge_rank[i], first = first_of_node(resplit, begin, i);
        if (first == i) {
            int64_t near = from_node(resplit, source_load, expert, resplit->live_node[rank]);
            (void)min_cost_flow_add(flow, expert_node, hubs + i, near, 0);
            (void)min_cost_flow_add(flow, expert_node, hubs + i, tokens, COST_LEAVE_NODE);
        }
        int64_t own = from_rank(resplit, source_load, expert, resplit->live_rank[rank]);
        own_arc[i] = min_cost_flow_add(flow, hubs + first, rank_nodes + rank, own, 0);
        (void)min_cost_flow_add(flow, hubs + first, rank_nodes + rank, tokens, COST_LEAVE_RANK);
    }
}

/* Room of every rank under the level, after its fixed experts. */
static void add_ranks(const eplb_resplit *resplit, const min_max_result *solved, int64_t *fixed,
                      min_cost_flow *flow)
{
    const min_max_graph *graph = &resplit->graph;
    for (int32_t n = 0; n < graph->num_ranks; n++)
        fixed[n] = 0;
    for (int32_t n = 0; n < graph->num_fixed; n++)
        fixed[graph->fixed_rank[n]] += resplit->load[graph->fixed_expert[n]];
    for (int32_t n = 0; n < graph->num_ranks; n++) {
        int64_t speed = graph->rank_speed != NULL ? graph->rank_speed[n] : 1;
        int64_t room = min_max_capacity(solved->max_load, speed, solved->max_speed) - fixed[n];
        (void)min_cost_flow_add(flow, 2 + graph->num_movable + n, SINK, room, 0);
    }
}

bool local_split(eplb_resplit *resplit, const int64_t *source_load, const min_max_result *solved)
{
    const min_max_graph *graph = &resplit->graph;
    int32_t edges = graph->edge_first[graph->num_movable];
    arena_mark mark = arena_position(&resplit->scratch);
    min_cost_flow flow;
    int32_t *own_arc = arena_take(&resplit->scratch, (size_t)edges, sizeof *own_arc);
    if (own_arc == NULL ||
        !min_cost_flow_init(&flow, 2 + graph->num_movable + graph->num_ranks + edges,
                            graph->num_movable + 4 * edges + graph->num_ranks, &resplit->scratch))
        return false;
    for (int32_t m = 0; m < graph->num_movable; m++)
        add_expert(resplit, source_load, m, &flow, own_arc);
    add_ranks(resplit, solved, resplit->rank_load, &flow);
    (void)min_cost_flow_run(&flow, SOURCE, SINK);
    for (int32_t i = 0; i < edges; i++) {
        int64_t tokens = min_cost_flow_on(&flow, own_arc[i]) + min_cost_flow_on(&flow, own_arc[i] + 2);
        resplit->quota[graph->edge_replica[i]] = tokens;
        resplit->rank_load[graph->edge_rank[i]] += tokens;
    }
    arena_rewind(&resplit->scratch, mark);
    return true;
}

void local_count(const eplb_resplit *resplit, const int64_t *source_load, int64_t *cross_rank,
                 int64_t *cross_node)
{
    const min_max_graph *graph = &resplit->graph;
    *cross_rank = *cross_node = 0;
    for (int32_t n = 0; n < graph->num_fixed; n++) {
        int32_t expert = graph->fixed_expert[n], rank = graph->fixed_rank[n];
        *cross_rank +=
            resplit->load[expert] - from_rank(resplit, source_load, expert, resplit->live_rank[rank]);
        *cross_node +=
            resplit->load[expert] - from_node(resplit, source_load, expert, resplit->live_node[rank]);
    }
    for (int32_t m = 0; m < graph->num_movable; m++) {
        int32_t expert = graph->movable_expert[m], begin = graph->edge_first[m],
                end = graph->edge_first[m + 1];
        for (int32_t i = begin; i < end; i++) {
            int32_t rank = graph->edge_rank[i];
            int64_t served = resplit->quota[graph->edge_replica[i]], on_node = 0;
            int64_t own = from_rank(resplit, source_load, expert, resplit->live_rank[rank]);
            *cross_rank += served > own ? served - own : 0;
            if (first_of_node(resplit, begin, i) != i)
                continue;
            for (int32_t j = i; j < end; j++)
                on_node += first_of_node(resplit, begin, j) == i ? resplit->quota[graph->edge_replica[j]] : 0;
            int64_t near = from_node(resplit, source_load, expert, resplit->live_node[rank]);
            *cross_node += on_node > near ? on_node - near : 0;
        }
    }
}
