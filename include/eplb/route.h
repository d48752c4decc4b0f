/* Routing: from a placement and shares to tables that deliver them, and splits of one batch.
 *
 * Three groups. Router: tables per layer, published so that readers see the old or the new one. Splits of
 * known counts: re-split, decode assignment, shared-expert levelling. Measures: repeat tables, traffic.
 * Selection itself is in eplb/route_select.h. What each rule guarantees, and for which engine it is:
 * docs/routing.md. */
#ifndef EPLB_ROUTE_H
#define EPLB_ROUTE_H

#include <stdbool.h>

#include <eplb/load.h>
#include <eplb/placement.h>
#include <eplb/route_select.h>
#include <eplb/status.h>
#include <eplb/topology.h>

EPLB_BEGIN_DECLS

/* --- router: tables ---------------------------------------------------------------------------------- */

typedef struct eplb_router eplb_router;

/* What the rows of a table hold. */
typedef enum eplb_route_rule {
    EPLB_ROUTE_QUOTA = 0,  /* every source splits an expert's tokens by the shares */
    EPLB_ROUTE_NEAREST = 1 /* the shares are kept over all sources together, and each source gets its own
                              rank's part first, then its node's: needs a source rank */
} eplb_route_rule;

typedef struct eplb_router_params {
    size_t size;
    const eplb_topology *topology; /* copied */
    int32_t num_layers;
    int32_t num_experts;
    eplb_route_rule rule; /* default QUOTA */
    int32_t source_rank;  /* rank whose tokens are routed, or -1 (default): one table for all */
    int32_t row_limit;    /* longest row of one expert, 1 .. EPLB_MAX_ROW; default 256. Longer rows follow the
                             shares more closely: what is served is within 1 / row_limit of what is asked for */
} eplb_router_params;

#define EPLB_MAX_ROW 65536

/* Defaults as written above; the topology and the sizes must be set. */
EPLB_API void eplb_router_params_init(eplb_router_params *params, size_t size);

/* Creates a router with room for two tables per layer. Tables are empty (every selection gives -1) until the
 * first update. Errors: INVALID, MEMORY. */
EPLB_API eplb_status eplb_router_create(eplb_router **router, const eplb_router_params *params,
                                        const eplb_allocator *allocator, eplb_error *error);
/* Releases it; NULL is fine. No reader may hold a table. */
EPLB_API void eplb_router_destroy(eplb_router *router);
/* True if every current table is whole: offsets inside the block, rows of live slots only. O(tables). No
 * update may run meanwhile. */
EPLB_API bool eplb_router_is_valid(const eplb_router *router);

/* Replaces the tables of layers first_layer .. first_layer + num_layers - 1 by those of `placement` (same
 * topology sizes; its health counts: a slot of a dead rank is never selected). shares [L, S] of all layers or
 * NULL: equal. sources: tokens by source rank, [G, L, E] (windows are source ranks), or NULL: every live rank
 * sends the same; used by NEAREST. All is checked and built before the first layer is published; each layer
 * is then published at once, and its epoch grows by one. One thread may update at a time, while any number
 * read. Blocks stay where they are: a layer alternates between two fixed addresses. Errors: INVALID (an
 * expert without a live replica: layer and expert; shares that are negative, not finite, or zero for all live
 * replicas), BUSY (a reader still holds the table before the last one; nothing was changed: call again after
 * that reader's batch, after the next step, say), MEMORY. O(S + sum of rows * replicas) per layer. */
EPLB_API eplb_status eplb_router_update(eplb_router *router, int32_t first_layer, int32_t num_layers,
                                        const eplb_placement *placement, const double *shares,
                                        const eplb_load *sources, eplb_error *error);

/* The same for one layer, from whole tokens per slot instead of shares: quota [S] of a batch, as
 * eplb_resplit_solve, one source's row of eplb_resplit_by_source, or eplb_resplit_activate (an expert's
 * tokens at its slot) give it. An expert whose quotas sum to at most row_limit gets a row of exactly these
 * quotas: with counters at 0 the batch is delivered exactly, and every prefix to less than a token. A longer
 * one is rounded to row_limit places (eplb_router_worst_error tells by how much); one without tokens is split
 * equally. Errors: as eplb_router_update; INVALID: a negative quota, tokens for a slot without a live
 * replica, a sum beyond int64. */
EPLB_API eplb_status eplb_router_update_quota(eplb_router *router, int32_t layer,
                                              const eplb_placement *placement, const int64_t *quota,
                                              eplb_error *error);

/* The current block of a layer (eplb_route_table_at reads it), kept unchanged until it is released. Two
 * atomic operations, no lock; call once per batch, not per token. Any thread. `epoch` may be NULL. */
EPLB_API const int32_t *eplb_router_acquire(eplb_router *router, int32_t layer, uint64_t *epoch);
EPLB_API void eplb_router_release(eplb_router *router, int32_t layer, const int32_t *block);
/* int32 in a block of this router (all layers alike), and a consistent copy into the caller's buffer of that
 * length: for device memory at a fixed address. */
EPLB_API int64_t eplb_router_block_length(const eplb_router *router);
EPLB_API void eplb_router_copy_block(eplb_router *router, int32_t layer, int32_t *block);
/* Largest difference between a share that was asked for and the one the rows serve, over all layers (0 ..
 * 1). */
EPLB_API double eplb_router_worst_error(const eplb_router *router);

/* Routes ids [count] through a table by eplb_select_next; slots [count] receives slots. position [E] are the
 * counters of this source and layer. No allocation, no lock. O(count). */
EPLB_API void eplb_route_ids(const int32_t *block, int32_t *position, const int32_t *ids, int64_t count,
                             int32_t *slots);
/* Sets the counters of a source to a start that differs from rank to rank: the first tokens of ranks 0 .. n-1
 * then follow the shares to within one token as well. From such a start a prefix is within two. */
EPLB_API void eplb_route_start(const int32_t *block, int32_t rank, int32_t *position);

/* --- rows and repeat tables -------------------------------------------------------------------------- */

/* Writes the chairman sequence of integer quotas: row[length], length = sum of quota[count] <= EPLB_MAX_ROW,
 * holds 0 .. count-1 so that after n entries each i has appeared within less than 1 of n * quota[i] / length
 * (Tijdeman 1980). scratch: count int32. O(length * count). */
EPLB_API void eplb_route_row(const int32_t *quota, int32_t count, int32_t *row, int32_t *scratch);

/* Repeat tables: weighted shares for an engine that picks table[e][x mod count[e]]. For every layer and
 * expert chooses the number of entries, at most `width`, that rounds the shares best, and lists each live
 * slot that often, evenly interleaved. table [L, E, width] is padded with -1; count [L, E]. shares [L, S].
 * *worst_error (may be NULL) is the largest |served share - share|. Errors: INVALID (as eplb_router_update;
 * width < 1), MEMORY. O(L E width replicas). */
EPLB_API eplb_status eplb_repeat_table_int32(const eplb_placement *placement, const double *shares,
                                             int32_t width, int32_t *table, int32_t *count,
                                             double *worst_error, const eplb_allocator *allocator,
                                             eplb_error *error);
EPLB_API eplb_status eplb_repeat_table_int64(const eplb_placement *placement, const double *shares,
                                             int32_t width, int64_t *table, int64_t *count,
                                             double *worst_error, const eplb_allocator *allocator,
                                             eplb_error *error);

/* SGLang's `static` table of every source rank, own [G, L, E]: its own replica, else the first of the same
 * node when the node has some but not all, else shared out evenly at random (Python's Mersenne Twister, seed
 * 42). -1 where an expert has no live replica. Errors: MEMORY. */
EPLB_API eplb_status eplb_sglang_static(const eplb_placement *placement, int32_t *own,
                                        const eplb_allocator *allocator, eplb_error *error);

/* --- re-split: the exact split of one batch ---------------------------------------------------------- */

typedef struct eplb_resplit eplb_resplit;

/* Prepares layer `layer` of a placement (live ranks and slots only). Everything a solve needs is allocated
 * here: solves never allocate. One thread per object. Errors: INVALID, MEMORY. O(S + E). */
EPLB_API eplb_status eplb_resplit_create(eplb_resplit **resplit, const eplb_placement *placement,
                                         int32_t layer, const eplb_allocator *allocator, eplb_error *error);
/* Releases it; NULL is fine. */
EPLB_API void eplb_resplit_destroy(eplb_resplit *resplit);
/* True if the object is whole. NULL is not. O(S). */
EPLB_API bool eplb_resplit_is_valid(const eplb_resplit *resplit);

/* How a solve went. */
typedef struct eplb_resplit_result {
    int64_t max_load;    /* tokens of the rank where load / speed is largest, ... */
    int64_t max_speed;   /* ... and its speed; 1 when all live ranks have the same, whatever it is */
    int64_t bound_load;  /* the certificate: tokens of experts that live only on the tight ranks, ... */
    int64_t bound_speed; /* ... and the speed of those ranks, each counted as 1 when all have the same:
                            max_load / max_speed is at least bound_load / bound_speed for any split */
    int64_t cross_rank;  /* solves with sources: tokens that leave their rank, and their node */
    int64_t cross_node;
} eplb_resplit_result;

/* Tokens per slot, quota [S], that minimise the largest rank load (load / speed) for the counts load [E]:
 * exactly, in whole tokens: ceil(bound_load / bound_speed) with equal speeds. `warm`: start from the last
 * solve of this object; the optimum is the same, and so is the time, about: a fresh start is as good. Errors:
 * INVALID (negative; tokens for an expert without a live replica), OVERFLOW. About 2 microseconds for 256
 * experts, 32 spare slots, 32 ranks. */
EPLB_API eplb_status eplb_resplit_solve(eplb_resplit *resplit, const int64_t *load, bool warm, int64_t *quota,
                                        eplb_resplit_result *result, eplb_error *error);
/* The same for counts by source rank, source_load [G, E]; among all splits with the least largest rank load
 * one of least cost, where a token that leaves its rank costs 1 and one that leaves its node 4. Minimum cost
 * flow. */
EPLB_API eplb_status eplb_resplit_solve_local(eplb_resplit *resplit, const int64_t *source_load,
                                              int64_t *quota, eplb_resplit_result *result, eplb_error *error);
/* Divides quotas among the sources, own rank first, then own node, then the rest: part [G, S] tokens of each
 * source to each slot. Rows sum to source_load (when quota sums to it, else INVALID), columns to quota. */
EPLB_API eplb_status eplb_resplit_by_source(eplb_resplit *resplit, const int64_t *source_load,
                                            const int64_t *quota, int64_t *part, eplb_error *error);
/* The tight set of the last solve, in the caller's array: 1 for experts [E] (ranks [G]) in it. */
EPLB_API void eplb_resplit_tight_experts(const eplb_resplit *resplit, uint8_t *tight);
EPLB_API void eplb_resplit_tight_ranks(const eplb_resplit *resplit, uint8_t *tight);

/* LPLB's answer to the same question, for comparison: the same linear programme, `steps` affine scaling steps
 * in single precision (5 there), the same acceptance test, and 0.5 for every share when it fails. share [S]
 * is each slot's fraction of its expert's tokens. *accepted (may be NULL) tells whether the test passed. */
EPLB_API eplb_status eplb_resplit_lplb(eplb_resplit *resplit, const int64_t *load, int32_t steps,
                                       double *share, bool *accepted, eplb_error *error);

/* Decode: one replica for every active expert (tokens [E] > 0), so that the largest number of activated
 * replicas per rank is least, exactly; then evener tokens by exchanges that keep it. slot [E]: the replica,
 * -1 for idle experts. *max_activated (may be NULL) is that least number. Speeds play no part. */
EPLB_API eplb_status eplb_resplit_activate(eplb_resplit *resplit, const int64_t *tokens, int32_t *slot,
                                           int32_t *max_activated, eplb_error *error);

/* --- shared expert ----------------------------------------------------------------------------------- */

/* Where each token's shared expert runs, when every rank can run it. */
typedef struct eplb_shared_params {
    size_t size;
    int64_t batch_floor;     /* sources with fewer tokens keep theirs; default 64 */
    int32_t price_per_mille; /* thousandths of a token off the largest rank load that each remote token must
                                save; 0 (default): level as far as it goes; above 1000: nothing moves */
} eplb_shared_params;

/* Defaults as written above. */
EPLB_API void eplb_shared_params_init(eplb_shared_params *params, size_t size);

/* Global counts: routed [G] token-expert pairs already bound for each rank, tokens [G] tokens that start
 * there. part [G, G]: shared-expert tokens of source s that run on rank g, so that the largest routed +
 * shared load is least at that price; sources keep what they can, then their node. A dead rank must have no
 * tokens and gets none. Exact. Errors: INVALID, OVERFLOW, MEMORY. O(G^2). */
EPLB_API eplb_status eplb_shared_level(const eplb_topology *topology, const int64_t *routed,
                                       const int64_t *tokens, const eplb_shared_params *params, int64_t *part,
                                       const eplb_allocator *allocator, eplb_error *error);
/* Own counts only, without communication: routed [G] pairs that live rank `source` sends to each rank,
 * `tokens` of its own. part [G]: levels its own traffic; among equals the ranks behind the source come first,
 * so that sources that see the same do not meet on the same rank. Errors: as above. O(G log tokens). */
EPLB_API eplb_status eplb_shared_level_own(const eplb_topology *topology, int32_t source,
                                           const int64_t *routed, int64_t tokens,
                                           const eplb_shared_params *params, int64_t *part,
                                           const eplb_allocator *allocator, eplb_error *error);

/* --- traffic ----------------------------------------------------------------------------------------- */

/* What a dispatch sends, summed over tokens. A token goes to a rank once, however many of its slots are
 * there. */
typedef struct eplb_traffic {
    int64_t tokens;
    int64_t pairs;      /* choices with a slot */
    int64_t rank_sends; /* distinct ranks per token, summed; own rank included */
    int64_t node_sends; /* distinct nodes per token, summed; own node included */
    int64_t cross_rank; /* of rank_sends, to another rank */
    int64_t cross_node; /* of node_sends, to another node */
} eplb_traffic;

/* Adds tokens [N, K] of slots (-1: none) to *traffic and, unless NULL, to matrix [G, G] (from rank, to rank;
 * token copies). source [N] is each token's rank. Times bytes per token it is bytes. O(N K^2) without memory.
 * Errors: INVALID (slot or source out of range; nothing was added). */
EPLB_API eplb_status eplb_traffic_add(const eplb_topology *topology, const int32_t *slots, int64_t num_tokens,
                                      int32_t width, const int32_t *source, eplb_traffic *traffic,
                                      int64_t *matrix, eplb_error *error);

EPLB_END_DECLS

#endif
