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
        cmocka_unit_test(test_topics),
        cmocka_unit_test(test_batch_joins_ranks),
        cmocka_unit_test(test_spill),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
