/* Spilled replicas with tokens by source rank [G, L, E]: what holds wherever tokens start. */
#include <math.h>

#include "base/random.h"
#include "cases.h"

enum { RANKS = 8, NODES = 4, GROUPS = 8, LAYERS = 2, EXPERTS = 32, SLOTS_PER_RANK = 6 };

typedef struct traffic {
    int64_t counts[LAYERS][EXPERTS];
    int64_t by_rank[RANKS][LAYERS][EXPERTS];
    eplb_load *load;
    eplb_load *sources;
} traffic;

static void make_loads(traffic *t)
{
    t->load = case_load(1, LAYERS, EXPERTS, &t->counts[0][0]);
    t->sources = case_load(RANKS, LAYERS, EXPERTS, &t->by_rank[0][0][0]);
}

static void free_loads(traffic *t)
{
    eplb_load_destroy(t->load);
    eplb_load_destroy(t->sources);
}

/* Skewed experts, three quarters of whose tokens start on one node each. */
static void draw(traffic *t, uint64_t seed)
{
    random_state random = random_seed(seed);
    for (int32_t l = 0; l < LAYERS; l++) {
        for (int32_t e = 0; e < EXPERTS; e++) {
            double x = random_unit(&random);
            int32_t home = (int32_t)random_below(&random, NODES);
            t->counts[l][e] = 0;
            for (int32_t g = 0; g < RANKS; g++) {
                int64_t part = (int64_t)(2000 * x * x * x) + random_below(&random, 20);
                t->by_rank[g][l][e] = g * NODES / RANKS == home ? 9 * part : part;
                t->counts[l][e] += t->by_rank[g][l][e];
            }
        }
    }
    make_loads(t);
}

static eplb_plan *plan_spilled(const traffic *t, const eplb_topology *topology, eplb_split split,
                               int32_t spill, bool given)
{
    eplb_plan *plan;
    eplb_error error;
    eplb_plan_params params = case_params("auto", GROUPS);
    params.split = split;
    params.max_spill = spill;
    params.sources = given ? t->sources : NULL;
    assert_int_equal(case_plan(&plan, t->load, topology, &params, &error), EPLB_OK);
    return plan;
}

/* Replicas of a layer outside the node that holds most of their group. */
static int32_t count_away(const int32_t *slots)
{
    int32_t held[GROUPS][NODES] = {{0}}, away = 0;
    for (int32_t p = 0; p < RANKS * SLOTS_PER_RANK; p++) {
        if (slots[p] >= 0)
            held[slots[p] * GROUPS / EXPERTS][p / SLOTS_PER_RANK * NODES / RANKS]++;
    }
    for (int32_t q = 0; q < GROUPS; q++) {
        int32_t most = 0;
        for (int32_t n = 0; n < NODES; n++) {
            most = held[q][n] > most ? held[q][n] : most;
            away += held[q][n];
        }
        away -= most;
    }
    return away;
}

static double crossing(const traffic *t, const eplb_plan *plan)
{
    double layers[LAYERS], sum = 0;
    assert_int_equal(eplb_cross_node_tokens(t->load, eplb_plan_placement(plan), eplb_plan_shares(plan),
                                            t->sources, layers, NULL, NULL),
                     EPLB_OK);
    for (int32_t l = 0; l < LAYERS; l++)
        sum += layers[l];
    return sum;
}

static const eplb_split splits[] = {EPLB_SPLIT_EQUAL, EPLB_SPLIT_WEIGHTED};

static void spilled_plans_keep_their_rules(void **state)
{
    (void)state;
    eplb_topology *topology = case_topology(RANKS, NODES, SLOTS_PER_RANK);
    for (uint64_t seed = 1; seed <= 6; seed++) {
        static traffic t;
        draw(&t, seed);
        for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
            double without[LAYERS] = {0};
            for (int32_t spill = 0; spill <= 4; spill += 2) {
                eplb_plan *plan = plan_spilled(&t, topology, splits[i], spill, spill > 0);
                int64_t away = 0;
                for (int32_t l = 0; l < LAYERS; l++) {
                    int32_t here = count_away(case_slots(plan) + l * RANKS * SLOTS_PER_RANK);
                    assert_true(here <= spill);
                    away += here;
                    double reached = eplb_plan_imbalance(plan)[l];
                    assert_true(reached >= eplb_plan_lower_bound(plan)[l] * (1 - 1e-12));
                    assert_true(spill > 0 || without[l] == 0);
                    without[l] = spill > 0 ? without[l] : reached;
                    assert_true(reached <= without[l] * (1 + 1e-12));
                }
                assert_int_equal(eplb_plan_spilled(plan), away);
                eplb_plan_destroy(plan);
            }
        }
        free_loads(&t);
    }
    eplb_topology_destroy(topology);
}

/* Only proportions count, and what dead ranks sent does not. */
static void the_same_sources_give_the_same_plan(void **state)
{
    (void)state;
    static traffic t, other;
    eplb_topology *whole = case_topology(RANKS, NODES, SLOTS_PER_RANK), *topology;
    assert_int_equal(eplb_topology_with_dead(&topology, whole, (const int32_t[]){3}, 1, NULL, NULL), EPLB_OK);
    eplb_topology_destroy(whole);
    draw(&t, 7);
    other = t;
    for (int32_t l = 0; l < LAYERS; l++) {
        for (int32_t e = 0; e < EXPERTS; e++) {
            for (int32_t g = 0; g < RANKS; g++)
                other.by_rank[g][l][e] = g == 3 ? 1000 - e : 3 * t.by_rank[g][l][e];
        }
    }
    make_loads(&other);
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        eplb_plan *plan = plan_spilled(&t, topology, splits[i], 3, true);
        eplb_plan *same = plan_spilled(&other, topology, splits[i], 3, true);
        assert_true(eplb_placement_equal(eplb_plan_placement(plan), eplb_plan_placement(same)));
        assert_true(crossing(&t, plan) == crossing(&other, same));
        eplb_plan_destroy(plan);
        eplb_plan_destroy(same);
    }
    free_loads(&t);
    free_loads(&other);
    eplb_topology_destroy(topology);
}

/* Knowing where tokens start costs neither crossings nor balance. */
static void sources_do_no_harm(void **state)
{
    (void)state;
    eplb_topology *topology = case_topology(RANKS, NODES, SLOTS_PER_RANK);
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        double given = 0, blind = 0, balance = 0;
        for (uint64_t seed = 10; seed < 20; seed++) {
            static traffic t;
            draw(&t, seed);
            eplb_plan *knows = plan_spilled(&t, topology, splits[i], 4, true);
            eplb_plan *guesses = plan_spilled(&t, topology, splits[i], 4, false);
            given += crossing(&t, knows);
            blind += crossing(&t, guesses);
            for (int32_t l = 0; l < LAYERS; l++)
                balance += eplb_plan_imbalance(knows)[l] / eplb_plan_imbalance(guesses)[l] / (10 * LAYERS);
            eplb_plan_destroy(knows);
            eplb_plan_destroy(guesses);
            free_loads(&t);
        }
        assert_true(given <= blind);
        assert_true(balance < 1.01);
    }
    eplb_topology_destroy(topology);
}

/* Without spilled replicas as well, like nodes trade what they hold: fewer tokens cross at the same balance.
 * Published policies answer as published. */
static void like_nodes_are_matched(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        eplb_split split;
        bool published;
    } cases[] = {
        {"auto", EPLB_SPLIT_EQUAL, false},    {"auto", EPLB_SPLIT_BATCH, false},
        {"greedy", EPLB_SPLIT_EQUAL, false},  {"equal", EPLB_SPLIT_EQUAL, false},
        {"windows", EPLB_SPLIT_EQUAL, false}, {"weighted", EPLB_SPLIT_WEIGHTED, false},
        {"deepseek", EPLB_SPLIT_EQUAL, true}, {"vllm", EPLB_SPLIT_EQUAL, true},
    };
    eplb_topology *topology = case_topology(RANKS, NODES, SLOTS_PER_RANK);
    static traffic t;
    draw(&t, 21);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        eplb_plan *plans[2];
        for (int given = 0; given < 2; given++) {
            eplb_error error;
            eplb_plan_params params = case_params(cases[i].policy, GROUPS);
            params.split = cases[i].split;
            params.sources = given ? t.sources : NULL;
            assert_int_equal(case_plan(&plans[given], t.load, topology, &params, &error), EPLB_OK);
        }
        for (int32_t l = 0; l < LAYERS; l++)
            assert_true(fabs(eplb_plan_imbalance(plans[1])[l] - eplb_plan_imbalance(plans[0])[l]) < 1e-12);
        if (cases[i].published)
            assert_true(eplb_placement_equal(eplb_plan_placement(plans[0]), eplb_plan_placement(plans[1])));
        else
            assert_true(crossing(&t, plans[1]) < crossing(&t, plans[0]));
        eplb_plan_destroy(plans[0]);
        eplb_plan_destroy(plans[1]);
    }
    free_loads(&t);
    eplb_topology_destroy(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spilled_plans_keep_their_rules),
        cmocka_unit_test(the_same_sources_give_the_same_plan),
        cmocka_unit_test(sources_do_no_harm),
        cmocka_unit_test(like_nodes_are_matched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
