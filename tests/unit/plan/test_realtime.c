/* Real-time planner: conservation, no duplicate, level reached, refusals. */
#include <stdlib.h>
#include <string.h>

#include <eplb/realtime.h>

#include "../../allocator.h"
#include "../../testing.h"
#include "base/random.h"

enum { MOST_EXPERTS = 512, MOST_SLOTS = 512, MOST_RANKS = 128 };

static int32_t tokens[MOST_EXPERTS], home[MOST_EXPERTS], kept[MOST_EXPERTS];
static int32_t expert[MOST_SLOTS], served[MOST_SLOTS];
static eplb_realtime_plan plan = {.replica_expert = expert, .replica_tokens = served, .home_tokens = kept};

static eplb_realtime *create(int32_t experts, int32_t ranks, int32_t spare, const int32_t *home_rank)
{
    eplb_realtime_params params;
    eplb_realtime_params_init(&params, sizeof params);
    params.num_experts = experts;
    params.num_ranks = ranks;
    params.spare_slots_per_rank = spare;
    params.home_rank = home_rank;
    eplb_realtime *realtime = NULL;
    assert_int_equal(eplb_realtime_create(&realtime, &params, NULL, NULL), EPLB_OK);
    return realtime;
}

/* Recomputes everything from the slots; returns the largest rank. */
static int64_t check(int32_t experts, int32_t ranks, int32_t spare)
{
    int64_t rank[MOST_RANKS] = {0}, sum[MOST_EXPERTS] = {0}, largest = 0, total = 0;
    int32_t replicas = 0;
    for (int32_t e = 0; e < experts; e++) {
        assert_true(kept[e] >= 0);
        rank[home[e]] += kept[e];
        sum[e] += kept[e];
        total += tokens[e];
    }
    for (int32_t s = 0; s < ranks * spare; s++) {
        if (expert[s] < 0) {
            assert_int_equal(served[s], 0);
            continue;
        }
        replicas++;
        assert_true(served[s] > 0);
        assert_int_not_equal(home[expert[s]], s / spare);
        for (int32_t t = s / spare * spare; t < s; t++)
            assert_int_not_equal(expert[t], expert[s]);
        rank[s / spare] += served[s];
        sum[expert[s]] += served[s];
    }
    for (int32_t e = 0; e < experts; e++)
        assert_int_equal(sum[e], tokens[e]);
    for (int32_t g = 0; g < ranks; g++)
        largest = rank[g] > largest ? rank[g] : largest;
    assert_int_equal(plan.num_replicas, replicas);
    assert_int_equal(plan.max_rank_tokens, largest);
    assert_int_equal(plan.total_tokens, total);
    return largest;
}

static void skewed_batches_reach_the_target(void **state)
{
    (void)state;
    random_state random = random_seed(1);
    eplb_realtime *realtime = create(256, 64, 2, NULL);
    for (int n = 0; n < 300; n++) {
        int64_t total = 0;
        for (int32_t e = 0; e < 256; e++) {
            int32_t place = e / 4 % 16;
            home[e] = e / 4;
            tokens[e] = (int32_t)random_below(&random, 4096) * (e % 4 == 0 ? 8 : 1) / (1 + place);
            total += tokens[e];
        }
        assert_int_equal(eplb_realtime_plan_batch(realtime, tokens, 1.005, &plan, NULL), EPLB_OK);
        int64_t largest = check(256, 64, 2);
        assert_true((double)largest <= 1.005 * (double)total / 64.0 + 1.0);
        assert_true(plan.num_replicas <= 80);
    }
    eplb_realtime_destroy(realtime);
}

static void every_layout_keeps_its_promises(void **state)
{
    (void)state;
    random_state random = random_seed(2);
    for (int n = 0; n < 3000; n++) {
        int32_t ranks = 1 + (int32_t)random_below(&random, 20), spare = 1 + (int32_t)random_below(&random, 3);
        int32_t experts = 1 + (int32_t)random_below(&random, 100);
        int64_t before[MOST_RANKS] = {0}, largest = 0;
        for (int32_t e = 0; e < experts; e++) {
            home[e] = (int32_t)random_below(&random, (uint32_t)ranks);
            tokens[e] = (int32_t)(random_next(&random) >> (33 + random_below(&random, 31)));
            before[home[e]] += tokens[e];
            largest = before[home[e]] > largest ? before[home[e]] : largest;
        }
        eplb_realtime *realtime = create(experts, ranks, spare, home);
        assert_int_equal(eplb_realtime_plan_batch(realtime, tokens, 1.0 + random_unit(&random), &plan, NULL),
                         EPLB_OK);
        assert_true(check(experts, ranks, spare) <= largest);
        eplb_realtime_destroy(realtime);
    }
}

/* One spare slot each and all load on one rank: each other rank takes one piece of the mean. */
static void scarce_slots_give_the_best_level_found(void **state)
{
    (void)state;
    eplb_realtime *realtime = create(8, 4, 1, NULL);
    for (int32_t e = 0; e < 8; e++) {
        home[e] = e / 2;
        tokens[e] = e < 2 ? 400 : 0;
    }
    assert_int_equal(eplb_realtime_plan_batch(realtime, tokens, 1.0, &plan, NULL), EPLB_OK);
    assert_int_equal(check(8, 4, 1), 200);
    eplb_realtime_destroy(realtime);
}

static void batches_without_work_move_nothing(void **state)
{
    (void)state;
    eplb_realtime *realtime = create(8, 4, 2, NULL);
    for (int32_t e = 0; e < 8; e++) {
        home[e] = e / 2;
        tokens[e] = 0;
    }
    assert_int_equal(eplb_realtime_plan_batch(realtime, tokens, 1.0, &plan, NULL), EPLB_OK);
    assert_int_equal(check(8, 4, 2), 0);
    assert_int_equal(plan.num_replicas, 0);
    for (int32_t e = 0; e < 8; e++)
        tokens[e] = 5;
    assert_int_equal(eplb_realtime_plan_batch(realtime, tokens, 1.0, &plan, NULL), EPLB_OK);
    assert_int_equal(check(8, 4, 2), 10);
    assert_int_equal(plan.num_replicas, 0);
    eplb_realtime_destroy(realtime);
}

static void bad_input_is_refused(void **state)
{
    (void)state;
    eplb_error error;
    eplb_realtime_params params;
    eplb_realtime *realtime = create(4, 2, 2, NULL);
    memset(tokens, 0, sizeof tokens);
    tokens[3] = -1;
    assert_int_equal(eplb_realtime_plan_batch(realtime, tokens, 1.0, &plan, &error), EPLB_ERROR_INVALID);
    assert_int_equal(error.expert, 3);
    tokens[3] = 1;
    assert_int_equal(eplb_realtime_plan_batch(realtime, tokens, 0.5, &plan, &error), EPLB_ERROR_INVALID);
    assert_int_equal(eplb_realtime_plan_batch(realtime, NULL, 1.0, &plan, &error), EPLB_ERROR_INVALID);
    eplb_realtime_destroy(realtime);
    eplb_realtime_destroy(NULL);

    eplb_realtime_params_init(&params, sizeof params);
    assert_int_equal(eplb_realtime_create(&realtime, &params, NULL, &error), EPLB_ERROR_INVALID);
    params.num_experts = 4;
    params.num_ranks = 2;
    int32_t wrong[] = {0, 1, 2, 0};
    params.home_rank = wrong;
    assert_int_equal(eplb_realtime_create(&realtime, &params, NULL, &error), EPLB_ERROR_INVALID);
    assert_int_equal(error.expert, 2);
    params.home_rank = NULL;
    params.spare_slots_per_rank = 0;
    assert_int_equal(eplb_realtime_create(&realtime, &params, NULL, &error), EPLB_ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skewed_batches_reach_the_target),
        cmocka_unit_test(every_layout_keeps_its_promises),
        cmocka_unit_test(scarce_slots_give_the_best_level_found),
        cmocka_unit_test(batches_without_work_move_nothing),
        cmocka_unit_test(bad_input_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
