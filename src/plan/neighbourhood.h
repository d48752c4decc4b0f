/* The best single change of a layout: every swap with the hottest rank and every change of counts that helps
 * it.
 *
 * What is made small is the excess over a goal: the sum over ranks of max(0, load - goal)^2 (in units of
 * time, so that slow ranks count right). Ranks under the goal do not matter, so no change is wasted on them;
 * the square makes it worth while to work on several hot ranks in turn. */
#ifndef PLAN_NEIGHBOURHOOD_H
#define PLAN_NEIGHBOURHOOD_H

#include "plan/layout.h"

typedef enum change_kind {
    CHANGE_NONE = 0,
    CHANGE_SWAP = 1,    /* slot and other exchange their contents */
    CHANGE_REASSIGN = 2 /* slot goes to expert */
} change_kind;

typedef struct change {
    change_kind kind;
    int32_t slot;
    int32_t other;
    int32_t expert;
    int32_t price; /* received experts it adds to those so far, -2 .. 2; 0 without `home` */
    double gain;   /* drop of the excess; may be negative for the best change of a local optimum */
    double score;  /* what changes are compared by: gain, or gain per received expert */
} change;

typedef struct neighbourhood {
    layout *seats;
    double goal;      /* time per unit of speed that no rank shall exceed */
    double *limit;    /* [G] goal * speed */
    double *weight;   /* [G] 1 / speed^2 */
    double *excess;   /* [G] max(0, load - limit)^2 * weight, at the last look */
    double total;     /* sum of excess */
    double *speed;    /* [G] */
    double *relief;   /* [E] drop of excess at the holders if the expert gets one more replica */
    int32_t *touched; /* [E] experts whose relief is not 0 */
    int32_t num_touched;

    /* Changes refused for now: slots until step slot_free[p], experts that may not gain or lose a replica. */
    int64_t step;
    int64_t *slot_free; /* [S] */
    int64_t *gain_free; /* [E] */
    int64_t *lose_free; /* [E] */

    const uint64_t *home; /* [G, words] what ranks held before: to have it again is free; NULL: all free */
    int64_t purse;        /* received experts that may be added; counts with `home` only */
    const int32_t *rank_area;   /* [G] experts stay inside their area (a node); NULL: one area */
    const int32_t *expert_area; /* [E] area where an expert may get a replica; NULL with rank_area */
    int64_t looked;             /* changes looked at so far */
} neighbourhood;

eplb_status neighbourhood_init(neighbourhood *around, layout *seats, const layer_problem *problem,
                               arena *scratch, eplb_error *error);
/* Lifts all refusals: a new search does not depend on the one before. O(1). */
void neighbourhood_forget(neighbourhood *around);
void neighbourhood_goal(neighbourhood *around, double goal);
/* Recomputes the excess of every rank; returns the total. O(G). */
double neighbourhood_excess(neighbourhood *around);
/* The best change that concerns `hot`, a rank with excess, or, without prices, the first swap found that
 * leaves it and its partner under the goal; kind NONE if every change is refused. Call after
 * neighbourhood_excess. O(k S + k E) at most. */
change neighbourhood_best(neighbourhood *around, int32_t hot);
/* Makes the change. */
void neighbourhood_apply(neighbourhood *around, const change *step);

#endif
