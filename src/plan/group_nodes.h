/* Which node serves each expert group when replicas may not leave their group's node. */
#ifndef PLAN_GROUP_NODES_H
#define PLAN_GROUP_NODES_H

#include "plan/replica_work.h"

/* group_node[num_groups]. *fits: false if no assignment was found that gives every expert of every group a
 * slot on its node. Errors: MEMORY. O(groups^2 N) per improvement; up to 64
 * groups at most 2,000 visits of a search, 17 times. */
eplb_status group_nodes_choose(const layer_problem *problem, const replica_work *work, int32_t *group_node,
                               bool *fits, arena *scratch, eplb_error *error);
/* The same from the current placement: each group's node is where most of its replicas are (ties to the
 * lowest). *fits as above. O(S + groups N). */
eplb_status group_nodes_read(const layer_problem *problem, int32_t *group_node, bool *fits, arena *scratch,
                             eplb_error *error);

#endif
