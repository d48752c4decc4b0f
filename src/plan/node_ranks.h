/* The ranks of each node, and nodes that can trade their contents. */
#ifndef PLAN_NODE_RANKS_H
#define PLAN_NODE_RANKS_H

#include "plan/assignment.h"
#include "plan/layer.h"

/* Ranks by node: rank[first[n]] .. rank[first[n + 1] - 1], ascending. */
typedef struct node_ranks {
    int32_t *first; /* [N + 1] */
    int32_t *rank;  /* [G] */
} node_ranks;

/* False when memory is out. O(N G). */
bool node_ranks_list(node_ranks *nodes, const layer_problem *problem, arena *scratch);

/* True if the ranks have as many slots and the same speed. */
bool ranks_alike(const layer_problem *problem, int32_t a, int32_t b);

/* True if the nodes have like ranks in the same order. */
bool node_ranks_alike(const node_ranks *nodes, const layer_problem *problem, int32_t a, int32_t b);

/* Puts the contents of each node where the solved assignment says, rank by rank: rows are contents, columns
 * nodes, matched to like ones alone. expert [S], and quota [S] unless NULL. False when memory is out. O(S).
 */
bool node_ranks_permute(const node_ranks *nodes, const layer_problem *problem, const assignment *match,
                        int32_t *expert, int64_t *quota, arena *scratch);

#endif
