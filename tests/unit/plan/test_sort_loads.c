/* Stable sort of experts by load, against insertion by comparison. */
#include <stdlib.h>

#include "../../testing.h"
#include "base/random.h"
#include "plan/sort_loads.h"

enum { MOST = 700 };

static void check_sorted(const int64_t *load, const int32_t *subset, int32_t n, arena *scratch)
{
    int32_t order[MOST], expected[MOST];
    for (int32_t i = 0; i < n; i++) {
        int32_t expert = subset != NULL ? subset[i] : i, j = i;
        for (; j > 0 && load[expected[j - 1]] > load[expert]; j--)
            expected[j] = expected[j - 1];
        expected[j] = expert;
    }
    assert_true(sort_loads(load, subset, n, order, scratch));
    assert_memory_equal(order, expected, (size_t)n * sizeof *order);
}

static void sorts_every_width_and_keeps_ties_in_order(void **state)
{
    (void)state;
    random_state random = random_seed(5);
    arena scratch;
    arena_init(&scratch, NULL);
    int64_t load[MOST];
    int32_t subset[MOST];
    for (int bits = 0; bits <= 63; bits++) {
        for (int32_t n = 1; n <= MOST; n = n * 2 + 1) {
            for (int32_t i = 0; i < n; i++) {
                load[i] = bits == 0 ? 0 : (int64_t)(random_next(&random) >> (64 - bits));
                subset[i] = n - 1 - i;
            }
            check_sorted(load, NULL, n, &scratch);
            check_sorted(load, subset, n, &scratch);
            check_sorted(load, subset, n / 2, &scratch);
        }
    }
    arena_destroy(&scratch);
}

static void sorts_the_largest_numbers(void **state)
{
    (void)state;
    arena scratch;
    arena_init(&scratch, NULL);
    int64_t load[64];
    for (int i = 0; i < 64; i++)
        load[i] = i % 3 == 0 ? INT64_MAX : i % 3 == 1 ? 0 : INT64_MAX - i;
    check_sorted(load, NULL, 64, &scratch);
    arena_destroy(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorts_every_width_and_keeps_ties_in_order),
        cmocka_unit_test(sorts_the_largest_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
