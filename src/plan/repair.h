/* Repair: from the current placement to a better one in few moves. */
#ifndef PLAN_REPAIR_H
#define PLAN_REPAIR_H

#include "plan/neighbourhood.h"

typedef struct repair {
    const layer_problem *problem;
    neighbourhood *around;
    int32_t *start; /* [S] the current placement made legal: no expert twice on a rank, every expert served */
    uint64_t *home; /* [G, words] what each rank holds now */
    int64_t doubles; /* slots emptied in `start` because their rank holds the expert twice */
    int64_t fresh;   /* received experts of the current placement */
    int64_t forced;  /* received experts of `start`: those, and those that no live rank held */
    int64_t moves;   /* received experts of the placement being looked at */
    int64_t peak;    /* the most that this descent has received so far: one allowed so many gets here too */
} repair;

/* Called at `start` and after each change; around->seats is the placement, `moves` what it receives. */
typedef void (*repair_visit)(void *context, const repair *state, double hottest);

/* The problem with the moves that its current placement has been paid with: what repair_init is to see. */
layer_problem repair_problem(const layer_problem *problem);

/* Prepares. Places lost experts, heaviest first. Errors: INFEASIBLE (lists lost experts that max_moves does
 * not allow to be received), MEMORY. O(S + E + lost S). */
eplb_status repair_init(repair *state, neighbourhood *around, const layer_problem *problem, arena *scratch,
                        eplb_error *error);
/* Takes replicas outside their expert's area out of `start`, where the moves allowed could bring as many back
 * inside; else leaves it. Errors: MEMORY, INFEASIBLE never. O(S + lost S). */
eplb_status repair_mend_areas(repair *state, arena *scratch, eplb_error *error);
/* Experts that the layout's ranks did not hold. O(S). */
int64_t repair_received(const repair *state);
/* From `start`, the best change per received expert, again and again, until no rank is above `goal`, nothing
 * helps or `max_moves` are spent. True if the goal was reached. */
bool repair_descend(repair *state, double goal, int64_t max_moves, repair_visit visit, void *context);
/* Descends towards `goal` and, if that takes more moves than there are, towards goals between it and where
 * the start is: what few moves can do differs from the first steps of what many can do. */
void repair_sweep(repair *state, double goal, int64_t max_moves, repair_visit visit, void *context);

/* All those goals whatever the first one takes: the frontier. */
void repair_levels(repair *state, double goal, int64_t max_moves, repair_visit visit, void *context);

#endif
