/* Plans for many windows on random input: what is promised holds, and tiny layers come close to the optimum
 * that enumeration finds.
 *
 * Promised: valid, moves within the limit, on the recorded windows never worse than keeping the current
 * placement, the same answer again and with threads, and never more spilled replicas than allowed. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <eplb/eplb.h>

#include "../nouns.h"
#include "base/random.h"

enum { MOST_WINDOWS = 8, MOST_EXPERTS = 32, MOST_RANKS = 6, MOST_SLOTS = 5, CASES = 1500 };

typedef struct window_case {
    int64_t counts[MOST_WINDOWS * MOST_EXPERTS];
    int32_t windows, experts, ranks, slots, nodes;
    eplb_load *load;
    eplb_topology *topology;
    eplb_placement *current; /* or NULL */
    eplb_plan_params params;
} window_case;

static random_state dice;

static int32_t pick(int32_t least, int32_t most)
{
    return least + (int32_t)random_below(&dice, (uint32_t)(most - least + 1));
}

static void draw_counts(window_case *c)
{
    int32_t kind = pick(0, 4);
    for (int32_t i = 0; i < c->windows * c->experts; i++)
        c->counts[i] = kind == 0   ? pick(0, 3)
                       : kind == 1 ? pick(0, 1000)
                       : kind == 2 ? (pick(0, 5) == 0 ? pick(0, 5000) : pick(0, 20))
                       : kind == 3 ? (int64_t)(random_next(&dice) >> pick(14, 50))
                                   : 5;
    if (pick(0, 9) == 0)
        memset(c->counts, 0, sizeof c->counts / 2); /* windows without tokens */
}

static void draw_topology(window_case *c)
{
    int32_t slots[MOST_RANKS], speeds[MOST_RANKS], k = pick(1, MOST_SLOTS);
    eplb_topology_params params;
    eplb_topology_params_init(&params, sizeof params);
    params.num_ranks = c->ranks = pick(1, MOST_RANKS);
    params.num_nodes = c->nodes = c->ranks % 2 == 0 ? pick(1, 2) : 1;
    params.slots_per_rank = k;
    c->slots = 0;
    for (int32_t g = 0; g < c->ranks; g++) {
        slots[g] = pick(g == 0 ? 1 : 0, MOST_SLOTS);
        speeds[g] = pick(1, 3);
        c->slots += slots[g];
    }
    bool uneven = pick(0, 2) == 0;
    c->slots = uneven ? c->slots : k * c->ranks;
    params.rank_slots = uneven ? slots : NULL;
    params.rank_speed = pick(0, 2) == 0 ? speeds : NULL;
    c->topology = NULL;
    assert_int_equal(eplb_topology_create(&c->topology, &params, NULL, NULL), EPLB_OK);
}

static void draw_case(window_case *c)
{
    static const char *const names[] = {"windows", "batch", "spill", "auto"};
    draw_topology(c);
    c->experts = pick(1, c->slots < MOST_EXPERTS ? c->slots : MOST_EXPERTS);
    c->windows = pick(1, MOST_WINDOWS);
    eplb_plan_params_init(&c->params, sizeof c->params);
    c->params.policy = names[pick(0, 3)];
    c->params.split = pick(0, 1) == 0 ? EPLB_SPLIT_EQUAL : EPLB_SPLIT_BATCH;
    if (strcmp(c->params.policy, "windows") == 0)
        c->params.split = EPLB_SPLIT_EQUAL;
    if (strcmp(c->params.policy, "batch") == 0)
        c->params.split = EPLB_SPLIT_BATCH;
    if (strcmp(c->params.policy, "spill") == 0 && pick(0, 2) == 0)
        c->params.split = EPLB_SPLIT_WEIGHTED;
    if (c->nodes > 1 && pick(0, 2) > 0) {
        c->params.num_groups = pick(1, 2) * 2;
        c->experts -= c->experts % c->params.num_groups;
        if (c->experts == 0) {
            c->experts = 1;
            c->params.num_groups = 1;
        }
        c->params.max_spill = pick(0, 3);
    }
    draw_counts(c);
    c->params.work_limit = pick(0, 1) == 0 ? 500 : 3000;
    c->load = case_load(c->windows, 1, c->experts, c->counts);
    c->current = NULL;
    if (pick(0, 1) == 0)
        assert_int_equal(eplb_placement_create_initial(&c->current, c->topology, 1, c->experts, NULL, NULL),
                         EPLB_OK);
    c->params.current = c->current;
    if (c->current != NULL && pick(0, 2) > 0)
        c->params.max_moves_per_layer = pick(0, 6);
}

static void drop_case(window_case *c)
{
    eplb_placement_destroy(c->current);
    eplb_topology_destroy(c->topology);
    eplb_load_destroy(c->load);
}

/* Mean over windows with tokens, computed from the placement alone. */
static double mean_of_windows(const window_case *c, const eplb_placement *placement)
{
    double rank[MOST_RANKS], sum = 0.0;
    int32_t windows = 0;
    for (int32_t t = 0; t < c->windows; t++) {
        int64_t total = 0;
        for (int32_t e = 0; e < c->experts; e++)
            total += c->counts[t * c->experts + e];
        if (total == 0)
            continue;
        assert_int_equal(eplb_rank_load(c->load, 0, t, placement, NULL, rank, NULL, NULL), EPLB_OK);
        sum += eplb_imbalance(c->topology, rank);
        windows++;
    }
    return windows > 0 ? sum / windows : 1.0;
}

static double mean_of_splits(const window_case *c, const eplb_placement *placement)
{
    int64_t quota[MOST_RANKS * MOST_SLOTS];
    double sum = 0.0, speed = 0.0;
    int32_t windows = 0;
    bool alike = true;
    const int32_t *speeds = eplb_topology_rank_speed(c->topology);
    for (int32_t g = 0; g < c->ranks; g++) {
        speed += speeds[g];
        alike = alike && speeds[g] == speeds[0];
    }
    eplb_resplit *split = NULL;
    assert_int_equal(eplb_resplit_create(&split, placement, 0, NULL, NULL), EPLB_OK);
    for (int32_t t = 0; t < c->windows; t++) {
        eplb_resplit_result result;
        double total = 0.0;
        for (int32_t e = 0; e < c->experts; e++)
            total += (double)c->counts[t * c->experts + e];
        if (!(total > 0.0))
            continue;
        assert_int_equal(eplb_resplit_solve(split, c->counts + t * c->experts, false, quota, &result, NULL),
                         EPLB_OK);
        sum += (double)result.bound_load / (double)result.bound_speed / (total / (alike ? c->ranks : speed));
        windows++;
    }
    eplb_resplit_destroy(split);
    return windows > 0 ? sum / windows : 1.0;
}

/* Half the groups fit on either node. */
static bool groups_fit(const window_case *c)
{
    const int32_t *first = eplb_topology_first_slot(c->topology);
    int32_t half = first[c->ranks / 2], least = half < c->slots - half ? half : c->slots - half;
    return c->params.num_groups > 1 && least >= c->experts / 2;
}

/* On the recorded windows no plan is worse than keeping, but where groups must go back to a node. More slots
 * on a rank than experts: keeping may mean an expert twice on a rank, which no plan of ours does. */
static void check_never_worse(const window_case *c, const eplb_placement *placement, const char *what)
{
    bool windows = c->params.split == EPLB_SPLIT_EQUAL && c->windows > 1;
    bool batch = c->params.split == EPLB_SPLIT_BATCH;
    if (c->current == NULL || eplb_placement_is_valid(c->current, NULL) != EPLB_OK ||
        c->experts < MOST_SLOTS || c->params.num_groups > 1 || (!windows && !batch))
        return;
    double before = windows ? mean_of_windows(c, c->current) : mean_of_splits(c, c->current);
    double after = windows ? mean_of_windows(c, placement) : mean_of_splits(c, placement);
    if (after > before * (1.0 + 1e-9))
        fail_msg("%s: %.6f after %.6f", what, after, before);
}

static void check_case(const window_case *c, const eplb_plan *plan, const char *what)
{
    const eplb_placement *placement = eplb_plan_placement(plan);
    if (eplb_plan_is_valid(plan, NULL) != EPLB_OK || eplb_placement_is_valid(placement, NULL) != EPLB_OK)
        fail_msg("%s: invalid", what);
    if (c->current != NULL && c->params.max_moves_per_layer != EPLB_UNLIMITED &&
        eplb_plan_moves(plan).received > c->params.max_moves_per_layer)
        fail_msg("%s: too many moves", what);
    if (c->current == NULL && groups_fit(c) && eplb_plan_spilled(plan) > c->params.max_spill)
        fail_msg("%s: %d spilled", what, (int)eplb_plan_spilled(plan));
    check_never_worse(c, placement, what);
}

static void test_promises(void **state)
{
    (void)state;
    dice = random_seed(404);
    int planned = 0;
    for (int i = 0; i < CASES; i++) {
        window_case c;
        char what[96];
        eplb_plan *plan = NULL, *again = NULL;
        eplb_error error;
        draw_case(&c);
        (void)snprintf(what, sizeof what, "case %d, %s, split %d", i, c.params.policy, (int)c.params.split);
        eplb_status status = eplb_plan_create(&plan, c.load, c.topology, &c.params, NULL, &error);
        if (status != EPLB_OK && status != EPLB_ERROR_UNSUPPORTED)
            fail_msg("%s: %s", what, error.text);
        if (status == EPLB_OK) {
            planned++;
            check_case(&c, plan, what);
            assert_int_equal(eplb_plan_create(&again, c.load, c.topology, &c.params, NULL, &error), EPLB_OK);
            assert_true(eplb_plan_equal(plan, again));
        }
        eplb_plan_destroy(again);
        eplb_plan_destroy(plan);
        drop_case(&c);
    }
    assert_true(planned > CASES * 3 / 4);
}

/* --- more moves never make a plan worse --- */

enum { MOVES_CASES = 12, MOST_MOVES = 20 };

static void check_moves(window_case *c)
{
    eplb_topology *topology = c->topology;
    double before = INFINITY;
    for (int64_t moves = 0; moves <= MOST_MOVES; moves++) {
        eplb_plan *plan = NULL;
        c->params.max_moves_per_layer = moves;
        assert_int_equal(eplb_plan_create(&plan, c->load, topology, &c->params, NULL, NULL), EPLB_OK);
        double mean = c->params.split == EPLB_SPLIT_BATCH ? mean_of_splits(c, eplb_plan_placement(plan))
                                                          : mean_of_windows(c, eplb_plan_placement(plan));
        if (mean > before * (1.0 + 1e-9))
            fail_msg("split %d, %d windows, %d moves: %.6f, with one less %.6f", (int)c->params.split,
                     (int)c->windows, (int)moves, mean, before);
        before = mean;
        eplb_plan_destroy(plan);
    }
}

static void test_more_moves(void **state)
{
    (void)state;
    dice = random_seed(19);
    for (int i = 0; i < MOVES_CASES; i++) {
        window_case c = {.experts = 16, .ranks = 6, .slots = 24};
        c.windows = pick(i % 2 == 0 ? 1 : 2, MOST_WINDOWS);
        draw_counts(&c);
        c.topology = case_topology(c.ranks, 1, c.slots / c.ranks);
        c.load = case_load(c.windows, 1, c.experts, c.counts);
        assert_int_equal(eplb_placement_create_initial(&c.current, c.topology, 1, c.experts, NULL, NULL),
                         EPLB_OK);
        eplb_plan_params_init(&c.params, sizeof c.params);
        c.params.split = i % 2 == 0 ? EPLB_SPLIT_BATCH : EPLB_SPLIT_EQUAL;
        c.params.current = c.current;
        c.params.work_limit = 3000;
        check_moves(&c);
        drop_case(&c);
    }
}

/* --- groups stay on their node, whatever the ranks held before --- */

enum {
    NODE_EXPERTS = 32,
    NODE_RANKS = 8,
    NODE_NODES = 4,
    NODE_GROUPS = 8,
    NODE_WINDOWS = 4,
    NODE_CASES = 40
};

static eplb_load *draw_load(int64_t *counts, int32_t windows)
{
    for (int32_t i = 0; i < windows * NODE_EXPERTS; i++)
        counts[i] = pick(0, 3) == 0 ? pick(0, 4000) : pick(0, 400);
    return case_load(windows, 1, NODE_EXPERTS, counts);
}

/* Spilled replicas of a plan from a current one that kept the limit, or that scattered every group. */
static void check_nodes(const eplb_topology *topology, eplb_split split, bool scattered)
{
    int64_t counts[NODE_WINDOWS * NODE_EXPERTS];
    eplb_plan *first = NULL, *plan = NULL;
    eplb_plan_params params;
    eplb_plan_params_init(&params, sizeof params);
    params.num_groups = scattered ? 1 : NODE_GROUPS;
    eplb_load *load = draw_load(counts, 1);
    assert_int_equal(eplb_plan_create(&first, load, topology, &params, NULL, NULL), EPLB_OK);
    eplb_load_destroy(load);
    load = draw_load(counts, pick(split == EPLB_SPLIT_EQUAL ? 2 : 1, NODE_WINDOWS));
    params.split = split;
    params.num_groups = NODE_GROUPS;
    params.max_spill = pick(0, 1) * pick(0, 4);
    params.work_limit = 3000;
    params.current = eplb_plan_placement(first);
    if (!scattered && pick(0, 1) == 0)
        params.max_moves_per_layer = pick(0, 12);
    assert_int_equal(eplb_plan_create(&plan, load, topology, &params, NULL, NULL), EPLB_OK);
    if (eplb_plan_spilled(plan) > params.max_spill)
        fail_msg("split %d, scattered %d, %d windows, moves %d: %d spilled, %d allowed: %s", (int)split,
                 (int)scattered, (int)eplb_load_num_windows(load), (int)params.max_moves_per_layer,
                 (int)eplb_plan_spilled(plan), (int)params.max_spill, eplb_plan_reason(plan));
    eplb_plan_destroy(plan);
    eplb_plan_destroy(first);
    eplb_load_destroy(load);
}

static void test_nodes_with_current(void **state)
{
    (void)state;
    dice = random_seed(41);
    eplb_topology *topology = case_topology(NODE_RANKS, NODE_NODES, 5);
    for (int i = 0; i < NODE_CASES; i++) {
        bool scattered = pick(0, 2) == 0;
        check_nodes(topology, EPLB_SPLIT_BATCH, scattered);
        check_nodes(topology, EPLB_SPLIT_EQUAL, scattered);
    }
    eplb_topology_destroy(topology);
}

/* --- tiny layers against enumeration --- */

enum { TINY_EXPERTS = 4, TINY_RANKS = 3, TINY_SLOTS = 2, TINY_WINDOWS = 3, TINY_CASES = 60 };

static double judge_slots(const window_case *c, const int32_t *slots, bool batch)
{
    eplb_placement *placement = NULL;
    double mean = INFINITY;
    assert_int_equal(eplb_placement_create(&placement, c->topology, 1, c->experts, slots, NULL, NULL),
                     EPLB_OK);
    if (eplb_placement_is_valid(placement, NULL) == EPLB_OK)
        mean = batch ? mean_of_splits(c, placement) : mean_of_windows(c, placement);
    eplb_placement_destroy(placement);
    return mean;
}

/* Least mean over all placements; slots of a rank ascend, so that each set is tried once. */
static double enumerate(const window_case *c, int32_t *slots, int32_t at, bool batch)
{
    if (at == TINY_RANKS * TINY_SLOTS)
        return judge_slots(c, slots, batch);
    double best = INFINITY;
    for (int32_t e = at % TINY_SLOTS == 0 ? 0 : slots[at - 1] + 1; e < TINY_EXPERTS; e++) {
        slots[at] = e;
        double mean = enumerate(c, slots, at + 1, batch);
        best = mean < best ? mean : best;
    }
    return best;
}

static void draw_tiny(window_case *c)
{
    *c = (window_case){.windows = TINY_WINDOWS, .experts = TINY_EXPERTS, .ranks = TINY_RANKS};
    for (int32_t i = 0; i < TINY_WINDOWS * TINY_EXPERTS; i++)
        c->counts[i] = pick(1, 100);
    c->topology = case_topology(TINY_RANKS, 1, TINY_SLOTS);
    c->load = case_load(TINY_WINDOWS, 1, TINY_EXPERTS, c->counts);
}

/* The search aims at windows to come, so the recorded ones need not be met exactly: the excess over the
 * optimum stays small on average. */
static void against_enumeration(const char *policy, eplb_split split, double most_excess)
{
    dice = random_seed(77);
    double excess = 0.0;
    for (int i = 0; i < TINY_CASES; i++) {
        window_case c;
        int32_t slots[TINY_RANKS * TINY_SLOTS];
        draw_tiny(&c);
        eplb_plan *plan = NULL;
        eplb_plan_params_init(&c.params, sizeof c.params);
        c.params.policy = policy;
        c.params.split = split;
        assert_int_equal(eplb_plan_create(&plan, c.load, c.topology, &c.params, NULL, NULL), EPLB_OK);
        bool batch = split == EPLB_SPLIT_BATCH;
        double best = enumerate(&c, slots, 0, batch);
        double reached =
            judge_slots(&c, eplb_placement_physical_to_logical(eplb_plan_placement(plan)), batch);
        assert_true(reached >= best * (1.0 - 1e-12));
        excess += (reached / best - 1.0) / TINY_CASES;
        eplb_plan_destroy(plan);
        drop_case(&c);
    }
    print_message("%s: mean excess over the optimum %.4f\n", policy, excess);
    assert_true(excess < most_excess);
}

static void test_equal_optimum(void **state)
{
    (void)state;
    against_enumeration("windows", EPLB_SPLIT_EQUAL, 0.03);
}

static void test_batch_optimum(void **state)
{
    (void)state;
    against_enumeration("batch", EPLB_SPLIT_BATCH, 0.05);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_promises),           cmocka_unit_test(test_more_moves),
        cmocka_unit_test(test_nodes_with_current), cmocka_unit_test(test_equal_optimum),
        cmocka_unit_test(test_batch_optimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
