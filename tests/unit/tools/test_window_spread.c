/* Windows on their own, against figures worked out by hand. */
#include "window_spread.h"

#include <math.h>

#include "nouns.h"

enum { WINDOWS = 20 };

/* A load and a placement on two ranks. */
typedef struct fixture {
    eplb_load *load;
    eplb_topology *topology;
    eplb_placement *placement;
} fixture;

/* counts [windows, layers, experts]; slots [layers, 2 * slots_per_rank]. */
static fixture start(int32_t windows, int32_t layers, int32_t experts, const int64_t *counts,
                     int32_t slots_per_rank, const int32_t *slots)
{
    fixture f = {.load = case_load(windows, layers, experts, counts),
                 .topology = case_topology(2, 1, slots_per_rank)};
    assert_int_equal(eplb_placement_create(&f.placement, f.topology, layers, experts, slots, NULL, NULL),
                     EPLB_OK);
    return f;
}

static void stop(fixture *f)
{
    eplb_placement_destroy(f->placement);
    eplb_topology_destroy(f->topology);
    eplb_load_destroy(f->load);
}

static window_spread measured(const fixture *f, eplb_split split, const double *shares)
{
    window_spread spread;
    assert_int_equal(window_spread_measure(f->load, f->placement, split, shares, &spread, NULL), EPLB_OK);
    return spread;
}

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
    static const int32_t slots[2] = {0, 1};
    (void)state;
    fixture f = start(WINDOWS, 1, 2, counts, 1, slots);
    window_spread spread = measured(&f, EPLB_SPLIT_EQUAL, NULL);
    assert_true(spread.layer_mean[0] == spread.mean);
    assert_true(spread.layer_percentile95[0] == 2.0);
    assert_true(fabs(spread.mean - (17 * 1.5 + 2 * 2.0 + 1.0) / 20) < 1e-12);
    assert_true(spread.percentile95 == 2.0); /* the 19th of 20 */
    assert_true(spread.worst == 2.0);
    static const double shares[2] = {1.0, 1.0};
    window_spread_clear(&spread);
    spread = measured(&f, EPLB_SPLIT_WEIGHTED, shares);
    assert_true(spread.worst == 2.0);
    window_spread_clear(&spread);
    stop(&f);
}

/* Expert 0 on both ranks, 1 and 2 on one each: a window is split so that the ranks are even, or as even as
 * the hottest lone expert lets them. Layers are judged each for itself; an expert nobody holds is served by
 * nobody. */
static void test_split_anew(void **state)
{
    static const int64_t counts[3 * 2 * 3] = {4, 2, 2, 4, 1, 3, /* windows of two layers of three experts */
                                              2, 6, 0, 0, 9, 1, 0, 0, 0, 8, 0, 0};
    static const int32_t slots[2 * 4] = {0, 1, 0, 2, 0, -1, 0, 2};
    (void)state;
    fixture f = start(3, 2, 3, counts, 2, slots);
    window_spread spread = measured(&f, EPLB_SPLIT_BATCH, NULL);
    assert_true(fabs(spread.layer_mean[0] - (1.0 + 1.5 + 1.0) / 3) < 1e-12); /* 6 of 8 on one rank; empty */
    assert_true(spread.layer_percentile95[0] == 1.5);
    assert_true(fabs(spread.layer_mean[1] - (1.0 + 2.0 + 1.0) / 3) < 1e-12); /* 1 token, all on one rank */
    assert_true(spread.worst == 2.0);
    window_spread_clear(&spread);
    stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_spread), cmocka_unit_test(test_split_anew)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
