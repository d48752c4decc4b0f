/* Visiting layers: what a time limit leaves to each, and what searches make of it. */
#include <string.h>

#include "base/random.h"
#include "cases.h"
#include "plan/layer_loop.h"
#include "plan/policies.h"

enum { LAYERS = 20 };

typedef struct record {
    double limit;         /* seconds for all layers */
    bool wasteful;        /* every layer uses all it gets */
    double used[LAYERS];  /* when the layer begins */
    double ended[LAYERS]; /* seconds since the first began */
    double start;
} record;

static eplb_status watch(void *context, layer_problem *problem, arena *scratch, eplb_error *error)
{
    (void)scratch;
    (void)error;
    record *r = context;
    assert_non_null(problem->time_used);
    r->used[problem->layer] = layer_time_used(problem);
    while (r->wasteful && !problem->should_stop(problem->stop_context))
        assert_in_range((uint64_t)(1e6 * layer_time_used(problem)), 0, 1000000);
    if (r->wasteful)
        assert_true(layer_time_used(problem) == 1.0);
    r->ended[problem->layer] = plan_clock() - r->start;
    return EPLB_OK;
}

static eplb_status no_limit(void *context, layer_problem *problem, arena *scratch, eplb_error *error)
{
    (void)context;
    (void)scratch;
    (void)error;
    assert_null(problem->time_used);
    assert_true(layer_time_used(problem) == 0.0);
    assert_false(problem->should_stop(problem->stop_context));
    return EPLB_OK;
}

static void visit(layer_visitor visitor, record *r)
{
    static const int64_t counts[LAYERS][2];
    eplb_load *load = case_load(1, LAYERS, 2, counts[0]);
    eplb_topology *topology = case_topology(2, 1, 1);
    eplb_plan_params params = case_params("auto", 1);
    plan_request request;
    assert_int_equal(request_check(&request, load, topology, &params, NULL), EPLB_OK);
    arena memory;
    arena_init(&memory, NULL);
    live_ranks live;
    assert_int_equal(live_ranks_create(&live, topology, &memory, NULL), EPLB_OK);
    request.live = &live;
    r->start = plan_clock();
    plan_progress progress = {.deadline = r->limit > 0.0 ? r->start + r->limit : 0.0, .total = LAYERS};
    assert_int_equal(visit_layers(&request, visitor, r, &progress, NULL, NULL), EPLB_OK);
    assert_int_equal(progress.done, LAYERS);
    arena_destroy(&memory);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
}

/* No layer can use up what is meant for those that follow, and all is used. */
static void test_time_is_shared(void **state)
{
    (void)state;
    record r = {.limit = 0.3, .wasteful = true};
    visit(watch, &r);
    for (int l = 1; l < LAYERS; l++)
        assert_true(r.ended[l] >= r.ended[l - 1]);
    assert_true(r.ended[0] < r.limit);
    assert_true(r.ended[LAYERS - 1] >= r.limit);
    r = (record){.limit = 1000.0};
    visit(watch, &r);
    for (int l = 0; l < LAYERS; l++)
        assert_true(r.used[l] < 1.0);
    r = (record){.limit = 0.0};
    visit(no_limit, &r);
}

/* A clock that every look sets forward. */
typedef struct fake_clock {
    double used, step;
} fake_clock;

static double look(void *context)
{
    fake_clock *clock = context;
    clock->used += clock->step;
    return clock->used < 1.0 ? clock->used : 1.0;
}

static bool is_up(void *context)
{
    return ((fake_clock *)context)->used >= 1.0;
}

/* Mean imbalance of the windows of what policy windows finds by such a clock. */
static double plan_by(double step)
{
    enum { T = 24, E = 48, G = 8, K = 7 };
    static int64_t counts[T * E], sum[E];
    random_state random = random_seed(21);
    memset(sum, 0, sizeof sum);
    for (int32_t t = 0; t < T; t++) {
        int32_t topic = (int32_t)random_below(&random, 6);
        for (int32_t e = 0; e < E; e++) {
            counts[t * E + e] = (e % 6 == topic ? 900 : 100) + (int32_t)random_below(&random, 50);
            sum[e] += counts[t * E + e];
        }
    }
    int32_t first[G + 1], rank[G * K], node[G] = {0}, speed[G], expert[G * K];
    int64_t quota[G * K];
    for (int32_t p = 0; p < G * K; p++) {
        rank[p] = p / K;
        expert[p] = -1;
    }
    for (int32_t g = 0; g <= G; g++)
        first[g] = g * K;
    for (int32_t g = 0; g < G; g++)
        speed[g] = 1;
    fake_clock clock = {.step = step};
    layer_problem problem = {.num_experts = E,
                             .num_ranks = G,
                             .num_slots = G * K,
                             .num_nodes = 1,
                             .num_groups = 1,
                             .num_windows = T,
                             .load = sum,
                             .window_load = counts,
                             .first_slot = first,
                             .slot_rank = rank,
                             .rank_node = node,
                             .rank_speed = speed,
                             .total_speed = G,
                             .uniform_speed = true,
                             .uniform_slots = K,
                             .cost = {.tokens = 1, .tile_tokens = 128},
                             .plain_cost = true,
                             .max_moves = INT64_MAX,
                             .should_stop = is_up,
                             .stop_context = &clock,
                             .time_used = look};
    for (int32_t e = 0; e < E; e++)
        problem.total += sum[e];
    arena scratch;
    arena_init(&scratch, NULL);
    layer_answer answer = {.expert = expert, .quota = quota};
    assert_int_equal(plan_layer_windows(&problem, &scratch, &answer, NULL), EPLB_OK);
    arena_destroy(&scratch);
    double mean = 0.0;
    for (int32_t t = 0; t < T; t++) {
        double most = 0.0, total = 0.0;
        for (int32_t g = 0; g < G; g++) {
            double has = 0.0;
            for (int32_t p = first[g]; p < first[g + 1]; p++) {
                int32_t count = 0;
                for (int32_t q = 0; q < G * K; q++)
                    count += expert[q] == expert[p];
                has += (double)counts[t * E + expert[p]] / count;
            }
            most = has > most ? has : most;
            total += has;
        }
        mean += most / (total / G) / T;
    }
    return mean;
}

/* With little time a search cools down sooner: it is better than none and not as good as a long one. */
static void test_search_follows_the_clock(void **state)
{
    (void)state;
    double all = plan_by(0.0), little = plan_by(0.01), none = plan_by(0.5);
    assert_true(all - 1.0 < 0.5 * (none - 1.0));
    assert_true(little - 1.0 < 0.7 * (none - 1.0));
    assert_true(all <= little);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_is_shared),
        cmocka_unit_test(test_search_follows_the_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
