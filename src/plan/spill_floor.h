/* The least level that a few replicas outside their group's node can reach: a proof, and where groups go. */
#ifndef PLAN_SPILL_FLOOR_H
#define PLAN_SPILL_FLOOR_H

#include "plan/spill_level.h"

enum { SPILL_HOMES = 16 };

/* Groups on nodes such that every expert has a slot at home. */
typedef struct spill_homes {
    int32_t *group_node; /* [groups] */
    double level;        /* no plan with these homes has a lower imbalance */
    double excess;       /* units that have to leave their node at that level */
} spill_homes;

typedef struct spill_floor {
    spill_level *levels;
    double level;      /* no plan has a lower imbalance; 1.0 where not all homes were looked at */
    int32_t num_homes; /* 0: groups do not fit */
    spill_homes homes[SPILL_HOMES]; /* the best, ascending level, then excess */
} spill_floor;

/* Looks at the assignments of groups to nodes; for equal shares if the problem has those. max_spill >= 1.
 * Errors: MEMORY. O(E) and some 40 looks (spill_level.h) for each, few of them to the end. */
eplb_status spill_floor_find(spill_floor *floor, const layer_problem *problem, arena *scratch,
                             eplb_error *error);
/* Pieces, in tokens, that bring the homes to the least level from `low` to `high`; INFINITY if there are
 * none. scarce[N]: spare slots that are kept for other ranks than hosts. */
double spill_floor_pieces(const spill_floor *floor, const spill_homes *homes, const int32_t *scarce,
                          double low, double high, spill_piece *pieces, int32_t *count);

#endif
