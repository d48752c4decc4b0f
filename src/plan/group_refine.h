/* Groups on nodes whose ranks differ: what a node can reach depends on more than its load and speed. */
#ifndef PLAN_GROUP_REFINE_H
#define PLAN_GROUP_REFINE_H

#include "plan/layer.h"

/* Improves group_node[groups], which leaves every node a slot for each of its experts. Errors: MEMORY. */
eplb_status group_refine(const layer_problem *problem, int32_t *group_node, arena *scratch,
                         eplb_error *error);

#endif
