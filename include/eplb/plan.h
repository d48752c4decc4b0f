/* Plan: a placement, the shares its replicas serve, a certificate of how good it is, and the moves it costs.
 *
 * eplb_plan_create runs a policy. The answer depends on its inputs alone: the same bytes on every host,
 * compiler and number of threads (unless a wall-clock limit is asked for), so ranks may plan independently
 * and compare eplb_plan_hash. A plan is immutable; any number of threads may read it. */
#ifndef EPLB_PLAN_H
#define EPLB_PLAN_H

#include <stdbool.h>

#include <eplb/load.h>
#include <eplb/placement.h>
#include <eplb/status.h>
#include <eplb/topology.h>

EPLB_BEGIN_DECLS

typedef struct eplb_plan eplb_plan;

/* How an expert's tokens are divided among its replicas. */
typedef enum eplb_split {
    EPLB_SPLIT_EQUAL = 0,    /* each replica serves 1 / replica_count */
    EPLB_SPLIT_WEIGHTED = 1, /* each replica serves its share */
    EPLB_SPLIT_BATCH = 2     /* each batch is re-split exactly (eplb/route.h): the placement aims at that */
} eplb_split;

/* What a rank's time grows with: the sum over its replicas, each serving n tokens, of
 *     tokens * n + tiles * tile_tokens * ceil(n / tile_tokens) + activated * [n > 0]. */
typedef struct eplb_cost {
    int32_t tokens;      /* weight of plain tokens; default 1 */
    int32_t tiles;       /* weight of tokens rounded up to a tile; default 0 */
    int32_t activated;   /* weight of an activated replica, in tokens; default 0 */
    int32_t tile_tokens; /* tokens of a tile, >= 1; default 128 */
} eplb_cost;

/* Called now and then during planning with work done and total (same unit, monotone); return false to cancel.
 * With several threads calls are serialised. */
typedef bool (*eplb_progress_function)(void *context, int64_t done, int64_t total);

#define EPLB_UNLIMITED (-1)

typedef struct eplb_plan_params {
    size_t size;
    const char *policy; /* a name of eplb_policy_name; NULL means "auto" */
    eplb_split split;   /* default EQUAL */
    eplb_cost cost;
    int32_t num_groups; /* expert groups of node-limited routing; 0 or 1: none. Divides E, else refused. Fewer
                           than the nodes with live slots: the same as none */
    const eplb_placement *current; /* placement to start from, or NULL. Its ranks and slots may be more or
                                      fewer: rank g is rank g of the topology; what a rank holds in slots that
                                      it loses it can have back for free; ranks that join hold nothing, ranks
                                      that leave send what they hold before they go */
    int64_t max_moves_per_layer;   /* received experts per layer; EPLB_UNLIMITED */
    int64_t max_moves;             /* received experts over all layers; EPLB_UNLIMITED */
    double target_imbalance;       /* stop improving a layer at this imbalance, that of the sum or, where each
                                      window is balanced, their mean; 0: go on as far as it pays */
    int32_t max_spill;             /* replicas per layer allowed outside their group's node, with costs of
                                      tokens alone; default 0 */
    const eplb_load *sources;      /* tokens by source rank, [G, L, E] (its windows are the source ranks), or
                                      NULL: they start evenly on all ranks. Without `current`, nodes with like
                                      ranks trade contents for the fewest crossing tokens; replicas spill by
                                      them. Published policies keep their answers */
    int32_t num_threads;           /* 1 (default): none is started; the layers are divided among them */
    int64_t work_limit;            /* counted search steps per layer; 0: the policy's default */
    double time_limit_seconds;     /* wall clock for the whole plan, divided evenly over the layers; 0: none.
                                      With one, the answer depends on the clock */
    eplb_progress_function progress; /* or NULL */
    void *progress_context;
} eplb_plan_params;

/* Defaults as written above. */
EPLB_API void eplb_plan_params_init(eplb_plan_params *params, size_t size);

/* Plans every layer of `load` on `topology`. All S slots of the topology are used where the policy can. What
 * is asked for and the policy cannot follow is refused, never passed over. Errors: INVALID, OVERFLOW,
 * INFEASIBLE (lists the first experts without room), UNSUPPORTED (policy and reason), CANCELLED, SYSTEM,
 * MEMORY. On failure *plan is NULL and nothing is left behind. Complexity is the policy's
 * (docs/planning.md). */
EPLB_API eplb_status eplb_plan_create(eplb_plan **plan, const eplb_load *load, const eplb_topology *topology,
                                      const eplb_plan_params *params, const eplb_allocator *allocator,
                                      eplb_error *error);
/* Deep copy. Errors: MEMORY. */
EPLB_API eplb_status eplb_plan_copy(eplb_plan **copy, const eplb_plan *plan, const eplb_allocator *allocator,
                                    eplb_error *error);
/* Releases it; NULL is fine. */
EPLB_API void eplb_plan_destroy(eplb_plan *plan);
/* OK if the placement is valid, shares are in [0, 1] and sum to 1 over each expert's replicas, and the
 * certificate does not exceed what is reached. */
EPLB_API eplb_status eplb_plan_is_valid(const eplb_plan *plan, eplb_error *error);
/* Same placement, shares and split. */
EPLB_API bool eplb_plan_equal(const eplb_plan *a, const eplb_plan *b);

/* Registered policies, 0 .. count-1: name and one line of what it does. NULL past the end. Static storage. */
EPLB_API int32_t eplb_policy_count(void);
EPLB_API const char *eplb_policy_name(int32_t index);
EPLB_API const char *eplb_policy_summary(int32_t index);

/* Parts of a plan, owned by it. */
EPLB_API const eplb_placement *eplb_plan_placement(const eplb_plan *plan);
EPLB_API eplb_split eplb_plan_split(const eplb_plan *plan);
/* The policy that was asked for, and why the answer is what it is, in one line. */
EPLB_API const char *eplb_plan_policy(const eplb_plan *plan);
EPLB_API const char *eplb_plan_reason(const eplb_plan *plan);
/* [L, S] the fraction of its expert's tokens that a slot serves; 0 where it is empty. */
EPLB_API const double *eplb_plan_shares(const eplb_plan *plan);
/* [L] imbalance (eplb/metrics.h) on the summed load, and what is proved to be the least for this split. */
EPLB_API const double *eplb_plan_imbalance(const eplb_plan *plan);
EPLB_API const double *eplb_plan_lower_bound(const eplb_plan *plan);
EPLB_API int32_t eplb_plan_num_groups(const eplb_plan *plan);
/* Moves from params.current; all zero without one. */
EPLB_API eplb_move_count eplb_plan_moves(const eplb_plan *plan);
/* Replicas outside their group's node, over all layers. */
EPLB_API int64_t eplb_plan_spilled(const eplb_plan *plan);
/* Seconds the planner took (monotonic clock); not part of the hash. */
EPLB_API double eplb_plan_seconds(const eplb_plan *plan);
/* 64-bit hash of sizes, split, slots and, where the split is weighted, shares: equal plans have equal hashes
 * on every host. */
EPLB_API uint64_t eplb_plan_hash(const eplb_plan *plan);
/* The same hash of raw parts, for plans that come from a file: physical_to_logical [L, S]; shares [L, S],
 * or NULL where the split is not weighted. Nothing is checked. O(L S). */
EPLB_API uint64_t eplb_plan_hash_of(const eplb_topology *topology, int32_t num_layers, int32_t num_experts,
                                    eplb_split split, const int32_t *physical_to_logical,
                                    const double *shares);

EPLB_END_DECLS

#endif
