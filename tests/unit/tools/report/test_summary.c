/* Mean, worst, and the places of the largest with ties to the lowest. */
#include "report/summary.h"

#include "testing.h"

static void test_summary(void **state)
{
    static const double values[5] = {1.0, 3.0, 2.0, 3.0, 1.0};
    int32_t places[5];
    (void)state;
    summary s = summarize(values, 5);
    assert_true(s.mean == 2.0);
    assert_true(s.worst == 3.0);
    assert_int_equal(s.worst_index, 1);
    assert_int_equal(largest(values, 5, places, 3), 3);
    assert_memory_equal(places, ((const int32_t[]){1, 3, 2}), 3 * sizeof *places);
    assert_int_equal(largest(values, 2, places, 3), 2);
    assert_memory_equal(places, ((const int32_t[]){1, 0}), 2 * sizeof *places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_summary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
