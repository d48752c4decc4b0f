/* Planning a layer for many windows: what the policies `windows` and `batch` have in common. */
#ifndef PLAN_WINDOW_PLAN_H
#define PLAN_WINDOW_PLAN_H

#include "plan/layer.h"
#include "plan/risk_search.h"

/* Mean over the recorded windows with tokens of the imbalance that a placement reaches; *mean. */
typedef eplb_status (*window_score)(const layer_problem *problem, const int32_t *expert, double *mean,
                                    arena *scratch, eplb_error *error);

/* A last step after a search of `steps`: changes expert[S] for the better; it stays valid, and with home
 * [G, words], what ranks hold now, receives at most `purse` experts, or no more than before. */
typedef eplb_status (*window_finish)(const layer_problem *problem, int32_t *expert, int64_t steps,
                                     const uint64_t *home, int64_t purse, arena *scratch, eplb_error *error);

/* What a policy aims at. */
typedef struct window_aim {
    const char *name;
    risk_aim risk;
    double level;          /* part of every mean that is levelled, see window_risk_level */
    double level_on_drift; /* the same, times risk->unexplained */
    window_score score;
    window_finish finish; /* or NULL */
    bool any_share;       /* the split chooses shares: plans of the weighted policy and its bound count */
    const char *reason;   /* when the search wins */
} window_aim;

/* Plans from nothing, or from the current placement within its moves; of what was found, kept and planned on
 * the sum the best by `score`. Fills answer->expert and reason. Errors: UNSUPPORTED (costs other than
 * tokens), INFEASIBLE, MEMORY. */
eplb_status window_plan(const layer_problem *problem, const window_aim *aim, arena *scratch,
                        layer_answer *answer, eplb_error *error);

/* expert_area[E]: the node that holds most replicas of each expert's group in a placement. *inside: no
 * replica is elsewhere. Errors: MEMORY. O(S + groups N). */
eplb_status window_plan_areas(const layer_problem *problem, const int32_t *expert, int32_t *expert_area,
                              arena *scratch, eplb_error *error);

#endif
