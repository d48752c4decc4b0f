/* Planning layer after layer, on one thread or several. */
#ifndef PLAN_LAYER_LOOP_H
#define PLAN_LAYER_LOOP_H

#include "plan/request.h"

/* Where the answers go; arrays are the caller's. Slots are those of the topology; dead ones stay as they are.
 */
typedef struct plan_answers {
    int32_t *expert;     /* [L, S], preset to -1 */
    double *shares;      /* [L, S], preset to 0, or NULL for an equal split */
    double *bound;       /* [L] */
    const char **reason; /* [L], may hold NULL */
} plan_answers;

/* Plans every layer; move_limit[L] bounds the received experts of each (NULL: params.max_moves_per_layer).
 * `started` is the monotonic time of the request. On failure the error of the lowest failing layer is
 * reported, whatever the number of threads. Errors: the policy's, CANCELLED, SYSTEM, MEMORY. */
eplb_status plan_layers(const plan_request *request, const int64_t *move_limit, double started,
                        plan_answers *answers, const eplb_allocator *allocator, eplb_error *error);

/* One layer of the request as a problem, with arrays from `scratch`; NULL text fields apart, everything of
 * layer_problem is set. Errors: MEMORY. */
eplb_status layer_problem_create(layer_problem *problem, const plan_request *request, int32_t layer,
                                 arena *scratch, eplb_error *error);

/* Monotonic seconds. */
double plan_clock(void);

#endif
