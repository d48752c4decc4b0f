/* How the planner builds a plan from what it found; the public part is eplb/plan.h. */
#ifndef MODEL_PLAN_PARTS_H
#define MODEL_PLAN_PARTS_H

#include <eplb/plan.h>

#define PLAN_REASON_BYTES 256

/* Everything a plan consists of. Arrays and texts are copied. */
typedef struct plan_parts {
    const eplb_topology *topology;
    int32_t num_layers;
    int32_t num_experts;
    const int32_t *physical_to_logical; /* [L, S] */
    const double *shares;               /* [L, S]; NULL: 1 / replica_count */
    const double *lower_bound;          /* [L] */
    eplb_split split;
    const char *policy; /* static text */
    const char *reason;
    int32_t num_groups;
    bool may_duplicate; /* an expert may be twice on a rank: a published planner's answer */
} plan_parts;

/* Builds a plan that is whole except for imbalance (1.0), moves and seconds. Errors: INVALID, MEMORY. */
eplb_status plan_from_parts(eplb_plan **plan, const plan_parts *parts, const eplb_allocator *allocator,
                            eplb_error *error);
/* Measures imbalance on `load` by code that knows nothing of the planner. */
eplb_status plan_measure(eplb_plan *plan, const eplb_load *load, eplb_error *error);
/* Counts moves from `current` (NULL: none). */
eplb_status plan_count_moves(eplb_plan *plan, const eplb_placement *current, eplb_error *error);
/* Counts replicas outside their group's home, the node that holds most of the group's replicas. */
eplb_status plan_count_spilled(eplb_plan *plan, eplb_error *error);
void plan_set_seconds(eplb_plan *plan, double seconds);

#endif
