/* Traffic: distinct ranks and nodes per token and the send matrix, by hand and against sets. */
#include "nouns.h"

#include <string.h>

#include <eplb/route.h>

#include "base/random.h"

static void by_hand(void **state)
{
    (void)state;
    eplb_topology *topology = case_topology(4, 2, 2);
    /* Rank 0: two slots of rank 0, one of rank 1. Rank 1: ranks 3 and 2, one choice dropped. */
    int32_t slots[6] = {0, 1, 2, 7, -1, 5}, source[2] = {0, 1};
    eplb_traffic traffic = {0};
    int64_t matrix[16] = {0}, expected[16] = {1, 1, 0, 0, 0, 0, 1, 1};
    assert_int_equal(eplb_traffic_add(topology, slots, 2, 3, source, &traffic, matrix, NULL), EPLB_OK);
    assert_int_equal(traffic.tokens, 2);
    assert_int_equal(traffic.pairs, 5);
    assert_int_equal(traffic.rank_sends, 4);
    assert_int_equal(traffic.node_sends, 2);
    assert_int_equal(traffic.cross_rank, 3);
    assert_int_equal(traffic.cross_node, 1);
    assert_memory_equal(matrix, expected, sizeof matrix);
    eplb_topology_destroy(topology);
}

static void against_sets(void **state)
{
    (void)state;
    eplb_topology *topology = case_topology(4, 2, 2);
    random_state random = random_seed(61);
    for (int round = 0; round < 2000; round++) {
        int32_t slots[5], source = (int32_t)random_below(&random, 4);
        unsigned ranks = 0, nodes = 0;
        for (int k = 0; k < 5; k++) {
            slots[k] = (int32_t)random_below(&random, 9) - 1;
            if (slots[k] >= 0) {
                ranks |= 1u << slots[k] / 2;
                nodes |= 1u << slots[k] / 4;
            }
        }
        eplb_traffic traffic = {0};
        assert_int_equal(eplb_traffic_add(topology, slots, 1, 5, &source, &traffic, NULL, NULL), EPLB_OK);
        assert_int_equal(traffic.rank_sends, __builtin_popcount(ranks));
        assert_int_equal(traffic.node_sends, __builtin_popcount(nodes));
        assert_int_equal(traffic.cross_rank, __builtin_popcount(ranks & ~(1u << source)));
        assert_int_equal(traffic.cross_node, __builtin_popcount(nodes & ~(1u << source / 2)));
    }
    eplb_topology_destroy(topology);
}

static void bad_ids_add_nothing(void **state)
{
    (void)state;
    eplb_topology *topology = case_topology(4, 2, 2);
    eplb_traffic traffic = {0}, zero = {0};
    eplb_error error;
    int32_t slots[2] = {0, 8}, source[2] = {0, 4};
    assert_int_equal(eplb_traffic_add(topology, slots, 1, 2, source, &traffic, NULL, &error),
                     EPLB_ERROR_INVALID);
    assert_int_equal(error.slot, 8);
    assert_int_equal(eplb_traffic_add(topology, slots, 2, 1, source, &traffic, NULL, &error),
                     EPLB_ERROR_INVALID);
    assert_int_equal(error.rank, 4);
    assert_memory_equal(&traffic, &zero, sizeof zero);
    eplb_topology_destroy(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(against_sets),
        cmocka_unit_test(bad_ids_add_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
