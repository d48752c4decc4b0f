/* One layer on its course through the planner for many windows: what window_plan.c, window_trial.c and
 * window_repair.c hand to each other. */
#ifndef PLAN_WINDOW_COURSE_H
#define PLAN_WINDOW_COURSE_H

#include "plan/window_plan.h"

#define WINDOW_TRIAL_LEAST 4 /* windows; fewer are not tried */

typedef struct window_course {
    const layer_problem *problem;
    const window_aim *aim;
    int64_t steps; /* of a search */
    double until;  /* part of the layer's time that the next search may use up */
    replica_work work;
    layout seats;
    window_risk risk;
    risk_search search;
    uint64_t *home;       /* [G, words] with a current placement */
    int32_t *expert_area; /* [E] with groups on nodes */
    int32_t *found;       /* [S] what was made last */
    int32_t *best;        /* [S] */
    int32_t best_excess;  /* replicas outside their group's node beyond those allowed */
    int32_t best_empty;   /* empty slots beyond those that the kept placement has */
    int32_t kept_empty;
    double best_score;
    double bound;
    const char *reason; /* of the best; NULL: nothing was compared */
} window_course;

/* Takes memory; problem and aim are set. Errors: MEMORY. */
eplb_status window_course_init(window_course *course, arena *scratch, eplb_error *error);
/* Estimates the risk and readies the search; before any search. Errors: MEMORY. */
eplb_status window_course_aim(window_course *course, arena *scratch, eplb_error *error);
/* Takes `found` as the best if it keeps the limit of nodes better, or as well and leaves fewer slots empty,
 * or as many and the recorded windows like it better. Errors: MEMORY. */
eplb_status window_course_compare(window_course *course, const char *reason, arena *scratch,
                                  eplb_error *error);
/* Compares the plans that look at the sum of the windows. Errors: INFEASIBLE, MEMORY. */
eplb_status window_course_on_sum(window_course *course, bool weighted_too, arena *scratch, eplb_error *error);
/* `found`: what the weighted policy answers to `sum`; *bound, if asked for, what it proves. */
eplb_status window_course_weighted(window_course *course, const layer_problem *sum, double *bound,
                                   arena *scratch, eplb_error *error);
/* Binds experts to the nodes where `found` has their groups. Errors: MEMORY. */
eplb_status window_course_bind(window_course *course, arena *scratch, eplb_error *error);
/* Anneals `found`; with `moves_count` at most `purse` experts may be received. */
void window_course_anneal(window_course *course, int64_t steps, double heat, bool moves_count, int64_t purse);
/* The policy's last step on `found`, if it has one, within the same moves. Errors: MEMORY. */
eplb_status window_course_finish(window_course *course, int64_t steps, bool moves_count, int64_t purse,
                                 arena *scratch, eplb_error *error);
/* `found` by search from nothing. Errors: INFEASIBLE, MEMORY. */
eplb_status window_course_search(window_course *course, arena *scratch, eplb_error *error);

/* `found`: the best of all placements by the recorded windows, where these are few; *all: whether they are.
 * Nodes are not looked at. Errors: MEMORY. */
eplb_status window_course_all(window_course *course, bool *all, arena *scratch, eplb_error *error);

/* Gives the next search an even part, of `parts`, of the layer's time that is left. */
static inline void window_course_share_time(window_course *course, int64_t parts)
{
    double used = layer_time_used(course->problem);
    course->until = used + (1.0 - used) / (double)parts;
}

#define WINDOW_PERFECT (1.0 + 1e-9)

/* Whether the best is perfect or reaches the target, where there is one. */
static inline bool window_course_is_good(const window_course *course)
{
    double target = course->problem->target_imbalance;
    return course->best_excess == 0 && course->best_score <= (target > 0.0 ? target : WINDOW_PERFECT);
}

/* *wins: planning by search serves windows that it has not seen clearly better than planning on the sum.
 * Errors: INFEASIBLE, MEMORY. */
eplb_status window_trial(const layer_problem *problem, const window_aim *aim, int64_t steps, bool *wins,
                         arena *scratch, eplb_error *error);
/* Better placements from the best, within the moves. Errors: MEMORY. */
eplb_status window_repair(window_course *course, arena *scratch, eplb_error *error);

#endif
