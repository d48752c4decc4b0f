/* Planning layer after layer, on one thread or several. */
#ifndef PLAN_LAYER_LOOP_H
#define PLAN_LAYER_LOOP_H

#include "plan/request.h"

/* Where the answers go; arrays are the caller's. Slots are those of the topology; dead ones stay as they
 * are. */
typedef struct plan_answers {
    int32_t *expert;     /* [L, S], preset to -1 */
    double *shares;      /* [L, S], preset to 0, or NULL for an equal split */
    double *bound;       /* [L] */
    const char **reason; /* [L], may hold NULL */
    int64_t *filled;     /* [L] slots that were filled before the policy planned */
    int64_t *lacking;    /* [L] moves that are missing to fill the slots that stay empty */
    int64_t *most_moves; /* [L] received experts that were allowed; INT64_MAX: unlimited */
} plan_answers;

/* How far a request is: shared by the passes over its layers. */
typedef struct plan_progress {
    double deadline; /* monotonic; 0: none */
    int64_t begun;   /* layers handed out in all passes */
    int64_t done;    /* layers visited in all passes */
    int64_t total;   /* layers to visit in all passes */
} plan_progress;

/* What is done with one layer; `context` is the pass's own. The problem's fields are all set. */
typedef eplb_status (*layer_visitor)(void *context, layer_problem *problem, arena *scratch,
                                     eplb_error *error);

/* Visits every layer once, on up to params.num_threads threads; calls for different layers may run at the
 * same time. With a deadline every layer gets an even part of the time that is left when it begins. On
 * failure the error of the lowest failing layer is reported, whatever the number of threads. Errors: the
 * visitor's, CANCELLED, SYSTEM, MEMORY. */
eplb_status visit_layers(const plan_request *request, layer_visitor visit, void *context,
                         plan_progress *progress, const eplb_allocator *allocator, eplb_error *error);

/* Plans every layer; move_limit[L] bounds the received experts of each (NULL: params.max_moves_per_layer).
 * Errors: as visit_layers. */
eplb_status plan_layers(const plan_request *request, const int64_t *move_limit, plan_progress *progress,
                        plan_answers *answers, const eplb_allocator *allocator, eplb_error *error);

/* One layer of the request as a problem that nobody stops, with arrays from `scratch`. Errors: MEMORY. */
eplb_status layer_problem_create(layer_problem *problem, const plan_request *request, int32_t layer,
                                 arena *scratch, eplb_error *error);

/* Monotonic seconds. */
double plan_clock(void);

#endif
