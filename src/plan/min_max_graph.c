/* The graph of a placement, from lists of replicas. One block holds all its arrays. */
#include "plan/min_max_graph.h"

#include <string.h>

static bool take_arrays(min_max_graph *graph, int32_t num_replicas, arena *scratch)
{
    size_t experts = (size_t)graph->num_experts, ranks = (size_t)graph->num_ranks;
    size_t replicas = (size_t)num_replicas;
    int32_t *block = arena_take(scratch, 5 * experts + 1 + 4 * replicas + ranks + 1, sizeof *block);
    if (block == NULL)
        return false;
    graph->fixed_expert = block;
    graph->fixed_rank = graph->fixed_expert + experts;
    graph->fixed_replica = graph->fixed_rank + experts;
    graph->movable_expert = graph->fixed_replica + experts;
    graph->edge_first = graph->movable_expert + experts;
    graph->edge_rank = graph->edge_first + experts + 1;
    graph->edge_movable = graph->edge_rank + replicas;
    graph->edge_replica = graph->edge_movable + replicas;
    graph->rank_edge = graph->edge_replica + replicas;
    graph->rank_first = graph->rank_edge + replicas;
    return true;
}

/* Appends the distinct ranks of one expert as edges; returns how many. last_seen[g] == expert marks a
 * rank. */
static int32_t append_edges(min_max_graph *graph, int32_t expert, const int32_t *first,
                            const int32_t *replica_rank, int32_t start, int32_t *last_seen)
{
    int32_t count = 0;
    for (int32_t i = first[expert]; i < first[expert + 1]; i++) {
        int32_t rank = replica_rank[i];
        if (last_seen[rank] == expert)
            continue;
        last_seen[rank] = expert;
        graph->edge_rank[start + count] = rank;
        graph->edge_replica[start + count] = i;
        graph->edge_movable[start + count] = graph->num_movable;
        count++;
    }
    return count;
}

/* Lists the edges of each rank (counting sort). */
static void index_ranks(min_max_graph *graph, int32_t num_edges)
{
    int32_t ranks = graph->num_ranks;
    memset(graph->rank_first, 0, ((size_t)ranks + 1) * sizeof *graph->rank_first);
    for (int32_t i = 0; i < num_edges; i++)
        graph->rank_first[graph->edge_rank[i] + 1]++;
    for (int32_t g = 0; g < ranks; g++)
        graph->rank_first[g + 1] += graph->rank_first[g];
    for (int32_t i = 0; i < num_edges; i++)
        graph->rank_edge[graph->rank_first[graph->edge_rank[i]]++] = i;
    for (int32_t g = ranks; g > 0; g--)
        graph->rank_first[g] = graph->rank_first[g - 1];
    graph->rank_first[0] = 0;
}

bool min_max_graph_init(min_max_graph *graph, int32_t num_experts, int32_t num_ranks, const int32_t *first,
                        const int32_t *replica_rank, const int32_t *rank_speed, arena *scratch)
{
    *graph = (min_max_graph){.num_experts = num_experts, .num_ranks = num_ranks, .rank_speed = rank_speed};
    graph->num_replicas = first[num_experts];
    if (!take_arrays(graph, graph->num_replicas, scratch))
        return false;
    int32_t *last_seen = arena_take(scratch, (size_t)num_ranks, sizeof *last_seen);
    if (last_seen == NULL)
        return false;
    for (int32_t g = 0; g < num_ranks; g++) {
        last_seen[g] = -1;
        graph->total_speed += rank_speed != NULL ? rank_speed[g] : 1;
    }
    int32_t num_edges = 0;
    for (int32_t e = 0; e < num_experts; e++) {
        int32_t count = append_edges(graph, e, first, replica_rank, num_edges, last_seen);
        if (count == 1) {
            int32_t n = graph->num_fixed++;
            graph->fixed_expert[n] = e;
            graph->fixed_rank[n] = graph->edge_rank[num_edges];
            graph->fixed_replica[n] = graph->edge_replica[num_edges];
        } else if (count > 1) {
            graph->movable_expert[graph->num_movable] = e;
            graph->edge_first[graph->num_movable++] = num_edges;
            num_edges += count;
        }
    }
    graph->edge_first[graph->num_movable] = num_edges;
    index_ranks(graph, num_edges);
    return true;
}

void min_max_tight_experts(const min_max_graph *graph, const uint8_t *tight_rank, uint8_t *tight_expert)
{
    memset(tight_expert, 0, (size_t)graph->num_experts);
    for (int32_t n = 0; n < graph->num_fixed; n++)
        tight_expert[graph->fixed_expert[n]] = tight_rank[graph->fixed_rank[n]];
    for (int32_t m = 0; m < graph->num_movable; m++) {
        uint8_t inside = 1;
        for (int32_t i = graph->edge_first[m]; i < graph->edge_first[m + 1]; i++)
            inside &= tight_rank[graph->edge_rank[i]];
        tight_expert[graph->movable_expert[m]] = inside;
    }
}
