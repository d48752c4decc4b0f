/* From a given placement to a better one by few moves.
 *
 * Shares first: the flow (weighted_shares.c) gives the best level T that moves nothing, and the set U of
 * ranks that proves it: the experts that live only on U load it to T. So only one thing helps: an expert of U
 * gets a replica on a rank outside, in an empty slot or where an expert gives up a spare replica (one
 * received), or by exchange with an expert of that rank (two received). Candidates are ranked by how much
 * load they let out of U into ranks that have room: peeling U and solving again gives the levels of the rest.
 * The most promising are tried exactly, and the best gain per received expert is made, until the goal, the
 * limit of moves or the end of improvements. Cost per move: TRIALS flows, microseconds each. Source: max-flow
 * min-cut for the set U (Ford and Fulkerson 1956); local repair as in load rebalancing with a bound on moves
 * (Aggarwal, Motwani, Zhu 2006). */
#include "plan/weighted_repair.h"

#include <math.h>
#include <string.h>

#include "plan/sort_loads.h"

enum { TRIALS = 32, FIRST_TRIALS = 10, MAX_PEELS = 12, LARGEST = 3 };

/* Weight of a candidate that helps only if another replica takes what the victim served. */
#define LAST_RESORT 1e-3

/* Slots that all flows together may look at, where no limit is asked for. */
#define SLOT_VISITS ((int64_t)1 << 22)

/* Slot `slot` outside U gets `expert`; what it held goes to `back_slot` (an exchange) or nowhere (-1). */
typedef struct move {
    int32_t expert;
    int32_t slot;
    int32_t back_slot;
    double promise;
} move;

typedef struct repair {
    const layer_problem *problem;
    const int32_t *origin;
    const uint64_t *cut_off;
    const int32_t *node_of_expert;
    int32_t *expert; /* [S] the placement in work */
    int32_t *trial;  /* [S] */
    weighted_shares shares;
    weighted_shares peel;
    int32_t *count;  /* [E] replicas */
    double *quota;   /* [S] units that a slot serves when every rank outside U is as low as it can be */
    double *room;    /* [G] units to the goal of the rank's class; of U: what is too much, negative */
    uint8_t *peeled; /* [G] */
    int32_t *inside; /* experts that live on U alone, ascending load */
    int32_t num_inside;
    double excess; /* units that U has above the goal */
    double goal;   /* level */
    double level;
    int32_t num_tight;
    int64_t received;
    int64_t flows_left; /* trials before the search ends */
    move moves[TRIALS];
    int32_t num_moves;
} repair;

/* --- the placement ----------------------------------------------------------------------------------- */

/* 1 if the rank would have to receive the expert. */
static int32_t must_receive(const repair *work, int32_t slot, int32_t expert)
{
    int32_t rank = work->problem->slot_rank[slot];
    bool held = expert < 0 || layer_holds(work->problem, work->origin, rank, expert) ||
                layer_is_cut_off(work->problem, work->cut_off, rank, expert);
    return held ? 0 : 1;
}

static bool may_live(const repair *work, int32_t expert, int32_t slot)
{
    return work->node_of_expert == NULL ||
           work->node_of_expert[expert] == work->problem->rank_node[work->problem->slot_rank[slot]];
}

/* An expert twice on a rank serves no purpose: the second slot is free. */
static void drop_duplicates(repair *work)
{
    for (int32_t s = 0; s < work->problem->num_slots; s++) {
        int32_t first = work->problem->first_slot[work->problem->slot_rank[s]];
        for (int32_t t = first; t < s && work->expert[s] >= 0; t++) {
            if (work->expert[t] == work->expert[s])
                work->expert[s] = -1;
        }
        if (work->expert[s] >= 0)
            work->count[work->expert[s]]++;
    }
}

static void write(repair *work, int32_t slot, int32_t expert)
{
    int32_t old = work->expert[slot];
    work->received += must_receive(work, slot, expert) - must_receive(work, slot, old);
    if (old >= 0)
        work->count[old]--;
    if (expert >= 0)
        work->count[expert]++;
    work->expert[slot] = expert;
}

static bool solve(repair *work, arena *scratch)
{
    if (!weighted_shares_solve(&work->shares, work->expert, NULL, scratch))
        return false;
    work->level = (double)work->shares.max_load / (double)work->shares.max_speed;
    work->num_tight = 0;
    for (int32_t g = 0; g < work->problem->num_ranks; g++)
        work->num_tight += work->shares.tight[g];
    return true;
}

/* --- experts that no live rank holds ----------------------------------------------------------------- */

/* The best slot for a lost expert: free or spare, on the rank that is lowest; -1: none where it may live. */
static int32_t slot_for_lost(const repair *work, int32_t expert)
{
    int32_t best = -1;
    double best_height = HUGE_VAL;
    for (int32_t s = 0; s < work->problem->num_slots; s++) {
        int32_t old = work->expert[s], g = work->problem->slot_rank[s];
        if (!may_live(work, expert, s) || (old >= 0 && work->count[old] < 2))
            continue;
        double height = ((double)work->shares.rank_load[g] + (old >= 0 ? work->quota[s] : 0.0)) /
                        (double)work->problem->rank_speed[g];
        if (height < best_height) {
            best = s;
            best_height = height;
        }
    }
    return best;
}

/* Places them, largest first; false when memory is out. One that finds no slot stays lost. */
static bool place_lost(repair *work, arena *scratch)
{
    const layer_problem *problem = work->problem;
    int32_t *order = arena_take(scratch, (size_t)problem->num_experts, sizeof *order);
    if (order == NULL || !sort_loads(problem->load, NULL, problem->num_experts, order, scratch) ||
        !solve(work, scratch))
        return false;
    for (int32_t i = 0; i < work->shares.first[problem->num_experts]; i++)
        work->quota[work->shares.slot[i]] = (double)work->shares.quota[i];
    for (int32_t i = problem->num_experts - 1; i >= 0; i--) {
        int32_t expert = order[i];
        int32_t slot = work->count[expert] > 0 ? -1 : slot_for_lost(work, expert);
        if (slot < 0)
            continue;
        int32_t rank = problem->slot_rank[slot];
        work->shares.rank_load[rank] += work->shares.load[expert] - (int64_t)work->quota[slot];
        work->quota[slot] = (double)work->shares.load[expert];
        write(work, slot, expert);
    }
    return true;
}

/* --- levels of the ranks outside U ------------------------------------------------------------------- */

/* Takes the tight set of `shares` out of the peeling placement: its ranks, and the experts that live on them
 * alone, which are the only ones with load there. Notes how far its level is from the goal. */
static void peel_tight(repair *work, const weighted_shares *shares)
{
    const layer_problem *problem = work->problem;
    double load = 0.0, speed = 0.0;
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        if (shares->tight[g] && !work->peeled[g]) {
            load += (double)shares->rank_load[g];
            speed += problem->uniform_speed ? 1.0 : (double)problem->rank_speed[g];
        }
    }
    for (int32_t e = 0; e < problem->num_experts; e++) {
        bool all_tight = shares->first[e] < shares->first[e + 1];
        for (int32_t i = shares->first[e]; i < shares->first[e + 1]; i++) {
            work->quota[shares->slot[i]] = (double)shares->quota[i];
            all_tight = all_tight && shares->tight[shares->rank[i]];
        }
        if (all_tight)
            work->peel.load[e] = 0;
    }
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        if (!shares->tight[g] || work->peeled[g])
            continue;
        work->peeled[g] = 1;
        work->room[g] = work->goal * speed - load;
        for (int32_t s = problem->first_slot[g]; s < problem->first_slot[g + 1]; s++)
            work->trial[s] = -1;
    }
}

static bool find_levels(repair *work, arena *scratch)
{
    const layer_problem *problem = work->problem;
    memcpy(work->trial, work->expert, (size_t)problem->num_slots * sizeof *work->trial);
    memcpy(work->peel.load, work->shares.load, (size_t)problem->num_experts * sizeof *work->peel.load);
    memset(work->peeled, 0, (size_t)problem->num_ranks);
    memset(work->quota, 0, (size_t)problem->num_slots * sizeof *work->quota);
    peel_tight(work, &work->shares);
    for (int32_t round = 0; round < MAX_PEELS; round++) {
        if (!weighted_shares_solve(&work->peel, work->trial, &work->shares, scratch))
            return false;
        bool last = work->peel.max_load == 0 || round == MAX_PEELS - 1;
        if (last)
            memset(work->peel.tight, 1, (size_t)problem->num_ranks);
        peel_tight(work, &work->peel);
        if (last)
            break;
    }
    return true;
}

/* --- candidates -------------------------------------------------------------------------------------- */

/* Keeps the TRIALS most promising, best first; earlier ones win ties. */
static void offer(repair *work, move candidate)
{
    if (candidate.promise <= 0.0)
        return;
    int32_t place = work->num_moves;
    while (place > 0 && work->moves[place - 1].promise < candidate.promise)
        place--;
    if (place == TRIALS)
        return;
    if (work->num_moves < TRIALS)
        work->num_moves++;
    for (int32_t i = work->num_moves - 1; i > place; i--)
        work->moves[i] = work->moves[i - 1];
    work->moves[place] = candidate;
}

/* First place in `inside` with load >= wanted. */
static int32_t find_load(const repair *work, double wanted)
{
    int32_t low = 0, high = work->num_inside;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if ((double)work->shares.load[work->inside[middle]] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The expert at a place of `inside` gets the slot of a spare replica or an empty slot. */
static void offer_replica(repair *work, int32_t place, int32_t slot, double wanted)
{
    if (place < 0 || place >= work->num_inside)
        return;
    int32_t expert = work->inside[place], rank = work->problem->slot_rank[slot];
    if (!may_live(work, expert, slot) || layer_holds(work->problem, work->expert, rank, expert))
        return;
    double load = (double)work->shares.load[expert];
    double let_out = load < wanted ? load : wanted;
    /* What the spare replica served must go elsewhere; among equals the larger expert can carry more
     * later. */
    offer(work, (move){expert, slot, -1, let_out - 0.5 * work->quota[slot] + 1e-3 * load});
}

/* The slot of an expert with one replica; -1 if it has more. */
static int32_t only_slot(const repair *work, int32_t expert)
{
    int32_t first = work->shares.first[expert];
    return work->shares.first[expert + 1] - first == 1 ? work->shares.slot[first] : -1;
}

/* The expert at a place of `inside` and the one in the slot change places. */
static void offer_exchange(repair *work, int32_t place, int32_t slot, double wanted)
{
    if (place < 0 || place >= work->num_inside)
        return;
    int32_t expert = work->inside[place], victim = work->expert[slot];
    int32_t back = only_slot(work, expert);
    if (back < 0 || !may_live(work, expert, slot) || !may_live(work, victim, back) ||
        layer_holds(work->problem, work->expert, work->problem->slot_rank[slot], expert) ||
        layer_holds(work->problem, work->expert, work->problem->slot_rank[back], victim))
        return;
    double served = work->count[victim] > 1 ? work->quota[slot] : (double)work->shares.load[victim];
    double shift = (double)work->shares.load[expert] - served;
    double gain = shift < wanted ? shift : 2.0 * wanted - shift;
    if (gain <= 0.0 &&
        work->count[victim] > 1) /* last: what the victim served may go to its other replicas */
        gain = LAST_RESORT * ((double)work->shares.load[expert] - 0.5 * served);
    offer(work, (move){expert, slot, back, 0.5 * gain});
}

static void offer_slot(repair *work, int32_t slot)
{
    int32_t victim = work->expert[slot];
    double room = work->room[work->problem->slot_rank[slot]];
    double wanted = room < work->excess ? room : work->excess;
    if (wanted <= 0.0)
        return;
    if (victim < 0 || work->count[victim] > 1) {
        int32_t enough = find_load(work, wanted);
        offer_replica(work, enough, slot, wanted);
        offer_replica(work, enough - 1, slot, wanted);
        for (int32_t i = 0; i < LARGEST; i++) {
            int32_t place = work->num_inside - 1 - i;
            if (place != enough && place != enough - 1)
                offer_replica(work, place, slot, wanted);
        }
        if (victim < 0)
            return;
    }
    double served = work->count[victim] > 1 ? work->quota[slot] : (double)work->shares.load[victim];
    int32_t near = find_load(work, wanted + served);
    offer_exchange(work, near, slot, wanted);
    offer_exchange(work, near - 1, slot, wanted);
}

static bool collect(repair *work, arena *scratch)
{
    const layer_problem *problem = work->problem;
    arena_mark mark = arena_position(scratch);
    int32_t *member = arena_take(scratch, (size_t)problem->num_experts, sizeof *member);
    if (member == NULL)
        return false;
    int32_t count = 0;
    for (int32_t e = 0; e < problem->num_experts; e++) {
        bool alone = work->shares.load[e] > 0 && work->shares.first[e] < work->shares.first[e + 1];
        for (int32_t i = work->shares.first[e]; alone && i < work->shares.first[e + 1]; i++)
            alone = work->shares.tight[work->shares.rank[i]];
        if (alone)
            member[count++] = e;
    }
    work->num_inside = count;
    work->num_moves = 0;
    if (!sort_loads(problem->load, member, count, work->inside, scratch) || !find_levels(work, scratch))
        return false;
    work->excess = 0.0;
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        if (work->shares.tight[g])
            work->excess = -work->room[g];
    }
    for (int32_t s = 0; s < problem->num_slots; s++) {
        if (!work->shares.tight[problem->slot_rank[s]])
            offer_slot(work, s);
    }
    arena_rewind(scratch, mark);
    return true;
}

/* --- the search -------------------------------------------------------------------------------------- */

static int32_t receives(const repair *work, const move *m)
{
    int32_t victim = work->expert[m->slot];
    int32_t count = must_receive(work, m->slot, m->expert) - must_receive(work, m->slot, victim);
    if (m->back_slot >= 0)
        count += must_receive(work, m->back_slot, victim) - must_receive(work, m->back_slot, m->expert);
    return count;
}

/* Level and size of its tight set if the move were made; false when memory is out. */
static bool try_move(repair *work, const move *m, double *level, int32_t *num_tight, arena *scratch)
{
    int32_t victim = work->expert[m->slot];
    memcpy(work->trial, work->expert, (size_t)work->problem->num_slots * sizeof *work->trial);
    work->trial[m->slot] = m->expert;
    if (m->back_slot >= 0)
        work->trial[m->back_slot] = victim;
    memcpy(work->peel.load, work->shares.load, (size_t)work->problem->num_experts * sizeof *work->peel.load);
    if (!weighted_shares_solve(&work->peel, work->trial, &work->shares, scratch))
        return false;
    *level = (double)work->peel.max_load / (double)work->peel.max_speed;
    *num_tight = 0;
    for (int32_t g = 0; g < work->problem->num_ranks; g++)
        *num_tight += work->peel.tight[g];
    return true;
}

/* The candidate with the best gain per received expert among the first few, or, if none of these improves,
 * among all; -1: none improves. */
static bool best_move(repair *work, int64_t max_moves, int32_t *best, arena *scratch)
{
    double best_rate = 0.0;
    int32_t best_tight = work->num_tight;
    *best = -1;
    for (int32_t i = 0; i < work->num_moves && (i < FIRST_TRIALS || *best < 0); i++) {
        const move *m = &work->moves[i];
        int32_t cost = receives(work, m), num_tight;
        double level;
        if (cost > 0 && work->received + cost > max_moves)
            continue;
        work->flows_left--;
        if (!try_move(work, m, &level, &num_tight, scratch))
            return false;
        double rate = (work->level - level) / (cost < 1 ? 0.5 : (double)cost);
        if (rate > best_rate || (rate == best_rate && rate >= 0.0 && num_tight < best_tight)) {
            *best = i;
            best_rate = rate;
            best_tight = num_tight;
        }
    }
    return true;
}

static bool take(repair *work, arena *scratch)
{
    size_t experts = (size_t)work->problem->num_experts, slots = (size_t)work->problem->num_slots;
    size_t ranks = (size_t)work->problem->num_ranks;
    work->trial = arena_take(scratch, slots, sizeof *work->trial);
    work->count = arena_take_zero(scratch, experts, sizeof *work->count);
    work->quota = arena_take_zero(scratch, slots, sizeof *work->quota);
    work->room = arena_take_zero(scratch, ranks, sizeof *work->room);
    work->peeled = arena_take_zero(scratch, ranks, sizeof *work->peeled);
    work->inside = arena_take(scratch, experts, sizeof *work->inside);
    return work->trial != NULL && work->count != NULL && work->quota != NULL && work->room != NULL &&
           work->peeled != NULL && work->inside != NULL &&
           weighted_shares_init(&work->shares, work->problem, scratch) &&
           weighted_shares_init(&work->peel, work->problem, scratch);
}

static bool search(repair *work, int64_t max_moves, const weighted_trail *trail, arena *scratch)
{
    if (!solve(work, scratch))
        return false;
    for (;;) {
        if (trail != NULL)
            trail->note(trail->context, work->received, weighted_shares_imbalance(&work->shares));
        if (work->level <= work->goal || work->flows_left <= 0 || layer_is_stopped(work->problem))
            return true;
        int32_t best;
        if (!collect(work, scratch) || !best_move(work, max_moves, &best, scratch))
            return false;
        if (best < 0)
            return true;
        move made = work->moves[best];
        int32_t victim = work->expert[made.slot];
        if (made.back_slot >= 0)
            write(work, made.back_slot, -1);
        write(work, made.slot, made.expert);
        if (made.back_slot >= 0)
            write(work, made.back_slot, victim);
        if (!solve(work, scratch))
            return false;
    }
}

bool weighted_repair(const layer_problem *problem, const weighted_repair_limits *limits, arena *scratch,
                     layer_answer *answer, weighted_repair_result *result)
{
    arena_mark mark = arena_position(scratch);
    repair work = {.problem = problem,
                   .origin = limits->origin,
                   .cut_off = limits->cut_off,
                   .node_of_expert = limits->node_of_expert,
                   .expert = answer->expert};
    if (!take(&work, scratch))
        return false;
    double speed = problem->uniform_speed ? (double)problem->num_ranks : (double)problem->total_speed;
    work.goal = limits->goal * (double)work.shares.total / speed * (1.0 + 1e-13);
    int64_t flows =
        problem->work_limit > 0 ? problem->work_limit : SLOT_VISITS / (problem->num_slots + 1) + TRIALS;
    work.flows_left = flows;
    drop_duplicates(&work);
    for (int32_t slot = 0; slot < problem->num_slots; slot++)
        work.received += must_receive(&work, slot, work.expert[slot]);
    if (!place_lost(&work, scratch) || !search(&work, limits->max_moves, limits->trail, scratch))
        return false;
    weighted_shares_write(&work.shares, answer->quota);
    result->imbalance = weighted_shares_imbalance(&work.shares);
    result->received = work.received;
    result->flows = flows - work.flows_left + 1;
    arena_rewind(scratch, mark);
    return true;
}
