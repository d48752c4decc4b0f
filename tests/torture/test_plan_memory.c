/* Fails the n-th allocation of planning, for every n and policy: the answer is MEMORY, no plan is left and
 * nothing leaks; then the same for copies and for the public primitives. */
/* In place of the library's: every request to an arena reaches the allocator and can fail. */
#define ARENA_CHUNK_BYTES ((size_t)1)
#include "base/memory.c"

#include <eplb/eplb.h>

#include "allocator.h"
#include "nouns.h"

enum { LAYERS = 3, EXPERTS = 8, RANKS = 4, SLOTS = 12, WINDOWS = 2 };

typedef struct fixture {
    eplb_load *load;
    eplb_load *sources; /* all tokens start on the second node: the nodes trade where the first has more */
    eplb_topology *topology;
    eplb_topology *fewer;   /* one rank dead: answers are mapped back */
    eplb_topology *smaller; /* a rank leaves, and slots are cut off */
    eplb_placement *current;
} fixture;

static void set_up(fixture *f)
{
    int64_t counts[WINDOWS * LAYERS * EXPERTS];
    for (int i = 0; i < WINDOWS * LAYERS * EXPERTS; i++)
        counts[i] = i * 7 % 11;
    int64_t sources[RANKS * LAYERS * EXPERTS];
    for (int i = 0; i < RANKS * LAYERS * EXPERTS; i++)
        sources[i] = i / (LAYERS * EXPERTS) * 2 / RANKS;
    const int32_t dead[1] = {2};
    f->topology = case_topology(RANKS, 2, SLOTS / RANKS);
    assert_int_equal(eplb_topology_with_dead(&f->fewer, f->topology, dead, 1, NULL, NULL), EPLB_OK);
    const int32_t slots[3] = {4, 2, 3};
    eplb_topology_params shape;
    eplb_topology_params_init(&shape, sizeof shape);
    shape.num_ranks = 3;
    shape.rank_slots = slots;
    assert_int_equal(eplb_topology_create(&f->smaller, &shape, NULL, NULL), EPLB_OK);
    f->load = case_load(WINDOWS, LAYERS, EXPERTS, counts);
    f->sources = case_load(RANKS, LAYERS, EXPERTS, sources);
    assert_int_equal(eplb_placement_create_initial(&f->current, f->topology, LAYERS, EXPERTS, NULL, NULL),
                     EPLB_OK);
}

static void tear_down(fixture *f)
{
    eplb_placement_destroy(f->current);
    eplb_load_destroy(f->load);
    eplb_load_destroy(f->sources);
    eplb_topology_destroy(f->smaller);
    eplb_topology_destroy(f->fewer);
    eplb_topology_destroy(f->topology);
}

/* Returns true when no request failed any more. */
static bool plan_once(const fixture *f, const eplb_topology *topology, const eplb_plan_params *params,
                      int64_t fail_at, bool *refused)
{
    test_allocator memory = test_allocator_make(fail_at);
    eplb_allocator allocator = test_allocator_use(&memory);
    eplb_error error = {.status = EPLB_OK};
    eplb_plan *plan, *copy = NULL;
    eplb_status status = eplb_plan_create(&plan, f->load, topology, params, &allocator, &error);
    *refused = status != EPLB_OK && status != EPLB_ERROR_MEMORY;
    if (status == EPLB_OK) {
        status = eplb_plan_is_valid(plan, &error);
        if (status == EPLB_OK)
            status = eplb_plan_copy(&copy, plan, &allocator, &error);
        eplb_plan_destroy(copy);
    } else {
        assert_null(plan);
        assert_int_equal(error.status, status);
    }
    eplb_plan_destroy(plan);
    assert_int_equal(memory.num_live, 0);
    if (status == EPLB_ERROR_MEMORY) {
        assert_true(memory.num_made > fail_at);
        return false;
    }
    return true;
}

static void torture(const fixture *f, const eplb_topology *topology, const eplb_plan_params *params)
{
    for (int64_t fail_at = 0; fail_at < 100000; fail_at++) {
        bool refused;
        if (plan_once(f, topology, params, fail_at, &refused)) {
            assert_true(refused || fail_at >= 20);
            return;
        }
    }
    fail_msg("policy %s never succeeded", params->policy);
}

static void test_every_policy(void **state)
{
    (void)state;
    fixture f;
    set_up(&f);
    for (int32_t i = 0; i < eplb_policy_count(); i++) {
        for (int split = EPLB_SPLIT_EQUAL; split <= EPLB_SPLIT_BATCH; split++) {
            for (int groups = 1; groups <= 4; groups += 3) {
                eplb_plan_params params;
                eplb_plan_params_init(&params, sizeof params);
                params.policy = eplb_policy_name(i);
                params.split = (eplb_split)split;
                params.num_groups = groups;
                torture(&f, f.topology, &params);
                params.current = f.current;
                torture(&f, f.topology, &params);
                torture(&f, f.fewer, &params);
                torture(&f, f.smaller, &params);
                params.max_moves = 5;
                torture(&f, f.topology, &params);
                params.current = NULL;
                params.max_spill = groups > 1 ? 2 : 0;
                params.sources = f.sources;
                params.work_limit = 100;
                torture(&f, f.topology, &params);
            }
        }
    }
    tear_down(&f);
}

static eplb_status use_primitives(const eplb_allocator *allocator, eplb_error *error)
{
    const float weight[8] = {8, 7, 6, 5, 4, 3, 2, 1};
    int32_t held[12], rank[12], count[8];
    eplb_status status =
        eplb_rebalance_experts(weight, 1, 8, 12, 4, 2, 4, held, rank, count, allocator, error);
    if (status == EPLB_OK)
        status = eplb_balanced_packing(weight, 1, 8, 4, held, rank, allocator, error);
    if (status == EPLB_OK)
        status = eplb_replicate_experts(weight, 1, 8, 12, held, rank, count, allocator, error);
    return status;
}

static void test_primitives(void **state)
{
    (void)state;
    for (int64_t fail_at = 0; fail_at < 1000; fail_at++) {
        test_allocator memory = test_allocator_make(fail_at);
        eplb_allocator allocator = test_allocator_use(&memory);
        eplb_error error = {.status = EPLB_OK};
        eplb_status status = use_primitives(&allocator, &error);
        assert_int_equal(memory.num_live, 0);
        if (status == EPLB_OK) {
            assert_true(fail_at >= 20);
            return;
        }
        assert_int_equal(status, EPLB_ERROR_MEMORY);
        assert_int_equal(error.status, EPLB_ERROR_MEMORY);
    }
    fail_msg("the primitives never succeeded");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_policy),
        cmocka_unit_test(test_primitives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
