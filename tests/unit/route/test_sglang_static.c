/* SGLang's static table: answers of an independent statement of the rule with Python's own random module. */
#include "nouns.h"

#include <stdlib.h>
#include <string.h>

#include <eplb/route.h>

static eplb_placement *make_placement(int32_t layers, int32_t experts, int32_t ranks, int32_t nodes,
                                      int32_t slots, const int32_t *held)
{
    eplb_topology *topology = case_topology(ranks, nodes, slots);
    eplb_placement *placement;
    assert_int_equal(eplb_placement_create(&placement, topology, layers, experts, held, NULL, NULL), EPLB_OK);
    eplb_topology_destroy(topology);
    return placement;
}

/* expected [L, E, G]; own is [G, L, E]. */
static void compare(const eplb_placement *placement, const int32_t *expected)
{
    int32_t layers = eplb_placement_num_layers(placement), experts = eplb_placement_num_experts(placement);
    int32_t ranks = eplb_topology_num_ranks(eplb_placement_topology(placement));
    int32_t own[256];
    assert_true(layers * experts * ranks <= 256);
    assert_int_equal(eplb_sglang_static(placement, own, NULL, NULL), EPLB_OK);
    for (int32_t i = 0; i < layers * experts; i++) {
        for (int32_t g = 0; g < ranks; g++)
            assert_int_equal(own[g * layers * experts + i], expected[i * ranks + g]);
    }
}

static void one_node(void **state)
{
    (void)state;
    const int32_t held[16] = {0, 1, 2, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3};
    const int32_t expected[64] = {0, 6, 4, 7, 4, 0, 6, 7, 5, 1, 1, 1, 1, 5, 5, 5, 2, 2, 2, 2, 2, 2,
                                  2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 0, 1, 2, 3, 4, 2, 4, 0, 5, 5, 5, 5,
                                  5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7};
    eplb_placement *placement = make_placement(2, 4, 8, 1, 1, held);
    compare(placement, expected);
    eplb_placement_destroy(placement);
}

static void two_nodes(void **state)
{
    (void)state;
    const int32_t held[24] = {0, 1, 2, 3, 0, 1, 0, 0, 2, 2, 1, 0, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    const int32_t expected[48] = {0, 0, 4, 6, 6, 11, 1, 1, 5, 10, 10, 10, 2, 2, 2, 8, 8, 8, 3, 3, 3, 3, 3, 3,
                                  3, 3, 4, 6, 8, 10, 2, 2, 2, 2,  2,  2,  1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0};
    eplb_placement *placement = make_placement(2, 4, 6, 2, 2, held);
    compare(placement, expected);
    eplb_placement_destroy(placement);
}

/* Few ranks to serve out of many replicas: the other way to draw without replacement. */
static void many_replicas(void **state)
{
    (void)state;
    int32_t held[30];
    const int32_t expected[60] = {0,  1,  2,  1,  0,  0,  2,  1,  0,  2,  1,  0,  1,  2,  0,
                                  1,  2,  0,  1,  2,  2,  1,  1,  0,  1,  2,  2,  0,  0,  2,
                                  11, 28, 21, 3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,
                                  15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29};
    for (int i = 0; i < 30; i++)
        held[i] = i >= 3;
    eplb_placement *placement = make_placement(1, 2, 30, 1, 1, held);
    compare(placement, expected);
    eplb_placement_destroy(placement);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_node),
        cmocka_unit_test(two_nodes),
        cmocka_unit_test(many_replicas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
