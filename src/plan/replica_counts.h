/* How many replicas each expert starts with. */
#ifndef PLAN_REPLICA_COUNTS_H
#define PLAN_REPLICA_COUNTS_H

#include "plan/replica_work.h"

/* count[E] >= 1, each at most `cap`, summing to at most `replicas` (exactly, if E * cap allows it), so that
 * the largest work of a replica is least. Where work is equal the fewer replicas go first: without load the
 * spares are spread evenly. replicas >= E, cap >= 1. Errors: MEMORY. O(E + (replicas - E) log E). */
eplb_status replica_counts(const replica_work *work, int32_t num_experts, int32_t replicas, int32_t cap,
                           int32_t *count, arena *scratch, eplb_error *error);

/* Fewer, larger replicas: each expert gets as few as keep its replicas at or below `largest`, and what is
 * left goes to experts whose replicas are below half of that, hottest first. A replica near a rank's whole
 * load leaves spare slots to the others. *fits: false if `largest` asks for more than there are. Errors:
 * MEMORY. */
eplb_status replica_counts_large(const replica_work *work, int32_t num_experts, int32_t replicas, int32_t cap,
                                 double largest, int32_t *count, bool *fits, arena *scratch,
                                 eplb_error *error);

#endif
