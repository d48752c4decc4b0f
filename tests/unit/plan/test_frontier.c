/* The public frontier: shape of the curve, agreement with plans, refusals, memory. */
#include <stdlib.h>

#include <eplb/eplb.h>

#include "../../allocator.h"
#include "../../nouns.h"
#include "base/random.h"

enum { LAYERS = 3, EXPERTS = 24, RANKS = 6, PER_RANK = 5, SLOTS = RANKS * PER_RANK };

typedef struct fixture {
    int64_t counts[LAYERS * EXPERTS];
    eplb_topology *topology;
    eplb_load *load;
    eplb_plan *before;
    eplb_plan_params params;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    random_state random = random_seed(3);
    f->topology = case_topology(RANKS, 1, PER_RANK);
    for (int i = 0; i < LAYERS * EXPERTS; i++)
        f->counts[i] = 50 + random_below(&random, 1000);
    eplb_load *old = case_load(1, LAYERS, EXPERTS, f->counts);
    eplb_plan_params_init(&f->params, sizeof f->params);
    f->params.policy = "equal";
    assert_int_equal(eplb_plan_create(&f->before, old, f->topology, &f->params, NULL, NULL), EPLB_OK);
    eplb_load_destroy(old);
    for (int i = 0; i < LAYERS * EXPERTS; i++)
        f->counts[i] = f->counts[i] * (60 + random_below(&random, 80)) / 100;
    f->load = case_load(1, LAYERS, EXPERTS, f->counts);
    f->params.current = eplb_plan_placement(f->before);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    eplb_plan_destroy(f->before);
    eplb_load_destroy(f->load);
    eplb_topology_destroy(f->topology);
    free(f);
    return 0;
}

static void moves_rise_and_imbalance_falls(void **state)
{
    fixture *f = *state;
    eplb_frontier *frontier;
    assert_int_equal(eplb_frontier_create(&frontier, f->load, f->topology, &f->params, NULL, NULL), EPLB_OK);
    assert_int_equal(eplb_frontier_num_layers(frontier), LAYERS);
    const int32_t *first = eplb_frontier_first(frontier);
    const int64_t *moves = eplb_frontier_moves(frontier);
    const double *imbalance = eplb_frontier_imbalance(frontier);
    double kept[LAYERS];
    assert_int_equal(eplb_imbalance_per_layer(f->load, f->params.current, NULL, kept, NULL, NULL), EPLB_OK);
    assert_int_equal(first[0], 0);
    for (int32_t l = 0; l < LAYERS; l++) {
        assert_true(first[l + 1] - first[l] >= 3);
        assert_int_equal(moves[first[l]], 0);
        assert_true(imbalance[first[l]] <= kept[l] * (1 + 1e-9) &&
                    imbalance[first[l]] >= kept[l] * (1 - 1e-9));
        for (int32_t i = first[l] + 1; i < first[l + 1]; i++) {
            assert_true(moves[i] > moves[i - 1]);
            assert_true(imbalance[i] < imbalance[i - 1]);
        }
    }
    eplb_frontier_destroy(frontier);
}

static void plans_reach_the_points(void **state)
{
    fixture *f = *state;
    eplb_frontier *frontier;
    assert_int_equal(eplb_frontier_create(&frontier, f->load, f->topology, &f->params, NULL, NULL), EPLB_OK);
    const int32_t *first = eplb_frontier_first(frontier);
    for (int32_t l = 0; l < LAYERS; l++) {
        for (int32_t i = first[l]; i < first[l + 1]; i++) {
            eplb_plan *plan;
            f->params.max_moves_per_layer = eplb_frontier_moves(frontier)[i];
            assert_int_equal(eplb_plan_create(&plan, f->load, f->topology, &f->params, NULL, NULL), EPLB_OK);
            assert_true(eplb_plan_imbalance(plan)[l] <= eplb_frontier_imbalance(frontier)[i] * 1.0005);
            eplb_plan_destroy(plan);
        }
    }
    eplb_frontier_destroy(frontier);
}

static void a_total_is_divided_by_gain(void **state)
{
    fixture *f = *state;
    double sum[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        eplb_plan *plan;
        f->params.max_moves = i == 0 ? 6 : EPLB_UNLIMITED;
        f->params.max_moves_per_layer = i == 0 ? EPLB_UNLIMITED : 2;
        assert_int_equal(eplb_plan_create(&plan, f->load, f->topology, &f->params, NULL, NULL), EPLB_OK);
        assert_true(eplb_plan_moves(plan).received <= 6);
        for (int32_t l = 0; l < LAYERS; l++)
            sum[i] += eplb_plan_imbalance(plan)[l];
        eplb_plan_destroy(plan);
    }
    assert_true(sum[0] <= sum[1] + 1e-3);
}

static void what_has_no_frontier_is_refused(void **state)
{
    fixture *f = *state;
    eplb_frontier *frontier = (eplb_frontier *)f;
    eplb_error error;
    f->params.policy = "deepseek";
    assert_int_equal(eplb_frontier_create(&frontier, f->load, f->topology, &f->params, NULL, &error),
                     EPLB_ERROR_UNSUPPORTED);
    assert_null(frontier);
    f->params.policy = "equal";
    f->params.current = NULL;
    assert_int_equal(eplb_frontier_create(&frontier, f->load, f->topology, &f->params, NULL, &error),
                     EPLB_ERROR_INVALID);
    eplb_frontier_destroy(NULL);
}

static void every_allocation_may_fail(void **state)
{
    fixture *f = *state;
    eplb_status status = EPLB_ERROR_MEMORY;
    int64_t fail_at = 0;
    for (; status == EPLB_ERROR_MEMORY && fail_at < 1000; fail_at++) {
        test_allocator memory = test_allocator_make(fail_at);
        eplb_allocator allocator = test_allocator_use(&memory);
        eplb_frontier *frontier;
        status = eplb_frontier_create(&frontier, f->load, f->topology, &f->params, &allocator, NULL);
        assert_true(status == EPLB_OK || frontier == NULL);
        eplb_frontier_destroy(frontier);
        assert_int_equal(memory.num_live, 0);
    }
    assert_int_equal(status, EPLB_OK);
    assert_true(fail_at > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(moves_rise_and_imbalance_falls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(plans_reach_the_points, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_total_is_divided_by_gain, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_has_no_frontier_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
