/* One layer planned for the weighted split: what weighted.c (from nothing) and weighted_current.c (from a
 * current placement) share. */
#ifndef PLAN_WEIGHTED_PLAN_H
#define PLAN_WEIGHTED_PLAN_H

#include "plan/weighted.h"
#include "plan/weighted_nodes.h"

/* Below this a difference of imbalances is rounding. */
#define WEIGHTED_NEGLIGIBLE 1e-12

/* What is known of a plan from nothing. */
typedef struct weighted_fresh {
    double imbalance;
    bool node_limited;
    bool spilled;
    weighted_homes homes;
} weighted_fresh;

eplb_status weighted_memory(const layer_problem *problem, eplb_error *error);
/* Plans from nothing; answer->bound is what is proved. Errors: INFEASIBLE, MEMORY. */
eplb_status weighted_plan_fresh(const layer_problem *problem, arena *scratch, layer_answer *answer,
                                weighted_fresh *plan, eplb_error *error);
/* Best shares, and moves as far as they help: a plan from nothing may make any number of them. False when
 * memory is out. */
bool weighted_improve(const layer_problem *problem, double goal, int64_t max_moves, arena *scratch,
                      layer_answer *answer, double *imbalance);
/* Plans from problem->current. Errors: INFEASIBLE, MEMORY. */
eplb_status weighted_plan_current(const layer_problem *problem, arena *scratch, layer_answer *answer,
                                  eplb_error *error);

#endif
