/* Keeping slots: three cases that vLLM tests, and the rules on random ranks: no rank's content changes, an
 * expert that stays is in its old slot as often as both hold it. */
#include <string.h>

#include "base/random.h"
#include "cases.h"
#include "plan/keep_slots.h"

static void keep(int32_t ranks, int32_t room, int32_t experts, const int32_t *current, int32_t *expert)
{
    int32_t first[65];
    for (int32_t g = 0; g <= ranks; g++)
        first[g] = g * room;
    arena scratch;
    arena_init(&scratch, NULL);
    assert_int_equal(keep_slots(first, ranks, experts, current, expert, &scratch, NULL), EPLB_OK);
    arena_destroy(&scratch);
}

static void test_two_ranks_of_four(void **state)
{
    (void)state;
    const int32_t old[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    int32_t new[8] = {1, 5, 0, 4, 6, 2, 7, 3};
    const int32_t expected[8] = {0, 1, 5, 4, 2, 3, 6, 7};
    keep(2, 4, 8, old, new);
    assert_memory_equal(new, expected, sizeof expected);
}

static void test_duplicates(void **state)
{
    (void)state;
    const int32_t old[10] = {0, 1, 0, 2, 3, 4, 5, 6, 1, 2};
    int32_t new[10] = {0, 5, 4, 0, 1, 6, 2, 3, 2, 1};
    const int32_t expected[10] = {0, 1, 0, 5, 4, 3, 2, 6, 1, 2};
    keep(2, 5, 7, old, new);
    /* rank 0 keeps 0, 1, 0; rank 1 keeps 6, 1 and one 2; the rest fills up in order */
    assert_memory_equal(new, expected, sizeof expected);
}

static void test_skewed(void **state)
{
    (void)state;
    const int32_t old[12] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
    int32_t new[12] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 0};
    const int32_t expected[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3};
    keep(3, 4, 4, old, new);
    assert_memory_equal(new, expected, sizeof expected);
}

static int32_t count_of(const int32_t *slots, int32_t room, int32_t expert)
{
    int32_t count = 0;
    for (int32_t i = 0; i < room; i++)
        count += slots[i] == expert;
    return count;
}

static void check_rank(const int32_t *old, const int32_t *before, const int32_t *after, int32_t room,
                       int32_t experts)
{
    for (int32_t e = -1; e < experts; e++) {
        int32_t was = count_of(old, room, e), is = count_of(after, room, e), stays = 0;
        assert_int_equal(is, count_of(before, room, e));
        for (int32_t i = 0; i < room; i++)
            stays += old[i] == e && after[i] == e;
        if (e >= 0)
            assert_int_equal(stays, was < is ? was : is);
    }
}

static void test_random_ranks(void **state)
{
    (void)state;
    random_state random = random_seed(1);
    for (int round = 0; round < 2000; round++) {
        int32_t ranks = 1 + (int32_t)random_below(&random, 4), room = 1 + (int32_t)random_below(&random, 9);
        int32_t experts = 1 + (int32_t)random_below(&random, 12), old[36], before[36], after[36];
        for (int32_t p = 0; p < ranks * room; p++) {
            old[p] = (int32_t)random_below(&random, (uint32_t)experts + 1) - 1;
            before[p] = after[p] = (int32_t)random_below(&random, (uint32_t)experts + 1) - 1;
        }
        keep(ranks, room, experts, old, after);
        for (int32_t g = 0; g < ranks; g++)
            check_rank(old + g * room, before + g * room, after + g * room, room, experts);
    }
}

/* The policy: DeepSeek's ranks, and after a second plan on the same load nothing changes. */
static void test_policy(void **state)
{
    (void)state;
    int64_t counts[2][24];
    random_state random = random_seed(2);
    for (int i = 0; i < 48; i++)
        counts[i / 24][i % 24] = random_below(&random, 1000);
    eplb_load *load = case_load(1, 2, 24, counts[0]);
    eplb_topology *topology = case_topology(4, 1, 8);
    eplb_placement *initial;
    assert_int_equal(eplb_placement_create_initial(&initial, topology, 2, 24, NULL, NULL), EPLB_OK);
    eplb_plan_params params = case_params("deepseek", 1);
    eplb_plan *deepseek, *kept, *again;
    eplb_error error;
    assert_int_equal(case_plan(&deepseek, load, topology, &params, &error), EPLB_OK);
    params = case_params("vllm", 1);
    params.current = initial;
    assert_int_equal(case_plan(&kept, load, topology, &params, &error), EPLB_OK);
    assert_true(eplb_plan_moves(kept).slots >= eplb_plan_moves(kept).received);
    for (int32_t g = 0; g < 8; g++) /* layers x ranks */
        check_rank(eplb_placement_physical_to_logical(initial) + g * 8, case_slots(deepseek) + g * 8,
                   case_slots(kept) + g * 8, 8, 24);
    params.current = eplb_plan_placement(kept);
    assert_int_equal(case_plan(&again, load, topology, &params, &error), EPLB_OK);
    assert_true(eplb_plan_equal(kept, again));
    assert_int_equal(eplb_plan_moves(again).slots, 0);
    eplb_plan_destroy(again);
    eplb_plan_destroy(kept);
    eplb_plan_destroy(deepseek);
    eplb_placement_destroy(initial);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_ranks_of_four),
        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_skewed),
        cmocka_unit_test(test_random_ranks),
        cmocka_unit_test(test_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
