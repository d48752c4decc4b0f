/* What a routing keeps, shared by routing.c, which makes it and counts, and routing_rules.c, which fills the
 * slots. */
#ifndef TOOLS_ROUTING_STATE_H
#define TOOLS_ROUTING_STATE_H

#include "base/random.h"
#include "routing.h"

enum { ROUTING_MAX_BLOCKS = 32 };

struct routing {
    routing_params params;
    const eplb_topology *topology;
    int32_t num_layers, num_experts, num_slots, num_ranks, num_live;
    int32_t *live; /* [live] ranks */
    double *share; /* [L, S] over live replicas, sums to 1 */

    /* What rules keep from batch to batch. */
    eplb_router *router;
    int32_t *served;        /* quota, nearest: [L, S] counters of the shares */
    int32_t *position;      /* table: [G, L, E] places in the rows */
    eplb_resplit **resplit; /* nearest, activated, resplit: [L] */
    int32_t *own;           /* sglang-static: [G, L, E] */
    int32_t *repeat;        /* repeat: [L, E, row_limit] */
    int32_t *repeat_count;  /* repeat: [L, E] */
    random_state random;    /* sglang-dynamic */

    /* One layer of one batch: what a rule reads, and the slots it fills. */
    int64_t num_tokens;
    int32_t *ids;    /* [n, K] */
    int32_t *source; /* [n] rank of a token */
    int32_t *slots;  /* [n, K] */
    int64_t *quota;  /* [S] tokens of each slot, where the rule plans the batch itself */
    bool has_quota;  /* it did */

    /* Scratch of the rules. */
    int64_t *counts;       /* [G, E] */
    int64_t *expert_count; /* [E] */
    int64_t *part;         /* [G, S] */
    int32_t *expert_slot;  /* [E] */
    int32_t *running;      /* [E] */
    int32_t *row;          /* [n K] */
    int32_t *row_start;    /* [E] */
    int32_t *row_quota;    /* [S] */
    int32_t *row_served;   /* [S] */

    /* Totals. */
    int64_t tokens, batches, pairs;
    double *planned_slot;    /* [L, S] */
    int64_t *delivered_slot; /* [L, S] */
    double *planned;         /* [L, G] */
    int64_t *delivered;      /* [L, G] */
    double *activated;       /* [L] sums */
    int64_t *batch_slot;     /* [S] of the layer at hand, as the next two */
    double *rank_load;       /* [G] */
    int32_t *rank_activated; /* [G] */
    double max_deviation, imbalance_sum, imbalance_worst, seconds;
    eplb_traffic traffic;

    /* All arrays above, to be freed. */
    void *blocks[ROUTING_MAX_BLOCKS];
    int num_blocks;
    bool no_memory; /* one of them could not be had */
};

/* Fills self->slots for one layer of the batch at hand, by the routing's rule; with a rule that plans the
 * batch itself also self->quota. */
eplb_status routing_select(routing *self, int32_t layer, eplb_error *error);

/* First token of live rank number n: blocks of equal size. */
static inline int64_t routing_block_start(const routing *self, int32_t n)
{
    return self->num_tokens * n / self->num_live;
}

#endif
