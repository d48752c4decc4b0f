/* Repair: lost experts first, moves within their limit, never worse than keeping, slots kept in place. */
#include "../../equal_case.h"
#include "../../testing.h"
#include "base/random.h"
#include "plan/policies.h"

static eplb_error error;

static eplb_status run(layer_case *c)
{
    arena scratch;
    arena_init(&scratch, NULL);
    c->problem.split = EPLB_SPLIT_EQUAL;
    c->problem.current = c->current;
    for (int32_t s = 0; s < c->problem.num_slots; s++)
        c->expert[s] = -1;
    eplb_status status = plan_layer_equal(&c->problem, &scratch, &c->answer, &error);
    arena_destroy(&scratch);
    return status;
}

static int32_t received(const layer_case *c)
{
    int32_t n = 0;
    for (int32_t s = 0; s < c->problem.num_slots; s++)
        n += c->expert[s] >= 0 && !case_rank_holds(c, c->current, c->slot_rank[s], c->expert[s]);
    return n;
}

/* 8 ranks of 5 slots, 32 experts, a legal placement. */
static void make_case(layer_case *c, uint64_t seed)
{
    random_state random = random_seed(seed);
    case_init(c, 32, 8, 5);
    for (int32_t e = 0; e < 32; e++)
        c->load[e] = 20 + random_below(&random, 500);
    case_refresh(c);
    for (int32_t s = 0; s < 40; s++)
        c->current[s] = s % 32;
}

static void more_moves_are_never_worse(void **state)
{
    (void)state;
    static layer_case c;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        make_case(&c, seed);
        int64_t before = equal_hottest(&c, c.current);
        for (int32_t moves = 0; moves <= 12; moves++) {
            c.problem.max_moves = moves;
            assert_int_equal(run(&c), EPLB_OK);
            assert_null(case_problem(&c));
            assert_true(received(&c) <= moves);
            int64_t now = equal_hottest(&c, c.expert);
            assert_true(now <= before);
            if (moves == 0)
                assert_memory_equal(c.expert, c.current, 40 * sizeof(int32_t));
            if (moves == 12)
                assert_true(now < before);
        }
    }
}

static void slots_that_stay_stay_in_place(void **state)
{
    (void)state;
    static layer_case c;
    make_case(&c, 3);
    c.problem.max_moves = 5;
    assert_int_equal(run(&c), EPLB_OK);
    int32_t changed = 0;
    for (int32_t s = 0; s < 40; s++)
        changed += c.expert[s] != c.current[s];
    assert_int_equal(changed, received(&c));
}

static void a_target_stops_it(void **state)
{
    (void)state;
    static layer_case c;
    make_case(&c, 4);
    double mean = (double)c.problem.total * (double)EQUAL_UNIT / 8;
    c.problem.target_imbalance = 1.05;
    assert_int_equal(run(&c), EPLB_OK);
    assert_true((double)equal_hottest(&c, c.expert) <= 1.05 * mean);
    int32_t few = received(&c);
    c.problem.target_imbalance = 0;
    assert_int_equal(run(&c), EPLB_OK);
    assert_true((double)equal_hottest(&c, c.expert) < 1.01 * mean);
    assert_true(few < received(&c));
    c.problem.target_imbalance = 100;
    assert_int_equal(run(&c), EPLB_OK);
    assert_int_equal(received(&c), 0);
}

/* A rank died: its slots are gone from the problem, and with them the only replicas of three experts. */
static void lost_experts_come_first(void **state)
{
    (void)state;
    static layer_case c;
    make_case(&c, 5);
    for (int32_t s = 0; s < 40; s++) {
        if (c.current[s] >= 10 && c.current[s] < 13)
            c.current[s] = -1;
    }
    c.problem.max_moves = 2;
    assert_int_equal(run(&c), EPLB_ERROR_INFEASIBLE);
    assert_non_null(strstr(error.text, "10, 11, 12"));
    assert_int_equal(error.value, 3);
    c.problem.max_moves = 3;
    assert_int_equal(run(&c), EPLB_OK);
    assert_null(case_problem(&c));
    assert_int_equal(received(&c), 3);
}

static void tables_alone_can_be_repaired(void **state)
{
    (void)state;
    static layer_case c;
    make_case(&c, 6);
    c.current[39] = -1; /* a second replica is gone; everything is still served */
    c.problem.max_moves = 0;
    assert_int_equal(run(&c), EPLB_OK);
    assert_null(case_problem(&c));
    assert_int_equal(c.expert[39], -1);
    assert_int_equal(received(&c), 0);
}

static void an_expert_twice_on_a_rank_is_dropped(void **state)
{
    (void)state;
    static layer_case c;
    make_case(&c, 7);
    c.current[36] = c.current[35]; /* was the second replica of expert 4 */
    c.problem.max_moves = 0;
    assert_int_equal(run(&c), EPLB_OK);
    assert_null(case_problem(&c));
    assert_int_equal(received(&c), 0);
}

/* A placement that is good enough stays, whoever made it and wherever its ranks are. */
static void what_is_good_enough_stays(void **state)
{
    (void)state;
    static layer_case c;
    int32_t good = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        make_case(&c, seed);
        c.problem.target_imbalance = 1.005;
        arena scratch;
        arena_init(&scratch, NULL);
        c.problem.split = EPLB_SPLIT_EQUAL;
        assert_int_equal(plan_layer_equal(&c.problem, &scratch, &c.answer, &error), EPLB_OK);
        arena_destroy(&scratch);
        if ((double)equal_hottest(&c, c.expert) > 1.005 * (double)c.problem.total * (double)EQUAL_UNIT / 8)
            continue;
        for (int32_t s = 0; s < 40; s++)
            c.current[s] = c.expert[(s + 15) % 40];
        assert_int_equal(run(&c), EPLB_OK);
        assert_memory_equal(c.expert, c.current, 40 * sizeof(int32_t));
        good++;
    }
    assert_true(good > 0);
}

static void the_frontier_falls_and_is_reached(void **state)
{
    (void)state;
    static layer_case c;
    frontier_point points[64];
    arena scratch;
    make_case(&c, 9);
    c.problem.split = EPLB_SPLIT_EQUAL;
    c.problem.current = c.current;
    arena_init(&scratch, NULL);
    int32_t count = 0;
    assert_int_equal(plan_frontier_equal(&c.problem, &scratch, points, 64, &count, &error), EPLB_OK);
    arena_destroy(&scratch);
    assert_true(count > 4);
    double mean = (double)c.problem.total * (double)EQUAL_UNIT / 8;
    assert_true(equal_near(points[0].imbalance, (double)equal_hottest(&c, c.current) / mean));
    for (int32_t i = 1; i < count; i++) {
        assert_true(points[i].moves > points[i - 1].moves && points[i].imbalance < points[i - 1].imbalance);
        c.problem.max_moves = points[i].moves;
        assert_int_equal(run(&c), EPLB_OK);
        assert_true((double)equal_hottest(&c, c.expert) / mean <= points[i].imbalance * 1.0002);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_moves_are_never_worse),
        cmocka_unit_test(slots_that_stay_stay_in_place),
        cmocka_unit_test(a_target_stops_it),
        cmocka_unit_test(lost_experts_come_first),
        cmocka_unit_test(tables_alone_can_be_repaired),
        cmocka_unit_test(an_expert_twice_on_a_rank_is_dropped),
        cmocka_unit_test(what_is_good_enough_stays),
        cmocka_unit_test(the_frontier_falls_and_is_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
