/* The re-split object: one layer's live replicas as a graph, with all scratch that its solves need. */
#ifndef ROUTE_RESPLIT_H
#define ROUTE_RESPLIT_H

#include <eplb/route.h>

#include "base/memory.h"
#include "plan/min_max_split.h"

/* Ranks are numbered densely (live ranks only) inside; slots and sources keep their public numbers. */
struct eplb_resplit {
    eplb_allocator allocator;
    eplb_topology *topology;
    int32_t layer;
    int32_t num_experts;
    int32_t num_slots;
    int32_t num_ranks;     /* G, dead ranks included */
    int32_t num_live;      /* live ranks */
    int32_t *dense_rank;   /* [G] number among the live ranks, or -1 */
    int32_t *live_rank;    /* [live] public number */
    int32_t *live_node;    /* [live] */
    int32_t *live_speed;   /* [live] */
    int32_t *first;        /* [E + 1] */
    int32_t *slot;         /* [replicas] */
    int32_t *replica_rank; /* [replicas] dense */
    int32_t *public_rank;  /* [replicas] */
    uint8_t *slot_live;    /* [S] 1: holds a live replica */
    min_max_graph graph;
    int64_t *quota;     /* [replicas] of the last solve */
    int64_t *rank_load; /* [live] */
    int64_t *load;      /* [E] scratch: column sums of counts by source */
    int64_t *supply;    /* [G] scratch */
    int64_t *left;      /* [replicas] scratch */
    uint8_t *tight;     /* [live] */
    bool solved;        /* quota holds a solve */
    arena scratch;
};

/* Checks counts and sums them: INVALID (negative; tokens without a live replica), OVERFLOW. */
eplb_status resplit_check_load(const eplb_resplit *resplit, const int64_t *load, eplb_error *error);

/* What tokens of one kind cost that are served elsewhere. A token that leaves its node leaves its rank as
 * well. */
#define COST_LEAVE_RANK 1
#define COST_LEAVE_NODE 3

/* Of all splits at the level that `solved` names, one of least cost: replaces resplit->quota and
 * resplit->rank_load. resplit->load holds the sums of source_load [G, E]. False when memory is out. */
bool local_split(eplb_resplit *resplit, const int64_t *source_load, const min_max_result *solved);
/* Tokens that leave their rank and their node under resplit->quota. */
void local_count(const eplb_resplit *resplit, const int64_t *source_load, int64_t *cross_rank,
                 int64_t *cross_node);

#endif
