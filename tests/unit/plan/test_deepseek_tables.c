/* The tables in 64 bits: the published example in its published shape, padding, and broken input. */
#include <string.h>

#include <eplb/deepseek.h>

#include "testing.h"

enum { LAYERS = 2, EXPERTS = 3, SLOTS = 5, WIDTH = 4 };

static const int32_t EXPERT[LAYERS][SLOTS] = {{2, 0, 1, 2, 2}, {1, 1, 0, 2, 0}};
static const int32_t NUMBER[LAYERS][SLOTS] = {{1, 0, 0, 0, 2}, {0, 1, 1, 0, 0}};
static const int32_t COUNT[LAYERS][EXPERTS] = {{1, 1, 3}, {2, 2, 1}};

static eplb_status tables(const int32_t *expert, const int32_t *number, int32_t width, int64_t *wide,
                          int64_t *dense, int64_t *count, eplb_error *error)
{
    return eplb_rebalance_tables_int64(LAYERS, EXPERTS, SLOTS, width, expert, number, COUNT[0], wide, dense,
                                       count, error);
}

static void test_tables(void **state)
{
    (void)state;
    static const int64_t expected[LAYERS][EXPERTS][WIDTH] = {
        {{1, -1, -1, -1}, {2, -1, -1, -1}, {3, 0, 4, -1}}, {{4, 2, -1, -1}, {0, 1, -1, -1}, {3, -1, -1, -1}}};
    int64_t wide[LAYERS * SLOTS], dense[LAYERS][EXPERTS][WIDTH], count[LAYERS * EXPERTS];
    assert_int_equal(tables(EXPERT[0], NUMBER[0], WIDTH, wide, dense[0][0], count, NULL), EPLB_OK);
    assert_memory_equal(dense, expected, sizeof dense);
    for (int layer = 0; layer < LAYERS; layer++) {
        for (int slot = 0; slot < SLOTS; slot++)
            assert_int_equal(wide[layer * SLOTS + slot], EXPERT[layer][slot]);
        for (int e = 0; e < EXPERTS; e++)
            assert_int_equal(count[layer * EXPERTS + e], COUNT[layer][e]);
    }
}

static void test_of_the_planner(void **state)
{
    (void)state;
    enum { MANY = 24, PLACES = 40, MOST = PLACES - MANY + 1 };
    float weight[MANY];
    int32_t expert[PLACES], number[PLACES], replicas[MANY];
    int64_t wide[PLACES], dense[MANY][MOST], count[MANY];
    for (int e = 0; e < MANY; e++)
        weight[e] = (float)(1 + e * e);
    assert_int_equal(
        eplb_rebalance_experts(weight, 1, MANY, PLACES, 4, 2, 8, expert, number, replicas, NULL, NULL),
        EPLB_OK);
    assert_int_equal(eplb_rebalance_tables_int64(1, MANY, PLACES, MOST, expert, number, replicas, wide,
                                                 dense[0], count, NULL),
                     EPLB_OK);
    for (int e = 0; e < MANY; e++)
        for (int r = 0; r < MOST; r++) {
            if (r < replicas[e])
                assert_int_equal(expert[dense[e][r]], e);
            else
                assert_int_equal(dense[e][r], -1);
        }
}

static void test_broken_input(void **state)
{
    (void)state;
    int64_t wide[LAYERS * SLOTS], dense[LAYERS * EXPERTS * WIDTH], count[LAYERS * EXPERTS];
    int32_t broken[LAYERS][SLOTS];
    eplb_error error;
    const int32_t wrong[] = {-1, EXPERTS};
    for (int i = 0; i < 2; i++) {
        memcpy(broken, EXPERT, sizeof broken);
        broken[1][3] = wrong[i];
        assert_int_equal(tables(broken[0], NUMBER[0], WIDTH, wide, dense, count, &error), EPLB_ERROR_INVALID);
        assert_int_equal(error.layer, 1);
        assert_int_equal(error.slot, 3);
        assert_int_equal(error.value, wrong[i]);
    }
    assert_int_equal(tables(EXPERT[0], NUMBER[0], 2, wide, dense, count, &error), EPLB_ERROR_INVALID);
    assert_int_equal(error.expert, 2);
    assert_int_equal(error.value, 2);
    assert_int_equal(tables(EXPERT[0], NUMBER[0], 0, wide, dense, count, &error), EPLB_ERROR_INVALID);
    assert_non_null(strstr(error.text, "width is 0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_of_the_planner),
        cmocka_unit_test(test_broken_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
