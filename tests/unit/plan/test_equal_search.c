/* The search: never worse than its start, stops at its goal, at its limit and when told, and repeats
 * itself. */
#include "../../equal_case.h"
#include "../../testing.h"
#include "base/random.h"
#include "plan/equal_search.h"

typedef struct fixture {
    layer_case c;
    arena scratch;
    replica_work work;
    layout seats;
    neighbourhood around;
    double start;
    double mean;
} fixture;

static void start(fixture *f, uint64_t seed)
{
    random_state random = random_seed(seed);
    case_init(&f->c, 20, 6, 4);
    for (int32_t e = 0; e < 20; e++)
        f->c.load[e] = 1 + random_below(&random, 1000);
    case_refresh(&f->c);
    for (int32_t s = 0; s < 24; s++)
        f->c.expert[s] = s % 20;
    arena_init(&f->scratch, NULL);
    assert_int_equal(replica_work_init(&f->work, &f->c.problem, &f->scratch, NULL), EPLB_OK);
    assert_int_equal(layout_init(&f->seats, &f->c.problem, &f->work, &f->scratch, NULL), EPLB_OK);
    assert_int_equal(neighbourhood_init(&f->around, &f->seats, &f->c.problem, &f->scratch, NULL), EPLB_OK);
    layout_set(&f->seats, f->c.expert);
    int32_t hot;
    f->start = layout_hottest(&f->seats, &hot);
    f->mean = f->work.least_total / 6;
}

static double search(fixture *f, double goal, int64_t work)
{
    int32_t hot;
    double hottest;
    equal_search_limits limits = {f->mean, goal, work, 0, INT64_MAX};
    assert_int_equal(equal_search(&f->around, &f->c.problem, &limits, &hottest, &f->scratch, NULL), EPLB_OK);
    assert_true(layout_hottest(&f->seats, &hot) == hottest);
    memcpy(f->c.expert, f->seats.expert, 24 * sizeof(int32_t));
    assert_null(case_problem(&f->c));
    return hottest;
}

static void more_work_is_never_worse(void **state)
{
    (void)state;
    static fixture f;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        double before = 1e300;
        for (int64_t work = 0; work <= 100000; work = work * 4 + 1000) {
            start(&f, seed);
            double now = search(&f, 0, work);
            assert_true(now <= f.start && now <= before);
            before = now;
            arena_destroy(&f.scratch);
        }
        assert_true(before < 1.03 * f.mean);
    }
}

static void it_stops_at_the_goal(void **state)
{
    (void)state;
    static fixture f;
    start(&f, 3);
    double hottest = search(&f, 1.2 * f.mean, 1000000);
    assert_true(hottest <= 1.2 * f.mean);
    assert_true(f.around.looked < 100000);
    arena_destroy(&f.scratch);
}

static bool stop_at_once(void *context)
{
    ++*(int *)context;
    return true;
}

static void it_stops_when_told(void **state)
{
    (void)state;
    static fixture f;
    int asked = 0;
    start(&f, 4);
    f.c.problem.should_stop = stop_at_once;
    f.c.problem.stop_context = &asked;
    (void)search(&f, 0, INT64_C(1) << 40);
    assert_int_equal(asked, 1);
    arena_destroy(&f.scratch);
}

static void it_repeats_itself(void **state)
{
    (void)state;
    static fixture f;
    int32_t first[24];
    start(&f, 5);
    (void)search(&f, 0, 50000);
    memcpy(first, f.seats.expert, sizeof first);
    for (int32_t s = 0; s < 24; s++)
        f.c.expert[s] = s % 20;
    layout_set(&f.seats, f.c.expert); /* the same state, after a search */
    (void)search(&f, 0, 50000);
    assert_memory_equal(first, f.seats.expert, sizeof first);
    arena_destroy(&f.scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_work_is_never_worse),
        cmocka_unit_test(it_stops_at_the_goal),
        cmocka_unit_test(it_stops_when_told),
        cmocka_unit_test(it_repeats_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
