/* Looking for the best change around the hottest rank.
 *
 * Swaps: each slot of the hot rank against each slot elsewhere, two ranks change. Counts: a slot elsewhere is
 * given to an expert of the hot rank (its replicas there get lighter), or a slot of the hot rank is given
 * away; all holders of the two experts change, so their part of the sum is computed once per expert and only
 * ranks holding both are corrected. Most candidates are dismissed on their value alone, before asking whether
 * they are legal. */
#include "plan/neighbourhood.h"

#include <math.h>

#include "base/error.h"

#define LONGEST_REFUSAL 1024

eplb_status neighbourhood_init(neighbourhood *around, layout *seats, const layer_problem *problem,
                               arena *scratch, eplb_error *error)
{
    size_t ranks = (size_t)seats->num_ranks, slots = (size_t)seats->num_slots;
    size_t experts = (size_t)seats->num_experts;
    *around = (neighbourhood){
        .seats = seats,
        .limit = arena_take(scratch, ranks, sizeof *around->limit),
        .weight = arena_take(scratch, ranks, sizeof *around->weight),
        .excess = arena_take_zero(scratch, ranks, sizeof *around->excess),
        .speed = arena_take(scratch, ranks, sizeof *around->speed),
        .relief = arena_take_zero(scratch, experts, sizeof *around->relief),
        .touched = arena_take(scratch, experts, sizeof *around->touched),
        .slot_free = arena_take_zero(scratch, slots, sizeof *around->slot_free),
        .gain_free = arena_take_zero(scratch, experts, sizeof *around->gain_free),
        .lose_free = arena_take_zero(scratch, experts, sizeof *around->lose_free),
    };
    if (around->limit == NULL || around->weight == NULL || around->excess == NULL || around->speed == NULL ||
        around->relief == NULL || around->touched == NULL || around->slot_free == NULL ||
        around->gain_free == NULL || around->lose_free == NULL)
        return error_memory(error, (slots + 2 * experts) * sizeof *around->slot_free, "search state");
    for (int32_t g = 0; g < seats->num_ranks; g++) {
        around->speed[g] = problem->uniform_speed ? 1 : problem->rank_speed[g];
        around->weight[g] = seats->inverse_speed[g] * seats->inverse_speed[g];
    }
    return EPLB_OK;
}

void neighbourhood_goal(neighbourhood *around, double goal)
{
    around->goal = goal;
    for (int32_t g = 0; g < around->seats->num_ranks; g++)
        around->limit[g] = goal * around->speed[g];
}

void neighbourhood_forget(neighbourhood *around)
{
    around->step += LONGEST_REFUSAL;
}

static inline double over(double load, double limit, double weight)
{
    double x = load - limit;
    x = x > 0 ? x : 0;
    return x * x * weight;
}

/* Excess of a rank if it carried `load`. */
static inline double excess_at(const neighbourhood *around, int32_t rank, double load)
{
    return over(load, around->limit[rank], around->weight[rank]);
}

double neighbourhood_excess(neighbourhood *around)
{
    const layout *seats = around->seats;
    double total = 0;
    for (int32_t g = 0; g < seats->num_ranks; g++) {
        around->excess[g] = over(seats->rank_load[g], around->limit[g], around->weight[g]);
        total += around->excess[g];
    }
    around->total = total;
    return total;
}

static bool same_area(const neighbourhood *around, int32_t a, int32_t b)
{
    return around->rank_area == NULL || around->rank_area[a] == around->rank_area[b];
}

/* 1 if the rank would have to receive the expert. */
static int32_t receives(const neighbourhood *around, int32_t rank, int32_t expert)
{
    return expert >= 0 && !expert_bits_has(around->home, around->seats->words, rank, expert);
}

/* Takes the change as best if it can be paid and scores more. A gain counts per received expert; what costs
 * nothing, or gives one back, counts as one, so that no score exceeds its gain. */
static bool offer(const neighbourhood *around, change candidate, change *best)
{
    candidate.score = candidate.gain;
    if (around->home != NULL) {
        if (candidate.price > around->purse)
            return false;
        if (candidate.price > 1 && candidate.gain > 0)
            candidate.score /= candidate.price;
    }
    if (candidate.score <= best->score)
        return false;
    *best = candidate;
    return true;
}

static bool consider_swap(neighbourhood *around, int32_t slot, int32_t other, double gain, change *best)
{
    const layout *seats = around->seats;
    int32_t a = seats->slot_rank[slot], b = seats->slot_rank[other];
    int32_t x = seats->expert[slot], y = seats->expert[other];
    if (around->slot_free[slot] > around->step || around->slot_free[other] > around->step ||
        layout_holds(seats, a, y) || layout_holds(seats, b, x))
        return false;
    int32_t price = 0;
    if (around->home != NULL)
        price =
            receives(around, a, y) + receives(around, b, x) - receives(around, a, x) - receives(around, b, y);
    return offer(around, (change){CHANGE_SWAP, slot, other, -1, price, gain, 0}, best);
}

/* What a swap between the hot rank and another must hand over, net, to beat the best: more than `least`, less
 * than `most`, so that neither rank then has more excess than both have now less the best's gain. */
typedef struct window {
    double least;
    double most;
} window;

static window swap_window(const neighbourhood *around, int32_t hot, int32_t b, double best_score)
{
    const double *load = around->seats->rank_load;
    double left = around->excess[hot] + around->excess[b] - best_score;
    if (left <= 0)
        return (window){0, 0};
    double root = sqrt(left);
    return (window){load[hot] - around->limit[hot] - root * around->speed[hot],
                    around->limit[b] + root * around->speed[b] - load[b]};
}

/* Swaps of the hot rank's slots with those of rank `b`. Both are sorted by load, so that the partners of a
 * slot are a run that moves on from slot to slot; most ranks have none. */
static void look_at_rank(neighbourhood *around, int32_t hot, int32_t b, change *best)
{
    const layout *seats = around->seats;
    const double *load = seats->sorted_load;
    double hot_load = seats->rank_load[hot], b_load = seats->rank_load[b];
    double before = around->excess[hot] + around->excess[b];
    int32_t at = seats->first_slot[b], end = seats->first_slot[b + 1];
    window open = swap_window(around, hot, b, best->score);
    around->looked += seats->first_slot[hot + 1] - seats->first_slot[hot] + end - at;
    for (int32_t i = seats->first_slot[hot]; i < seats->first_slot[hot + 1] && open.least < open.most; i++) {
        while (at < end && load[at] >= load[i] - open.least)
            at++;
        for (int32_t j = at; j < end && load[j] > load[i] - open.most; j++) {
            double gain = before - excess_at(around, hot, hot_load - load[i] + load[j]) -
                          excess_at(around, b, b_load + load[i] - load[j]);
            if (gain > best->score &&
                consider_swap(around, seats->sorted_slot[i], seats->sorted_slot[j], gain, best))
                open = swap_window(around, hot, b, best->score);
        }
    }
}

/* What is known about taking a replica from an expert (or filling an empty slot). */
typedef struct loss {
    int32_t expert; /* -1: the slot is empty */
    double dearer;  /* more work per remaining replica */
    double burden;  /* excess it brings, over all holders */
} loss;

/* Excess that the holders of an expert gain if it loses a replica. Stops counting at `enough`. */
static double burden(const neighbourhood *around, int32_t expert, double dearer, double enough)
{
    const layout *seats = around->seats;
    double sum = 0;
    for (int32_t p = seats->first[expert]; p >= 0 && sum < enough; p = seats->next[p]) {
        int32_t g = seats->slot_rank[p];
        sum += excess_at(around, g, seats->rank_load[g] + dearer) - around->excess[g];
    }
    return sum;
}

/* Relief of every expert on a rank with excess; returns the largest. */
static double measure_relief(neighbourhood *around)
{
    const layout *seats = around->seats;
    for (int32_t i = 0; i < around->num_touched; i++)
        around->relief[around->touched[i]] = 0;
    around->num_touched = 0;
    double most = 0;
    for (int32_t g = 0; g < seats->num_ranks; g++) {
        if (around->excess[g] <= 0)
            continue;
        for (int32_t p = seats->first_slot[g]; p < seats->first_slot[g + 1]; p++) {
            int32_t e = seats->expert[p];
            if (e < 0)
                continue;
            double cheaper = seats->more_load[e] - seats->replica_load[e];
            double relief = around->excess[g] - excess_at(around, g, seats->rank_load[g] + cheaper);
            if (relief <= 0)
                continue;
            if (around->relief[e] == 0)
                around->touched[around->num_touched++] = e;
            around->relief[e] += relief;
            most = around->relief[e] > most ? around->relief[e] : most;
        }
    }
    return most;
}

/* Difference that ranks holding both experts make to the sum of the two separate parts. */
static double holds_both(const neighbourhood *around, const loss *from, int32_t winner)
{
    const layout *seats = around->seats;
    double cheaper = seats->more_load[winner] - seats->replica_load[winner];
    double sum = 0;
    for (int32_t p = seats->first[winner]; p >= 0; p = seats->next[p]) {
        int32_t g = seats->slot_rank[p];
        if (!layout_holds(seats, g, from->expert))
            continue;
        double load = seats->rank_load[g];
        sum += excess_at(around, g, load + from->dearer) + excess_at(around, g, load + cheaper) -
               excess_at(around, g, load + from->dearer + cheaper) - around->excess[g];
    }
    return sum;
}

/* The slot, which loses from->expert, goes to `winner`; `gain` is its value but for ranks that hold both. */
static void consider_reassign(neighbourhood *around, int32_t slot, const loss *from, int32_t winner,
                              double gain, change *best)
{
    const layout *seats = around->seats;
    int32_t rank = seats->slot_rank[slot];
    if (seats->count[winner] >= seats->max_count || around->gain_free[winner] > around->step ||
        layout_holds(seats, rank, winner) ||
        (around->rank_area != NULL && around->expert_area[winner] != around->rank_area[rank]))
        return;
    gain += holds_both(around, from, winner);
    int32_t price = 0;
    if (around->home != NULL)
        price = receives(around, rank, winner) - receives(around, rank, from->expert);
    (void)offer(around, (change){CHANGE_REASSIGN, slot, -1, winner, price, gain, 0}, best);
}

/* Excess that is certain once `slot` has lost its expert and before it has another: of all ranks but its
 * own. */
static double burden_elsewhere(const neighbourhood *around, int32_t slot, const loss *from)
{
    int32_t rank = around->seats->slot_rank[slot];
    if (from->expert < 0)
        return 0;
    return from->burden -
           (excess_at(around, rank, around->seats->rank_load[rank] + from->dearer) - around->excess[rank]);
}

/* A slot outside the hot rank goes to one of the hot rank's experts. */
static void help_hot(neighbourhood *around, int32_t hot, const loss *from, int32_t slot, change *best)
{
    const layout *seats = around->seats;
    int32_t rank = seats->slot_rank[slot];
    double rest = seats->rank_load[rank] - seats->slot_load[slot];
    double base = around->excess[rank] - burden_elsewhere(around, slot, from);
    for (int32_t i = seats->first_slot[hot]; i < seats->first_slot[hot + 1]; i++) {
        int32_t y = seats->expert[i];
        if (y < 0 || y == from->expert)
            continue;
        double gain = base + around->relief[y] - excess_at(around, rank, rest + seats->more_load[y]);
        if (gain > best->score)
            consider_reassign(around, slot, from, y, gain, best);
    }
}

/* A slot of the hot rank goes to any expert. */
static void leave_hot(neighbourhood *around, const loss *from, int32_t slot, change *best)
{
    const layout *seats = around->seats;
    int32_t rank = seats->slot_rank[slot];
    double rest = seats->rank_load[rank] - seats->slot_load[slot];
    double base = around->excess[rank] - burden_elsewhere(around, slot, from);
    double limit = around->limit[rank], weight = around->weight[rank];
    for (int32_t y = 0; y < seats->num_experts; y++) {
        double gain = base + around->relief[y] - over(rest + seats->more_load[y], limit, weight);
        if (gain > best->score && y != from->expert)
            consider_reassign(around, slot, from, y, gain, best);
    }
    around->looked += seats->num_experts;
}

/* All changes of counts that take slot `head` and its fellows from their expert. */
static void look_at_loss(neighbourhood *around, int32_t hot, int32_t head, double hope, change *best)
{
    const layout *seats = around->seats;
    loss from = {seats->expert[head], 0, 0};
    if (from.expert >= 0) {
        from.dearer = seats->fewer_load[from.expert] - seats->replica_load[from.expert];
        from.burden = burden(around, from.expert, from.dearer, INFINITY);
    }
    for (int32_t p = head; p >= 0; p = from.expert >= 0 ? seats->next[p] : -1) {
        if (around->slot_free[p] > around->step || !same_area(around, hot, seats->slot_rank[p]))
            continue;
        double reach = hope + around->excess[seats->slot_rank[p]] - burden_elsewhere(around, p, &from);
        if (reach <= best->score)
            continue;
        if (seats->slot_rank[p] == hot)
            leave_hot(around, &from, p, best);
        else
            help_hot(around, hot, &from, p, best);
    }
}

static void look_at_counts(neighbourhood *around, int32_t hot, change *best)
{
    const layout *seats = around->seats;
    double hope = measure_relief(around);
    for (int32_t p = 0; p < seats->num_slots; p++) {
        int32_t e = seats->expert[p];
        if (e >= 0 && (seats->first[e] != p || seats->count[e] < 2 || around->lose_free[e] > around->step))
            continue;
        look_at_loss(around, hot, p, hope, best);
    }
    around->looked += seats->num_slots * (seats->first_slot[hot + 1] - seats->first_slot[hot]);
}

/* All swaps with the hot rank, the coldest rank's first: it most often offers one that leaves both under the
 * goal, which ends the search. */
static void look_at_swaps(neighbourhood *around, int32_t hot, change *best)
{
    const layout *seats = around->seats;
    int32_t coldest = 0;
    double least = INFINITY;
    for (int32_t g = 0; g < seats->num_ranks; g++) {
        double time = seats->rank_load[g] * seats->inverse_speed[g];
        if (time < least) {
            least = time;
            coldest = g;
        }
    }
    for (int32_t i = 0; i < seats->num_ranks; i++) {
        int32_t b = coldest + i < seats->num_ranks ? coldest + i : coldest + i - seats->num_ranks;
        if (b == hot || !same_area(around, hot, b))
            continue;
        look_at_rank(around, hot, b, best);
        if (around->home == NULL && best->gain >= around->excess[hot])
            return;
    }
}

change neighbourhood_best(neighbourhood *around, int32_t hot)
{
    change best = {CHANGE_NONE, -1, -1, -1, 0, -INFINITY, -INFINITY};
    if (around->home != NULL) { /* a change of counts costs one received expert, a swap two: dear ones last */
        look_at_counts(around, hot, &best);
        look_at_swaps(around, hot, &best);
        return best;
    }
    look_at_swaps(around, hot, &best);
    if (best.gain < around->excess[hot])
        look_at_counts(around, hot, &best);
    return best;
}

void neighbourhood_apply(neighbourhood *around, const change *step)
{
    if (step->kind == CHANGE_SWAP)
        layout_swap(around->seats, step->slot, step->other);
    else if (step->kind == CHANGE_REASSIGN)
        layout_reassign(around->seats, step->slot, step->expert);
}
