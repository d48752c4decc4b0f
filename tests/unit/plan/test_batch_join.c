/* Joining ranks by the experts they share: small circles of ranks become one, and nothing else changes. */
#include "testing.h"

#include <math.h>
#include <string.h>

#include "layer_case.h"
#include "plan/batch_join.h"
#include "plan/batch_split.h"
#include "plan/expert_bits.h"

enum { EXPERTS = 8, RANKS = 4, SLOTS = 12, WINDOWS = 2 };

/* Ranks 0 and 1 share experts 4 and 5, ranks 2 and 3 share 6 and 7; 0 to 3 are pinned, one to a rank. */
static const int32_t pairs[SLOTS] = {0, 4, 5, 1, 4, 5, 2, 6, 7, 3, 6, 7};
/* Either half may have more than its two ranks can serve. */
static const int64_t halves[WINDOWS][EXPERTS] = {{10, 10, 50, 50, 30, 30, 30, 30},
                                                 {50, 50, 10, 10, 30, 30, 30, 30}};

typedef struct join_fixture {
    layer_case layer;
    int64_t window[WINDOWS][EXPERTS];
    arena scratch;
    eplb_error error;
} join_fixture;

static void fixture_init(join_fixture *f, const int64_t window[WINDOWS][EXPERTS])
{
    case_init(&f->layer, EXPERTS, RANKS, SLOTS / RANKS);
    memcpy(f->window, window, sizeof f->window);
    for (int32_t e = 0; e < EXPERTS; e++)
        f->layer.load[e] = window[0][e] + window[1][e];
    case_refresh(&f->layer);
    f->layer.problem.num_windows = WINDOWS;
    f->layer.problem.window_load = &f->window[0][0];
    memcpy(f->layer.expert, pairs, sizeof pairs);
    arena_init(&f->scratch, NULL);
}

static void join_ranks(join_fixture *f, int64_t steps)
{
    const int32_t *expert = f->layer.expert;
    assert_int_equal(batch_join(&f->layer.problem, f->layer.expert, steps, NULL, 0, &f->scratch, &f->error),
                     EPLB_OK);
    assert_null(case_problem(&f->layer));
    for (int32_t s = 0; s < SLOTS; s++)
        assert_int_equal(expert[s] < RANKS, pairs[s] < RANKS);
    for (int32_t g = 0; g < RANKS; g++)
        assert_int_equal(expert[3 * g], g);
}

static double mean_of(join_fixture *f)
{
    double mean;
    assert_int_equal(batch_split_mean(&f->layer.problem, f->layer.expert, &mean, &f->scratch, &f->error),
                     EPLB_OK);
    return mean;
}

static void test_halves_are_joined(void **state)
{
    (void)state;
    join_fixture f;
    fixture_init(&f, halves);
    assert_true(fabs(mean_of(&f) - 4.0 / 3.0) < 1e-9);
    join_ranks(&f, 0);
    assert_memory_equal(f.layer.expert, pairs, sizeof pairs);
    join_ranks(&f, 100000);
    assert_true(fabs(mean_of(&f) - 1.0) < 1e-9);
    arena_destroy(&f.scratch);
}

/* One exchange costs two moves and makes one circle of the two; two make every expert join the halves. */
static void test_moves(void **state)
{
    (void)state;
    static const double reached[] = {4.0 / 3.0, 4.0 / 3.0, 13.0 / 12.0, 13.0 / 12.0, 1.0};
    for (int32_t purse = 0; purse < 5; purse++) {
        uint64_t home[RANKS] = {0};
        int32_t received = 0;
        join_fixture f;
        fixture_init(&f, halves);
        for (int32_t s = 0; s < SLOTS; s++)
            expert_bits_add(home, 1, s / 3, pairs[s]);
        assert_int_equal(
            batch_join(&f.layer.problem, f.layer.expert, 100000, home, purse, &f.scratch, &f.error), EPLB_OK);
        for (int32_t s = 0; s < SLOTS; s++)
            received += !expert_bits_has(home, 1, s / 3, f.layer.expert[s]);
        assert_true(received <= purse);
        assert_true(fabs(mean_of(&f) - reached[purse]) < 1e-9);
        arena_destroy(&f.scratch);
    }
}

/* The first half is twice as fast: the second window fits as it is, pinned experts hold up the first. */
static void test_speeds(void **state)
{
    (void)state;
    join_fixture f;
    fixture_init(&f, halves);
    f.layer.rank_speed[0] = f.layer.rank_speed[1] = 2;
    case_refresh(&f.layer);
    f.layer.problem.num_windows = WINDOWS;
    f.layer.problem.window_load = &f.window[0][0];
    memcpy(f.layer.expert, pairs, sizeof pairs);
    assert_true(fabs(mean_of(&f) - (2.0 + 1.0) / 2.0) < 1e-9);
    join_ranks(&f, 100000);
    assert_true(fabs(mean_of(&f) - (1.25 + 1.0) / 2.0) < 1e-9);
    arena_destroy(&f.scratch);
}

static void test_nodes_are_kept(void **state)
{
    (void)state;
    join_fixture f;
    fixture_init(&f, halves);
    f.layer.problem.num_nodes = f.layer.problem.num_groups = 2;
    f.layer.rank_node[2] = f.layer.rank_node[3] = 1;
    join_ranks(&f, 100000);
    for (int32_t s = 0; s < SLOTS; s++)
        assert_int_equal(f.layer.expert[s] == 6 || f.layer.expert[s] == 7, pairs[s] == 6 || pairs[s] == 7);
    arena_destroy(&f.scratch);
}

/* Nothing is shared, or nothing is known: the placement stays valid. */
static void test_nothing_to_do(void **state)
{
    (void)state;
    static const int64_t none[WINDOWS][EXPERTS];
    static const int32_t alone[SLOTS] = {0, 4, -1, 1, 5, -1, 2, 6, -1, 3, 7, -1};
    join_fixture f;
    fixture_init(&f, none);
    join_ranks(&f, 100000);
    arena_destroy(&f.scratch);
    fixture_init(&f, halves);
    memcpy(f.layer.expert, alone, sizeof alone);
    assert_int_equal(batch_join(&f.layer.problem, f.layer.expert, 100000, NULL, 0, &f.scratch, &f.error),
                     EPLB_OK);
    assert_memory_equal(f.layer.expert, alone, sizeof alone);
    arena_destroy(&f.scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves_are_joined),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_speeds),
        cmocka_unit_test(test_nodes_are_kept),
        cmocka_unit_test(test_nothing_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
