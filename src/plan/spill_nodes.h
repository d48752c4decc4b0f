/* Which node serves each expert group, and which replicas live outside it. */
#ifndef PLAN_SPILL_NODES_H
#define PLAN_SPILL_NODES_H

#include "plan/replica_work.h"

typedef struct spill_nodes {
    int32_t *group_node;   /* [groups] */
    int32_t num_spilled;   /* <= problem->max_spill */
    int32_t *spill_expert; /* [max_spill] */
    int32_t *spill_node;   /* [max_spill] where that replica lives */
    double *amount;        /* [max_spill] tokens it is meant to serve */
    int32_t *count;        /* [E] replicas of a spilled expert, home included; 0: not decided */
    bool fits;             /* false: the groups do not fit on the nodes; nothing is decided */
} spill_nodes;

/* Chooses so that the hottest node is least with equal shares. No more tokens cross nodes than without
 * spilling: the replicas at home serve at least the tokens that start there. Errors: MEMORY. O(SPILL_STEPS
 * (groups + max_spill + N)). */
eplb_status spill_nodes_choose(spill_nodes *spill, const layer_problem *problem, const replica_work *work,
                               double room, arena *scratch, eplb_error *error);
/* A first placement: what was chosen on its nodes, then replicas to the hottest of each node, as long as one
 * has more than `large` tokens, hottest first to its least loaded rank. expert[S] is filled, with large > 0
 * not always whole; no expert twice on a rank. Errors: MEMORY. O(S (G + log E)). */
eplb_status spill_nodes_place(const spill_nodes *spill, const layer_problem *problem, double large,
                              int32_t *expert, arena *scratch, eplb_error *error);

#endif
