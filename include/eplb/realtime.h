/* Real-time planning: replicas for one layer and one batch, in microseconds, between gate and dispatch.
 *
 * Masters stay where they are; every rank has a few spare slots that are filled anew for each batch. Given
 * the batch's tokens per expert, the planner decides which experts get a replica in which spare slot and how
 * many tokens each replica and each master serves, so that no rank has more than `target` times the mean,
 * with few replicas: each one is a weight transfer. The answer depends on its inputs alone: ranks may plan
 * independently.
 *
 * An eplb_realtime holds the fixed layout and buffers. Planning allocates nothing and makes no system call.
 * One thread at a time per object. */
#ifndef EPLB_REALTIME_H
#define EPLB_REALTIME_H

#include <eplb/status.h>

EPLB_BEGIN_DECLS

typedef struct eplb_realtime eplb_realtime;

typedef struct eplb_realtime_params {
    size_t size;
    int32_t num_experts;          /* E, 1 .. EPLB_MAX_EXPERTS */
    int32_t num_ranks;            /* G, 1 .. EPLB_MAX_RANKS */
    int32_t spare_slots_per_rank; /* 1 .. EPLB_MAX_SLOTS / G; default 2 */
    const int32_t *home_rank; /* [E] rank of each master; NULL: expert e lives on rank e * G / E. Read during
                                 creation only */
} eplb_realtime_params;

/* Defaults as written above. */
EPLB_API void eplb_realtime_params_init(eplb_realtime_params *params, size_t size);
/* Errors: INVALID (names the expert), MEMORY. O(E + G). The caller owns *realtime. */
EPLB_API eplb_status eplb_realtime_create(eplb_realtime **realtime, const eplb_realtime_params *params,
                                          const eplb_allocator *allocator, eplb_error *error);
/* Releases it; NULL is fine. */
EPLB_API void eplb_realtime_destroy(eplb_realtime *realtime);

/* What planning fills; the arrays are the caller's. */
typedef struct eplb_realtime_plan {
    int32_t *replica_expert; /* [G * spare] expert in each spare slot, rank by rank; -1 unused */
    int32_t *replica_tokens; /* [G * spare] tokens that the replica serves; 0 unused */
    int32_t *home_tokens;    /* [E] tokens that the master keeps */
    int32_t num_replicas;    /* spare slots used */
    int64_t max_rank_tokens; /* reached: the largest rank's tokens */
    int64_t total_tokens;    /* over all experts: the mean is total_tokens / G */
} eplb_realtime_plan;

/* Plans one batch: tokens[e] >= 0. target >= 1 is the largest rank over the mean to aim at, for
 * example 1.005; where the spare slots do not allow it, the least that is found. A rank never gets an expert
 * that it holds already, nor two replicas of one. Errors: INVALID (negative count, target below 1). O(E + (G
 * + replicas) log G). */
EPLB_API eplb_status eplb_realtime_plan_batch(eplb_realtime *realtime, const int32_t *tokens, double target,
                                              eplb_realtime_plan *plan, eplb_error *error);

EPLB_END_DECLS

#endif
