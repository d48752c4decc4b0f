/* Improving a placement for equal split: counts and places together. */
#ifndef PLAN_EQUAL_SEARCH_H
#define PLAN_EQUAL_SEARCH_H

#include "plan/neighbourhood.h"

typedef struct equal_search_limits {
    double floor;      /* proved: no placement has a hottest rank below this time */
    double goal;       /* good enough: stop at or below it */
    int64_t work;      /* changes to look at, at most */
    int64_t moves;     /* with around->home: received experts of the start */
    int64_t max_moves; /* with around->home: no more than so many at any time */
} equal_search_limits;

/* Changes around->seats until the goal or the limit is reached and leaves the best placement that was seen:
 * the one with the least hottest rank; the start counts. *hottest: its time. Errors: MEMORY, CANCELLED never
 * (a stop keeps what there is). */
eplb_status equal_search(neighbourhood *around, const layer_problem *problem,
                         const equal_search_limits *limits, double *hottest, arena *scratch,
                         eplb_error *error);

#endif
