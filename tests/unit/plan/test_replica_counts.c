/* Replica counts: the least largest replica, caps, and ties. */
#include "../../layer_case.h"
#include "../../testing.h"
#include "base/random.h"
#include "plan/replica_counts.h"

static void count_case(const layer_case *c, int32_t replicas, int32_t cap, int32_t *count)
{
    arena scratch;
    replica_work work;
    arena_init(&scratch, NULL);
    assert_int_equal(replica_work_init(&work, &c->problem, &scratch, NULL), EPLB_OK);
    assert_int_equal(replica_counts(&work, c->problem.num_experts, replicas, cap, count, &scratch, NULL),
                     EPLB_OK);
    arena_destroy(&scratch);
}

/* True if T tokens per replica are enough: sum of ceil(w / T) <= replicas with each within the cap. */
static bool enough(const layer_case *c, int64_t t, int32_t replicas, int32_t cap)
{
    int64_t sum = 0;
    for (int32_t e = 0; e < c->problem.num_experts; e++) {
        int64_t n = (c->load[e] + t - 1) / t;
        if (n > cap)
            return false;
        sum += n > 0 ? n : 1;
    }
    return sum <= replicas;
}

static void largest_replica_is_least(void **state)
{
    (void)state;
    static layer_case c;
    int32_t count[20];
    random_state random = random_seed(1);
    for (int32_t i = 0; i < 300; i++) {
        int32_t cap = 2 + (int32_t)random_below(&random, 6),
                replicas = 20 + (int32_t)random_below(&random, 20);
        case_init(&c, 20, 8, 8);
        for (int32_t e = 0; e < 20; e++)
            c.load[e] = (int64_t)random_below(&random, 1000) * 720720;
        case_refresh(&c);
        count_case(&c, replicas, cap, count);
        int64_t sum = 0, largest = 0;
        for (int32_t e = 0; e < 20; e++) {
            assert_in_range(count[e], 1, cap);
            sum += count[e];
            largest = c.load[e] / count[e] > largest ? c.load[e] / count[e] : largest;
        }
        assert_int_equal(sum, replicas);
        assert_true(largest <= 1 || !enough(&c, largest - 1, replicas, cap));
    }
}

static void spares_are_even_without_load(void **state)
{
    (void)state;
    static layer_case c;
    int32_t count[7];
    case_init(&c, 7, 4, 4);
    count_case(&c, 12, 4, count);
    for (int32_t e = 0; e < 7; e++)
        assert_int_equal(count[e], e < 5 ? 2 : 1);
}

static void spares_beyond_the_caps_are_left(void **state)
{
    (void)state;
    static layer_case c;
    int32_t count[3];
    case_init(&c, 3, 2, 4);
    count_case(&c, 8, 2, count);
    for (int32_t e = 0; e < 3; e++)
        assert_int_equal(count[e], 2);
}

/* As few as keep replicas at or below the limit; the rest to experts below half of it. */
static void large_replicas_leave_spares_to_others(void **state)
{
    (void)state;
    static layer_case c;
    static const int64_t load[5] = {100, 50, 20, 19, 5};
    int32_t count[5];
    bool fits;
    arena scratch;
    replica_work work;
    case_init(&c, 5, 4, 3);
    memcpy(c.load, load, sizeof load);
    case_refresh(&c);
    arena_init(&scratch, NULL);
    assert_int_equal(replica_work_init(&work, &c.problem, &scratch, NULL), EPLB_OK);
    assert_int_equal(replica_counts_large(&work, 5, 10, 4, 50 * work.scale, count, &fits, &scratch, NULL),
                     EPLB_OK);
    static const int32_t expected[5] = {2, 1, 3, 3, 1};
    assert_true(fits);
    assert_memory_equal(count, expected, sizeof expected);
    assert_int_equal(replica_counts_large(&work, 5, 10, 4, 20 * work.scale, count, &fits, &scratch, NULL),
                     EPLB_OK);
    assert_false(fits); /* 5 replicas of the first, cap 4 */
    arena_destroy(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(largest_replica_is_least),
        cmocka_unit_test(spares_are_even_without_load),
        cmocka_unit_test(spares_beyond_the_caps_are_left),
        cmocka_unit_test(large_replicas_leave_spares_to_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
