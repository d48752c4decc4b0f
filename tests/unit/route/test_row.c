/* Rows: the chairman property of every prefix, and apportionments against all others of small sizes. */
#include "testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <eplb/route.h>

#include "base/random.h"
#include "route/row.h"

/* |count_i(n) - n q_i / L| < 1 for every prefix and i, in whole numbers. */
static void check_prefixes(const int32_t *quota, int32_t count, const int32_t *row)
{
    int64_t length = 0, served[64] = {0};
    for (int32_t i = 0; i < count; i++)
        length += quota[i];
    for (int64_t n = 1; n <= length; n++) {
        assert_in_range(row[n - 1], 0, count - 1);
        served[row[n - 1]]++;
        for (int32_t i = 0; i < count; i++) {
            int64_t off = served[i] * length - n * quota[i];
            assert_true(off < length && -off < length);
        }
    }
    for (int32_t i = 0; i < count; i++)
        assert_int_equal(served[i], quota[i]);
}

static void every_prefix_is_within_one(void **state)
{
    (void)state;
    random_state random = random_seed(21);
    static int32_t row[70000];
    int32_t quota[64], scratch[64];
    for (int round = 0; round < 3000; round++) {
        int32_t count = (int32_t)(1 + random_below(&random, round % 10 == 0 ? 64 : 6));
        int32_t sum = 0;
        for (int32_t i = 0; i < count; i++) {
            quota[i] = (int32_t)random_below(&random, round % 3 == 0 ? 200 : 8);
            sum += quota[i];
        }
        if (sum == 0)
            quota[0] = 1;
        eplb_route_row(quota, count, row, scratch);
        check_prefixes(quota, count, row);
    }
}

/* Equal quotas: any run, wherever it starts, gives each its quota rounded down or up. */
static void equal_rows_take_turns(void **state)
{
    (void)state;
    int32_t row[64], quota[64], scratch[64];
    for (int32_t count = 1; count <= 64; count++) {
        for (int32_t i = 0; i < count; i++)
            quota[i] = 1;
        eplb_route_row(quota, count, row, scratch);
        for (int32_t i = 0; i < count; i++)
            assert_int_equal(row[i], i);
    }
}

static int64_t worst_error(const int64_t *weight, int32_t count, int32_t length, const int32_t *quota)
{
    int64_t sum = 0, worst = 0;
    for (int32_t i = 0; i < count; i++)
        sum += weight[i];
    for (int32_t i = 0; i < count; i++) {
        int64_t error = weight[i] * length - quota[i] * sum;
        error = error < 0 ? -error : error;
        worst = error > worst ? error : worst;
    }
    return worst;
}

/* All ways to write `left` as quotas from position i on. */
static void try_all(const int64_t *weight, int32_t count, int32_t length, int32_t *quota, int32_t i,
                    int32_t left, int64_t *best)
{
    if (i == count - 1) {
        quota[i] = left;
        int64_t error = worst_error(weight, count, length, quota);
        *best = error < *best ? error : *best;
        return;
    }
    for (quota[i] = 0; quota[i] <= left; quota[i]++)
        try_all(weight, count, length, quota, i + 1, left - quota[i], best);
}

static void apportionment_is_best(void **state)
{
    (void)state;
    random_state random = random_seed(22);
    for (int round = 0; round < 2000; round++) {
        int32_t count = (int32_t)(1 + random_below(&random, 4)),
                length = (int32_t)(1 + random_below(&random, 12));
        int64_t weight[4], best = INT64_MAX;
        int32_t quota[4], tried[4], sum = 0;
        for (int32_t i = 0; i < count; i++)
            weight[i] = random_below(&random, 50) + (i == 0);
        int64_t error = row_apportion(weight, count, length, quota);
        for (int32_t i = 0; i < count; i++)
            sum += quota[i];
        try_all(weight, count, length, tried, 0, length, &best);
        assert_int_equal(sum, length);
        assert_int_equal(error, best);
        assert_int_equal(error, worst_error(weight, count, length, quota));
    }
}

static void chosen_length_is_best(void **state)
{
    (void)state;
    random_state random = random_seed(23);
    for (int round = 0; round < 500; round++) {
        int32_t count = (int32_t)(2 + random_below(&random, 4)),
                limit = (int32_t)(1 + random_below(&random, 40));
        double shares[8], error;
        int64_t weight[8], sum = 0;
        int32_t quota[8], other[8];
        for (int32_t i = 0; i < count; i++)
            shares[i] = random_unit(&random) + (i == 0 ? 0.1 : 0.0);
        row_weights_of_shares(shares, count, weight);
        for (int32_t i = 0; i < count; i++)
            sum += weight[i];
        assert_true(sum <= ROW_WEIGHT_LIMIT && sum > ROW_WEIGHT_LIMIT / 4);
        int32_t length = row_choose(weight, count, limit, quota, &error);
        assert_in_range(length, 1, limit);
        double best = 1.0;
        for (int32_t n = 1; n <= limit; n++) {
            double here = (double)row_apportion(weight, count, n, other) / ((double)n * (double)sum);
            best = here < best ? here : best;
        }
        assert_true(fabs(error - best) < 1e-12);
    }
    int64_t equal[5] = {7, 7, 7, 7, 7};
    int32_t quota[5];
    double error;
    assert_int_equal(row_choose(equal, 5, 256, quota, &error), 5);
    assert_true(error == 0.0);
    int64_t third[2] = {1, 2};
    assert_int_equal(row_choose(third, 2, 256, quota, &error), 3);
    assert_true(error == 0.0);
}

static void huge_weights_are_scaled(void **state)
{
    (void)state;
    int64_t weight[3] = {INT64_MAX, INT64_MAX / 2, 5};
    row_scale_weights(weight, 3);
    assert_true(weight[0] + weight[1] + weight[2] <= ROW_WEIGHT_LIMIT);
    assert_true(weight[0] > weight[1] && weight[1] > ROW_WEIGHT_LIMIT / 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_prefix_is_within_one), cmocka_unit_test(equal_rows_take_turns),
        cmocka_unit_test(apportionment_is_best),      cmocka_unit_test(chosen_length_is_best),
        cmocka_unit_test(huge_weights_are_scaled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
