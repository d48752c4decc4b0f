/* Placement: which logical expert each slot holds, in all the forms that engines want.
 *
 * physical_to_logical [L, S] (-1 = empty), replica_count [L, E] and the compact logical_to_physical: the
 * slots of expert e of layer l, ascending, are slots[first[l*(E+1)+e] .. first[l*(E+1)+e+1]) with `first`
 * counted from the start of the layer's row of S entries. Replicas on dead ranks count in none of the
 * inverses. Immutable; any number of threads may read it. */
#ifndef EPLB_PLACEMENT_H
#define EPLB_PLACEMENT_H

#include <stdbool.h>

#include <eplb/status.h>
#include <eplb/topology.h>

EPLB_BEGIN_DECLS

typedef struct eplb_placement eplb_placement;

/* Creates a placement from its slots. Every id must be -1 or 0 .. E-1; nothing else is demanded here, so
 * that a broken placement can be held and described (see eplb_placement_check). The topology is copied.
 * Errors: INVALID (layer, slot, value), MEMORY. O(L (S + E)). */
EPLB_API eplb_status eplb_placement_create(eplb_placement **placement, const eplb_topology *topology,
                                           int32_t num_layers, int32_t num_experts,
                                           const int32_t *physical_to_logical,
                                           const eplb_allocator *allocator, eplb_error *error);
/* The start layout that engine loaders fill: slot p holds expert p mod E on every layer (the redundant slots
 * repeat experts 0, 1, ...); slots of dead ranks are empty and do not count. Errors: INFEASIBLE (fewer live
 * slots than experts), MEMORY. */
EPLB_API eplb_status eplb_placement_create_initial(eplb_placement **placement, const eplb_topology *topology,
                                                   int32_t num_layers, int32_t num_experts,
                                                   const eplb_allocator *allocator, eplb_error *error);
/* Deep copy. Errors: MEMORY. */
EPLB_API eplb_status eplb_placement_copy(eplb_placement **copy, const eplb_placement *placement,
                                         const eplb_allocator *allocator, eplb_error *error);
/* Releases it; NULL is fine. */
EPLB_API void eplb_placement_destroy(eplb_placement *placement);
/* True if both have equal topologies, sizes and slots. */
EPLB_API bool eplb_placement_equal(const eplb_placement *a, const eplb_placement *b);

typedef enum eplb_problem_kind {
    EPLB_PROBLEM_EXPERT_RANGE = 0,   /* a slot names an expert that does not exist */
    EPLB_PROBLEM_EXPERT_MISSING = 1, /* an expert has no replica on a live rank */
    EPLB_PROBLEM_DEAD_SLOT = 2,      /* a slot of a dead rank is not empty */
    EPLB_PROBLEM_DUPLICATE = 3,      /* a rank holds an expert twice although there are ranks without it */
    EPLB_PROBLEM_EMPTY_SLOT = 4      /* a live slot is empty: legal, but wasted */
} eplb_problem_kind;

/* One finding; rank, slot and expert are -1 where they do not apply. */
typedef struct eplb_problem {
    eplb_problem_kind kind;
    int32_t layer;
    int32_t expert;
    int32_t rank;
    int32_t slot;
} eplb_problem;

/* Called once per finding, in order of layer, kind, expert, slot; return false to stop. */
typedef bool (*eplb_problem_function)(void *context, const eplb_problem *problem);

/* Short name of a kind, for example "expert-missing". Static storage. */
EPLB_API const char *eplb_problem_name(eplb_problem_kind kind);

/* Checks raw slots [L, S] against every invariant and reports all that break it. Returns INVALID with the
 * first serious finding in `error` (EMPTY_SLOT is reported but is not serious), else OK. `report` may be
 * NULL. O(L (S + E)), allocates O(E + G). */
EPLB_API eplb_status eplb_placement_check(const eplb_topology *topology, int32_t num_layers,
                                          int32_t num_experts, const int32_t *physical_to_logical,
                                          eplb_problem_function report, void *context,
                                          const eplb_allocator *allocator, eplb_error *error);
/* The same on a placement: OK if it may be served from. */
EPLB_API eplb_status eplb_placement_is_valid(const eplb_placement *placement, eplb_error *error);

/* What it was made for (owned by the placement), then L, E and S. */
EPLB_API const eplb_topology *eplb_placement_topology(const eplb_placement *placement);
EPLB_API int32_t eplb_placement_num_layers(const eplb_placement *placement);
EPLB_API int32_t eplb_placement_num_experts(const eplb_placement *placement);
EPLB_API int32_t eplb_placement_num_slots(const eplb_placement *placement);
/* Largest replica_count over layers and experts: the least width of the dense form. */
EPLB_API int32_t eplb_placement_max_replicas(const eplb_placement *placement);
/* Arrays owned by the placement. */
EPLB_API const int32_t *eplb_placement_physical_to_logical(const eplb_placement *placement); /* [L, S] */
EPLB_API const int32_t *eplb_placement_replica_count(const eplb_placement *placement);       /* [L, E] */
EPLB_API const int32_t *eplb_placement_replica_first(const eplb_placement *placement);       /* [L, E + 1] */
EPLB_API const int32_t *eplb_placement_replica_slots(const eplb_placement *placement);       /* [L, S] */

/* Dense padded logical_to_physical [L, E, width], unused places -1; width >= max_replicas. Errors:
 * INVALID. */
EPLB_API eplb_status eplb_placement_dense_int32(const eplb_placement *placement, int32_t width, int32_t *out,
                                                eplb_error *error);
EPLB_API eplb_status eplb_placement_dense_int64(const eplb_placement *placement, int32_t width, int64_t *out,
                                                eplb_error *error);

/* What it takes to go from one placement to another, summed over layers. */
typedef struct eplb_move_count {
    int64_t slots;      /* slots whose expert changed, emptied ones included */
    int64_t received;   /* experts that a rank did not hold before, over layers and ranks */
    int64_t cross_node; /* of these, experts that live ranks held before, but none of the receiver's node */
    int64_t max_received_per_rank; /* largest number of received experts of one rank in one layer */
    int64_t lost; /* received experts that no live rank held before: they must come from storage */
} eplb_move_count;

/* Counts moves from `before` to `after` (same L and E). Health may differ: what a dead rank of `after` held
 * before does not count as a source. Ranks and slots may differ, too: rank g holds before what any of its
 * slots held; its slots are compared one by one, those that only `before` has not at all; ranks beyond the
 * last of `after` leave and are sources on the nodes they were on. per_layer may be NULL or an array [L].
 * Errors: INVALID (L, E), MEMORY. O(L (S + E)). */
EPLB_API eplb_status eplb_placement_count_moves(const eplb_placement *before, const eplb_placement *after,
                                                eplb_move_count *total, eplb_move_count *per_layer,
                                                const eplb_allocator *allocator, eplb_error *error);

EPLB_END_DECLS

#endif
