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

/* The state of a search beside the layout. */
typedef struct pursuit {
    neighbourhood *around;
    const equal_search_limits *limits;
    random_state random;
    int32_t *best; /* [S] */
    double least;  /* of best */
    int64_t moves; /* received experts now; counts with around->home only */
    int64_t best_moves;
    int32_t stalled; /* steps since best was found */
} pursuit;

static void keep_best(pursuit *state, double hottest)
{
    const layout *seats = state->around->seats;
    state->least = hottest;
    state->best_moves = state->moves;
    state->stalled = 0;
    memcpy(state->best, seats->expert, (size_t)seats->num_slots * sizeof *state->best);
    neighbourhood_goal(state->around, hottest - (hottest - state->limits->floor) * GOAL_STEP);
}

/* One change around the hottest rank. */
static void make_step(pursuit *state, int32_t hot)
{
    neighbourhood *around = state->around;
    (void)neighbourhood_excess(around);
    around->purse = state->limits->max_moves - state->moves;
    around->looked += STEP_WORK;
    change made = neighbourhood_best(around, hot);
    if (made.kind == CHANGE_NONE)
        return;
    int32_t loser = made.kind == CHANGE_REASSIGN ? around->seats->expert[made.slot] : -1;
    neighbourhood_apply(around, &made);
    state->moves += made.price;
    forbid(around, &made, loser, &state->random);
}

/* Back to the best; without prices, to somewhere near it. */
static void restart(pursuit *state)
{
    layout_set(state->around->seats, state->best);
    state->moves = state->best_moves;
    state->stalled = 0;
    if (state->around->home == NULL)
        kick(state->around, &state->random);
}

eplb_status equal_search(neighbourhood *around, const layer_problem *problem,
                         const equal_search_limits *limits, double *hottest, arena *scratch,
                         eplb_error *error)
{
    layout *seats = around->seats;
    size_t bytes = (size_t)seats->num_slots * sizeof(int32_t);
    pursuit state = {.around = around,
                     .limits = limits,
                     .random = random_seed(SEED),
                     .best = arena_take(scratch, bytes, 1),
                     .moves = limits->moves};
    if (state.best == NULL)
        return error_memory(error, bytes, "best placement");
    int32_t hot;
    double now = layout_hottest(seats, &hot);
    keep_best(&state, now);
    int64_t end = around->looked + limits->work;
    neighbourhood_forget(around);
    for (int64_t i = 1; state.least > limits->goal && around->looked < end; i++, around->step++) {
        make_step(&state, hot);
        now = layout_hottest(seats, &hot);
        if (now >= state.least && ++state.stalled >= STALL_STEPS) {
            restart(&state);
            now = layout_hottest(seats, &hot);
        }
        if (now < state.least)
            keep_best(&state, now);
        if (i % POLL_STEPS == 0 && layer_is_stopped(problem))
            break;
    }
    if (now > state.least)
        layout_set(seats, state.best);
    *hottest = state.least;
    return EPLB_OK;
}
