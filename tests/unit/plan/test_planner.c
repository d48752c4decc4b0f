/* The planner around the policies: what it refuses and how it says so, health, threads, progress and cancel,
 * and the promises that every plan keeps on random loads and ranks, whatever the policy. */
#include <string.h>

#include "base/random.h"
#include "cases.h"

static void test_policies_are_listed(void **state)
{
    (void)state;
    assert_true(eplb_policy_count() >= 3);
    assert_string_equal(eplb_policy_name(0), "auto");
    for (int32_t i = 0; i < eplb_policy_count(); i++) {
        assert_true(strlen(eplb_policy_name(i)) > 0);
        assert_true(strlen(eplb_policy_summary(i)) > 10);
        for (int32_t j = 0; j < i; j++)
            assert_string_not_equal(eplb_policy_name(i), eplb_policy_name(j));
    }
    assert_null(eplb_policy_name(-1));
    assert_null(eplb_policy_name(eplb_policy_count()));
    assert_null(eplb_policy_summary(eplb_policy_count()));
}

/* Four ranks of three slots on two nodes, eight experts, two layers. */
typedef struct fixture {
    int64_t counts[2][8];
    eplb_load *load;
    eplb_topology *topology;
} fixture;

static fixture set_up(void)
{
    fixture f = {.counts = {{8, 7, 6, 5, 4, 3, 2, 1}, {1, 1, 1, 40, 1, 1, 1, 1}}};
    f.load = case_load(1, 2, 8, f.counts[0]);
    f.topology = case_topology(4, 2, 3);
    return f;
}

static void tear_down(fixture *f)
{
    eplb_topology_destroy(f->topology);
    eplb_load_destroy(f->load);
}

static void expect_error(const fixture *f, const eplb_plan_params *params, eplb_status status,
                         const char *says)
{
    eplb_plan *plan;
    eplb_error error;
    assert_int_equal(case_plan(&plan, f->load, f->topology, params, &error), status);
    if (strstr(error.text, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.text, says);
}

static void test_unknown_policy(void **state)
{
    (void)state;
    fixture f = set_up();
    eplb_plan_params params = case_params("magic", 1);
    expect_error(&f, &params, EPLB_ERROR_INVALID, "\"magic\"");
    for (int32_t i = 0; i < eplb_policy_count(); i++)
        expect_error(&f, &params, EPLB_ERROR_INVALID, eplb_policy_name(i));
    tear_down(&f);
}

static void test_wrong_parameters(void **state)
{
    (void)state;
    fixture f = set_up();
    const eplb_plan_params good = case_params("auto", 1);
    eplb_plan_params p;
#define REFUSED(change, says)                                                                                \
    p = good;                                                                                                \
    change;                                                                                                  \
    expect_error(&f, &p, EPLB_ERROR_INVALID, says)
    REFUSED(p.size = 3, "eplb_plan_params_init");
    REFUSED(p.num_groups = -1, "groups is -1");
    REFUSED(p.num_groups = 3, "do not divide into 3 groups");
    REFUSED(p.split = (eplb_split)9, "split is 9");
    REFUSED(p.cost.tokens = -1, "token is -1");
    REFUSED(p.cost.tokens = 0, "all costs are 0");
    REFUSED(p.cost.tiles = -2, "tile is -2");
    REFUSED(p.cost.activated = -3, "replica is -3");
    REFUSED(p.cost.tile_tokens = 0, "tile is 0");
    REFUSED(p.max_moves = -2, "moves is -2");
    REFUSED(p.max_moves_per_layer = -2, "layer is -2");
    REFUSED(p.target_imbalance = 0.5, "target imbalance is 0.5");
    REFUSED(p.target_imbalance = -1.0, "target imbalance is -1");
    REFUSED(p.time_limit_seconds = -1.0, "time limit is -1");
    REFUSED(p.max_spill = -1, "node is -1");
    REFUSED(p.num_threads = 0, "threads is 0");
    REFUSED(p.work_limit = -1, "work limit is -1");
    REFUSED(p.sources = f.load, "expected [4, 2, 8]");
#undef REFUSED
    eplb_plan *plan;
    eplb_error error;
    assert_int_equal(case_plan(&plan, NULL, f.topology, &good, &error), EPLB_ERROR_INVALID);
    assert_int_equal(case_plan(&plan, f.load, NULL, &good, &error), EPLB_ERROR_INVALID);
    assert_int_equal(case_plan(&plan, f.load, f.topology, NULL, &error), EPLB_OK); /* NULL: defaults */
    assert_string_equal(eplb_plan_policy(plan), "auto");
    eplb_plan_destroy(plan);
    tear_down(&f);
}

/* What a policy would pass over is refused with the reason; by those that follow it, it is taken. */
static void test_nothing_is_passed_over(void **state)
{
    (void)state;
    fixture f = set_up();
    int64_t counts[4 * 2 * 8];
    for (int32_t i = 0; i < 4 * 2 * 8; i++)
        counts[i] = 10 + i % 7;
    eplb_load_params load_params;
    eplb_load_params_init(&load_params, sizeof load_params);
    load_params.num_windows = 4;
    load_params.num_layers = 2;
    load_params.num_experts = 8;
    load_params.counts = counts;
    eplb_load *sources;
    assert_int_equal(eplb_load_create(&sources, &load_params, NULL, NULL), EPLB_OK);
    static const char *const target[] = {"deepseek", "vllm", "greedy"};
    static const char *const spill[] = {"deepseek", "vllm", "greedy", "equal"};
    for (size_t i = 0; i < 3; i++) {
        eplb_plan_params params = case_params(target[i], 1);
        params.target_imbalance = 1.1;
        expect_error(&f, &params, EPLB_ERROR_UNSUPPORTED, "target");
    }
    for (size_t i = 0; i < 4; i++) {
        eplb_plan_params params = case_params(spill[i], 1);
        params.max_spill = 3;
        expect_error(&f, &params, EPLB_ERROR_UNSUPPORTED, "no replica outside");
    }
    eplb_plan_params params = case_params("auto", 1);
    params.max_spill = 1;
    params.cost.activated = 3;
    expect_error(&f, &params, EPLB_ERROR_UNSUPPORTED, "even out tokens only");
    params.cost.activated = 0;
    params.sources = sources;
    params.target_imbalance = 1.1;
    eplb_plan *plan;
    assert_int_equal(case_plan(&plan, f.load, f.topology, &params, NULL), EPLB_OK);
    eplb_plan_destroy(plan);
    eplb_load_destroy(sources);
    tear_down(&f);
}

static void test_wrong_current(void **state)
{
    (void)state;
    fixture f = set_up();
    eplb_plan_params params = case_params("auto", 1);
    const struct {
        int32_t layers, experts, ranks, slots;
        const char *says;
    } wrong[] = {{1, 8, 4, 3, "layers"}, {2, 7, 4, 3, "experts"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        eplb_topology *topology = case_topology(wrong[i].ranks, 1, wrong[i].slots);
        eplb_placement *current;
        assert_int_equal(
            eplb_placement_create_initial(&current, topology, wrong[i].layers, wrong[i].experts, NULL, NULL),
            EPLB_OK);
        params.current = current;
        expect_error(&f, &params, EPLB_ERROR_INVALID, wrong[i].says);
        eplb_placement_destroy(current);
        eplb_topology_destroy(topology);
    }
    tear_down(&f);
}

/* Three ranks of two slots, experts [1,2 | 1,2 | 2,0]. */
static eplb_plan *plan_from_small(int32_t ranks, int32_t slots, const uint8_t *alive, int64_t max_moves,
                                  eplb_error *error)
{
    const int64_t counts[3] = {13, 75, 18};
    const int32_t held[6] = {1, 2, 1, 2, 2, 0};
    eplb_topology *was = case_topology(3, 1, 2), *now;
    eplb_topology_params shape;
    eplb_topology_params_init(&shape, sizeof shape);
    shape.num_ranks = ranks;
    shape.slots_per_rank = slots;
    shape.rank_alive = alive;
    assert_int_equal(eplb_topology_create(&now, &shape, NULL, NULL), EPLB_OK);
    eplb_load *load = case_load(1, 1, 3, counts);
    eplb_placement *current;
    assert_int_equal(eplb_placement_create(&current, was, 1, 3, held, NULL, NULL), EPLB_OK);
    eplb_plan_params params = case_params("auto", 1);
    params.current = current;
    params.max_moves_per_layer = max_moves;
    eplb_plan *plan = NULL;
    eplb_status status = eplb_plan_create(&plan, load, now, &params, NULL, error);
    assert_int_equal(status, plan != NULL ? EPLB_OK : EPLB_ERROR_INFEASIBLE);
    eplb_placement_destroy(current);
    eplb_load_destroy(load);
    eplb_topology_destroy(now);
    eplb_topology_destroy(was);
    return plan;
}

/* A slot that is cut off loses no weights: its rank has them still. */
static void test_ranks_that_shrink(void **state)
{
    (void)state;
    eplb_error error;
    for (int64_t max_moves = -1; max_moves <= 0; max_moves++) {
        eplb_plan *plan = plan_from_small(3, 1, NULL, max_moves, &error);
        assert_non_null(plan);
        const int32_t kept[2][3] = {{1, 2, 0}, {2, 1, 0}};
        assert_true(memcmp(case_slots(plan), kept[0], sizeof kept[0]) == 0 ||
                    memcmp(case_slots(plan), kept[1], sizeof kept[1]) == 0);
        assert_int_equal(eplb_plan_moves(plan).received, 0);
        assert_int_equal(eplb_plan_moves(plan).lost, 0);
        eplb_plan_destroy(plan);
    }
}

/* A rank that leaves sends what only it holds; one that died cannot. */
static void test_ranks_that_leave(void **state)
{
    (void)state;
    const uint8_t two_of_three[3] = {1, 1, 0};
    eplb_error error;
    eplb_plan *plan = plan_from_small(2, 2, NULL, 1, &error);
    assert_non_null(plan);
    assert_int_equal(eplb_plan_moves(plan).received, 1);
    assert_int_equal(eplb_plan_moves(plan).lost, 0);
    eplb_plan_destroy(plan);
    assert_null(plan_from_small(2, 2, NULL, 0, &error));
    assert_string_equal(error.text, "layer 0: 0 moves allowed, but 1 expert must be received: no rank that "
                                    "lives and stays holds 0");
    assert_int_equal(error.expert, 0);
    plan = plan_from_small(3, 2, two_of_three, 1, &error);
    assert_non_null(plan);
    assert_int_equal(eplb_plan_moves(plan).received, 1);
    assert_int_equal(eplb_plan_moves(plan).lost, 1);
    eplb_plan_destroy(plan);
}

static void test_too_few_slots(void **state)
{
    (void)state;
    fixture f = set_up();
    const int32_t dead[2] = {0, 2};
    eplb_topology *half;
    assert_int_equal(eplb_topology_with_dead(&half, f.topology, dead, 2, NULL, NULL), EPLB_OK);
    eplb_plan_params params = case_params("auto", 1);
    eplb_plan *plan;
    eplb_error error;
    assert_int_equal(case_plan(&plan, f.load, half, &params, &error), EPLB_ERROR_INFEASIBLE);
    assert_int_equal(error.expert, 6);
    assert_int_equal(error.value, 6);
    assert_non_null(strstr(error.text, "the last 2 of them, 6 to 7"));
    eplb_topology_destroy(half);
    tear_down(&f);
}

static void test_dead_rank(void **state)
{
    (void)state;
    fixture f = set_up();
    const int32_t dead[1] = {1};
    eplb_topology *fewer;
    assert_int_equal(eplb_topology_with_dead(&fewer, f.topology, dead, 1, NULL, NULL), EPLB_OK);
    const char *const policies[] = {"auto", "deepseek", "vllm", "greedy"};
    for (int i = 0; i < 4; i++) {
        eplb_plan_params params = case_params(policies[i], 1);
        eplb_plan *plan;
        eplb_error error;
        assert_int_equal(case_plan(&plan, f.load, fewer, &params, &error), EPLB_OK);
        for (int32_t l = 0; l < 2; l++) {
            for (int32_t p = 3; p < 6; p++) {
                assert_int_equal(case_slots(plan)[l * 12 + p], -1);
                assert_true(eplb_plan_shares(plan)[l * 12 + p] == 0.0);
            }
        }
        eplb_plan_destroy(plan);
    }
    eplb_topology_destroy(fewer);
    tear_down(&f);
}

/* --- progress --- */

typedef struct watcher {
    int64_t calls, last, total, stop_at;
} watcher;

static bool watch(void *context, int64_t done, int64_t total)
{
    watcher *w = context;
    assert_true(done >= w->last && done <= total);
    w->calls++;
    w->last = done;
    w->total = total;
    return w->stop_at == 0 || done < w->stop_at;
}

static void test_progress(void **state)
{
    (void)state;
    int64_t counts[50][8];
    for (int i = 0; i < 400; i++)
        counts[i / 8][i % 8] = i % 7;
    eplb_load *load = case_load(1, 50, 8, counts[0]);
    eplb_topology *topology = case_topology(4, 2, 3);
    for (int32_t threads = 1; threads <= 4; threads += 3) {
        watcher w = {0};
        eplb_plan_params params = case_params("auto", 1);
        params.num_threads = threads;
        params.progress = watch;
        params.progress_context = &w;
        eplb_plan *plan;
        eplb_error error;
        assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
        assert_true(w.calls >= 50);
        assert_int_equal(w.last, 50);
        assert_int_equal(w.total, 50);
        eplb_plan_destroy(plan);
        w = (watcher){.stop_at = 7};
        assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_ERROR_CANCELLED);
        assert_true(w.last < 50);
    }
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
}

/* With the time up at once every layer still gets a valid plan. */
static void test_time_limit(void **state)
{
    (void)state;
    fixture f = set_up();
    eplb_plan_params params = case_params("auto", 1);
    params.time_limit_seconds = 1e-9;
    eplb_plan *plan;
    eplb_error error;
    assert_int_equal(case_plan(&plan, f.load, f.topology, &params, &error), EPLB_OK);
    eplb_plan_destroy(plan);
    tear_down(&f);
}

/* --- promises on random input --- */

typedef struct random_case {
    eplb_load *load;
    eplb_topology *topology;
    eplb_placement *current; /* or NULL */
    eplb_plan_params params;
} random_case;

static eplb_topology *draw_topology(random_state *random, int32_t *experts)
{
    int32_t ranks = 1 + (int32_t)random_below(random, 9), slots[9], speeds[9], nodes[9], live = 0;
    uint8_t alive[9];
    bool uneven = random_below(random, 2) == 0;
    eplb_topology_params params;
    eplb_topology_params_init(&params, sizeof params);
    params.num_ranks = ranks;
    params.num_nodes = 1 + (int32_t)random_below(random, (uint32_t)ranks);
    params.slots_per_rank = 1 + (int32_t)random_below(random, 6);
    for (int32_t g = 0; g < ranks; g++) {
        slots[g] = (int32_t)random_below(random, 7);
        speeds[g] = 1 + (int32_t)random_below(random, 4);
        nodes[g] = (int32_t)random_below(random, (uint32_t)params.num_nodes);
        alive[g] = random_below(random, 8) != 0;
    }
    params.rank_slots = uneven ? slots : NULL;
    params.rank_alive = random_below(random, 3) == 0 ? alive : NULL;
    params.rank_speed = random_below(random, 3) == 0 ? speeds : NULL;
    params.rank_node = random_below(random, 3) == 0 ? nodes : NULL;
    eplb_topology *topology = NULL;
    if (eplb_topology_create(&topology, &params, NULL, NULL) != EPLB_OK)
        return NULL; /* no slot at all */
    live = eplb_topology_num_live_slots(topology);
    *experts = live > 0 ? 1 + (int32_t)random_below(random, (uint32_t)live) : 1;
    return topology;
}

static bool draw_case(random_state *random, random_case *c)
{
    enum { LAYERS = 3, WINDOWS = 3, MOST = 9 * 6 };
    static int64_t counts[WINDOWS * LAYERS * MOST];
    int32_t experts = 0, windows = random_below(random, 3) == 0 ? WINDOWS : 1;
    c->topology = draw_topology(random, &experts);
    if (c->topology == NULL || eplb_topology_num_live_slots(c->topology) == 0) {
        eplb_topology_destroy(c->topology);
        return false;
    }
    int kind = (int)random_below(random, 4);
    for (int32_t i = 0; i < windows * LAYERS * experts; i++)
        counts[i] = kind == 0   ? 0
                    : kind == 1 ? (int64_t)random_below(random, 3)
                    : kind == 2 ? (int64_t)random_below(random, 10000)
                                : (int64_t)(random_next(random) >> (10 + random_below(random, 50)));
    c->load = case_load(windows, LAYERS, experts, counts);
    c->current = NULL;
    if (random_below(random, 2) == 0)
        assert_int_equal(eplb_placement_create_initial(&c->current, c->topology, LAYERS, experts, NULL, NULL),
                         EPLB_OK);
    c->params =
        case_params(eplb_policy_name((int32_t)random_below(random, (uint32_t)eplb_policy_count())), 1);
    c->params.split = (eplb_split)random_below(random, 3);
    c->params.current = c->current;
    if (random_below(random, 2) == 0) {
        int32_t divisor = 1 + (int32_t)random_below(random, 6);
        c->params.num_groups = experts % divisor == 0 ? divisor : 1;
    }
    return true;
}

static void drop_case(random_case *c)
{
    eplb_placement_destroy(c->current);
    eplb_topology_destroy(c->topology);
    eplb_load_destroy(c->load);
}

/* What holds for every plan of every policy. */
static void check_promises(const random_case *c, const eplb_plan *plan)
{
    int32_t layers = eplb_load_num_layers(c->load), slots = eplb_topology_num_slots(c->topology);
    double imbalance[8];
    assert_true(layers <= 8);
    bool equal = c->params.split == EPLB_SPLIT_EQUAL;
    assert_int_equal(eplb_imbalance_per_layer(c->load, eplb_plan_placement(plan),
                                              equal ? NULL : eplb_plan_shares(plan), imbalance, NULL, NULL),
                     EPLB_OK);
    assert_memory_equal(imbalance, eplb_plan_imbalance(plan), (size_t)layers * sizeof *imbalance);
    for (int32_t l = 0; l < layers; l++) {
        assert_true(eplb_plan_lower_bound(plan)[l] >= 1.0);
        assert_true(eplb_plan_lower_bound(plan)[l] <= imbalance[l] * (1.0 + 1e-9));
    }
    eplb_move_count moves = {0};
    if (c->current != NULL)
        assert_int_equal(
            eplb_placement_count_moves(c->current, eplb_plan_placement(plan), &moves, NULL, NULL, NULL),
            EPLB_OK);
    assert_int_equal(moves.received, eplb_plan_moves(plan).received);
    assert_int_equal(moves.slots, eplb_plan_moves(plan).slots);
    assert_true(strlen(eplb_plan_reason(plan)) > 0);
    assert_true(eplb_plan_seconds(plan) >= 0.0);
    assert_true(eplb_plan_spilled(plan) >= 0 && eplb_plan_spilled(plan) <= (int64_t)layers * slots);
    bool published = strcmp(c->params.policy, "deepseek") == 0 || strcmp(c->params.policy, "vllm") == 0;
    if (!published)
        assert_int_equal(eplb_placement_is_valid(eplb_plan_placement(plan), NULL), EPLB_OK);
}

static void test_promises(void **state)
{
    (void)state;
    random_state random = random_seed(99);
    int planned = 0;
    for (int round = 0; round < 4000; round++) {
        random_case c;
        if (!draw_case(&random, &c))
            continue;
        eplb_plan *plan, *again;
        eplb_error error;
        eplb_status status = case_plan(&plan, c.load, c.topology, &c.params, &error);
        if (status == EPLB_OK) {
            planned++;
            check_promises(&c, plan);
            c.params.num_threads = 3;
            assert_int_equal(case_plan(&again, c.load, c.topology, &c.params, &error), EPLB_OK);
            assert_true(eplb_plan_equal(plan, again));
            assert_true(eplb_plan_hash(plan) == eplb_plan_hash(again));
            assert_string_equal(eplb_plan_reason(plan), eplb_plan_reason(again));
            eplb_plan_destroy(again);
        } else if (status != EPLB_ERROR_UNSUPPORTED) {
            fail_msg("round %d, policy %s: %s", round, c.params.policy, error.text);
        }
        eplb_plan_destroy(plan);
        drop_case(&c);
    }
    assert_true(planned > 1000);
}

/* A layer without load is spread evenly by our own policies, and none uses an expert twice on a rank. */
static void test_no_load_is_spread(void **state)
{
    (void)state;
    const int64_t counts[12] = {0};
    eplb_load *load = case_load(1, 1, 12, counts);
    eplb_topology *topology = case_topology(6, 1, 5);
    eplb_plan_params params = case_params("auto", 1);
    eplb_plan *plan;
    eplb_error error;
    assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
    const int32_t *count = eplb_placement_replica_count(eplb_plan_placement(plan));
    for (int32_t e = 0; e < 12; e++)
        assert_in_range(count[e], 2, 3);
    assert_true(eplb_plan_imbalance(plan)[0] == 1.0);
    eplb_plan_destroy(plan);
    params = case_params("deepseek", 1);
    assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
    assert_int_equal(eplb_placement_replica_count(eplb_plan_placement(plan))[0], 1 + 18);
    assert_non_null(strstr(eplb_plan_reason(plan), "no load"));
    eplb_plan_destroy(plan);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
}

static void test_reasons_are_counted(void **state)
{
    (void)state;
    int64_t counts[3][4] = {{1, 2, 3, 4}, {0, 0, 0, 0}, {4, 3, 2, 1}};
    eplb_load *load = case_load(1, 3, 4, counts[0]);
    eplb_topology *topology = case_topology(2, 1, 3);
    eplb_plan_params params = case_params("deepseek", 1);
    eplb_plan *plan;
    eplb_error error;
    assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
    assert_non_null(strstr(eplb_plan_reason(plan), "(2 of 3 layers); no load"));
    assert_non_null(strstr(eplb_plan_reason(plan), "(1 of 3 layers)"));
    eplb_plan_destroy(plan);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
}

static double mean_imbalance(const eplb_plan *plan, int32_t layers)
{
    double sum = 0.0;
    for (int32_t l = 0; l < layers; l++)
        sum += eplb_plan_imbalance(plan)[l];
    return sum / layers;
}

/* A total of moves is kept, and it goes where it gains: one layer is skewed, the others nearly even. */
static void test_total_of_moves(void **state)
{
    (void)state;
    enum { LAYERS = 6, EXPERTS = 32, RANKS = 8 };
    int64_t counts[LAYERS][EXPERTS];
    for (int l = 0; l < LAYERS; l++) {
        for (int e = 0; e < EXPERTS; e++)
            counts[l][e] = l == 3 ? 5000 / (1 + e) : 100 + (e * 7 + l) % 5;
    }
    eplb_load *load = case_load(1, LAYERS, EXPERTS, counts[0]);
    eplb_topology *topology = case_topology(RANKS, 1, 5);
    eplb_placement *current;
    assert_int_equal(eplb_placement_create_initial(&current, topology, LAYERS, EXPERTS, NULL, NULL), EPLB_OK);
    eplb_plan_params params = case_params("auto", 1);
    params.current = current;
    double before = 0.0;
    for (int64_t moves = 0; moves <= 24; moves += 6) {
        eplb_plan *total, *even;
        eplb_error error;
        params.max_moves = moves;
        params.max_moves_per_layer = EPLB_UNLIMITED;
        watcher w = {0};
        params.progress = watch;
        params.progress_context = &w;
        params.num_threads = 1 + (int32_t)(moves % 4);
        assert_int_equal(case_plan(&total, load, topology, &params, &error), EPLB_OK);
        assert_int_equal(w.last, 2 * LAYERS); /* frontiers first, then plans */
        assert_int_equal(w.total, 2 * LAYERS);
        assert_true(eplb_plan_moves(total).received <= moves);
        params.progress = NULL;
        params.max_moves = EPLB_UNLIMITED;
        params.max_moves_per_layer = moves / LAYERS;
        assert_int_equal(case_plan(&even, load, topology, &params, &error), EPLB_OK);
        assert_true(mean_imbalance(total, LAYERS) <= mean_imbalance(even, LAYERS) + 1e-12);
        if (moves > 0)
            assert_true(mean_imbalance(total, LAYERS) <= before + 1e-12);
        before = mean_imbalance(total, LAYERS);
        if (moves == 6) /* all six for the skewed layer beat one each by far */
            assert_true(mean_imbalance(total, LAYERS) < mean_imbalance(even, LAYERS) - 0.05);
        eplb_plan_destroy(even);
        eplb_plan_destroy(total);
    }
    eplb_placement_destroy(current);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
}

/* Hierarchical plans keep every group on its node. */
static void test_spilled(void **state)
{
    (void)state;
    const int64_t counts[4] = {1, 1, 1, 1};
    eplb_load *load = case_load(1, 1, 4, counts);
    eplb_topology *topology = case_topology(4, 2, 1);
    eplb_plan_params params = case_params("deepseek", 2);
    eplb_plan *plan;
    eplb_error error;
    assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
    assert_int_equal(eplb_plan_spilled(plan), 0);
    assert_int_equal(eplb_plan_num_groups(plan), 2);
    eplb_plan_destroy(plan);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policies_are_listed),
        cmocka_unit_test(test_unknown_policy),
        cmocka_unit_test(test_wrong_parameters),
        cmocka_unit_test(test_nothing_is_passed_over),
        cmocka_unit_test(test_wrong_current),
        cmocka_unit_test(test_ranks_that_shrink),
        cmocka_unit_test(test_ranks_that_leave),
        cmocka_unit_test(test_too_few_slots),
        cmocka_unit_test(test_dead_rank),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_time_limit),
        cmocka_unit_test(test_promises),
        cmocka_unit_test(test_no_load_is_spread),
        cmocka_unit_test(test_reasons_are_counted),
        cmocka_unit_test(test_spilled),
        cmocka_unit_test(test_total_of_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
