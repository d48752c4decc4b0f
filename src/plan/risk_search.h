/* Improving a placement under risk: no rank should carry much in any window that may come. */
#ifndef PLAN_RISK_SEARCH_H
#define PLAN_RISK_SEARCH_H

#include "plan/layout.h"
#include "plan/window_risk.h"

/* What is minimised: the sum over ranks of (target-relative mean + caution * standard deviation)^power, where
 * an expert with r replicas loads each of its ranks with a fraction 1 / r, or, with `floating` < 1, with
 * floating / r: the part that stays where a later split may move the rest. A later split moves no more than
 * other ranks have room for: a replica with more than `room` of a rank's mean leaves the excess where it
 * is. */
typedef struct risk_aim {
    double caution;
    double floating;
    double room; /* 0: as much as there is */
    int32_t power;
} risk_aim;

typedef struct risk_search {
    const layer_problem *problem;
    layout *seats;
    risk_aim aim;

    /* Limits; set after risk_search_init, before use. */
    const int32_t *rank_area;   /* [G] or NULL: replicas may be anywhere */
    const int32_t *expert_area; /* [E] */
    int32_t max_outside;        /* replicas allowed outside their expert's area */
    const uint64_t *home;       /* [G, words] what ranks hold now, or NULL: moves are free */
    int64_t purse;              /* received experts allowed, with `home` */
    double until;               /* annealing ends when so much of the layer's time is used; 1 at first */

    int32_t outside;
    int64_t received;

    int32_t width;    /* of a spread */
    int32_t stride;   /* width + 4: spread, mean, noise */
    float *whole;     /* [E, stride] what a rank carries with all of the expert */
    float *replica;   /* [E, stride] with one replica at the present count */
    float *carried;   /* [G, stride] */
    double *factor;   /* [G] total speed / speed */
    double *cost;     /* [G] */
    double total;     /* sum of cost */
    int32_t *touched; /* [2 G + 2] ranks of the change looked at */
    double *changed;  /* their cost after it */
    int32_t num_touched;
    int64_t made; /* changes since sums were last made anew */
} risk_search;

/* Takes memory; `risk` is read here only. Errors: MEMORY. O((E + G) width). */
eplb_status risk_search_init(risk_search *search, const layer_problem *problem, layout *seats,
                             const window_risk *risk, const risk_aim *aim, arena *scratch, eplb_error *error);
/* Reads the layout after layout_set or other changes from outside. O(S width + G E / 64). */
void risk_search_read(risk_search *search);
/* Looks at `steps` random changes: swaps of two slots and changes of counts. Worse ones are taken with a
 * probability that falls to nothing with the steps, or with the time if that is short; at first an excess of
 * `heat` times the total has one in e. Limits are kept. O(steps width). */
void risk_search_anneal(risk_search *search, int64_t steps, double heat);
/* Makes the best change around the riskiest ranks per received expert, within the purse; false: none
 * helps. */
bool risk_search_improve(risk_search *search);

#endif
