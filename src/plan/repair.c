/* Greedy repair with prices: excess over a goal removed per received expert.
 *
 * A change of counts costs one received expert, a swap two, what was there before nothing. For a given goal
 * no move is spent on ranks below it, so the last ranks above the goal decide the number of moves; running
 * down to a series of goals gives the whole frontier of imbalance against moves. A descent looks at O(moves k
 * S) changes. The bar: steepest descent of sum (load/mean)^16, whose plateaus with several hot ranks the goal
 * avoids. Theory: Aggarwal, Motwani, Zhu, "The load rebalancing problem" (2006). */
#include "plan/repair.h"

#include <string.h>

#include "base/error.h"
#include "plan/lost_experts.h"

#define SWEEP_GOALS 8
#define LEAST_GAIN  1e-9 /* of all excess: below it a gain may be rounding, and a descent might not end */

static int64_t count_fresh(const layer_problem *problem)
{
    int64_t count = 0;
    size_t words = (size_t)problem->num_ranks * (size_t)expert_bits_words(problem->num_experts);
    for (size_t i = 0; i < words && problem->fresh != NULL; i++) {
        for (uint64_t rest = problem->fresh[i]; rest != 0; rest &= rest - 1)
            count++;
    }
    return count;
}

layer_problem repair_problem(const layer_problem *problem)
{
    layer_problem whole = *problem;
    if (whole.max_moves != INT64_MAX)
        whole.max_moves += count_fresh(problem);
    return whole;
}

/* Copies the current placement without what may not stay: an expert a second time on a rank. */
static void read_current(repair *state)
{
    const layer_problem *problem = state->problem;
    layout *seats = state->around->seats;
    size_t words = (size_t)seats->num_ranks * (size_t)seats->words;
    memset(state->home, 0, words * sizeof *state->home);
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        for (int32_t p = problem->first_slot[g]; p < problem->first_slot[g + 1]; p++) {
            int32_t e = problem->current[p];
            bool fresh = e >= 0 && !expert_bits_has(state->home, seats->words, g, e);
            state->start[p] = fresh ? e : -1;
            state->doubles += e >= 0 && !fresh;
            if (fresh)
                expert_bits_add(state->home, seats->words, g, e);
        }
    }
    for (size_t i = 0; i < words && problem->cut_off != NULL; i++)
        state->home[i] |= problem->cut_off[i];
    for (size_t i = 0; i < words && problem->fresh != NULL; i++)
        state->home[i] &= ~problem->fresh[i];
    state->fresh = count_fresh(problem);
}

/* The heaviest expert without a replica, -1 if all have one; *lost counts them. */
static int32_t heaviest_lost(const layout *seats, int64_t *lost)
{
    int32_t heaviest = -1;
    double most = -1;
    *lost = 0;
    for (int32_t e = 0; e < seats->num_experts; e++) {
        if (seats->count[e] > 0)
            continue;
        ++*lost;
        double work = replica_work_at(seats->work, e, 1);
        if (work > most) {
            most = work;
            heaviest = e;
        }
    }
    return heaviest;
}

/* The slot whose rank is done first if it takes the expert: an empty one or one whose expert has others. */
static int32_t slot_for_lost(const neighbourhood *around, int32_t expert)
{
    const layout *seats = around->seats;
    double work = replica_work_at(seats->work, expert, 1), least = 0;
    int32_t best = -1;
    for (int32_t pass = 0; pass < 2 && best < 0; pass++) {
        for (int32_t p = 0; p < seats->num_slots; p++) {
            int32_t e = seats->expert[p], g = seats->slot_rank[p];
            if ((e >= 0 && seats->count[e] < 2) || (pass == 0 && around->rank_area != NULL &&
                                                    around->rank_area[g] != around->expert_area[expert]))
                continue;
            double time = (seats->rank_load[g] - seats->slot_load[p] + work) * seats->inverse_speed[g];
            if (best < 0 || time < least) {
                best = p;
                least = time;
            }
        }
    }
    return best;
}

static eplb_status place_lost(repair *state, arena *scratch, eplb_error *error)
{
    eplb_status status = lost_experts_check(state->problem, scratch, error);
    if (status != EPLB_OK)
        return status;
    layout *seats = state->around->seats;
    int64_t lost;
    int32_t expert = heaviest_lost(seats, &lost);
    state->forced = lost + state->fresh;
    while (expert >= 0) {
        int32_t slot = slot_for_lost(state->around, expert);
        if (slot < 0)
            return error_set(error, EPLB_ERROR_INFEASIBLE,
                             (error_place){state->problem->layer, expert, -1, -1, lost},
                             "layer %d: no slot for expert %d", (int)state->problem->layer, (int)expert);
        layout_reassign(seats, slot, expert);
        expert = heaviest_lost(seats, &lost);
    }
    return EPLB_OK;
}

eplb_status repair_init(repair *state, neighbourhood *around, const layer_problem *problem, arena *scratch,
                        eplb_error *error)
{
    layout *seats = around->seats;
    size_t slots = (size_t)seats->num_slots, words = (size_t)seats->num_ranks * (size_t)seats->words;
    *state = (repair){.problem = problem,
                      .around = around,
                      .start = arena_take(scratch, slots, sizeof *state->start),
                      .home = arena_take(scratch, words, sizeof *state->home)};
    if (state->start == NULL || state->home == NULL)
        return error_memory(error, words * sizeof *state->home, "current placement");
    read_current(state);
    layout_set(seats, state->start);
    eplb_status status = place_lost(state, scratch, error);
    memcpy(state->start, seats->expert, slots * sizeof *state->start);
    return status;
}

static bool is_outside(const neighbourhood *around, const int32_t *expert, int32_t slot)
{
    return expert[slot] >= 0 &&
           around->expert_area[expert[slot]] != around->rank_area[around->seats->slot_rank[slot]];
}

int64_t repair_received(const repair *state)
{
    const layout *seats = state->around->seats;
    int64_t received = 0;
    for (int32_t p = 0; p < seats->num_slots; p++) {
        int32_t e = seats->expert[p];
        received += e >= 0 && !expert_bits_has(state->home, seats->words, seats->slot_rank[p], e);
    }
    return received;
}

eplb_status repair_mend_areas(repair *state, arena *scratch, eplb_error *error)
{
    const neighbourhood *around = state->around;
    layout *seats = around->seats;
    int64_t outside = 0;
    for (int32_t p = 0; around->rank_area != NULL && p < seats->num_slots; p++)
        outside += is_outside(around, state->start, p);
    if (outside == 0 || outside > state->problem->max_moves - state->forced)
        return EPLB_OK;
    for (int32_t p = 0; p < seats->num_slots; p++) {
        if (is_outside(around, state->start, p))
            state->start[p] = -1;
    }
    layout_set(seats, state->start);
    eplb_status status = place_lost(state, scratch, error);
    memcpy(state->start, seats->expert, (size_t)seats->num_slots * sizeof *state->start);
    state->forced = repair_received(state);
    return status;
}

bool repair_descend(repair *state, double goal, int64_t max_moves, repair_visit visit, void *context)
{
    neighbourhood *around = state->around;
    layout *seats = around->seats;
    layout_set(seats, state->start);
    state->moves = state->peak = state->forced;
    around->home = state->home;
    neighbourhood_forget(around);
    neighbourhood_goal(around, goal);
    int32_t hot;
    double hottest = layout_hottest(seats, &hot);
    visit(context, state, hottest);
    while (neighbourhood_excess(around) > 0) {
        around->purse = max_moves - state->moves;
        change best = neighbourhood_best(around, hot);
        if (best.kind == CHANGE_NONE || !(best.gain > around->total * LEAST_GAIN))
            return false;
        neighbourhood_apply(around, &best);
        state->moves += best.price;
        state->peak = state->moves > state->peak ? state->moves : state->peak;
        hottest = layout_hottest(seats, &hot);
        visit(context, state, hottest);
    }
    return true;
}

void repair_levels(repair *state, double goal, int64_t max_moves, repair_visit visit, void *context)
{
    const layer_problem *problem = state->problem;
    int32_t hot;
    layout_set(state->around->seats, state->start);
    double start = layout_hottest(state->around->seats, &hot), part = 1;
    for (int32_t i = 0; i < SWEEP_GOALS; i++) {
        if (layer_is_stopped(problem))
            return;
        part *= 0.5;
        (void)repair_descend(state, goal + (start - goal) * part, max_moves, visit, context);
    }
}

void repair_sweep(repair *state, double goal, int64_t max_moves, repair_visit visit, void *context)
{
    if (!repair_descend(state, goal, max_moves, visit, context) && max_moves > state->forced)
        repair_levels(state, goal, max_moves, visit, context);
}
