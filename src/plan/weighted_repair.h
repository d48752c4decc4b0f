/* Few moves from a given placement to a better one, with the best shares after each. */
#ifndef PLAN_WEIGHTED_REPAIR_H
#define PLAN_WEIGHTED_REPAIR_H

#include "plan/weighted.h"

/* Told the state before the first move and after each: experts received against the origin, imbalance
 * reached. */
typedef struct weighted_trail {
    void (*note)(void *context, int64_t received, double imbalance);
    void *context;
} weighted_trail;

typedef struct weighted_repair_limits {
    const int32_t *origin;         /* [S] what the ranks hold now: received experts are counted against it */
    const uint64_t *cut_off;       /* what they hold beside it, as in layer_problem, or NULL */
    const int32_t *node_of_expert; /* [E] the only node an expert may live on, or NULL */
    double goal;                   /* stop at this imbalance */
    int64_t max_moves;             /* received experts */
    const weighted_trail *trail;   /* or NULL */
} weighted_repair_limits;

typedef struct weighted_repair_result {
    double imbalance;
    int64_t received;
    int64_t flows; /* solved, at least */
} weighted_repair_result;

/* Starts from the slots of `answer`, which may lack experts or hold one twice on a rank; sets slots and
 * quotas. Lost experts are placed whatever max_moves says (the caller refuses too small a limit); other moves
 * stop at it. False when memory is out. */
bool weighted_repair(const layer_problem *problem, const weighted_repair_limits *limits, arena *scratch,
                     layer_answer *answer, weighted_repair_result *result);

#endif
