/* Nodes that are alike, and trading all that they hold.
 *
 * Nodes are alike if their live ranks are, one by one: the i-th rank of one then takes what the i-th of the
 * other held, so that loads of ranks, and groups that share a node, stay what they are. O(N G + S). */
#include "plan/node_ranks.h"

#include <string.h>

bool node_ranks_list(node_ranks *nodes, const layer_problem *problem, arena *scratch)
{
    int32_t at = 0;
    nodes->first = arena_take(scratch, (size_t)problem->num_nodes + 1, sizeof *nodes->first);
    nodes->rank = arena_take(scratch, (size_t)problem->num_ranks, sizeof *nodes->rank);
    if (nodes->first == NULL || nodes->rank == NULL)
        return false;
    for (int32_t n = 0; n < problem->num_nodes; n++) {
        nodes->first[n] = at;
        for (int32_t g = 0; g < problem->num_ranks; g++) {
            if (problem->rank_node[g] == n)
                nodes->rank[at++] = g;
        }
    }
    nodes->first[problem->num_nodes] = at;
    return true;
}

bool ranks_alike(const layer_problem *problem, int32_t a, int32_t b)
{
    const int32_t *first = problem->first_slot;
    return first[a + 1] - first[a] == first[b + 1] - first[b] &&
           problem->rank_speed[a] == problem->rank_speed[b];
}

bool node_ranks_alike(const node_ranks *nodes, const layer_problem *problem, int32_t a, int32_t b)
{
    int32_t count = nodes->first[a + 1] - nodes->first[a];
    if (count != nodes->first[b + 1] - nodes->first[b])
        return false;
    for (int32_t i = 0; i < count; i++) {
        if (!ranks_alike(problem, nodes->rank[nodes->first[a] + i], nodes->rank[nodes->first[b] + i]))
            return false;
    }
    return true;
}

bool node_ranks_permute(const node_ranks *nodes, const layer_problem *problem, const assignment *match,
                        int32_t *expert, int64_t *quota, arena *scratch)
{
    size_t slots = (size_t)problem->num_slots;
    int32_t *experts = arena_take(scratch, slots, sizeof *experts);
    int64_t *quotas = arena_take(scratch, slots, sizeof *quotas);
    if (experts == NULL || quotas == NULL)
        return false;
    memcpy(experts, expert, slots * sizeof *experts);
    if (quota != NULL)
        memcpy(quotas, quota, slots * sizeof *quotas);
    for (int32_t b = 0; b < problem->num_nodes; b++) {
        int32_t a = assignment_row(match, b);
        for (int32_t i = nodes->first[b]; i < nodes->first[b + 1]; i++) {
            int32_t to = nodes->rank[i], from = nodes->rank[nodes->first[a] + i - nodes->first[b]];
            int32_t start = problem->first_slot[to], source = problem->first_slot[from];
            size_t count = (size_t)(problem->first_slot[to + 1] - start);
            memcpy(expert + start, experts + source, count * sizeof *expert);
            if (quota != NULL)
                memcpy(quota + start, quotas + source, count * sizeof *quota);
        }
    }
    return true;
}
