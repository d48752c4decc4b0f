/* The classical greedy start: heaviest replica first, onto the lightest rank with room.
 *
 * All replicas of an expert are dealt together: a rank that took one leaves the tournament until the last is
 * placed, so that no rank takes two. Within 4/3 of the optimum without slot limits (LPT, Graham 1969); the
 * search does the rest. O(E + S log G); with rank speeds every choice looks at all ranks. */
#include "plan/lightest_first.h"

#include <string.h>

#include "base/error.h"
#include "plan/descending.h"
#include "plan/tournament.h"

typedef struct deal_state {
    const layer_problem *problem;
    int32_t *expert;
    int32_t *used;   /* [G] slots filled */
    double *load;    /* [G] */
    int32_t *taken;  /* [G] ranks that took a replica of the expert being dealt */
    int32_t *stamp;  /* [G] last expert dealt to the rank, + 1 */
    tournament tree; /* equal speeds only: key is the load's upper bits and the rank */
} deal_state;

#define RANK_BITS UINT64_C(0xfffff)

static uint64_t load_key(double load, int32_t rank)
{
    uint64_t bits;
    memcpy(&bits, &load, sizeof bits); /* non-negative doubles sort as their bits */
    return (bits & ~RANK_BITS) | (uint64_t)rank;
}

static void put(deal_state *dealer, int32_t rank, int32_t expert, double load)
{
    dealer->expert[dealer->problem->first_slot[rank] + dealer->used[rank]++] = expert;
    dealer->load[rank] += load;
}

static bool has_room(const deal_state *dealer, int32_t rank)
{
    const int32_t *first = dealer->problem->first_slot;
    return dealer->used[rank] < first[rank + 1] - first[rank];
}

/* Deals up to `count` replicas to the lightest ranks; true if all found room. */
static bool deal(deal_state *dealer, int32_t expert, int32_t count, double load)
{
    int32_t placed = 0;
    for (; placed < count; placed++) {
        uint64_t least = tournament_least(&dealer->tree);
        if (least == TOURNAMENT_LAST)
            break;
        int32_t rank = (int32_t)(least & RANK_BITS);
        put(dealer, rank, expert, load);
        dealer->taken[placed] = rank;
        tournament_replace(&dealer->tree, (uint32_t)rank, TOURNAMENT_LAST);
    }
    for (int32_t i = 0; i < placed; i++) {
        int32_t rank = dealer->taken[i];
        if (has_room(dealer, rank))
            tournament_replace(&dealer->tree, (uint32_t)rank, load_key(dealer->load[rank], rank));
    }
    return placed == count;
}

/* The same with rank speeds: the rank that would finish first. */
static bool deal_by_speed(deal_state *dealer, int32_t expert, int32_t count, double load)
{
    const layer_problem *problem = dealer->problem;
    for (int32_t placed = 0; placed < count; placed++) {
        int32_t best = -1;
        double least = 0;
        for (int32_t g = 0; g < problem->num_ranks; g++) {
            if (!has_room(dealer, g) || dealer->stamp[g] == expert + 1)
                continue;
            double time = (dealer->load[g] + load) / problem->rank_speed[g];
            if (best < 0 || time < least) {
                best = g;
                least = time;
            }
        }
        if (best < 0)
            return false;
        dealer->stamp[best] = expert + 1;
        put(dealer, best, expert, load);
    }
    return true;
}

static bool rank_holds(const deal_state *dealer, int32_t rank, int32_t expert)
{
    int32_t first = dealer->problem->first_slot[rank];
    for (int32_t i = 0; i < dealer->used[rank]; i++) {
        if (dealer->expert[first + i] == expert)
            return true;
    }
    return false;
}

/* Gives slots left over by replicas without room to the heaviest experts that their ranks do not hold. */
static void fill_rest(deal_state *dealer, const int32_t *order, const double *replica_load)
{
    const layer_problem *problem = dealer->problem;
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        for (int32_t i = 0; i < problem->num_experts && has_room(dealer, g); i++) {
            int32_t e = order[i];
            if (!rank_holds(dealer, g, e))
                put(dealer, g, e, replica_load[e]);
        }
    }
}

static eplb_status dealer_init(deal_state *dealer, const layer_problem *problem, int32_t *expert,
                               arena *scratch, eplb_error *error)
{
    size_t ranks = (size_t)problem->num_ranks;
    dealer->problem = problem;
    dealer->expert = expert;
    dealer->used = arena_take_zero(scratch, ranks, sizeof *dealer->used);
    dealer->load = arena_take_zero(scratch, ranks, sizeof *dealer->load);
    dealer->taken = arena_take(scratch, ranks, sizeof *dealer->taken);
    dealer->stamp = arena_take_zero(scratch, ranks, sizeof *dealer->stamp);
    dealer->tree = tournament_take(scratch, problem->num_ranks);
    if (dealer->used == NULL || dealer->load == NULL || dealer->taken == NULL || dealer->stamp == NULL ||
        dealer->tree.node == NULL)
        return error_memory(error, ranks * sizeof *dealer->load, "first placement");
    for (int32_t g = 0; g < problem->num_ranks; g++)
        tournament_set(&dealer->tree, g, has_room(dealer, g) ? load_key(0, g) : TOURNAMENT_LAST);
    tournament_build(&dealer->tree);
    for (int32_t p = 0; p < problem->num_slots; p++)
        expert[p] = -1;
    return EPLB_OK;
}

/* order[E]: heaviest replicas first. Single precision is enough for a start. */
static eplb_status heaviest_order(const double *replica_load, int32_t n, int32_t *order, arena *scratch,
                                  eplb_error *error)
{
    float *weight = arena_take(scratch, (size_t)n, sizeof *weight);
    if (weight == NULL)
        return error_memory(error, (size_t)n * sizeof *weight, "order of replicas");
    for (int32_t e = 0; e < n; e++)
        weight[e] = (float)replica_load[e];
    return order_descending(weight, n, scratch, order, error);
}

eplb_status lightest_first(const layer_problem *problem, const int32_t *count, const double *replica_load,
                           int32_t *expert, arena *scratch, eplb_error *error)
{
    int32_t n = problem->num_experts;
    int32_t *order = arena_take(scratch, (size_t)n, sizeof *order);
    if (order == NULL)
        return error_memory(error, (size_t)n * sizeof *order, "order of replicas");
    deal_state dealer;
    eplb_status status = heaviest_order(replica_load, n, order, scratch, error);
    if (status == EPLB_OK)
        status = dealer_init(&dealer, problem, expert, scratch, error);
    if (status != EPLB_OK)
        return status;
    bool complete = true;
    int32_t dealt = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t e = order[i];
        complete &= problem->uniform_speed ? deal(&dealer, e, count[e], replica_load[e])
                                           : deal_by_speed(&dealer, e, count[e], replica_load[e]);
        dealt += count[e];
    }
    if (!complete || dealt < problem->num_slots)
        fill_rest(&dealer, order, replica_load);
    return EPLB_OK;
}
