/* The part of a layer that one node serves when groups may not leave their node. */
#ifndef PLAN_NODE_PART_H
#define PLAN_NODE_PART_H

#include "plan/layer.h"

typedef struct node_part {
    layer_problem problem; /* of the node alone, renumbered; without groups and current placement */
    int32_t *expert;       /* [problem.num_experts] number in the whole */
    int32_t *slot;         /* [problem.num_slots] */
} node_part;

/* expert_area [E]: node of each expert. Errors: MEMORY. O(E + S + G). */
eplb_status node_part_make(node_part *part, const layer_problem *whole, int32_t node,
                           const int32_t *expert_area, arena *scratch, eplb_error *error);

#endif
