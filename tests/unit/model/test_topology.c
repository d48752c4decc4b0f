/* Topology: defaults, unequal slots, health, and every refusal with its place. */
#include <string.h>

#include <eplb/eplb.h>

#include "testing.h"

static eplb_topology_params params_of(int32_t ranks, int32_t nodes, int32_t slots)
{
    eplb_topology_params params;
    eplb_topology_params_init(&params, sizeof params);
    params.num_ranks = ranks;
    params.num_nodes = nodes;
    params.slots_per_rank = slots;
    return params;
}

static void test_defaults(void **state)
{
    (void)state;
    eplb_topology_params params = params_of(6, 4, 3);
    eplb_topology *topology;
    assert_int_equal(eplb_topology_create(&topology, &params, NULL, NULL), EPLB_OK);
    assert_true(eplb_topology_is_valid(topology));
    assert_int_equal(eplb_topology_num_slots(topology), 18);
    assert_int_equal(eplb_topology_num_live_slots(topology), 18);
    assert_int_equal(eplb_topology_uniform_slots(topology), 3);
    const int32_t nodes[6] = {0, 0, 1, 2, 2, 3}; /* g * 4 / 6 */
    assert_memory_equal(eplb_topology_rank_node(topology), nodes, sizeof nodes);
    for (int32_t p = 0; p < 18; p++)
        assert_int_equal(eplb_topology_slot_rank(topology)[p], p / 3);
    eplb_topology_destroy(topology);
}

static void test_unequal_slots_and_health(void **state)
{
    (void)state;
    const int32_t slots[4] = {2, 0, 5, 1}, speed[4] = {10, 9, 10, 11};
    const uint8_t alive[4] = {1, 1, 0, 1};
    eplb_topology_params params = params_of(4, 2, 0);
    params.rank_slots = slots;
    params.rank_alive = alive;
    params.rank_speed = speed;
    eplb_topology *topology, *copy, *revived;
    assert_int_equal(eplb_topology_create(&topology, &params, NULL, NULL), EPLB_OK);
    assert_int_equal(eplb_topology_num_slots(topology), 8);
    assert_int_equal(eplb_topology_num_live_slots(topology), 3);
    assert_int_equal(eplb_topology_num_live_ranks(topology), 3);
    assert_int_equal(eplb_topology_uniform_slots(topology), -1);
    const int32_t first[5] = {0, 2, 2, 7, 8};
    assert_memory_equal(eplb_topology_first_slot(topology), first, sizeof first);
    assert_int_equal(eplb_topology_copy(&copy, topology, NULL, NULL), EPLB_OK);
    assert_true(eplb_topology_equal(topology, copy));
    assert_true(eplb_topology_is_valid(copy));
    const int32_t dead[1] = {0};
    assert_int_equal(eplb_topology_with_dead(&revived, topology, dead, 1, NULL, NULL), EPLB_OK);
    assert_false(eplb_topology_equal(topology, revived));
    assert_int_equal(eplb_topology_num_live_slots(revived), 6);
    eplb_topology_destroy(topology);
    eplb_topology_destroy(copy);
    eplb_topology_destroy(revived);
}

static void refuse(const eplb_topology_params *params, const char *part)
{
    eplb_topology *topology = (eplb_topology *)params;
    eplb_error error;
    assert_int_equal(eplb_topology_create(&topology, params, NULL, &error), EPLB_ERROR_INVALID);
    assert_null(topology);
    assert_int_equal(error.status, EPLB_ERROR_INVALID);
    assert_non_null(strstr(error.text, part));
}

static void test_refusals(void **state)
{
    (void)state;
    eplb_topology_params params = params_of(0, 1, 1);
    refuse(&params, "0 ranks");
    params = params_of(2, 3, 1);
    refuse(&params, "3 nodes for 2 ranks");
    params = params_of(2, 1, 0);
    refuse(&params, "0 slots in all");
    params = params_of(EPLB_MAX_RANKS, 1, EPLB_MAX_SLOTS);
    refuse(&params, "slots in all");
    params = params_of(2, 1, 1);
    const int32_t slots[2] = {1, -4};
    params.rank_slots = slots;
    refuse(&params, "rank 1 has -4 slots");
    params.rank_slots = NULL;
    const int32_t nodes[2] = {0, 1};
    params.rank_node = nodes;
    refuse(&params, "rank 1 is on node 1");
    params.rank_node = NULL;
    const int32_t speed[2] = {0, 1};
    params.rank_speed = speed;
    refuse(&params, "rank 0 has speed 0");
    params.rank_speed = NULL;
    uint8_t alive[2] = {0, 2};
    params.rank_alive = alive;
    refuse(&params, "rank 1 has health 2");
    alive[1] = 0;
    refuse(&params, "no slot is on a live rank");
    params = params_of(2, 1, 1);
    params.size = 8;
    refuse(&params, "eplb_topology_params_init");
}

static void test_dead_rank_out_of_range(void **state)
{
    (void)state;
    eplb_topology_params params = params_of(3, 1, 2);
    eplb_topology *topology, *copy;
    eplb_error error;
    assert_int_equal(eplb_topology_create(&topology, &params, NULL, NULL), EPLB_OK);
    const int32_t wrong[1] = {3}, all[3] = {0, 1, 2};
    assert_int_equal(eplb_topology_with_dead(&copy, topology, wrong, 1, NULL, &error), EPLB_ERROR_INVALID);
    assert_null(copy);
    assert_int_equal(error.rank, 3);
    assert_int_equal(eplb_topology_with_dead(&copy, topology, all, 3, NULL, &error), EPLB_ERROR_INVALID);
    assert_null(copy);
    eplb_topology_destroy(topology);
    eplb_topology_destroy(NULL);
    assert_false(eplb_topology_is_valid(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_unequal_slots_and_health),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_dead_rank_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
