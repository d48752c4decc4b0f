/* Live ranks renumbered densely, so that planning algorithms never meet health. */
#ifndef PLAN_LIVE_RANKS_H
#define PLAN_LIVE_RANKS_H

#include <stdbool.h>

#include <eplb/topology.h>

#include "base/memory.h"

typedef struct live_ranks {
    int32_t num_ranks;         /* live */
    int32_t num_slots;         /* on live ranks */
    int32_t num_nodes;         /* all, as in the topology */
    int32_t num_serving_nodes; /* with a live slot */
    int32_t uniform_slots;
    bool uniform_speed;
    bool all; /* nobody is dead: numbers are those of the topology */
    int64_t total_speed;
    int32_t *rank;       /* [num_ranks] number in the topology */
    int32_t *slot;       /* [num_slots] number in the topology */
    int32_t *first_slot; /* [num_ranks + 1] */
    int32_t *slot_rank;  /* [num_slots] */
    int32_t *rank_node;  /* [num_ranks] */
    int32_t *rank_speed; /* [num_ranks] */
} live_ranks;

/* Fills *live with arrays from `memory`. Errors: MEMORY. O(G + S). */
eplb_status live_ranks_create(live_ranks *live, const eplb_topology *topology, arena *memory,
                              eplb_error *error);

#endif
