/* Repeat tables: entries in proportion to shares, live slots only, the reported error true, int32 and int64
 * alike. */
#include "testing.h"

#include <math.h>
#include <stdlib.h>

#include <eplb/route.h>

#include "random_placement.h"

#define WIDTH 24

static void counts_follow_shares(void **state)
{
    (void)state;
    random_state random = random_seed(51);
    static int32_t table[2 * 10 * WIDTH], count[2 * 10];
    static int64_t table64[2 * 10 * WIDTH], count64[2 * 10];
    for (int round = 0; round < 50; round++) {
        placement_shape shape = {2, 10, 8, 2, 3, (int32_t)random_below(&random, 2), 0};
        eplb_placement *placement = random_placement(&random, shape);
        double *shares = random_shares(&random, placement);
        double reported = -1.0, reported64 = -1.0, worst = 0.0;
        eplb_error error;
        assert_int_equal(
            eplb_repeat_table_int32(placement, shares, WIDTH, table, count, &reported, NULL, &error),
            EPLB_OK);
        assert_int_equal(
            eplb_repeat_table_int64(placement, shares, WIDTH, table64, count64, &reported64, NULL, &error),
            EPLB_OK);
        for (int i = 0; i < 20; i++) {
            double served[24] = {0};
            assert_in_range(count[i], 1, WIDTH);
            assert_int_equal(count64[i], count[i]);
            for (int n = 0; n < WIDTH; n++) {
                assert_int_equal(table64[i * WIDTH + n], table[i * WIDTH + n]);
                if (n >= count[i])
                    assert_int_equal(table[i * WIDTH + n], -1);
                else
                    served[table[i * WIDTH + n]] += 1.0 / (double)count[i];
            }
            for (int p = 0; p < 24; p++) {
                int32_t held = eplb_placement_physical_to_logical(placement)[i / 10 * 24 + p];
                double wanted = held == i % 10 ? shares[i / 10 * 24 + p] : 0.0,
                       off = fabs(served[p] - wanted);
                worst = off > worst ? off : worst;
            }
        }
        assert_true(fabs(worst - reported) < 1e-6);
        assert_true(reported == reported64);
        assert_true(reported <= 1.0 / WIDTH);
        free(shares);
        eplb_placement_destroy(placement);
    }
}

/* Without shares the rows are the replicas themselves, as engines have them. */
static void equal_shares_need_no_repeats(void **state)
{
    (void)state;
    random_state random = random_seed(52);
    static int32_t table[10 * WIDTH], count[10];
    eplb_placement *placement = random_placement(&random, (placement_shape){1, 10, 8, 2, 3, 0, 0});
    double reported;
    assert_int_equal(eplb_repeat_table_int32(placement, NULL, WIDTH, table, count, &reported, NULL, NULL),
                     EPLB_OK);
    for (int e = 0; e < 10; e++) {
        assert_int_equal(count[e], eplb_placement_replica_count(placement)[e]);
        for (int n = 0; n < count[e]; n++)
            assert_int_equal(
                table[e * WIDTH + n],
                eplb_placement_replica_slots(placement)[eplb_placement_replica_first(placement)[e] + n]);
    }
    assert_true(reported == 0.0);
    eplb_error error;
    assert_int_equal(eplb_repeat_table_int32(placement, NULL, 0, table, count, NULL, NULL, &error),
                     EPLB_ERROR_INVALID);
    eplb_placement_destroy(placement);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_follow_shares),
        cmocka_unit_test(equal_shares_need_no_repeats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
