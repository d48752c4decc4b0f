/* Policies windows, batch and spill on layers whose good answers are known. */
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "cases.h"

/* Mean over windows of the imbalance of layer 0. */
static double mean_of_windows(const eplb_load *load, const eplb_plan *plan, const eplb_topology *topology)
{
    double rank[64], sum = 0.0;
    for (int32_t t = 0; t < eplb_load_num_windows(load); t++) {
        assert_int_equal(eplb_rank_load(load, 0, t, eplb_plan_placement(plan), NULL, rank, NULL, NULL),
                         EPLB_OK);
        sum += eplb_imbalance(topology, rank);
    }
    return sum / eplb_load_num_windows(load);
}

/* Four experts, two ranks of two slots; 0 and 1 are hot in one window, 2 and 3 in the other. On the sum every
 * pairing is perfect; only pairs from different windows are perfect in each. */
static void test_hot_together_go_apart(void **state)
{
    (void)state;
    const int64_t counts[2][4] = {{90, 90, 10, 10}, {10, 10, 90, 90}};
    eplb_load *load = case_load(2, 1, 4, &counts[0][0]);
    eplb_topology *topology = case_topology(2, 1, 2);
    eplb_plan_params params = case_params("auto", 1);
    eplb_plan *plan;
    eplb_error error;
    assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
    assert_true(mean_of_windows(load, plan, topology) == 1.0);
    eplb_plan_destroy(plan);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
}

/* Five experts on three ranks of two slots, three windows: the annealing of single changes ends at 1.643. Of
 * all placements the best has 1.4757. */
static void test_small_layers_are_looked_through(void **state)
{
    (void)state;
    const int64_t counts[3][5] = {
        {613, 824, 7844, 2864, 1559}, {677, 2168, 302, 291, 10629}, {686, 839, 7149, 3259, 1476}};
    eplb_load *load = case_load(3, 1, 5, &counts[0][0]);
    eplb_topology *topology = case_topology(3, 1, 2);
    eplb_plan_params params = case_params("windows", 1);
    eplb_plan *plan;
    eplb_error error;
    assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
    assert_true(mean_of_windows(load, plan, topology) < 1.47573);
    eplb_plan_destroy(plan);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
}

/* Windows that are one topic or another: clearly better than planning on the sum, by a margin that is far
 * from chance. */
static void test_topics(void **state)
{
    (void)state;
    enum { T = 24, E = 48 };
    static int64_t counts[T * E];
    random_state random = random_seed(21);
    for (int32_t t = 0; t < T; t++) {
        int32_t topic = (int32_t)random_below(&random, 6);
        for (int32_t e = 0; e < E; e++)
            counts[t * E + e] = (e % 6 == topic ? 900 : 100) + random_below(&random, 50);
    }
    eplb_load *load = case_load(T, 1, E, counts);
    eplb_topology *topology = case_topology(8, 1, 7);
    eplb_plan *plan;
    eplb_error error;
    eplb_plan_params params = case_params("equal", 1);
    assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
    double sum = mean_of_windows(load, plan, topology);
    eplb_plan_destroy(plan);
    params.policy = "windows";
    assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
    double windows = mean_of_windows(load, plan, topology);
    assert_true(windows - 1.0 < 0.4 * (sum - 1.0));

    /* from that placement with no move allowed nothing changes; with some it never gets worse */
    eplb_plan *kept;
    params.current = eplb_plan_placement(plan);
    params.max_moves_per_layer = 0;
    assert_int_equal(case_plan(&kept, load, topology, &params, &error), EPLB_OK);
    assert_true(eplb_placement_equal(eplb_plan_placement(kept), eplb_plan_placement(plan)));
    eplb_plan_destroy(kept);
    params.max_moves_per_layer = 5;
    assert_int_equal(case_plan(&kept, load, topology, &params, &error), EPLB_OK);
    assert_true(eplb_plan_moves(kept).received <= 5);
    assert_true(mean_of_windows(load, kept, topology) <= windows);
    eplb_plan_destroy(kept);
    eplb_plan_destroy(plan);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
}

/* Windows that are draws from one mix are planned as their sum, however few they are: what differs is
 * chance. */
static void test_chance_is_not_planned_for(void **state)
{
    (void)state;
    enum { E = 48, TOKENS = 3000 };
    random_state random = random_seed(8);
    eplb_topology *topology = case_topology(8, 1, 7);
    for (int32_t windows = 2; windows <= 8; windows++) {
        static int64_t counts[8 * E];
        memset(counts, 0, sizeof counts);
        for (int32_t i = 0; i < windows * TOKENS; i++) {
            uint32_t a = random_below(&random, E), b = random_below(&random, E);
            counts[i / TOKENS * E + (int32_t)(a < b ? a : b)]++;
        }
        eplb_load *load = case_load(windows, 1, E, counts);
        eplb_plan *sum, *plan;
        eplb_error error;
        eplb_plan_params params = case_params("equal", 1);
        assert_int_equal(case_plan(&sum, load, topology, &params, &error), EPLB_OK);
        params.policy = "windows";
        assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
        assert_true(eplb_placement_equal(eplb_plan_placement(plan), eplb_plan_placement(sum)));
        eplb_plan_destroy(plan);
        eplb_plan_destroy(sum);
        eplb_load_destroy(load);
    }
    eplb_topology_destroy(topology);
}

/* Batch: in each window another expert is hot. A spare replica of every one lets all windows be split
 * evenly; replicas of the hottest sum alone cannot. */
static void test_batch_joins_ranks(void **state)
{
    (void)state;
    const int64_t counts[4][4] = {{400, 0, 0, 0}, {0, 400, 0, 0}, {0, 0, 400, 0}, {0, 0, 0, 400}};
    eplb_load *load = case_load(4, 1, 4, &counts[0][0]);
    eplb_topology *topology = case_topology(4, 1, 2);
    eplb_plan_params params = case_params("auto", 1);
    params.split = EPLB_SPLIT_BATCH;
    eplb_plan *plan;
    eplb_error error;
    assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
    const int32_t *count = eplb_placement_replica_count(eplb_plan_placement(plan));
    for (int32_t e = 0; e < 4; e++)
        assert_int_equal(count[e], 2);
    assert_true(eplb_plan_imbalance(plan)[0] == 1.0);
    eplb_plan_destroy(plan);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
}

/* Two nodes of two ranks, one group each; the first group has nearly all tokens. Inside the nodes 1.8 is the
 * floor; two spilled replicas of its two experts even it out. */
static void test_spill(void **state)
{
    (void)state;
    const int64_t counts[4] = {450, 450, 50, 50};
    eplb_load *load = case_load(1, 1, 4, counts);
    eplb_topology *topology = case_topology(4, 2, 2);
    eplb_plan_params params = case_params("auto", 2);
    eplb_plan *plan;
    eplb_error error;
    for (int32_t split = EPLB_SPLIT_EQUAL; split <= EPLB_SPLIT_WEIGHTED; split++) {
        params.split = (eplb_split)split;
        params.max_spill = 0;
        assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
        assert_true(fabs(eplb_plan_imbalance(plan)[0] - 1.8) < 1e-9);
        assert_int_equal(eplb_plan_spilled(plan), 0);
        eplb_plan_destroy(plan);
        params.max_spill = 2;
        assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
        assert_true(eplb_plan_imbalance(plan)[0] < 1.25);
        assert_true(eplb_plan_spilled(plan) >= 1 && eplb_plan_spilled(plan) <= 2);
        eplb_plan_destroy(plan);
    }
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
}

/* Mean over windows of the least imbalance that a split of each alone reaches in layer 0. */
static double mean_of_splits(const eplb_load *load, const eplb_plan *plan)
{
    int64_t counts[64], quota[64];
    double sum = 0.0, ranks = eplb_topology_num_ranks(eplb_placement_topology(eplb_plan_placement(plan)));
    int32_t windows = eplb_load_num_windows(load), experts = eplb_load_num_experts(load);
    static int64_t all[64 * 64];
    eplb_load_windows(load, 0, all);
    eplb_resplit *split;
    assert_int_equal(eplb_resplit_create(&split, eplb_plan_placement(plan), 0, NULL, NULL), EPLB_OK);
    for (int32_t t = 0; t < windows; t++) {
        double total = 0.0;
        for (int32_t e = 0; e < experts; e++) {
            counts[e] = all[t * experts + e];
            total += (double)counts[e];
        }
        eplb_resplit_result result;
        assert_int_equal(eplb_resplit_solve(split, counts, false, quota, &result, NULL), EPLB_OK);
        sum += (double)result.bound_load / (double)result.bound_speed / (total / ranks);
    }
    eplb_resplit_destroy(split);
    return sum / windows;
}

/* What the split is judged by: every window under the plan's shares or its own, or, with shares that serve
 * all windows, their sum. */
static double judged(const eplb_load *load, const eplb_plan *plan, const eplb_topology *topology)
{
    switch (eplb_plan_split(plan)) {
    case EPLB_SPLIT_EQUAL:
        return mean_of_windows(load, plan, topology);
    case EPLB_SPLIT_BATCH:
        return mean_of_splits(load, plan);
    default:
        return eplb_plan_imbalance(plan)[0];
    }
}

/* Windows of one of six topics, other ones with another seed. */
static eplb_load *topic_load(uint64_t seed)
{
    enum { T = 12, E = 48 };
    static int64_t counts[T * E];
    random_state random = random_seed(seed);
    int32_t hot[6][E];
    for (int32_t e = 0; e < 6 * E; e++)
        hot[e / E][e % E] = random_below(&random, 6) == 0 ? 900 : 100;
    for (int32_t t = 0; t < T; t++) {
        int32_t topic = (int32_t)random_below(&random, 6);
        for (int32_t e = 0; e < E; e++)
            counts[t * E + e] = hot[topic][e] + (int32_t)random_below(&random, 50);
    }
    return case_load(T, 1, E, counts);
}

/* One policy from a placement for other traffic: above what is there the target moves nothing, below it is
 * reached with no more moves than any limit needs that reaches it, and a tighter one takes more. */
static void check_targets(const eplb_load *before, const eplb_load *load, eplb_split split, int32_t spill)
{
    eplb_topology *topology = case_topology(8, spill > 0 ? 2 : 1, 7);
    eplb_plan_params params = case_params("auto", spill > 0 ? 4 : 1);
    eplb_plan *current, *plan;
    eplb_error error;
    params.split = split;
    params.max_spill = spill;
    assert_int_equal(case_plan(&current, before, topology, &params, &error), EPLB_OK);
    params.current = eplb_plan_placement(current);
    params.max_moves_per_layer = 0;
    assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
    double kept = judged(load, plan, topology);
    eplb_plan_destroy(plan);
    params.max_moves_per_layer = 4;
    assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
    double four = judged(load, plan, topology);
    eplb_plan_destroy(plan);
    assert_true(four < kept - 0.01);
    params.max_moves_per_layer = EPLB_UNLIMITED;
    int64_t received[3];
    const double targets[] = {kept + 1e-9, four + 1e-9, (four + kept) / 2.0};
    for (int32_t i = 0; i < 3; i++) {
        params.target_imbalance = targets[i];
        assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
        assert_true(judged(load, plan, topology) <= targets[i] * (1.0 + 1e-9));
        received[i] = eplb_plan_moves(plan).received;
        eplb_plan_destroy(plan);
    }
    assert_int_equal(received[0], 0);
    assert_in_range(received[1], 1, 4);
    assert_in_range(received[2], 1, received[1]);
    params.target_imbalance = 1.0; /* out of reach: as good as without */
    assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
    assert_true(judged(load, plan, topology) < four);
    eplb_plan_destroy(plan);
    eplb_plan_destroy(current);
    eplb_topology_destroy(topology);
}

static void test_target_stops(void **state)
{
    (void)state;
    eplb_load *before = topic_load(5), *load = topic_load(6);
    for (int32_t spill = 0; spill <= 3; spill += 3) {
        check_targets(before, load, EPLB_SPLIT_EQUAL, spill);
        check_targets(before, load, EPLB_SPLIT_BATCH, spill);
        check_targets(before, load, EPLB_SPLIT_WEIGHTED, spill);
    }
    eplb_load_destroy(before);
    eplb_load_destroy(load);
}

/* From a placement without empty slots, more and more moves. */
static void check_more_moves(uint64_t seed, eplb_split split, int32_t spill)
{
    static const int64_t moves[] = {0, 2, 3, 8, 24, 55, 56, 100};
    eplb_topology *topology = case_topology(8, spill > 0 ? 2 : 1, 7);
    eplb_load *before = topic_load(seed), *load = topic_load(seed + 100);
    eplb_plan_params params = case_params("auto", spill > 0 ? 4 : 1);
    eplb_plan *current, *plan;
    eplb_error error;
    params.split = split;
    params.max_spill = spill;
    assert_int_equal(case_plan(&current, before, topology, &params, &error), EPLB_OK);
    params.current = eplb_plan_placement(current);
    double last = HUGE_VAL;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        params.max_moves_per_layer = moves[i];
        assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
        double now = judged(load, plan, topology);
        assert_true(now <= last * (1.0 + 1e-9));
        last = now;
        for (int32_t p = 0; p < 8 * 7; p++)
            assert_true(case_slots(plan)[p] >= 0);
        eplb_plan_destroy(plan);
    }
    eplb_plan_destroy(current);
    eplb_load_destroy(load);
    eplb_load_destroy(before);
    eplb_topology_destroy(topology);
}

/* The windows choose between what fewer moves find and what more do, up to all slots and beyond. */
static void test_more_moves_are_never_worse(void **state)
{
    (void)state;
    for (uint64_t seed = 21; seed < 25; seed++) {
        check_more_moves(seed, EPLB_SPLIT_EQUAL, 0);
        check_more_moves(seed, EPLB_SPLIT_BATCH, 0);
        check_more_moves(seed, EPLB_SPLIT_EQUAL, 2);
    }
}

/* Without a current placement a plan on the sum that is good enough is the answer. */
static void test_target_from_nothing(void **state)
{
    (void)state;
    eplb_load *load = topic_load(7);
    eplb_topology *topology = case_topology(8, 1, 7);
    eplb_plan_params params = case_params("equal", 1);
    eplb_plan *sum, *plan;
    eplb_error error;
    assert_int_equal(case_plan(&sum, load, topology, &params, &error), EPLB_OK);
    params.policy = "windows";
    params.target_imbalance = mean_of_windows(load, sum, topology) + 1e-9;
    assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
    assert_true(eplb_placement_equal(eplb_plan_placement(plan), eplb_plan_placement(sum)));
    eplb_plan_destroy(plan);
    params.target_imbalance = 1.0;
    assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
    assert_true(mean_of_windows(load, plan, topology) < mean_of_windows(load, sum, topology) - 0.01);
    eplb_plan_destroy(plan);
    eplb_plan_destroy(sum);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
}

/* One window is the same problem for batches and for weighted shares: within any number of moves batches do
 * not do worse. */
static void test_one_batch_is_repaired_as_shares_are(void **state)
{
    (void)state;
    enum { E = 29, CASES = 12 };
    static const int64_t limits[] = {3, 5, 7};
    random_state random = random_seed(3);
    eplb_topology *topology = case_topology(16, 1, 2);
    eplb_error error;
    for (int32_t n = 0; n < CASES; n++) {
        int64_t before[E], after[E];
        for (int32_t e = 0; e < E; e++) {
            before[e] = 100 + random_below(&random, 900);
            after[e] = before[e] / 2 + random_below(&random, 600);
        }
        eplb_load *old = case_load(1, 1, E, before), *load = case_load(1, 1, E, after);
        eplb_plan *current, *weighted, *batch;
        eplb_plan_params params = case_params("weighted", 1);
        params.split = EPLB_SPLIT_WEIGHTED;
        assert_int_equal(case_plan(&current, old, topology, &params, &error), EPLB_OK);
        params.current = eplb_plan_placement(current);
        for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
            params.max_moves_per_layer = limits[i];
            params.policy = "weighted";
            params.split = EPLB_SPLIT_WEIGHTED;
            assert_int_equal(case_plan(&weighted, load, topology, &params, &error), EPLB_OK);
            params.policy = "batch";
            params.split = EPLB_SPLIT_BATCH;
            assert_int_equal(case_plan(&batch, load, topology, &params, &error), EPLB_OK);
            assert_true(eplb_plan_imbalance(batch)[0] <= eplb_plan_imbalance(weighted)[0] + 1e-9);
            eplb_plan_destroy(weighted);
            eplb_plan_destroy(batch);
        }
        eplb_plan_destroy(current);
        eplb_load_destroy(load);
        eplb_load_destroy(old);
    }
    eplb_topology_destroy(topology);
}

/* A node that lost a rank has no room for its group: batches are planned across nodes, as weighted shares
 * are, and never worse. */
static void test_groups_that_do_not_fit(void **state)
{
    (void)state;
    enum { E = 32 };
    int64_t counts[E];
    random_state random = random_seed(12);
    for (int32_t e = 0; e < E; e++)
        counts[e] = 100 + random_below(&random, 900);
    eplb_load *load = case_load(1, 1, E, counts);
    eplb_topology *whole = case_topology(8, 2, 5), *topology;
    assert_int_equal(eplb_topology_with_dead(&topology, whole, (const int32_t[]){0}, 1, NULL, NULL), EPLB_OK);
    eplb_plan *weighted, *batch;
    eplb_error error;
    eplb_plan_params params = case_params("weighted", 2);
    params.split = EPLB_SPLIT_WEIGHTED;
    assert_int_equal(case_plan(&weighted, load, topology, &params, &error), EPLB_OK);
    params.policy = "batch";
    params.split = EPLB_SPLIT_BATCH;
    assert_int_equal(case_plan(&batch, load, topology, &params, &error), EPLB_OK);
    assert_true(eplb_plan_imbalance(batch)[0] <= eplb_plan_imbalance(weighted)[0] + 1e-9);
    eplb_plan_destroy(batch);
    eplb_plan_destroy(weighted);
    eplb_topology_destroy(topology);
    eplb_topology_destroy(whole);
    eplb_load_destroy(load);
}

/* What a policy does not do it refuses with its name. */
static void test_refusals(void **state)
{
    (void)state;
    const int64_t counts[2][4] = {{1, 2, 3, 4}, {4, 3, 2, 1}};
    eplb_load *load = case_load(2, 1, 4, &counts[0][0]);
    eplb_topology *topology = case_topology(2, 1, 2);
    eplb_plan_params params = case_params("windows", 1);
    eplb_plan *plan;
    eplb_error error;
    params.split = EPLB_SPLIT_WEIGHTED;
    assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "windows"));
    params.split = EPLB_SPLIT_EQUAL;
    params.cost.activated = 3;
    assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "tokens only"));
    params.policy = "batch";
    assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_ERROR_UNSUPPORTED);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hot_together_go_apart),
        cmocka_unit_test(test_small_layers_are_looked_through),
        cmocka_unit_test(test_topics),
        cmocka_unit_test(test_chance_is_not_planned_for),
        cmocka_unit_test(test_batch_joins_ranks),
        cmocka_unit_test(test_spill),
        cmocka_unit_test(test_target_stops),
        cmocka_unit_test(test_more_moves_are_never_worse),
        cmocka_unit_test(test_target_from_nothing),
        cmocka_unit_test(test_one_batch_is_repaired_as_shares_are),
        cmocka_unit_test(test_groups_that_do_not_fit),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
