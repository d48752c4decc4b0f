/* Metrics: rank loads by both splits, windows, dead ranks, speeds, and layers without load. */

#include <eplb/eplb.h>

#include "nouns.h"

typedef struct fixture {
    eplb_topology *topology;
    eplb_placement *placement;
    eplb_load *load;
} fixture;

/* Three ranks of two slots; expert 0 on all, speeds 1, 2, 1; two windows. */
static void set_up(fixture *f, const uint8_t *alive)
{
    const int32_t speed[3] = {1, 2, 1}, slots[6] = {0, 1, 0, 2, 0, 3};
    const int32_t dead_slots[6] = {0, 1, 2, 3, -1, -1};
    const int64_t counts[2][4] = {{9, 2, 4, 1}, {3, 0, 0, 5}};
    eplb_topology_params topology;
    eplb_topology_params_init(&topology, sizeof topology);
    topology.num_ranks = 3;
    topology.slots_per_rank = 2;
    topology.rank_speed = speed;
    topology.rank_alive = alive;
    assert_int_equal(eplb_topology_create(&f->topology, &topology, NULL, NULL), EPLB_OK);
    assert_int_equal(eplb_placement_create(&f->placement, f->topology, 1, 4,
                                           alive != NULL ? dead_slots : slots, NULL, NULL),
                     EPLB_OK);
    f->load = case_load(2, 1, 4, counts[0]);
}

static void tear_down(fixture *f)
{
    eplb_load_destroy(f->load);
    eplb_placement_destroy(f->placement);
    eplb_topology_destroy(f->topology);
}

static void test_equal_split(void **state)
{
    (void)state;
    fixture f;
    set_up(&f, NULL);
    double rank_load[3];
    assert_int_equal(eplb_rank_load(f.load, 0, -1, f.placement, NULL, rank_load, NULL, NULL), EPLB_OK);
    assert_true(rank_load[0] == 6.0 && rank_load[1] == 8.0 && rank_load[2] == 10.0);
    /* times 6, 4, 10 against 24 / 4 */
    assert_true(eplb_imbalance(f.topology, rank_load) == 10.0 / 6.0);
    assert_int_equal(eplb_rank_load(f.load, 0, 0, f.placement, NULL, rank_load, NULL, NULL), EPLB_OK);
    assert_true(rank_load[0] == 5.0 && rank_load[1] == 7.0 && rank_load[2] == 4.0);
    tear_down(&f);
}

static void test_weighted_split(void **state)
{
    (void)state;
    fixture f;
    set_up(&f, NULL);
    const double shares[6] = {0.25, 1.0, 0.75, 1.0, 0.0, 1.0};
    double rank_load[3], imbalance;
    assert_int_equal(eplb_rank_load(f.load, 0, -1, f.placement, shares, rank_load, NULL, NULL), EPLB_OK);
    assert_true(rank_load[0] == 5.0 && rank_load[1] == 13.0 && rank_load[2] == 6.0);
    assert_int_equal(eplb_imbalance_per_layer(f.load, f.placement, shares, &imbalance, NULL, NULL), EPLB_OK);
    assert_true(imbalance == 6.5 / 6.0);
    tear_down(&f);
}

static void test_dead_ranks_do_not_count(void **state)
{
    (void)state;
    const uint8_t alive[3] = {1, 1, 0};
    fixture f;
    set_up(&f, alive);
    double rank_load[3];
    assert_int_equal(eplb_rank_load(f.load, 0, -1, f.placement, NULL, rank_load, NULL, NULL), EPLB_OK);
    assert_true(rank_load[0] == 14.0 && rank_load[1] == 10.0 && rank_load[2] == 0.0);
    assert_true(eplb_imbalance(f.topology, rank_load) == 14.0 / 8.0);
    tear_down(&f);
}

static void test_no_load_is_balanced(void **state)
{
    (void)state;
    fixture f;
    set_up(&f, NULL);
    const double nothing[3] = {0.0, 0.0, 0.0};
    assert_true(eplb_imbalance(f.topology, nothing) == 1.0);
    tear_down(&f);
}

/* Two nodes of one rank each; expert 0 on both, 1 on node 0, 2 on node 1. */
static void test_cross_node_tokens(void **state)
{
    (void)state;
    const int64_t counts[3] = {8, 4, 2}, by_rank[2][3] = {{6, 4, 0}, {2, 0, 0}};
    const int32_t slots[4] = {0, 1, 0, 2};
    const double shares[4] = {0.25, 1.0, 0.75, 1.0};
    eplb_topology *topology = case_topology(2, 2, 2);
    eplb_load *load = case_load(1, 1, 3, counts), *sources = case_load(2, 1, 3, by_rank[0]);
    eplb_placement *placement;
    assert_int_equal(eplb_placement_create(&placement, topology, 1, 3, slots, NULL, NULL), EPLB_OK);
    double crossing;
    assert_int_equal(eplb_cross_node_tokens(load, placement, NULL, NULL, &crossing, NULL, NULL), EPLB_OK);
    assert_true(crossing == 3.0); /* half of 1's and of 2's */
    assert_int_equal(eplb_cross_node_tokens(load, placement, shares, NULL, &crossing, NULL, NULL), EPLB_OK);
    assert_true(crossing == 5.0); /* and a quarter of 0's */
    assert_int_equal(eplb_cross_node_tokens(load, placement, NULL, sources, &crossing, NULL, NULL), EPLB_OK);
    /* a quarter of 0's, none of 1's, half of 2's: evenly where no source is known */
    assert_true(crossing == 3.0);
    eplb_error error;
    assert_int_equal(eplb_cross_node_tokens(load, placement, NULL, load, &crossing, NULL, &error),
                     EPLB_ERROR_INVALID);
    eplb_load_destroy(load);
    eplb_load_destroy(sources);
    eplb_placement_destroy(placement);
    eplb_topology_destroy(topology);
}

static void test_refusals(void **state)
{
    (void)state;
    fixture f;
    set_up(&f, NULL);
    double rank_load[3];
    assert_int_equal(eplb_rank_load(f.load, 1, -1, f.placement, NULL, rank_load, NULL, NULL),
                     EPLB_ERROR_INVALID);
    assert_int_equal(eplb_rank_load(f.load, 0, 2, f.placement, NULL, rank_load, NULL, NULL),
                     EPLB_ERROR_INVALID);
    eplb_placement *other;
    const int32_t slots[6] = {0, 1, 2, 3, 4, 0};
    assert_int_equal(eplb_placement_create(&other, f.topology, 1, 5, slots, NULL, NULL), EPLB_OK);
    assert_int_equal(eplb_rank_load(f.load, 0, 0, other, NULL, rank_load, NULL, NULL), EPLB_ERROR_INVALID);
    assert_int_equal(eplb_imbalance_per_layer(f.load, other, NULL, rank_load, NULL, NULL),
                     EPLB_ERROR_INVALID);
    eplb_placement_destroy(other);
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_split),
        cmocka_unit_test(test_weighted_split),
        cmocka_unit_test(test_dead_ranks_do_not_count),
        cmocka_unit_test(test_no_load_is_balanced),
        cmocka_unit_test(test_cross_node_tokens),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
