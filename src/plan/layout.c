/* Changing a placement step by step with exact sums.
 *
 * Loads are whole numbers in doubles (replica_work.h), so adding and taking away leaves no residue and a
 * change undone restores every bit. The replicas of an expert are chained through their slots: a change of a
 * count visits only the ranks it concerns. */
#include "plan/layout.h"

#include <string.h>

#include "base/error.h"

static int32_t ranks_with_slots(const layer_problem *problem)
{
    int32_t n = 0;
    for (int32_t g = 0; g < problem->num_ranks; g++)
        n += problem->first_slot[g + 1] > problem->first_slot[g];
    return n;
}

static double *inverse_speeds(const layer_problem *problem, arena *scratch)
{
    double *inverse = arena_take(scratch, (size_t)problem->num_ranks, sizeof *inverse);
    if (inverse != NULL) {
        for (int32_t g = 0; g < problem->num_ranks; g++)
            inverse[g] = problem->uniform_speed ? 1 : 1 / (double)problem->rank_speed[g];
    }
    return inverse;
}

eplb_status layout_init(layout *seats, const layer_problem *problem, const replica_work *work, arena *scratch,
                        eplb_error *error)
{
    size_t slots = (size_t)problem->num_slots, experts = (size_t)problem->num_experts;
    size_t ranks = (size_t)problem->num_ranks, words = (size_t)expert_bits_words(problem->num_experts);
    double *inverse = inverse_speeds(problem, scratch);
    *seats = (layout){
        .work = work,
        .num_experts = problem->num_experts,
        .num_ranks = problem->num_ranks,
        .num_slots = problem->num_slots,
        .max_count = ranks_with_slots(problem),
        .first_slot = problem->first_slot,
        .slot_rank = problem->slot_rank,
        .inverse_speed = inverse,
        .expert = arena_take(scratch, slots, sizeof *seats->expert),
        .slot_load = arena_take(scratch, slots, sizeof *seats->slot_load),
        .rank_load = arena_take(scratch, ranks, sizeof *seats->rank_load),
        .sorted_slot = arena_take(scratch, slots, sizeof *seats->sorted_slot),
        .sorted_load = arena_take(scratch, slots, sizeof *seats->sorted_load),
        .count = arena_take(scratch, experts, sizeof *seats->count),
        .replica_load = arena_take(scratch, experts, sizeof *seats->replica_load),
        .fewer_load = arena_take(scratch, experts, sizeof *seats->fewer_load),
        .more_load = arena_take(scratch, experts, sizeof *seats->more_load),
        .first = arena_take(scratch, experts, sizeof *seats->first),
        .next = arena_take(scratch, slots, sizeof *seats->next),
        .previous = arena_take(scratch, slots, sizeof *seats->previous),
        .holds = arena_take(scratch, ranks * words, sizeof *seats->holds),
        .words = (int32_t)words,
    };
    bool complete = inverse != NULL && seats->expert != NULL && seats->slot_load != NULL &&
                    seats->rank_load != NULL && seats->sorted_slot != NULL && seats->sorted_load != NULL &&
                    seats->count != NULL && seats->replica_load != NULL && seats->fewer_load != NULL &&
                    seats->more_load != NULL && seats->first != NULL && seats->next != NULL &&
                    seats->previous != NULL && seats->holds != NULL;
    return complete ? EPLB_OK : error_memory(error, ranks * words * sizeof *seats->holds, "layer layout");
}

static void chain(layout *seats, int32_t slot, int32_t expert)
{
    int32_t head = seats->first[expert];
    seats->next[slot] = head;
    seats->previous[slot] = -1;
    if (head >= 0)
        seats->previous[head] = slot;
    seats->first[expert] = slot;
}

static void unchain(layout *seats, int32_t slot, int32_t expert)
{
    int32_t next = seats->next[slot], previous = seats->previous[slot];
    if (previous >= 0)
        seats->next[previous] = next;
    else
        seats->first[expert] = next;
    if (next >= 0)
        seats->previous[next] = previous;
}

/* Brings the order of a rank's slots up to date. Few loads have changed since it was right: insertion
 * sort. */
static void sort_rank(layout *seats, int32_t rank)
{
    int32_t start = seats->first_slot[rank], end = seats->first_slot[rank + 1];
    for (int32_t i = start; i < end; i++) {
        int32_t slot = seats->sorted_slot[i], j = i;
        double load = seats->slot_load[slot];
        for (; j > start && seats->sorted_load[j - 1] < load; j--) {
            seats->sorted_load[j] = seats->sorted_load[j - 1];
            seats->sorted_slot[j] = seats->sorted_slot[j - 1];
        }
        seats->sorted_load[j] = load;
        seats->sorted_slot[j] = slot;
    }
}

/* Looks up what a replica costs at this count, one less and one more. */
static void price_counts(layout *seats, int32_t expert)
{
    int32_t count = seats->count[expert];
    seats->replica_load[expert] = count > 0 ? replica_work_at(seats->work, expert, count) : 0;
    seats->fewer_load[expert] = count > 1 ? replica_work_at(seats->work, expert, count - 1) : 0;
    seats->more_load[expert] = replica_work_at(seats->work, expert, count + 1);
}

void layout_set(layout *seats, const int32_t *expert)
{
    memset(seats->count, 0, (size_t)seats->num_experts * sizeof *seats->count);
    memset(seats->holds, 0, (size_t)seats->num_ranks * (size_t)seats->words * sizeof *seats->holds);
    for (int32_t e = 0; e < seats->num_experts; e++)
        seats->first[e] = -1;
    for (int32_t p = seats->num_slots; p-- > 0;) {
        int32_t e = expert[p];
        seats->expert[p] = e;
        if (e < 0)
            continue;
        seats->count[e]++;
        chain(seats, p, e);
        expert_bits_add(seats->holds, seats->words, seats->slot_rank[p], e);
    }
    for (int32_t e = 0; e < seats->num_experts; e++)
        price_counts(seats, e);
    for (int32_t g = 0; g < seats->num_ranks; g++) {
        double sum = 0;
        for (int32_t p = seats->first_slot[g]; p < seats->first_slot[g + 1]; p++) {
            int32_t e = seats->expert[p];
            seats->slot_load[p] = e >= 0 ? seats->replica_load[e] : 0;
            seats->sorted_slot[p] = p;
            sum += seats->slot_load[p];
        }
        seats->rank_load[g] = sum;
        sort_rank(seats, g);
    }
}

/* Puts an expert (or nothing) into an empty slot without touching counts. */
static void seat(layout *seats, int32_t slot, int32_t expert, double load)
{
    seats->expert[slot] = expert;
    seats->slot_load[slot] = load;
    if (expert < 0)
        return;
    chain(seats, slot, expert);
    expert_bits_add(seats->holds, seats->words, seats->slot_rank[slot], expert);
}

static void unseat(layout *seats, int32_t slot, int32_t expert)
{
    if (expert < 0)
        return;
    unchain(seats, slot, expert);
    expert_bits_remove(seats->holds, seats->words, seats->slot_rank[slot], expert);
}

void layout_swap(layout *seats, int32_t slot, int32_t other)
{
    int32_t a = seats->expert[slot], b = seats->expert[other];
    double a_load = seats->slot_load[slot], b_load = seats->slot_load[other];
    unseat(seats, slot, a);
    unseat(seats, other, b);
    seat(seats, slot, b, b_load);
    seat(seats, other, a, a_load);
    seats->rank_load[seats->slot_rank[slot]] += b_load - a_load;
    seats->rank_load[seats->slot_rank[other]] += a_load - b_load;
    sort_rank(seats, seats->slot_rank[slot]);
    sort_rank(seats, seats->slot_rank[other]);
}

/* Gives an expert a count and every holder the new work of a replica. */
static void recount(layout *seats, int32_t expert, int32_t count)
{
    double before = seats->replica_load[expert];
    seats->count[expert] = count;
    price_counts(seats, expert);
    double load = seats->replica_load[expert], step = load - before;
    for (int32_t p = seats->first[expert]; p >= 0; p = seats->next[p]) {
        seats->slot_load[p] = load;
        seats->rank_load[seats->slot_rank[p]] += step;
        sort_rank(seats, seats->slot_rank[p]);
    }
}

void layout_reassign(layout *seats, int32_t slot, int32_t expert)
{
    int32_t old = seats->expert[slot], rank = seats->slot_rank[slot];
    seats->rank_load[rank] -= seats->slot_load[slot];
    unseat(seats, slot, old);
    if (old >= 0)
        recount(seats, old, seats->count[old] - 1);
    if (expert >= 0)
        recount(seats, expert, seats->count[expert] + 1);
    double load = expert >= 0 ? seats->replica_load[expert] : 0;
    seat(seats, slot, expert, load);
    seats->rank_load[rank] += load;
    sort_rank(seats, rank);
}

double layout_hottest(const layout *seats, int32_t *rank)
{
    double most = -1;
    int32_t hottest = 0;
    for (int32_t g = 0; g < seats->num_ranks; g++) {
        double time = seats->rank_load[g] * seats->inverse_speed[g];
        if (time > most) {
            most = time;
            hottest = g;
        }
    }
    *rank = hottest;
    return most;
}
