/* One layer planned for the equal split: what equal.c (from nothing) and equal_repair.c (from a current
 * placement) share. */
#ifndef PLAN_EQUAL_PLAN_H
#define PLAN_EQUAL_PLAN_H

#include "plan/equal_bounds.h"
#include "plan/equal_start.h"
#include "plan/neighbourhood.h"

typedef struct equal_plan {
    const layer_problem *problem;
    replica_work work;
    layout seats;
    neighbourhood around;
    equal_bounds bounds;
    equal_areas areas;
    bool groups_fit; /* false: groups do not fit on nodes and are not looked at */
    double floor;    /* least time of the hottest rank with these areas */
    double goal;     /* good enough */
    int64_t work_limit;

    int32_t *best; /* [S] best placement so far */
    double hottest;
    double start;  /* of the greedy start */
    int64_t moves; /* received experts of best */
    double hair;   /* what more moves must gain at least; 0 where moves are limited or a target is set */
    const char *reason;
} equal_plan;

/* Takes memory and finds the bounds. Errors: MEMORY. */
eplb_status equal_plan_init(equal_plan *plan, const layer_problem *problem, arena *scratch,
                            eplb_error *error);
/* Sets areas, floor and goal: groups go to nodes anew, or stay where the current placement has them. Errors:
 * MEMORY. */
eplb_status equal_plan_aim(equal_plan *plan, bool as_now, arena *scratch, eplb_error *error);
/* True if no replica is outside its expert's area; there must be areas. */
bool equal_plan_is_inside(const equal_plan *plan, const int32_t *expert);
/* Takes the layout as best if it is better by more than rounding, or as good with fewer moves. */
void equal_plan_keep(equal_plan *plan, double hottest, int64_t moves, const char *reason);
/* Start and search from nothing; the layout has the result. Errors: MEMORY. */
eplb_status equal_plan_anew(equal_plan *plan, double *hottest, arena *scratch, eplb_error *error);
/* The best from the current placement. Errors: INFEASIBLE, MEMORY. */
eplb_status equal_plan_repair(equal_plan *plan, arena *scratch, eplb_error *error);

#endif
