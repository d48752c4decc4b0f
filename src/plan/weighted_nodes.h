/* Groups of experts on nodes, and each node planned as a layer of its own. */
#ifndef PLAN_WEIGHTED_NODES_H
#define PLAN_WEIGHTED_NODES_H

#include "plan/weighted.h"

/* Plans a layer without regard to nodes; *imbalance is what it reaches. */
typedef eplb_status (*weighted_area_planner)(const layer_problem *problem, arena *scratch,
                                             layer_answer *answer, double *imbalance, eplb_error *error);

typedef struct weighted_homes {
    int32_t *node_of_expert; /* [E] the caller's */
    bool fits;               /* false: there are not slots enough to keep every group on one node */
    double floor;            /* proved lower bound of the imbalance of any node-limited plan; >= 1 */
} weighted_homes;

eplb_status weighted_nodes_assign(const layer_problem *problem, arena *scratch, weighted_homes *homes,
                                  eplb_error *error);
/* Each node by itself: height[N] is what its fullest rank reaches, as a fraction of the layer's mean. Errors:
 * those of `plan`, MEMORY. */
eplb_status weighted_nodes_plan(const layer_problem *problem, const int32_t *node_of_expert,
                                weighted_area_planner plan, arena *scratch, layer_answer *answer,
                                double *height, eplb_error *error);

#endif
