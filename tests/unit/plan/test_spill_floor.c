/* What no plan with a few replicas outside their group's node is below: closed forms and relations. */
#include "plan/spill_floor.h"

#include <math.h>

#include "../../layer_case.h"
#include "../../testing.h"
#include "base/random.h"
#include "plan/policies.h"

static layer_case layer;
static arena scratch;

static void draw(random_state *random, int32_t groups, int32_t nodes)
{
    case_init(&layer, 64, 16, 5);
    layer.problem.num_nodes = nodes;
    layer.problem.num_groups = groups;
    for (int32_t g = 0; g < 16; g++)
        layer.rank_node[g] = g * nodes / 16;
    for (int32_t e = 0; e < 64; e++)
        layer.load[e] = 1000 / (1 + random_below(random, 64)) * (1 + random_below(random, 4));
    int32_t slots[CASE_RANKS];
    for (int32_t g = 0; g < 16; g++)
        slots[g] = 5;
    case_finish(&layer, slots);
}

static double find(int32_t spill, eplb_split split)
{
    spill_floor floor;
    arena_mark mark = arena_position(&scratch);
    layer.problem.max_spill = spill;
    layer.problem.split = split;
    assert_int_equal(spill_floor_find(&floor, &layer.problem, &scratch, NULL), EPLB_OK);
    for (int32_t i = 1; i < floor.num_homes; i++)
        assert_true(floor.homes[i - 1].level <= floor.homes[i].level + 1e-8);
    arena_rewind(&scratch, mark);
    return floor.level;
}

/* One hot expert on a node of two ranks, and nothing else but two experts of no load: with one piece at most
 * three ranks share it. */
static void one_expert_is_on_three_ranks_at_most(void **state)
{
    (void)state;
    case_init(&layer, 4, 4, 2);
    layer.problem.num_nodes = layer.problem.num_groups = 2;
    layer.rank_node[2] = layer.rank_node[3] = 1;
    layer.load[0] = 1200;
    const int32_t slots[] = {2, 2, 2, 2};
    case_finish(&layer, slots);
    assert_true(fabs(find(1, EPLB_SPLIT_WEIGHTED) - 4.0 / 3.0) < 1e-6);
    assert_true(fabs(find(2, EPLB_SPLIT_WEIGHTED) - 1.0) < 1e-6);
    layer.load[1] = 300; /* it needs a slot of the two ranks: they serve both, beside one rank's worth */
    case_finish(&layer, slots);
    assert_true(fabs(find(1, EPLB_SPLIT_WEIGHTED) - 4.0 / 3.0) < 1e-6);
}

/* A host of a node without spare slots serves the coldest expert of its node beside the piece. */
static void cold_experts_stay_on_hosts(void **state)
{
    (void)state;
    case_init(&layer, 6, 4, 2);
    layer.problem.num_nodes = layer.problem.num_groups = 2;
    layer.rank_node[2] = layer.rank_node[3] = 1;
    const int32_t slots[] = {2, 2, 2, 2};
    layer.load[0] = 1200;
    layer.load[3] = layer.load[4] = layer.load[5] = 100;
    case_finish(&layer, slots);
    /* 2 T at home and T - 100 on the host, where the mean is 375. */
    assert_true(fabs(find(1, EPLB_SPLIT_WEIGHTED) - 1300.0 / 3.0 / 375.0) < 1e-6);
}

static void equal_shares_are_not_below_chosen_ones(void **state)
{
    (void)state;
    random_state random = random_seed(41);
    bool differs = false;
    for (int n = 0; n < 60; n++) {
        draw(&random, n % 2 == 0 ? 8 : 4, 4);
        double last = HUGE_VAL;
        for (int32_t spill = 1; spill <= 6; spill++) {
            double chosen = find(spill, EPLB_SPLIT_WEIGHTED), equal = find(spill, EPLB_SPLIT_EQUAL);
            assert_true(chosen <= equal + 1e-8);
            assert_true(chosen >= 1.0 && chosen <= last + 1e-8);
            differs = differs || chosen < equal - 1e-3;
            last = chosen;
        }
    }
    assert_true(differs);
}

/* No plan is below, and most weighted plans are near. */
static void plans_are_not_below(void **state)
{
    (void)state;
    random_state random = random_seed(42);
    int near = 0;
    for (int n = 0; n < 40; n++) {
        draw(&random, 8, n % 2 == 0 ? 4 : 2);
        double floor = find(1 + n % 4, EPLB_SPLIT_WEIGHTED);
        arena_mark mark = arena_position(&scratch);
        assert_int_equal(plan_layer_weighted(&layer.problem, &scratch, &layer.answer, NULL), EPLB_OK);
        arena_rewind(&scratch, mark);
        double reached = case_imbalance(&layer);
        assert_true(reached >= floor - 1e-9);
        assert_true(layer.answer.bound <= reached + 1e-9);
        near += reached < floor * 1.005;
    }
    assert_true(near >= 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_expert_is_on_three_ranks_at_most),
        cmocka_unit_test(cold_experts_stay_on_hosts),
        cmocka_unit_test(equal_shares_are_not_below_chosen_ones),
        cmocka_unit_test(plans_are_not_below),
    };
    arena_init(&scratch, NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_destroy(&scratch);
    return failed;
}
