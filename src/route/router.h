/* The router object, shared by router.c, which publishes tables, and router_table.c, which builds them. */
#ifndef ROUTE_ROUTER_H
#define ROUTE_ROUTER_H

#include <stdatomic.h>

#include <eplb/route.h>

typedef struct router_layer {
    atomic_int active; /* block that readers take */
    atomic_int readers[2];
    int32_t *block[2];
    uint64_t epoch;
    double error;       /* of the current table */
    double built_error; /* of the table being built */
} router_layer;

struct eplb_router {
    eplb_allocator allocator;
    eplb_topology *topology;
    int32_t num_layers;
    int32_t num_experts;
    eplb_route_rule rule;
    int32_t source_rank;
    int32_t row_limit;
    int64_t row_capacity;
    int64_t block_length;
    router_layer *layers;
    int32_t *blocks;
    /* Scratch of the updating thread. */
    bool wants_quota; /* rows of whole quotas, where they fit */
    double *share;    /* [S] */
    int64_t *weight;  /* [S] */
    int64_t *part;    /* [S] */
    int64_t *left;    /* [S] */
    int64_t *supply;  /* [G] */
    int32_t *quota;   /* [S] */
    int32_t *served;  /* [S] */
    int32_t *rank;    /* [S] */
};

/* What a layer's table is made of. */
typedef struct table_input {
    const eplb_placement *placement;
    const double *shares;     /* [S] or NULL: equal */
    const int64_t *quota;     /* [S] instead of shares, or NULL */
    const eplb_load *sources; /* or NULL */
} table_input;

/* Fills the block of a layer that nobody reads. Errors: INVALID (layer and expert). O(S + sum of rows *
 * replicas). */
eplb_status router_build_table(eplb_router *router, int32_t layer, const table_input *input,
                               eplb_error *error);

#endif
