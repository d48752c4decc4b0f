/* Out of local optima of weighted repair: a few random changes, repair again, keep what is better.
 *
 * Repair makes one move at a time, each for the better; where slots or speeds are uneven and spare slots few
 * that ends early. So the best placement is disturbed (a replica more for an expert in the place of a spare
 * one, or two experts of different ranks exchanged) and repaired from there, until the bound is reached or
 * the work is used up. Cost: counted slots of flows. Source: iterated local search (Lourenco, Martin, Stutzle
 * 2003). */
#include "plan/weighted.h"

#include <string.h>

#include "base/random.h"
#include "plan/weighted_repair.h"

#define SEED        UINT64_C(20240604)
#define MOST_KICKS  3u
#define TRIES       32
#define FLOW_SLOTS  ((int64_t)1 << 17) /* slots that all flows together may look at */
#define MOST_ROUNDS 200

typedef struct kicks {
    const layer_problem *problem;
    layer_answer trial;
    int32_t *origin; /* [S] where repair starts: it may move all */
    int32_t *count;  /* [E] of trial */
    random_state random;
} kicks;

/* The slot's expert, if it has another replica, makes way for any other; else it changes places with one. */
static bool kick(kicks *work)
{
    const layer_problem *problem = work->problem;
    int32_t *expert = work->trial.expert;
    int32_t slot = (int32_t)random_below(&work->random, (uint32_t)problem->num_slots);
    int32_t other = (int32_t)random_below(&work->random, (uint32_t)problem->num_slots);
    int32_t rank = problem->slot_rank[slot], there = problem->slot_rank[other];
    int32_t old = expert[slot], comes = expert[other];
    if (comes < 0 || rank == there || layer_holds(problem, expert, rank, comes))
        return false;
    if (old < 0 || (work->count[old] > 1 && random_below(&work->random, 2) == 0)) {
        if (old >= 0)
            work->count[old]--;
        work->count[comes]++;
        expert[slot] = comes;
        return true;
    }
    if (layer_holds(problem, expert, there, old))
        return false;
    expert[slot] = comes;
    expert[other] = old;
    return true;
}

static bool take(kicks *work, arena *scratch)
{
    size_t slots = (size_t)work->problem->num_slots, experts = (size_t)work->problem->num_experts;
    work->count = arena_take(scratch, experts, sizeof *work->count);
    work->origin = arena_take(scratch, slots, sizeof *work->origin);
    work->trial.expert = arena_take(scratch, slots, sizeof *work->trial.expert);
    work->trial.quota = arena_take(scratch, slots, sizeof *work->trial.quota);
    return work->count != NULL && work->origin != NULL && work->trial.expert != NULL &&
           work->trial.quota != NULL;
}

/* The trial becomes a disturbed copy of the answer. */
static void disturb(kicks *work, const layer_answer *answer)
{
    const layer_problem *problem = work->problem;
    memcpy(work->trial.expert, answer->expert, (size_t)problem->num_slots * sizeof *work->trial.expert);
    memset(work->count, 0, (size_t)problem->num_experts * sizeof *work->count);
    for (int32_t s = 0; s < problem->num_slots; s++) {
        if (answer->expert[s] >= 0)
            work->count[answer->expert[s]]++;
    }
    int32_t wanted = 1 + (int32_t)random_below(&work->random, MOST_KICKS);
    for (int32_t tried = 0, made = 0; made < wanted && tried < TRIES; tried++)
        made += kick(work);
}

bool weighted_kicks(const layer_problem *problem, double goal, arena *scratch, layer_answer *answer,
                    double *imbalance)
{
    arena_mark mark = arena_position(scratch);
    size_t slots = (size_t)problem->num_slots;
    kicks work = {.problem = problem, .random = random_seed(SEED)};
    if (!take(&work, scratch))
        return false;
    int64_t flows = FLOW_SLOTS / problem->num_slots;
    for (int32_t round = 0; round < MOST_ROUNDS && flows > 0 && *imbalance > goal; round++) {
        disturb(&work, answer);
        memcpy(work.origin, work.trial.expert, slots * sizeof *work.origin);
        weighted_repair_limits limits = {.origin = work.origin, .goal = goal, .max_moves = INT64_MAX};
        weighted_repair_result result;
        if (layer_is_stopped(problem))
            break;
        if (!weighted_repair(problem, &limits, scratch, &work.trial, &result))
            return false;
        flows -= result.flows;
        if (result.imbalance >= *imbalance)
            continue;
        memcpy(answer->expert, work.trial.expert, slots * sizeof *answer->expert);
        memcpy(answer->quota, work.trial.quota, slots * sizeof *answer->quota);
        *imbalance = result.imbalance;
    }
    arena_rewind(scratch, mark);
    return true;
}
