/* Which ranks share an expert.
 *
 * A rank sheds tokens only to ranks it shares an expert with, and those to others: with one spare slot a rank
 * the shared experts are the edges of a graph with two at every rank, and small circles of ranks have nobody
 * else to turn to. The risk of single ranks (risk_search.c) does not see that; T* = max over expert sets of
 * load / reachable ranks does. Shared replicas are exchanged at random while the mean T* of the windows does
 * not rise. Experts of one rank are a single load here, so a flow is small; a window that has just refused an
 * exchange judges the next one first. Cost: about five flows per exchange, a third of the search on 16
 * ranks. */
#include "plan/batch_join.h"

#include <string.h>

#include "base/error.h"
#include "base/random.h"
#include "plan/expert_bits.h"
#include "plan/min_max_split.h"

#define SEED         UINT64_C(5)
#define MOST_WINDOWS 16  /* of more, some are taken, evenly spaced */
#define MOST_UNITS   64  /* per token: an exact split in whole units is then as good as the fraction */
#define STEPS_PART   128 /* of the search's steps, divided by the ranks, for one exchange */

/* The bundles of a graph: every shared expert, then for every rank what is pinned to it. */
typedef struct join_case {
    const layer_problem *problem;
    const int32_t *rank_speed; /* [G] or NULL: all equal */
    int32_t num_shared;
    int32_t num_replicas; /* of the shared experts */
    int32_t num_windows;
    int32_t *bundle; /* [E] of each expert */
    int32_t *shared; /* [shared] experts */
    int32_t *first;  /* [shared + G + 1] */
    int32_t *rank;   /* [replicas + G] */
    int32_t *slot;   /* [replicas] */
    int32_t *owner;  /* [replicas] the bundle */
    int64_t *load;   /* [windows, shared + G] units */
    double *weight;  /* [windows] times units per speed is an imbalance */
    double *least;   /* [windows] imbalance that the pinned experts make whatever is exchanged */
    int32_t *order;  /* [windows] who judges first */
    min_max_result result;
    const uint64_t *home; /* [G, words] experts that ranks have received already, or NULL: moves are free */
    int32_t words;
    int64_t left; /* experts that may yet be received, with `home` */
} join_case;

static bool take_arrays(join_case *join, arena *scratch)
{
    const layer_problem *problem = join->problem;
    size_t experts = (size_t)problem->num_experts, slots = (size_t)problem->num_slots;
    size_t bundles = slots + (size_t)problem->num_ranks, windows = MOST_WINDOWS;
    join->bundle = arena_take(scratch, experts, sizeof(int32_t));
    join->shared = arena_take(scratch, slots, sizeof(int32_t));
    join->first = arena_take_zero(scratch, bundles + 1, sizeof(int32_t));
    join->rank = arena_take(scratch, bundles, sizeof(int32_t));
    join->slot = arena_take(scratch, slots, sizeof(int32_t));
    join->owner = arena_take(scratch, slots, sizeof(int32_t));
    join->load = arena_take_zero(scratch, windows * bundles, sizeof(int64_t));
    join->weight = arena_take(scratch, windows, sizeof(double));
    join->least = arena_take(scratch, windows, sizeof(double));
    join->order = arena_take(scratch, windows, sizeof(int32_t));
    join->result.quota = arena_take(scratch, bundles, sizeof(int64_t));
    join->result.rank_load = arena_take(scratch, (size_t)problem->num_ranks, sizeof(int64_t));
    return join->bundle != NULL && join->shared != NULL && join->first != NULL && join->rank != NULL &&
           join->slot != NULL && join->owner != NULL && join->load != NULL && join->weight != NULL &&
           join->least != NULL && join->order != NULL && join->result.quota != NULL &&
           join->result.rank_load != NULL;
}

/* Bundles and their replicas, by expert and slot. False when memory is out. */
static bool read_placement(join_case *join, const int32_t *expert, arena *scratch)
{
    const layer_problem *problem = join->problem;
    int32_t *begin = arena_take_zero(scratch, (size_t)problem->num_experts + 2, sizeof *begin);
    int32_t *sorted = arena_take(scratch, (size_t)problem->num_slots, sizeof *sorted);
    if (begin == NULL || sorted == NULL)
        return false;
    for (int32_t p = 0; p < problem->num_slots; p++)
        begin[expert[p] >= 0 ? expert[p] + 2 : 0]++;
    begin[0] = 0;
    for (int32_t e = 0; e < problem->num_experts; e++)
        begin[e + 2] += begin[e + 1];
    for (int32_t p = 0; p < problem->num_slots; p++) {
        if (expert[p] >= 0)
            sorted[begin[expert[p] + 1]++] = p;
    }
    for (int32_t e = 0; e < problem->num_experts; e++) {
        if (begin[e + 1] - begin[e] < 2)
            continue;
        join->bundle[e] = join->num_shared;
        join->shared[join->num_shared] = e;
        for (int32_t i = begin[e]; i < begin[e + 1]; i++) {
            join->slot[join->num_replicas] = sorted[i];
            join->owner[join->num_replicas] = join->num_shared;
            join->rank[join->num_replicas++] = problem->slot_rank[sorted[i]];
        }
        join->first[++join->num_shared] = join->num_replicas;
    }
    for (int32_t e = 0; e < problem->num_experts; e++) {
        if (begin[e + 1] - begin[e] == 1)
            join->bundle[e] = join->num_shared + problem->slot_rank[sorted[begin[e]]];
    }
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        join->rank[join->num_replicas + g] = g;
        join->first[join->num_shared + g + 1] = join->num_replicas + g + 1;
    }
    return true;
}

/* Loads of the bundles in one window; the window is left out if it has no tokens. */
static void read_window(join_case *join, const int64_t *window, int64_t unit)
{
    const layer_problem *problem = join->problem;
    int32_t n = join->num_windows, ranks = problem->num_ranks;
    int64_t *load = join->load + (size_t)n * (size_t)(join->num_shared + ranks), total = 0;
    for (int32_t e = 0; e < problem->num_experts; e++) {
        load[join->bundle[e]] += window[e] * unit;
        total += window[e] * unit;
    }
    if (total == 0)
        return;
    const int32_t *speed = join->rank_speed;
    double weight = (double)(speed != NULL ? problem->total_speed : ranks) / (double)total, least = 1.0;
    for (int32_t g = 0; g < ranks; g++) {
        double pinned = (double)load[join->num_shared + g] / (speed != NULL ? (double)speed[g] : 1.0);
        least = pinned * weight > least ? pinned * weight : least;
    }
    join->weight[n] = weight;
    join->least[n] = least;
    join->order[n] = n;
    join->num_windows++;
}

static void read_windows(join_case *join)
{
    const layer_problem *problem = join->problem;
    int64_t unit = 1;
    while (unit < MOST_UNITS && problem->total <= INT64_MAX / 8 / unit)
        unit *= 2;
    int32_t most = problem->num_windows < MOST_WINDOWS ? problem->num_windows : MOST_WINDOWS;
    for (int32_t i = 0; i < most; i++) {
        size_t t = (size_t)((int64_t)i * problem->num_windows / most);
        read_window(join, problem->window_load + t * (size_t)problem->num_experts, unit);
    }
}

/* Sum over windows of the imbalance that exact splits reach, or something above `bar` if it is above that.
 * Negative: memory is out. */
static double measure(join_case *join, double bar, arena *scratch)
{
    const layer_problem *problem = join->problem;
    arena_mark mark = arena_position(scratch);
    int32_t bundles = join->num_shared + problem->num_ranks;
    min_max_graph graph;
    double sum = 0.0;
    if (!min_max_graph_init(&graph, bundles, problem->num_ranks, join->first, join->rank, join->rank_speed,
                            scratch))
        return -1.0;
    for (int32_t t = 0; t < join->num_windows; t++)
        sum += join->least[t];
    for (int32_t i = 0; i < join->num_windows && sum <= bar; i++) {
        int32_t t = join->order[i];
        const int64_t *load = join->load + (size_t)t * (size_t)bundles;
        if (!min_max_split(&graph, load, NULL, false, scratch, &join->result))
            return -1.0;
        double level = (double)join->result.max_load / (double)join->result.max_speed * join->weight[t];
        sum += level - join->least[t];
        if (sum > bar) {
            memmove(join->order + 1, join->order, (size_t)i * sizeof *join->order);
            join->order[0] = t;
        }
    }
    arena_rewind(scratch, mark);
    return sum;
}

static bool holds(const join_case *join, int32_t shared, int32_t rank)
{
    for (int32_t i = join->first[shared]; i < join->first[shared + 1]; i++) {
        if (join->rank[i] == rank)
            return true;
    }
    return false;
}

static int32_t is_received(const join_case *join, int32_t shared, int32_t rank)
{
    return !expert_bits_has(join->home, join->words, rank, join->shared[shared]);
}

/* Experts that exchanging i and j has to receive anew, less those that it no longer has to. */
static int32_t received_by(const join_case *join, int32_t i, int32_t j)
{
    int32_t a = join->rank[i], b = join->rank[j], x = join->owner[i], y = join->owner[j];
    return join->home == NULL ? 0
                              : is_received(join, x, b) - is_received(join, x, a) + is_received(join, y, a) -
                                    is_received(join, y, b);
}

static bool may_exchange(const join_case *join, int32_t i, int32_t j)
{
    const layer_problem *problem = join->problem;
    bool node_limited = layer_binds_groups(problem);
    int32_t a = join->rank[i], b = join->rank[j];
    return a != b && join->owner[i] != join->owner[j] &&
           (!node_limited || problem->rank_node[a] == problem->rank_node[b]) &&
           !holds(join, join->owner[i], b) && !holds(join, join->owner[j], a) &&
           received_by(join, i, j) <= (join->left > 0 ? join->left : 0);
}

static void exchange(join_case *join, int32_t i, int32_t j)
{
    int32_t rank = join->rank[i], slot = join->slot[i];
    join->left -= received_by(join, i, j);
    join->rank[i] = join->rank[j];
    join->slot[i] = join->slot[j];
    join->rank[j] = rank;
    join->slot[j] = slot;
}

/* Draws exchanges; false when memory is out. */
static bool search(join_case *join, int64_t tries, arena *scratch)
{
    const layer_problem *problem = join->problem;
    random_state random = random_seed(SEED);
    double best = measure(join, (double)INT64_MAX, scratch);
    for (int64_t k = 0; k < tries && best >= 0.0; k++) {
        int32_t i = (int32_t)random_below(&random, (uint32_t)join->num_replicas);
        int32_t j = (int32_t)random_below(&random, (uint32_t)join->num_replicas);
        if (problem->should_stop != NULL && problem->should_stop(problem->stop_context))
            break;
        if (!may_exchange(join, i, j))
            continue;
        exchange(join, i, j);
        double sum = measure(join, best, scratch);
        if (sum <= best)
            best = sum;
        else
            exchange(join, i, j);
    }
    return best >= 0.0;
}

static void limit_moves(join_case *join, const int32_t *expert, const uint64_t *home, int64_t purse)
{
    const layer_problem *problem = join->problem;
    join->home = home;
    join->words = expert_bits_words(problem->num_experts);
    join->left = purse;
    for (int32_t p = 0; home != NULL && p < problem->num_slots; p++)
        join->left -= expert[p] >= 0 && !expert_bits_has(home, join->words, problem->slot_rank[p], expert[p]);
}

eplb_status batch_join(const layer_problem *problem, int32_t *expert, int64_t steps, const uint64_t *home,
                       int64_t purse, arena *scratch, eplb_error *error)
{
    join_case join = {.problem = problem, .rank_speed = problem->uniform_speed ? NULL : problem->rank_speed};
    if (!take_arrays(&join, scratch) || !read_placement(&join, expert, scratch))
        return error_memory(error, (size_t)problem->num_slots * sizeof(int64_t), "joining the ranks");
    if (join.num_shared < 2)
        return EPLB_OK;
    read_windows(&join);
    limit_moves(&join, expert, home, purse);
    if (!search(&join, steps / STEPS_PART / problem->num_ranks, scratch))
        return error_memory(error, (size_t)problem->num_slots * sizeof(int64_t), "joining the ranks");
    for (int32_t i = 0; i < join.num_replicas; i++)
        expert[join.slot[i]] = join.shared[join.owner[i]];
    return EPLB_OK;
}
