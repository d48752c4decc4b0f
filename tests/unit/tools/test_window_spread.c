/* Windows on their own, against figures worked out by hand. */
#include "window_spread.h"

#include <math.h>

#include "testing.h"

enum { WINDOWS = 20 };

static void test_spread(void **state)
{
    /* two experts on two ranks: the sum is even, the windows are not; the last is empty */
    int64_t counts[WINDOWS * 2];
    for (int t = 0; t < WINDOWS; t++) {
        counts[2 * t] = t % 2 == 0 ? 3 : 1;
        counts[2 * t + 1] = t % 2 == 0 ? 1 : 3;
    }
    counts[0] = 4, counts[1] = 0; /* 2.0 */
    counts[2] = 0, counts[3] = 4; /* 2.0 */
    counts[38] = counts[39] = 0;  /* 1.0 */
    eplb_load_params load_params;
    eplb_topology_params ranks;
    eplb_load *load;
    eplb_topology *topology;
    eplb_placement *placement;
    window_spread spread;
    eplb_error error;
    (void)state;
    eplb_load_params_init(&load_params, sizeof load_params);
    load_params.num_windows = WINDOWS;
    load_params.num_layers = 1;
    load_params.num_experts = 2;
    load_params.counts = counts;
    eplb_topology_params_init(&ranks, sizeof ranks);
    ranks.num_ranks = 2;
    ranks.slots_per_rank = 1;
    assert_int_equal(eplb_load_create(&load, &load_params, NULL, NULL), EPLB_OK);
    assert_int_equal(eplb_topology_create(&topology, &ranks, NULL, NULL), EPLB_OK);
    assert_int_equal(eplb_placement_create_initial(&placement, topology, 1, 2, NULL, NULL), EPLB_OK);
    assert_int_equal(window_spread_measure(load, placement, EPLB_SPLIT_EQUAL, NULL, &spread, &error),
                     EPLB_OK);
    assert_true(spread.layer_mean[0] == spread.mean);
    assert_true(spread.layer_percentile95[0] == 2.0);
    assert_true(fabs(spread.mean - (17 * 1.5 + 2 * 2.0 + 1.0) / 20) < 1e-12);
    assert_true(spread.percentile95 == 2.0); /* the 19th of 20 */
    assert_true(spread.worst == 2.0);
    static const double shares[2] = {1.0, 1.0};
    window_spread_clear(&spread);
    assert_int_equal(window_spread_measure(load, placement, EPLB_SPLIT_WEIGHTED, shares, &spread, &error),
                     EPLB_OK);
    assert_true(spread.worst == 2.0);
    window_spread_clear(&spread);
    eplb_placement_destroy(placement);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
}

/* Expert 0 on both ranks, 1 and 2 on one each: a window is split so that the ranks are even, or as even as
 * the hottest lone expert lets them. Layers are judged each for itself; an expert nobody holds is served by
 * nobody. */
static void test_split_anew(void **state)
{
    static const int64_t counts[3 * 2 * 3] = {4, 2, 2, 4, 1, 3, /* windows of two layers of three experts */
                                              2, 6, 0, 0, 9, 1, 0, 0, 0, 8, 0, 0};
    static const int32_t slots[2 * 4] = {0, 1, 0, 2, 0, -1, 0, 2};
    eplb_load_params load_params;
    eplb_topology_params ranks;
    eplb_load *load;
    eplb_topology *topology;
    eplb_placement *placement;
    window_spread spread;
    eplb_error error;
    (void)state;
    eplb_load_params_init(&load_params, sizeof load_params);
    load_params.num_windows = 3;
    load_params.num_layers = 2;
    load_params.num_experts = 3;
    load_params.counts = counts;
    eplb_topology_params_init(&ranks, sizeof ranks);
    ranks.num_ranks = 2;
    ranks.slots_per_rank = 2;
    assert_int_equal(eplb_load_create(&load, &load_params, NULL, NULL), EPLB_OK);
    assert_int_equal(eplb_topology_create(&topology, &ranks, NULL, NULL), EPLB_OK);
    assert_int_equal(eplb_placement_create(&placement, topology, 2, 3, slots, NULL, NULL), EPLB_OK);
    assert_int_equal(window_spread_measure(load, placement, EPLB_SPLIT_BATCH, NULL, &spread, &error),
                     EPLB_OK);
    assert_true(fabs(spread.layer_mean[0] - (1.0 + 1.5 + 1.0) / 3) < 1e-12); /* 6 of 8 on one rank; empty */
    assert_true(spread.layer_percentile95[0] == 1.5);
    assert_true(fabs(spread.layer_mean[1] - (1.0 + 2.0 + 1.0) / 3) < 1e-12); /* 1 token, all on one rank */
    assert_true(spread.worst == 2.0);
    window_spread_clear(&spread);
    eplb_placement_destroy(placement);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_spread), cmocka_unit_test(test_split_anew)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
