/* Sends recorded tokens through a rule: the work behind `eplb route`.
 *
 * The tokens of a batch are divided among the live ranks in blocks, as data parallelism does; every rank
 * routes its own with its own counters. Counts are token-expert pairs. */
#ifndef TOOLS_ROUTING_H
#define TOOLS_ROUTING_H

#include <eplb/metrics.h>
#include <eplb/placement.h>
#include <eplb/route.h>

/* In the order of ROUTING_RULE_WORDS. */
typedef enum routing_rule {
    ROUTING_QUOTA,
    ROUTING_TABLE,
    ROUTING_NEAREST,
    ROUTING_INVARIANT,
    ROUTING_ACTIVATED,
    ROUTING_RESPLIT,
    ROUTING_VLLM,
    ROUTING_SGLANG_STATIC,
    ROUTING_SGLANG_DYNAMIC,
    ROUTING_TRTLLM,
    ROUTING_REPEAT
} routing_rule;

#define ROUTING_RULE_WORDS                                                                                   \
    "quota|table|nearest|invariant|activated|resplit|vllm|sglang-static|sglang-dynamic|trtllm|repeat"

typedef struct routing_params {
    const eplb_placement *placement;
    const double *shares; /* [L, S] or NULL: equal */
    routing_rule rule;
    int32_t width;      /* K */
    int32_t max_tokens; /* of a batch */
    int32_t row_limit;
} routing_params;

/* What a run found; arrays are the routing's. */
typedef struct routing_result {
    int64_t tokens;
    int64_t batches;
    int64_t pairs;            /* over all layers; choices of -1 do not count */
    const double *planned;    /* [L, G] */
    const int64_t *delivered; /* [L, G] */
    double max_deviation;     /* largest |delivered - planned| of a slot's running totals after a batch */
    double imbalance_mean;    /* delivered rank load, largest / mean, over batches and layers */
    double imbalance_worst;
    int64_t cross_rank; /* copies of tokens sent to another rank, and to another node, over all layers */
    int64_t cross_node;
    const double *activated; /* [L] largest number of activated replicas of a rank, mean over batches */
    double seconds;          /* in the rule, all that it needs per batch included */
} routing_result;

typedef struct routing routing;

eplb_status routing_create(routing **out, const routing_params *params, eplb_error *error);
void routing_destroy(routing *self);
/* Routes one batch, ids [num_tokens, L, K]. Errors: INVALID (as the rule's), MEMORY. */
eplb_status routing_batch(routing *self, const int32_t *ids, int64_t num_tokens, eplb_error *error);
void routing_finish(const routing *self, routing_result *result);

#endif
