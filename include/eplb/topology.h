/* Topology: the ranks of an expert-parallel group, their nodes, slots, health and speed.
 *
 * A topology is immutable after creation and may be read from any number of threads. Slots are numbered
 * rank by rank: rank g owns slots first_slot[g] .. first_slot[g + 1] - 1, dead ranks included, so that a
 * slot number never changes when a rank dies. */
#ifndef EPLB_TOPOLOGY_H
#define EPLB_TOPOLOGY_H

#include <stdbool.h>

#include <eplb/status.h>

EPLB_BEGIN_DECLS

typedef struct eplb_topology eplb_topology;

#define EPLB_MAX_SPEED 1000000

/* What a topology is made from. Arrays are read during creation only; each may be NULL for its default. */
typedef struct eplb_topology_params {
    size_t size;               /* sizeof(eplb_topology_params), set by the init function */
    int32_t num_ranks;         /* G, 1 .. EPLB_MAX_RANKS */
    int32_t num_nodes;         /* N, 1 .. G */
    int32_t slots_per_rank;    /* k, used where rank_slots is NULL */
    const int32_t *rank_slots; /* [G] slots of each rank, >= 0 */
    const int32_t *rank_node;  /* [G] node of each rank, 0 .. N-1; default: rank g is on node g * N / G */
    const uint8_t *rank_alive; /* [G] 1 alive, 0 dead; default: all alive */
    const int32_t *rank_speed; /* [G] relative speed, 1 .. EPLB_MAX_SPEED; default: all 1. Ratios count */
} eplb_topology_params;

/* Sets defaults: one node, no arrays. `size` is sizeof(eplb_topology_params) as the caller sees it. */
EPLB_API void eplb_topology_params_init(eplb_topology_params *params, size_t size);

/* Creates a topology. Errors: INVALID (names rank and value), MEMORY. O(G + S). The caller owns *topology. */
EPLB_API eplb_status eplb_topology_create(eplb_topology **topology, const eplb_topology_params *params,
                                          const eplb_allocator *allocator, eplb_error *error);
/* Deep copy. Errors: MEMORY. */
EPLB_API eplb_status eplb_topology_copy(eplb_topology **copy, const eplb_topology *topology,
                                        const eplb_allocator *allocator, eplb_error *error);
/* Copy in which exactly the listed ranks are dead, whatever they were before. Errors: INVALID, MEMORY. */
EPLB_API eplb_status eplb_topology_with_dead(eplb_topology **copy, const eplb_topology *topology,
                                             const int32_t *dead_ranks, int32_t num_dead,
                                             const eplb_allocator *allocator, eplb_error *error);
/* Releases it; NULL is fine. */
EPLB_API void eplb_topology_destroy(eplb_topology *topology);
/* True if the object is whole (its own invariants hold). NULL is not. O(G + S). */
EPLB_API bool eplb_topology_is_valid(const eplb_topology *topology);
/* True if both describe the same ranks, nodes, slots, health and speeds. */
EPLB_API bool eplb_topology_equal(const eplb_topology *a, const eplb_topology *b);

EPLB_API int32_t eplb_topology_num_ranks(const eplb_topology *topology);      /* G */
EPLB_API int32_t eplb_topology_num_nodes(const eplb_topology *topology);      /* N */
EPLB_API int32_t eplb_topology_num_slots(const eplb_topology *topology);      /* S, dead ranks included */
EPLB_API int32_t eplb_topology_num_live_ranks(const eplb_topology *topology); /* ranks alive */
EPLB_API int32_t eplb_topology_num_live_slots(const eplb_topology *topology); /* slots on live ranks */
/* Arrays owned by the topology, valid until it is destroyed. */
EPLB_API const int32_t *eplb_topology_first_slot(const eplb_topology *topology); /* [G + 1] */
EPLB_API const int32_t *eplb_topology_slot_rank(const eplb_topology *topology);  /* [S] */
EPLB_API const int32_t *eplb_topology_rank_node(const eplb_topology *topology);  /* [G] */
EPLB_API const uint8_t *eplb_topology_rank_alive(const eplb_topology *topology); /* [G] */
EPLB_API const int32_t *eplb_topology_rank_speed(const eplb_topology *topology); /* [G] */
/* k if every rank has the same number of slots, else -1. */
EPLB_API int32_t eplb_topology_uniform_slots(const eplb_topology *topology);

EPLB_END_DECLS

#endif
