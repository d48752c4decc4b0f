/* Fails the n-th allocation of every function of the model, for every n: the answer is MEMORY, nothing leaks,
 * and what was there before stays. */
#include <eplb/eplb.h>

#include "allocator.h"
#include "testing.h"

/* Everything once; returns the first failure. */
static eplb_status use_model(const eplb_allocator *allocator, eplb_error *error)
{
    const int64_t counts[2][3] = {{1, 2, 3}, {4, 5, 6}};
    const int32_t slots[2][4] = {{0, 1, 2, 0}, {2, 1, 0, 1}}, dead[1] = {1};
    eplb_topology *topology = NULL, *fewer = NULL;
    eplb_placement *placement = NULL, *initial = NULL;
    eplb_load *load = NULL, *copy = NULL;
    double imbalance[2], rank_load[2];
    eplb_move_count moves;
    eplb_topology_params params;
    eplb_topology_params_init(&params, sizeof params);
    params.num_ranks = 2;
    params.slots_per_rank = 2;
    eplb_load_params load_params;
    eplb_load_params_init(&load_params, sizeof load_params);
    load_params.num_layers = 2;
    load_params.num_experts = 3;
    load_params.counts = counts;
    eplb_status status = eplb_topology_create(&topology, &params, allocator, error);
    if (status == EPLB_OK)
        status = eplb_topology_with_dead(&fewer, topology, dead, 1, allocator, error);
    if (status == EPLB_OK)
        status = eplb_load_create(&load, &load_params, allocator, error);
    if (status == EPLB_OK)
        status = eplb_load_copy(&copy, load, allocator, error);
    if (status == EPLB_OK)
        status = eplb_placement_create(&placement, topology, 2, 3, slots[0], allocator, error);
    if (status == EPLB_OK)
        status = eplb_placement_create_initial(&initial, topology, 2, 3, allocator, error);
    if (status == EPLB_OK)
        status = eplb_placement_is_valid(initial, error);
    if (status == EPLB_OK)
        status = eplb_placement_count_moves(initial, placement, &moves, NULL, allocator, error);
    if (status == EPLB_OK)
        status = eplb_imbalance_per_layer(load, placement, NULL, imbalance, allocator, error);
    if (status == EPLB_OK)
        status = eplb_rank_load(load, 0, -1, placement, NULL, rank_load, allocator, error);
    eplb_placement_destroy(initial);
    eplb_placement_destroy(placement);
    eplb_load_destroy(copy);
    eplb_load_destroy(load);
    eplb_topology_destroy(fewer);
    eplb_topology_destroy(topology);
    return status;
}

static void test_every_allocation_fails_once(void **state)
{
    (void)state;
    for (int64_t fail_at = 0; fail_at < 1000; fail_at++) {
        test_allocator memory = test_allocator_make(fail_at);
        eplb_allocator allocator = test_allocator_use(&memory);
        eplb_error error = {.status = EPLB_OK};
        eplb_status status = use_model(&allocator, &error);
        assert_int_equal(memory.num_live, 0);
        if (status == EPLB_OK) {
            assert_true(fail_at >= 10);
            return;
        }
        assert_int_equal(status, EPLB_ERROR_MEMORY);
        assert_int_equal(error.status, EPLB_ERROR_MEMORY);
    }
    fail_msg("the model never succeeded");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation_fails_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
