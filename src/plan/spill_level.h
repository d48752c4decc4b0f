/* One assignment of groups to nodes at one level: what has to leave nodes, and what hosts can take. */
#ifndef PLAN_SPILL_LEVEL_H
#define PLAN_SPILL_LEVEL_H

#include "plan/layer.h"

/* A replica outside its home and the tokens it takes. */
typedef struct spill_piece {
    int32_t from; /* node */
    int32_t to;   /* node */
    double tokens;
} spill_piece;

/* A node: its ranks, and the loads of the experts at home there. */
typedef struct level_node {
    int32_t num_ranks; /* with slots */
    int32_t num_slots;
    double speed;
    double *host_speed;  /* [ranks + 1] of so many fastest ranks */
    int32_t *host_slots; /* [ranks + 1] of so many ranks with fewest slots */
    int32_t like;        /* the first node with such ranks */
    int32_t num_experts;
    double *load; /* [num_experts] ascending */
    double total;
    /* At the level looked at: */
    int32_t crowd; /* slots that its chunks lack; below 0: that are left */
    double need;   /* units to export, or 0 */
    double room;   /* units lacking, or 0 */
    double *take;  /* [ranks + 1] units that so many hosts take, whatever the room */
    double *chunk; /* [max_spill + 1] units that so many pieces export at most */
    /* Of the pieces chosen so far: */
    int32_t sent, hosts;
    double exported, imported;
} level_node;

/* Loads are whole numbers of units, about 2^50 in all, so that sums of them are exact in doubles. */
typedef struct spill_level {
    const layer_problem *problem;
    int32_t size;     /* experts of a group */
    int32_t shift;    /* bits of loads that are left out */
    double unit;      /* units of one that is left */
    double mean;      /* units per speed */
    double fastest;   /* speed of a rank */
    double rounding;  /* units that do not count */
    level_node *node; /* [N] */
    int32_t *scarce;  /* [N] spare slots that are kept for other ranks than hosts */
    int32_t *order;   /* [E] ascending load */
    double *rest;     /* [E + 2 S] chunks of hot experts */
    double *gain;     /* [max_spill] what the best hosts add, falling */
    int32_t num_gains;
    spill_piece *piece; /* [max_spill] */
    int32_t num_pieces;
} spill_level;

/* Reads ranks and loads; no groups yet. max_spill >= 1. False when memory is out. O(E log E + G^2 / N). */
bool spill_level_init(spill_level *work, const layer_problem *problem, arena *scratch);
/* Units of an expert. */
static inline double spill_level_load(const spill_level *work, int32_t expert)
{
    return (double)(work->problem->load[expert] >> work->shift) * work->unit;
}
/* Puts groups on nodes. O(E). */
void spill_level_read(spill_level *work, const int32_t *group_node);
/* Units above the level. O(N). */
double spill_level_excess(const spill_level *work, double level);
/* The least level from `low` to `high` that is not proved impossible, INFINITY if all are; *proved: no lower
 * one is possible. `strict`: with pieces chosen, in work->piece, as a placement needs them; that no lower
 * level has such is then not proved. Some 40 looks of O(N (ranks + max_spill) + hot experts). */
double spill_level_least(spill_level *work, double low, double high, bool strict, double *proved);

#endif
