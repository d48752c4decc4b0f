/* Checked sums and products at the edge of int64, and the wide product against a schoolbook one and the
 * compiler's. */
#include "testing.h"

#include "base/checked.h"
#include "base/random.h"

static void sum_and_product_stop_at_the_edge(void **state)
{
    (void)state;
    int64_t result = -7;
    assert_true(checked_add(INT64_MAX - 1, 1, &result));
    assert_int_equal(result, INT64_MAX);
    assert_false(checked_add(INT64_MAX, 1, &result));
    assert_false(checked_add(1, INT64_MAX, &result));
    assert_true(checked_multiply(0, INT64_MAX, &result));
    assert_int_equal(result, 0);
    assert_true(checked_multiply(INT64_MAX, 1, &result));
    assert_int_equal(result, INT64_MAX);
    assert_true(checked_multiply(INT64_C(3037000499), INT64_C(3037000499), &result));
    assert_int_equal(result, INT64_C(9223372030926249001));
    assert_false(checked_multiply(INT64_C(3037000500), INT64_C(3037000500), &result));
    assert_false(checked_multiply(INT64_MAX, 2, &result));
}

/* Adds a shifted copy of a for every bit of b: slow and plain. */
static wide add_and_shift(uint64_t a, uint64_t b)
{
    wide sum = {0, 0};
    for (int bit = 0; bit < 64; bit++) {
        if (((b >> bit) & 1) == 0)
            continue;
        uint64_t low = sum.low + (a << bit);
        sum.high += (bit > 0 ? a >> (64 - bit) : 0) + (low < sum.low);
        sum.low = low;
    }
    return sum;
}

static void wide_product_is_the_schoolbook_one(void **state)
{
    (void)state;
    const uint64_t edges[] = {0,         1, 2, UINT32_MAX, UINT64_C(1) << 32, INT64_MAX, UINT64_C(1) << 63,
                              UINT64_MAX};
    const size_t num_edges = sizeof edges / sizeof edges[0];
    random_state random = random_seed(1);
    for (size_t i = 0; i < 20000; i++) {
        uint64_t a = i < num_edges * num_edges ? edges[i / num_edges] : random_next(&random);
        uint64_t b = i < num_edges * num_edges ? edges[i % num_edges] : random_next(&random) >> (i % 64);
        wide expected = add_and_shift(a, b), actual = wide_multiply(a, b);
        assert_true(actual.high == expected.high && actual.low == expected.low);
    }
}

static void fractions_compare_exactly(void **state)
{
    (void)state;
    assert_int_equal(fraction_compare(1, 3, 2, 6), 0);
    assert_int_equal(fraction_compare(0, 5, 0, 9), 0);
    assert_int_equal(fraction_compare(1, 3, 1, 2), -1);
    assert_int_equal(fraction_compare(1, 2, 1, 3), 1);
    /* They differ by 1 in 10^37: a double sees no difference. */
    assert_int_equal(fraction_compare(INT64_MAX - 1, INT64_MAX, INT64_MAX - 2, INT64_MAX - 1), 1);
    assert_int_equal(fraction_compare(INT64_MAX - 2, INT64_MAX - 1, INT64_MAX - 1, INT64_MAX), -1);
    assert_int_equal(fraction_compare(INT64_MAX, INT64_MAX, 1, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sum_and_product_stop_at_the_edge),
        cmocka_unit_test(wide_product_is_the_schoolbook_one),
        cmocka_unit_test(fractions_compare_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
