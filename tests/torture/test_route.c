/* Every allocation of the route room fails once: the call reports it and leaves nothing behind. */
#include "nouns.h"

#include <eplb/eplb.h>

#include "allocator.h"

enum { EXPERTS = 12, RANKS = 4, SLOTS = 16, WIDTH = 8 };

typedef struct world {
    eplb_topology *topology;
    eplb_placement *placement;
} world;

static world make_world(void)
{
    world w = {.topology = case_topology(RANKS, 2, SLOTS / RANKS)};
    assert_int_equal(eplb_placement_create_initial(&w.placement, w.topology, 2, EXPERTS, NULL, NULL),
                     EPLB_OK);
    return w;
}

typedef eplb_status (*call_function)(const world *w, const eplb_allocator *allocator);

static eplb_status call_repeat(const world *w, const eplb_allocator *allocator)
{
    int32_t table[2 * EXPERTS * WIDTH], count[2 * EXPERTS];
    return eplb_repeat_table_int32(w->placement, NULL, WIDTH, table, count, NULL, allocator, NULL);
}

static eplb_status call_static(const world *w, const eplb_allocator *allocator)
{
    int32_t own[RANKS * 2 * EXPERTS];
    return eplb_sglang_static(w->placement, own, allocator, NULL);
}

static eplb_status call_shared(const world *w, const eplb_allocator *allocator)
{
    eplb_shared_params params;
    int64_t part[RANKS * RANKS], routed[RANKS] = {9, 1, 1, 1}, tokens[RANKS] = {400, 100, 100, 100};
    eplb_shared_params_init(&params, sizeof params);
    return eplb_shared_level(w->topology, routed, tokens, &params, part, allocator, NULL);
}

static eplb_status call_shared_own(const world *w, const eplb_allocator *allocator)
{
    eplb_shared_params params;
    int64_t part[RANKS], routed[RANKS] = {9, 1, 1, 1};
    eplb_shared_params_init(&params, sizeof params);
    return eplb_shared_level_own(w->topology, 0, routed, 400, &params, part, allocator, NULL);
}

static eplb_status call_lplb(const world *w, const eplb_allocator *allocator)
{
    eplb_resplit *resplit = NULL;
    int64_t load[EXPERTS] = {90, 20, 30};
    double share[SLOTS];
    eplb_status status = eplb_resplit_create(&resplit, w->placement, 0, allocator, NULL);
    if (status == EPLB_OK)
        status = eplb_resplit_lplb(resplit, load, 5, share, NULL, NULL);
    eplb_resplit_destroy(resplit);
    return status;
}

static eplb_status call_router(const world *w, const eplb_allocator *allocator)
{
    eplb_router_params params;
    eplb_router *router = NULL;
    eplb_router_params_init(&params, sizeof params);
    params.topology = w->topology;
    params.num_layers = 2;
    params.num_experts = EXPERTS;
    params.rule = EPLB_ROUTE_NEAREST;
    params.source_rank = 1;
    eplb_status status = eplb_router_create(&router, &params, allocator, NULL);
    if (status == EPLB_OK)
        status = eplb_router_update(router, 0, 2, w->placement, NULL, NULL, NULL);
    eplb_router_destroy(router);
    return status;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    static const call_function calls[] = {call_repeat,     call_static, call_shared,
                                          call_shared_own, call_lplb,   call_router};
    world w = make_world();
    for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++) {
        int64_t fail_at = 0;
        for (;; fail_at++) {
            test_allocator memory = test_allocator_make(fail_at);
            eplb_allocator allocator = test_allocator_use(&memory);
            eplb_status status = calls[c](&w, &allocator);
            assert_int_equal(memory.num_live, 0);
            if (status == EPLB_OK)
                break;
            assert_int_equal(status, EPLB_ERROR_MEMORY);
        }
        assert_true(fail_at > 0);
    }
    eplb_placement_destroy(w.placement);
    eplb_topology_destroy(w.topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_fails_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
