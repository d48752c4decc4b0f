/* Filling empty slots: what is filled and by what, within how many moves, and what must stay as it is. */
#include "plan/fill_slots.h"

#include <string.h>

#include "base/random.h"
#include "cases.h"
#include "plan/policies.h"

enum { EXPERTS = 6, RANKS = 3, SLOTS = 9 };

static const int64_t load[EXPERTS] = {60, 30, 20, 10, 5, 1};

static eplb_placement *placement_of(const eplb_topology *topology, const int32_t *slots)
{
    eplb_placement *placement = NULL;
    assert_int_equal(eplb_placement_create(&placement, topology, 1, EXPERTS, slots, NULL, NULL), EPLB_OK);
    return placement;
}

/* Plans on three ranks of three slots from `slots`, with so many moves in the layer. */
static eplb_plan *plan_from(const int32_t *slots, const char *policy, eplb_split split, int64_t moves)
{
    eplb_topology *topology = case_topology(RANKS, 1, SLOTS / RANKS);
    eplb_load *tokens = case_load(1, 1, EXPERTS, load);
    eplb_placement *current = placement_of(topology, slots);
    eplb_plan_params params = case_params(policy, 1);
    params.current = current;
    params.split = split;
    params.max_moves_per_layer = moves;
    eplb_plan *plan;
    eplb_error error;
    if (case_plan(&plan, tokens, topology, &params, &error) != EPLB_OK)
        fail_msg("%s", error.text);
    eplb_placement_destroy(current);
    eplb_load_destroy(tokens);
    eplb_topology_destroy(topology);
    return plan;
}

static int32_t count_empty(const eplb_plan *plan)
{
    int32_t empty = 0;
    for (int32_t p = 0; p < SLOTS; p++)
        empty += case_slots(plan)[p] < 0;
    return empty;
}

/* Two experts stand twice on a rank: as many of their slots are filled as there are moves. */
static void test_doubled_slots_are_filled_first(void **state)
{
    (void)state;
    static const int32_t slots[SLOTS] = {0, 0, 5, 1, 1, 4, 2, 3, 0};
    static const struct {
        const char *policy;
        eplb_split split;
    } ways[] = {{"auto", EPLB_SPLIT_EQUAL},    {"equal", EPLB_SPLIT_EQUAL},
                {"windows", EPLB_SPLIT_EQUAL}, {"weighted", EPLB_SPLIT_WEIGHTED},
                {"auto", EPLB_SPLIT_WEIGHTED}, {"batch", EPLB_SPLIT_BATCH}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        for (int64_t moves = -1; moves <= 4; moves++) {
            eplb_plan *plan = plan_from(slots, ways[i].policy, ways[i].split, moves);
            assert_int_equal(count_empty(plan), moves < 0 || moves >= 2 ? 0 : 2 - moves);
            assert_true(moves < 0 || eplb_plan_moves(plan).received <= moves);
            eplb_plan_destroy(plan);
        }
    }
}

static void test_reason_tells_what_is_missing(void **state)
{
    (void)state;
    static const int32_t slots[SLOTS] = {0, 0, 5, 1, 1, 4, 2, 3, 0};
    eplb_plan *plan = plan_from(slots, "auto", EPLB_SPLIT_EQUAL, 1);
    if (strstr(eplb_plan_reason(plan), "first of all 1 empty slot filled; 1 slot left empty for lack of "
                                       "moves, 2 a layer would fill all") == NULL)
        fail_msg("the reason is \"%s\"", eplb_plan_reason(plan));
    eplb_plan_destroy(plan);
}

/* Slots that someone left empty are filled as well, by what relieves the hottest rank most. */
static void test_empty_slots_relieve_the_hottest_rank(void **state)
{
    (void)state;
    static const int32_t slots[SLOTS] = {0, 5, 4, 1, 2, -1, 3, -1, -1};
    eplb_plan *plan = plan_from(slots, "equal", EPLB_SPLIT_EQUAL, 1);
    static const int32_t wanted[SLOTS] = {0, 5, 4, 1, 2, -1, 3, 0, -1};
    assert_memory_equal(case_slots(plan), wanted, sizeof wanted);
    eplb_plan_destroy(plan);
    plan = plan_from(slots, "equal", EPLB_SPLIT_EQUAL, 0);
    assert_memory_equal(case_slots(plan), slots, sizeof slots);
    eplb_plan_destroy(plan);
}

/* Rank 2 has one expert that fills a rank's worth of time; every other expert would make it hotter. */
static void test_keeping_is_never_made_worse(void **state)
{
    (void)state;
    static const int64_t counts[3] = {10, 10, 10};
    static const int32_t rank_slots[3] = {1, 1, 2}, slots[4] = {0, 1, 2, -1};
    eplb_topology_params sizes;
    eplb_topology_params_init(&sizes, sizeof sizes);
    sizes.num_ranks = 3;
    sizes.rank_slots = rank_slots;
    eplb_topology *topology;
    assert_int_equal(eplb_topology_create(&topology, &sizes, NULL, NULL), EPLB_OK);
    eplb_load *tokens = case_load(1, 1, 3, counts);
    eplb_placement *current;
    assert_int_equal(eplb_placement_create(&current, topology, 1, 3, slots, NULL, NULL), EPLB_OK);
    for (int32_t weighted = 0; weighted < 2; weighted++) {
        eplb_plan_params params = case_params("auto", 1);
        params.current = current;
        params.split = weighted ? EPLB_SPLIT_WEIGHTED : EPLB_SPLIT_EQUAL;
        eplb_plan *plan;
        eplb_error error;
        assert_int_equal(case_plan(&plan, tokens, topology, &params, &error), EPLB_OK);
        assert_true(eplb_plan_imbalance(plan)[0] <= 1.0 + 1e-12);
        assert_true((case_slots(plan)[3] >= 0) == (weighted == 1)); /* a share of nothing costs nothing */
        eplb_plan_destroy(plan);
    }
    eplb_placement_destroy(current);
    eplb_load_destroy(tokens);
    eplb_topology_destroy(topology);
}

/* The layer as a problem, for what the planner does not show. */
static layer_problem problem_of(const int32_t *current, int64_t max_moves)
{
    static const int32_t first_slot[RANKS + 1] = {0, 3, 6, 9}, speed[RANKS] = {1, 1, 1},
                                            node[RANKS] = {0, 0, 0},
                                            slot_rank[SLOTS] = {0, 0, 0, 1, 1, 1, 2, 2, 2};
    return (layer_problem){.num_experts = EXPERTS,
                           .num_ranks = RANKS,
                           .num_slots = SLOTS,
                           .num_nodes = 1,
                           .num_groups = 1,
                           .num_windows = 1,
                           .load = load,
                           .window_load = load,
                           .total = 126,
                           .first_slot = first_slot,
                           .slot_rank = slot_rank,
                           .rank_node = node,
                           .rank_speed = speed,
                           .total_speed = RANKS,
                           .uniform_speed = true,
                           .uniform_slots = 3,
                           .current = current,
                           .cost = {.tokens = 1, .tile_tokens = 128},
                           .plain_cost = true,
                           .max_moves = max_moves};
}

/* Lost experts have the first right to empty slots and to the moves. */
static void test_lost_experts_come_first(void **state)
{
    (void)state;
    static const int32_t slots[SLOTS] = {0, 0, 5, 1, 1, -1, 2, 3, 0}; /* 4 is lost */
    arena scratch;
    arena_init(&scratch, NULL);
    for (int64_t moves = 0; moves <= 3; moves++) {
        layer_problem problem = problem_of(slots, moves);
        int64_t filled;
        assert_int_equal(fill_slots_before(&problem, &filled, &scratch, NULL), EPLB_OK);
        assert_int_equal(filled, moves);
        assert_int_equal(problem.max_moves, 0);
        int32_t found = 0;
        for (int32_t p = 0; p < SLOTS; p++)
            found += problem.current[p] == 4;
        assert_int_equal(found, moves > 0);
    }
    arena_destroy(&scratch);
}

/* Without moves for all lost experts, nothing is touched: the policy refuses and names them. */
static void test_too_few_moves_change_nothing(void **state)
{
    (void)state;
    static const int32_t slots[SLOTS] = {0, 0, -1, 1, 1, -1, 2, 0, 0}; /* 3, 4, 5 are lost */
    arena scratch;
    arena_init(&scratch, NULL);
    layer_problem problem = problem_of(slots, 2);
    int64_t filled;
    assert_int_equal(fill_slots_before(&problem, &filled, &scratch, NULL), EPLB_OK);
    assert_ptr_equal(problem.current, slots);
    assert_int_equal(problem.max_moves, 2);
    assert_int_equal(filled, 0);
    arena_destroy(&scratch);
}

/* A rank may have as many empty slots as before, whichever they are: here a third expert only costs. */
static void test_empty_slot_may_change_its_place(void **state)
{
    (void)state;
    static const int32_t slots[SLOTS] = {-1, 0, 1, 2, 3, 4, 5, 2, 3};
    int32_t expert[SLOTS] = {0, 1, -1, 2, 3, 4, 5, 2, 3};
    arena scratch;
    arena_init(&scratch, NULL);
    layer_problem problem = problem_of(slots, INT64_MAX);
    layer_answer answer = {.expert = expert};
    int64_t lacking;
    assert_int_equal(fill_slots_after(&problem, &answer, &lacking, &scratch, NULL), EPLB_OK);
    assert_int_equal(expert[2], -1);
    assert_int_equal(lacking, 0);
    arena_destroy(&scratch);
}

static void test_count(void **state)
{
    (void)state;
    static const int32_t slots[SLOTS] = {0, 0, -1, 1, 1, 1, 2, 0, -1};
    arena scratch;
    arena_init(&scratch, NULL);
    layer_problem problem = problem_of(slots, 2);
    int64_t lost, empty;
    assert_int_equal(fill_slots_count(&problem, &lost, &empty, &scratch, NULL), EPLB_OK);
    assert_int_equal(lost, 3);
    assert_int_equal(empty, 5);
    arena_destroy(&scratch);
}

/* A frontier starts with what fills, then goes on as the policy's from there; its points can be had. */
static void test_frontier_counts_what_fills(void **state)
{
    (void)state;
    static const int32_t slots[SLOTS] = {0, 0, 5, 1, 1, 4, 2, 3, 0};
    arena scratch;
    arena_init(&scratch, NULL);
    layer_problem problem = problem_of(slots, INT64_MAX);
    frontier_point points[SLOTS + 1];
    int32_t count;
    assert_int_equal(
        fill_slots_frontier(policy_find("equal"), &problem, &scratch, points, SLOTS + 1, &count, NULL),
        EPLB_OK);
    assert_true(count >= 2);
    assert_int_equal(points[0].moves, 0);
    for (int32_t i = 0; i < count; i++) {
        assert_true(i == 0 ||
                    (points[i].moves > points[i - 1].moves && points[i].imbalance < points[i - 1].imbalance));
        eplb_plan *plan = plan_from(slots, "equal", EPLB_SPLIT_EQUAL, points[i].moves);
        assert_true(eplb_plan_imbalance(plan)[0] <= points[i].imbalance * (1 + 1e-9));
        eplb_plan_destroy(plan);
    }
    arena_destroy(&scratch);
}

/* Two nodes with one group each; an expert of each is with the other. They go back, and no slot is empty. */
static void test_scattered_groups_come_together_whole(void **state)
{
    (void)state;
    static const int64_t counts[4] = {8, 4, 6, 2};
    static const int32_t slots[8] = {0, 1, 0, 2, 2, 3, 2, 1};
    eplb_topology *topology = case_topology(4, 2, 2);
    eplb_load *tokens = case_load(1, 1, 4, counts);
    eplb_placement *current;
    assert_int_equal(eplb_placement_create(&current, topology, 1, 4, slots, NULL, NULL), EPLB_OK);
    for (int64_t moves = 0; moves <= 4; moves++) {
        eplb_plan_params params = case_params("auto", 2);
        params.current = current;
        params.max_moves_per_layer = moves;
        eplb_plan *plan;
        eplb_error error;
        assert_int_equal(case_plan(&plan, tokens, topology, &params, &error), EPLB_OK);
        assert_true(eplb_plan_moves(plan).received <= moves);
        for (int32_t p = 0; p < 8; p++) {
            assert_true(case_slots(plan)[p] >= 0);
            assert_true(moves < 2 || case_slots(plan)[p] / 2 == p / 4);
        }
        eplb_plan_destroy(plan);
    }
    eplb_placement_destroy(current);
    eplb_load_destroy(tokens);
    eplb_topology_destroy(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doubled_slots_are_filled_first),
        cmocka_unit_test(test_reason_tells_what_is_missing),
        cmocka_unit_test(test_empty_slots_relieve_the_hottest_rank),
        cmocka_unit_test(test_keeping_is_never_made_worse),
        cmocka_unit_test(test_lost_experts_come_first),
        cmocka_unit_test(test_too_few_moves_change_nothing),
        cmocka_unit_test(test_empty_slot_may_change_its_place),
        cmocka_unit_test(test_count),
        cmocka_unit_test(test_frontier_counts_what_fills),
        cmocka_unit_test(test_scattered_groups_come_together_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
