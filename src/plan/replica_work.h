/* What one replica of an expert costs its rank under equal split, as whole numbers held in doubles.
 *
 * Loads are scaled by one power of two so that all work of a layer stays below 2^52: sums and differences of
 * work are then exact in a double, the same on every host, and vectorise everywhere. */
#ifndef PLAN_REPLICA_WORK_H
#define PLAN_REPLICA_WORK_H

#include "plan/layer.h"

typedef struct replica_work {
    const int64_t *load; /* [E] */
    double *tokens;      /* [E] load * scale where the cost is plain, else 0 */
    double scale;        /* a power of two */
    eplb_cost cost;
    bool plain;
    double tie; /* cost of a token where tokens cost nothing: all of them stay below one unit of cost */
    double least_total; /* work of all experts with one replica each, scaled: no placement has less */
} replica_work;

/* Prepares the costs of a layer. Errors: MEMORY. O(E). */
eplb_status replica_work_init(replica_work *work, const layer_problem *problem, arena *scratch,
                              eplb_error *error);
/* The general case of replica_work_at. */
double replica_work_mixed(const replica_work *work, int32_t expert, int32_t count);

/* Work of each of `count` replicas of an expert: a whole number >= 0 that does not grow with count. */
static inline double replica_work_at(const replica_work *work, int32_t expert, int32_t count)
{
    if (work->plain)
        return (double)(int64_t)(work->tokens[expert] / count);
    return replica_work_mixed(work, expert, count);
}

#endif
