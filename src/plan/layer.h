/* One layer as every planning algorithm sees it: dense live ranks, plain arrays, one scratch arena.
 *
 * The planner (planner.c) turns load, topology and current placement into a layer_problem per layer: dead
 * ranks are taken out and live ranks and their slots are renumbered densely (0 .. num_ranks-1, 0 ..
 * num_slots-1), so that an algorithm never meets health. It turns the layer_answer back, checks it and
 * measures it. */
#ifndef PLAN_LAYER_H
#define PLAN_LAYER_H

#include <stdbool.h>
#include <stdint.h>

#include <eplb/plan.h>

#include "base/memory.h"
#include "plan/expert_bits.h"

typedef struct layer_problem {
    int32_t layer;       /* for error texts */
    int32_t num_experts; /* E */
    int32_t num_ranks;   /* G, live */
    int32_t num_slots;   /* S, on live ranks; S >= E is guaranteed */
    int32_t num_nodes;   /* N; nodes may have no live rank */
    int32_t num_groups;  /* 1: no groups; else divides E, group of e is e / (E / num_groups) */
    int32_t num_windows; /* T >= 1 */
    int32_t num_sources; /* rows of source_load; 0 without it */

    const int64_t *load;        /* [E] sum over windows; the total fits int64 */
    const int64_t *window_load; /* [T, E]; equals load when T == 1 */
    const int64_t *source_load; /* [num_sources, E] tokens by live source rank, or NULL: uniform */
    int64_t total;              /* sum of load */

    const int32_t *first_slot; /* [G + 1] */
    const int32_t *slot_rank;  /* [S] */
    const int32_t *rank_node;  /* [G] */
    const int32_t *rank_speed; /* [G] >= 1 */
    int64_t total_speed;
    bool uniform_speed;    /* all speeds equal */
    int32_t uniform_slots; /* k if all ranks have k slots, else -1 */

    const int32_t *current;  /* [S] expert in each live slot or -1; NULL: no current placement */
    const uint64_t *cut_off; /* [G, words] (expert_bits.h) experts that a rank holds in slots that it is to
                                lose, and in no other: having them back is free; NULL: nobody does */

    const uint64_t
        *fresh; /* [G, words] experts in `current` that their rank is still to receive, which max_moves
                   has paid for: another one in their place is free (fill_slots.c); NULL: none */

    eplb_split split;
    eplb_cost cost;
    bool plain_cost;         /* cost is tokens alone */
    int64_t max_moves;       /* received experts allowed in this layer; INT64_MAX: unlimited */
    double target_imbalance; /* 0: none */
    int32_t max_spill;
    int64_t work_limit; /* 0: the algorithm's default */
    /* Poll now and then in long searches; true: stop and return what you have (time limit) or
     * EPLB_ERROR_CANCELLED. */
    bool (*should_stop)(void *context);
    void *stop_context;
    /* Part of the layer's time that is used up, 0 .. 1, by the same context; NULL where time has no limit. */
    double (*time_used)(void *context);
} layer_problem;

static inline bool layer_is_stopped(const layer_problem *problem)
{
    return problem->should_stop != NULL && problem->should_stop(problem->stop_context);
}

/* Part of the layer's time that is used up; 0 where time has no limit. */
static inline double layer_time_used(const layer_problem *problem)
{
    return problem->time_used != NULL ? problem->time_used(problem->stop_context) : 0.0;
}

/* Whether expert[S] has `wanted` in a slot of the rank. O(k). */
static inline bool layer_holds(const layer_problem *problem, const int32_t *expert, int32_t rank,
                               int32_t wanted)
{
    for (int32_t p = problem->first_slot[rank]; p < problem->first_slot[rank + 1]; p++) {
        if (expert[p] == wanted)
            return true;
    }
    return false;
}

/* Whether the rank holds the expert in a slot that it is to lose, and in no other. `cut_off` as above. */
static inline bool layer_is_cut_off(const layer_problem *problem, const uint64_t *cut_off, int32_t rank,
                                    int32_t expert)
{
    return cut_off != NULL && expert_bits_has(cut_off, expert_bits_words(problem->num_experts), rank, expert);
}

/* Whether groups are bound to nodes: there is more than one of both. */
static inline bool layer_binds_groups(const layer_problem *problem)
{
    return problem->num_groups > 1 && problem->num_nodes > 1;
}

/* Loads [E] of a window. */
static inline const int64_t *layer_window(const layer_problem *problem, int32_t window)
{
    return problem->window_load + (size_t)window * (size_t)problem->num_experts;
}

/* Tokens of a window. O(E). */
int64_t layer_window_total(const layer_problem *problem, int32_t window);

/* home [G, words] (expert_bits.h): what each rank holds now, in slots that it is to lose as well. There must
 * be a current placement. O(S + G E / 64). */
void layer_read_home(const layer_problem *problem, uint64_t *home);

/* What an algorithm fills. Arrays are the caller's, [S] each, preset to -1 and 0. */
typedef struct layer_answer {
    int32_t *expert; /* [S] expert in each slot; -1 leaves it empty */
    int64_t *quota;  /* [S] weighted split: units of work of its expert; shares are quota / sum over replicas.
                        An expert whose quotas are all 0 is split equally. Ignored for equal split */
    double bound; /* proved lower bound of the imbalance for this split (>= 1.0); 1.0 when nothing better is
                     known */
    const char *reason; /* static text: why this answer; NULL: nothing to say */
} layer_answer;

/* A policy: its name, one line about it, and how it plans one layer. `scratch` may be used freely; it is
 * rewound after each layer. `error` gets the detail on failure. */
typedef eplb_status (*layer_planner)(const layer_problem *problem, arena *scratch, layer_answer *answer,
                                     eplb_error *error);

/* One point of a layer's frontier: the least imbalance found within so many received experts. */
typedef struct frontier_point {
    int64_t moves;
    double imbalance;
} frontier_point;
/* What a layer reaches within 0, 1, 2 ... moves; points[capacity] with moves ascending and imbalance falling.
 * The first point has the fewest moves that serve every expert (0 unless an expert was lost). The planner
 * divides a budget over layers by it (move_budget.c), then plans each layer within its part. */
typedef eplb_status (*layer_frontier)(const layer_problem *problem, arena *scratch, frontier_point *points,
                                      int32_t capacity, int32_t *num_points, eplb_error *error);

/* Parameters that not every policy can follow; request.c refuses the others. */
typedef enum plan_honours {
    HONOURS_TARGET = 1, /* stops improving at target_imbalance */
    HONOURS_SPILL = 2   /* puts up to max_spill replicas outside their group's node */
} plan_honours;

typedef struct plan_policy {
    const char *name;
    const char *summary;
    layer_planner plan_layer;
    layer_frontier frontier; /* NULL: a total budget is divided evenly over the layers */
    unsigned honours;        /* of plan_honours */
    bool sums_windows;       /* looks at the sum over windows only: num_windows is 1 for it */
    bool may_duplicate;      /* answers as a published planner does: may put an expert twice on a rank */
} plan_policy;

#endif
