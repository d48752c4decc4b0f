/* Tabu search on the excess over a falling goal.
 *
 * The goal lies a quarter of the way from the best maximum found to the proved floor. Each step makes the
 * best change around the hottest rank, even if it is for the worse, and forbids touching the same slots or
 * turning the same counts back for a few steps (Glover 1989); the length of that memory is drawn from a
 * seeded stream, which breaks cycles. When every rank is under the goal, a new best is found and the goal
 * falls. */
#include "plan/equal_search.h"

#include <string.h>

#include "base/error.h"
#include "base/random.h"

#define GOAL_STEP    0.25
#define TABU_LEAST   2
#define TABU_SPREAD  7u
#define STEP_WORK    256 /* what a step costs beside the changes it looks at */
#define STALL_STEPS  150
#define KICK_CHANGES 3
#define KICK_TRIES   64
#define POLL_STEPS   64
#define SEED         UINT64_C(20240601)

static void forbid(neighbourhood *around, const change *made, int32_t loser, random_state *random)
{
    int64_t until = around->step + TABU_LEAST + random_below(random, TABU_SPREAD);
    if (made->kind == CHANGE_SWAP) {
        around->slot_free[made->slot] = until;
        around->slot_free[made->other] = until;
        return;
    }
    around->lose_free[made->expert] = until;
    if (loser >= 0)
        around->gain_free[loser] = until;
}

/* Gives some random redundant slots to random experts, whatever it costs. */
static void kick(neighbourhood *around, random_state *random)
{
    layout *seats = around->seats;
    for (int32_t made = 0, tried = 0; made < KICK_CHANGES && tried < KICK_TRIES; tried++) {
        int32_t slot = (int32_t)random_below(random, (uint32_t)seats->num_slots);
        int32_t expert = (int32_t)random_below(random, (uint32_t)seats->num_experts);
        int32_t rank = seats->slot_rank[slot], old = seats->expert[slot];
        if (old < 0 || seats->count[old] < 2 || seats->count[expert] >= seats->max_count ||
            layout_holds(seats, rank, expert) ||
            (around->rank_area != NULL && around->expert_area[expert] != around->rank_area[rank]))
            continue;
        change made_up = {CHANGE_REASSIGN, slot, -1, expert, 0, 0, 0};
        neighbourhood_apply(around, &made_up);
        forbid(around, &made_up, old, random);
        made++;
    }
}

eplb_status equal_search(neighbourhood *around, const layer_problem *problem,
                         const equal_search_limits *limits, double *hottest, arena *scratch,
                         eplb_error *error)
{
    layout *seats = around->seats;
    size_t bytes = (size_t)seats->num_slots * sizeof(int32_t);
    int32_t *best = arena_take(scratch, bytes, 1);
    if (best == NULL)
        return error_memory(error, bytes, "best placement");
    int32_t hot;
    double least = layout_hottest(seats, &hot);
    memcpy(best, seats->expert, bytes);
    neighbourhood_goal(around, least - (least - limits->floor) * GOAL_STEP);
    random_state random = random_seed(SEED);
    double now = least;
    int32_t stalled = 0;
    int64_t end = around->looked + limits->work;
    neighbourhood_forget(around);
    for (int64_t i = 1; least > limits->goal && around->looked < end; i++, around->step++) {
        (void)neighbourhood_excess(around);
        change made = neighbourhood_best(around, hot);
        around->looked += STEP_WORK;
        if (made.kind != CHANGE_NONE) {
            int32_t loser = made.kind == CHANGE_REASSIGN ? seats->expert[made.slot] : -1;
            neighbourhood_apply(around, &made);
            forbid(around, &made, loser, &random);
        }
        now = layout_hottest(seats, &hot);
        if (now >= least && ++stalled >= STALL_STEPS) {
            layout_set(seats, best);
            kick(around, &random);
            now = layout_hottest(seats, &hot);
            stalled = 0;
        }
        if (now < least) {
            least = now;
            stalled = 0;
            memcpy(best, seats->expert, bytes);
            neighbourhood_goal(around, least - (least - limits->floor) * GOAL_STEP);
        }
        if (i % POLL_STEPS == 0 && problem->should_stop != NULL &&
            problem->should_stop(problem->stop_context))
            break;
    }
    if (now > least)
        layout_set(seats, best);
    *hottest = least;
    return EPLB_OK;
}
