/* A checked planning request. */
#ifndef PLAN_REQUEST_H
#define PLAN_REQUEST_H

#include "plan/layer.h"
#include "plan/live_ranks.h"

#define MAX_THREADS 1024

typedef struct plan_request {
    const eplb_load *load;
    const eplb_topology *topology;
    eplb_plan_params params; /* full size, defaults filled in; num_groups >= 1 */
    const plan_policy *policy;
    const live_ranks *live;
    int32_t num_layers;
    int32_t num_experts;
} plan_request;

/* Fills *request from the arguments of eplb_plan_create and refuses what no policy can plan and what the
 * chosen one would pass over. Errors: INVALID, INFEASIBLE, UNSUPPORTED. O(G). */
eplb_status request_check(plan_request *request, const eplb_load *load, const eplb_topology *topology,
                          const eplb_plan_params *params, eplb_error *error);

#endif
