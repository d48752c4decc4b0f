/* Dividing a budget of moves: frontiers that are made up, so that the best division is known. */
#include <string.h>

#include "cases.h"
#include "plan/move_budget.h"
#include "plan/request.h"

/* Layer 0: two moves at once gain 0.8, the first alone little; layer 1: one move gains 0.3, another 0.1;
 * layer 2: nothing to gain. */
static eplb_status made_up(const layer_problem *problem, arena *scratch, frontier_point *points,
                           int32_t capacity, int32_t *num_points, eplb_error *error)
{
    (void)scratch;
    (void)error;
    static const frontier_point layers[3][3] = {
        {{0, 2.0}, {1, 1.9}, {2, 1.2}}, {{0, 1.5}, {1, 1.2}, {2, 1.1}}, {{0, 1.0}}};
    static const int32_t counts[3] = {3, 3, 1};
    *num_points = counts[problem->layer] < capacity ? counts[problem->layer] : capacity;
    memcpy(points, layers[problem->layer], (size_t)*num_points * sizeof *points);
    return EPLB_OK;
}

/* Layer 1 has lost experts and needs two moves; layer 0 does not start below one, though it has lost none. */
static eplb_status with_lost(const layer_problem *problem, arena *scratch, frontier_point *points,
                             int32_t capacity, int32_t *num_points, eplb_error *error)
{
    eplb_status status = made_up(problem, scratch, points, capacity, num_points, error);
    if (problem->layer == 1)
        points[0].moves = 2, *num_points = 1;
    if (problem->layer == 0)
        points[0].moves = 1, points[1] = points[2], *num_points = 2;
    return status;
}

static void divide(layer_frontier frontier, int64_t max_moves, int64_t per_layer, eplb_status expected,
                   const int64_t *limits)
{
    const int64_t counts[3][2] = {{1, 2}, {1, 2}, {1, 2}};
    static const int32_t whole[6] = {0, 1, 0, 1, 0, 1}, lost[6] = {0, 1, -1, -1, 0, 1};
    eplb_load *load = case_load(1, 3, 2, counts[0]);
    eplb_topology *topology = case_topology(2, 1, 1);
    eplb_placement *current;
    const int32_t *slots = frontier == with_lost ? lost : whole;
    assert_int_equal(eplb_placement_create(&current, topology, 3, 2, slots, NULL, NULL), EPLB_OK);
    eplb_plan_params params = case_params("auto", 1);
    params.current = current;
    params.max_moves = max_moves;
    params.max_moves_per_layer = per_layer;
    plan_request request;
    assert_int_equal(request_check(&request, load, topology, &params, NULL), EPLB_OK);
    arena memory;
    arena_init(&memory, NULL);
    live_ranks live;
    assert_int_equal(live_ranks_create(&live, topology, &memory, NULL), EPLB_OK);
    plan_policy policy = {.name = "made-up", .frontier = frontier};
    request.live = &live;
    request.policy = &policy;
    int64_t limit[3] = {-1, -1, -1};
    plan_progress progress = {.total = 3};
    assert_int_equal(move_budget_divide(&request, limit, &progress, NULL, NULL), expected);
    for (int l = 0; l < 3 && expected == EPLB_OK; l++)
        assert_int_equal(limit[l], limits[l]);
    arena_destroy(&memory);
    eplb_placement_destroy(current);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
}

static void test_best_gain_first(void **state)
{
    (void)state;
    divide(made_up, 0, EPLB_UNLIMITED, EPLB_OK, (const int64_t[]){0, 0, 0});
    divide(made_up, 1, EPLB_UNLIMITED, EPLB_OK, (const int64_t[]){0, 1, 0}); /* two do not fit */
    divide(made_up, 2, EPLB_UNLIMITED, EPLB_OK, (const int64_t[]){2, 0, 0}); /* 0.4 a move before 0.3 */
    divide(made_up, 3, EPLB_UNLIMITED, EPLB_OK, (const int64_t[]){2, 1, 0});
    divide(made_up, 100, EPLB_UNLIMITED, EPLB_OK, (const int64_t[]){2, 2, 0});
}

static void test_lost_experts_first(void **state)
{
    (void)state;
    divide(with_lost, 1, EPLB_UNLIMITED, EPLB_ERROR_INFEASIBLE, NULL);
    divide(with_lost, 2, EPLB_UNLIMITED, EPLB_OK, (const int64_t[]){0, 2, 0});
    divide(with_lost, 3, EPLB_UNLIMITED, EPLB_OK, (const int64_t[]){1, 2, 0});
    divide(with_lost, 4, EPLB_UNLIMITED, EPLB_OK, (const int64_t[]){2, 2, 0});
}

static void test_even_without_frontier(void **state)
{
    (void)state;
    divide(NULL, 8, EPLB_UNLIMITED, EPLB_OK, (const int64_t[]){3, 3, 2});
    divide(NULL, 8, 2, EPLB_OK, (const int64_t[]){2, 2, 2});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_best_gain_first),
        cmocka_unit_test(test_lost_experts_first),
        cmocka_unit_test(test_even_without_frontier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
