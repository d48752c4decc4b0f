/* The stream is SplitMix64's, as published for seed 1234567, and bounds hold. */
#include "testing.h"

#include "base/random.h"

static void the_published_stream(void **state)
{
    (void)state;
    random_state random = random_seed(1234567);
    assert_true(random_next(&random) == UINT64_C(6457827717110365317));
    assert_true(random_next(&random) == UINT64_C(3203168211198807973));
    assert_true(random_next(&random) == UINT64_C(9817491932198370423));
    assert_true(random_next(&random) == UINT64_C(4593380528125082431));
    assert_true(random_next(&random) == UINT64_C(16408922859458223821));
}

static void bounds_hold_and_all_values_come(void **state)
{
    (void)state;
    random_state random = random_seed(5);
    int seen[7] = {0};
    for (int i = 0; i < 7000; i++) {
        uint32_t value = random_below(&random, 7);
        assert_true(value < 7);
        seen[value]++;
        double unit = random_unit(&random);
        assert_true(unit >= 0.0 && unit < 1.0);
        assert_int_equal(random_below(&random, 1), 0);
    }
    for (int i = 0; i < 7; i++)
        assert_in_range(seen[i], 800, 1200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_stream),
        cmocka_unit_test(bounds_hold_and_all_values_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
