/* DeepSeek's planner: its published example digit for digit, its known faults, its ties, and a slow
 * restatement by linear scans that must agree slot for slot on thousands of random layers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "cases.h"
#include "plan/descending.h"

#define MOST 512

static const int64_t README_LOAD[2][12] = {{90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86},
                                           {20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27}};
static const int32_t README_SLOTS[2][16] = {{5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1},
                                            {7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1}};
static const int32_t README_COUNT[2][12] = {{1, 2, 1, 1, 2, 2, 1, 1, 1, 1, 2, 1},
                                            {1, 2, 1, 1, 1, 2, 2, 1, 2, 1, 1, 1}};

static void test_published_example(void **state)
{
    (void)state;
    float weight[2][12];
    int32_t slots[2][16], rank[2][16], count[2][12];
    for (int i = 0; i < 24; i++)
        weight[i / 12][i % 12] = (float)README_LOAD[i / 12][i % 12];
    assert_int_equal(
        eplb_rebalance_experts(weight[0], 2, 12, 16, 4, 2, 8, slots[0], rank[0], count[0], NULL, NULL),
        EPLB_OK);
    assert_memory_equal(slots, README_SLOTS, sizeof slots);
    assert_memory_equal(count, README_COUNT, sizeof count);
    for (int i = 0; i < 32; i++)
        assert_in_range(rank[i / 16][i % 16], 0, count[i / 16][slots[i / 16][i % 16]] - 1);
}

static void test_published_example_as_policy(void **state)
{
    (void)state;
    eplb_load *load = case_load(1, 2, 12, README_LOAD[0]);
    eplb_topology *topology = case_topology(8, 2, 2);
    eplb_plan_params params = case_params("deepseek", 4);
    eplb_plan *plan;
    eplb_error error;
    assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
    assert_memory_equal(case_slots(plan), README_SLOTS, sizeof README_SLOTS);
    assert_string_equal(eplb_plan_policy(plan), "deepseek");
    assert_non_null(strstr(eplb_plan_reason(plan), "hierarchical"));
    eplb_plan_destroy(plan);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
}

/* One layer through the public module. */
static void expect_layer(const float *weight, int32_t experts, int32_t slots, int32_t groups, int32_t nodes,
                         int32_t ranks, const int32_t *expected)
{
    int32_t held[MOST], count[MOST];
    assert_int_equal(eplb_rebalance_experts(weight, 1, experts, slots, groups, nodes, ranks, held, NULL,
                                            count, NULL, NULL),
                     EPLB_OK);
    assert_memory_equal(held, expected, (size_t)slots * sizeof *held);
}

static void test_known_answers(void **state)
{
    (void)state;
    const float none[4] = {0, 0, 0, 0};
    expect_layer(none, 4, 8, 1, 1, 4, (const int32_t[]){0, 1, 2, 3, 0, 0, 0, 0});
    const float hot[8] = {1000, 1, 1, 1, 1, 1, 1, 1};
    expect_layer(hot, 8, 12, 2, 2, 4, (const int32_t[]){0, 0, 3, 0, 1, 2, 6, 4, 4, 7, 5, 5});
    const float any[4] = {5, 9, 1, 7};
    expect_layer(any, 4, 4, 1, 1, 4, (const int32_t[]){0, 1, 2, 3});
    const float falling[4] = {10, 20, 30, 40};
    int32_t first[8], second[8], count[4];
    assert_int_equal(eplb_rebalance_experts(falling, 1, 4, 8, 3, 2, 4, first, NULL, count, NULL, NULL),
                     EPLB_OK);
    assert_int_equal(eplb_rebalance_experts(falling, 1, 4, 8, 1, 1, 4, second, NULL, count, NULL, NULL),
                     EPLB_OK);
    assert_memory_equal(first, second, sizeof first); /* groups that do not divide by nodes: global */
}

/* The plan of an unbalanced load without redundancy that FlashLB made known: its worst rank gets 232. */
static void test_flashlb_toy(void **state)
{
    (void)state;
    const int64_t counts[8] = {600, 560, 120, 120, 20, 10, 10, 10};
    eplb_load *load = case_load(1, 1, 8, counts);
    eplb_topology *topology = case_topology(8, 1, 2);
    eplb_plan_params params = case_params("deepseek", 1);
    eplb_plan *plan;
    eplb_error error;
    assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
    assert_true(fabs(eplb_plan_imbalance(plan)[0] * 181.25 - 232.0) < 1.0);
    eplb_plan_destroy(plan);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
}

static void test_primitives(void **state)
{
    (void)state;
    const float weight[2][6] = {{5, 5, 5, 5, 5, 5}, {1, 6, 2, 5, 3, 4}};
    int32_t pack[2][6], place[2][6];
    assert_int_equal(eplb_balanced_packing(weight[0], 2, 6, 3, pack[0], place[0], NULL, NULL), EPLB_OK);
    const int32_t tied_pack[6] = {0, 1, 2, 0, 1, 2}, tied_place[6] = {0, 0, 0, 1, 1, 1};
    assert_memory_equal(pack[0], tied_pack, sizeof tied_pack);
    assert_memory_equal(place[0], tied_place, sizeof tied_place);
    const int32_t folded_pack[6] = {0, 0, 1, 1, 2, 2}, folded_place[6] = {1, 0, 1, 0, 1, 0};
    assert_memory_equal(pack[1], folded_pack, sizeof folded_pack);
    assert_memory_equal(place[1], folded_place, sizeof folded_place);

    const float load[3] = {8, 12, 4};
    int32_t expert[7], rank[7], count[3];
    assert_int_equal(eplb_replicate_experts(load, 1, 3, 7, expert, rank, count, NULL, NULL), EPLB_OK);
    /* 12 -> 6, then 8 -> 4, then 6 -> 4, then all are 4: the lowest index. */
    const int32_t expected_expert[7] = {0, 1, 2, 1, 0, 1, 0}, expected_rank[7] = {0, 0, 0, 1, 1, 2, 2};
    const int32_t expected_count[3] = {3, 3, 1};
    assert_memory_equal(expert, expected_expert, sizeof expert);
    assert_memory_equal(rank, expected_rank, sizeof rank);
    assert_memory_equal(count, expected_count, sizeof count);
}

/* A negative zero is a zero: it does not sort apart. */
static void test_negative_zero(void **state)
{
    (void)state;
    const float signs[4] = {-0.0f, 0.0f, -0.0f, 3.0f}, plain[4] = {0, 0, 0, 3};
    int32_t first[6], second[6], count[4];
    assert_int_equal(eplb_rebalance_experts(signs, 1, 4, 6, 1, 1, 3, first, NULL, count, NULL, NULL),
                     EPLB_OK);
    assert_int_equal(eplb_rebalance_experts(plain, 1, 4, 6, 1, 1, 3, second, NULL, count, NULL, NULL),
                     EPLB_OK);
    assert_memory_equal(first, second, sizeof first);
}

static void test_wrong_arguments(void **state)
{
    (void)state;
    float weight[2][4] = {{1, 2, 3, 4}, {1, 2, 3, 4}};
    int32_t held[16], rank[16], count[8];
    eplb_error error;
    const struct {
        int32_t slots, groups, nodes, ranks;
        const char *says;
    } wrong[] = {{3, 1, 1, 1, "expected 4 to"},      {7, 1, 1, 4, "do not divide by 4 ranks"},
                 {8, 3, 3, 3, "do not divide by 3"}, {8, 2, 2, 1, "do not divide by 2 nodes"},
                 {8, 0, 1, 4, "groups is 0"},        {8, 1, 0, 4, "nodes is 0"},
                 {8, 1, 1, 0, "ranks is 0"},         {8, 5, 1, 4, "groups is 5"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(eplb_rebalance_experts(weight[0], 2, 4, wrong[i].slots, wrong[i].groups,
                                                wrong[i].nodes, wrong[i].ranks, held, rank, count, NULL,
                                                &error),
                         EPLB_ERROR_INVALID);
        assert_non_null(strstr(error.text, wrong[i].says));
    }
    const float bad[] = {-1.0f, NAN, INFINITY};
    for (int i = 0; i < 3; i++) {
        weight[1][2] = bad[i];
        assert_int_equal(eplb_rebalance_experts(weight[0], 2, 4, 8, 1, 1, 4, held, NULL, count, NULL, &error),
                         EPLB_ERROR_INVALID);
        assert_int_equal(error.layer, 1);
        assert_int_equal(error.expert, 2);
        assert_int_equal(eplb_balanced_packing(weight[0], 2, 4, 2, held, rank, NULL, &error),
                         EPLB_ERROR_INVALID);
        assert_int_equal(eplb_replicate_experts(weight[0], 2, 4, 8, held, rank, count, NULL, &error),
                         EPLB_ERROR_INVALID);
    }
    assert_int_equal(eplb_balanced_packing(weight[0], 1, 4, 3, held, rank, NULL, &error), EPLB_ERROR_INVALID);
    assert_int_equal(eplb_balanced_packing(weight[0], 0, 4, 2, held, rank, NULL, &error), EPLB_ERROR_INVALID);
    assert_int_equal(eplb_replicate_experts(weight[0], 1, 4, 3, held, rank, count, NULL, &error),
                     EPLB_ERROR_INVALID);
}

/* --- a restatement by linear scans, global mode --- */

static int32_t slow_hottest(const float *weight, const int32_t *count, int32_t experts)
{
    int32_t best = 0;
    for (int32_t e = 1; e < experts; e++) {
        if (weight[e] / (float)count[e] > weight[best] / (float)count[best])
            best = e;
    }
    return best;
}

/* The heaviest replica not yet placed, lowest number first. */
static int32_t slow_heaviest(const float *replica, const int32_t *placed, int32_t slots)
{
    int32_t best = -1;
    for (int32_t p = 0; p < slots; p++) {
        if (placed[p] < 0 && (best < 0 || replica[p] > replica[best]))
            best = p;
    }
    return best;
}

static void slow_global(const float *weight, int32_t experts, int32_t slots, int32_t ranks, int32_t *held)
{
    int32_t count[MOST], holder[MOST], placed[MOST], filled[MOST] = {0}, room = slots / ranks;
    float replica[MOST], load[MOST] = {0.0f};
    for (int32_t e = 0; e < experts; e++) {
        count[e] = 1;
        holder[e] = e;
    }
    for (int32_t p = experts; p < slots; p++) {
        holder[p] = slow_hottest(weight, count, experts);
        count[holder[p]]++;
    }
    for (int32_t p = 0; p < slots; p++) {
        replica[p] = weight[holder[p]] / (float)count[holder[p]];
        placed[p] = -1;
    }
    for (int32_t i = 0; i < slots; i++) {
        int32_t p = room == 1 ? i : slow_heaviest(replica, placed, slots), best = -1;
        for (int32_t g = 0; g < ranks; g++) {
            if (filled[g] < room && (best < 0 || load[g] < load[best]))
                best = g;
        }
        best = room == 1 ? i : best;
        placed[p] = best;
        held[best * room + filled[best]++] = holder[p];
        load[best] += replica[p];
    }
}

static float draw_weight(random_state *random, int kind)
{
    switch (kind) {
    case 0:
        return (float)random_below(random, 3);
    case 1:
        return (float)random_below(random, 100000);
    case 2:
        return (float)(random_next(random) >> (24 + random_below(random, 30)));
    case 3:
        return (float)random_unit(random);
    default:
        return random_below(random, 4) == 0 ? (float)random_unit(random) * 1e20f : 0.0f;
    }
}

static void test_against_linear_scans(void **state)
{
    (void)state;
    random_state random = random_seed(7);
    float weight[MOST];
    int32_t expected[MOST], held[MOST], count[MOST];
    for (int round = 0; round < 3000; round++) {
        int32_t experts = 1 + (int32_t)random_below(&random, 80),
                ranks = 1 + (int32_t)random_below(&random, 12);
        int32_t room = (experts + ranks - 1) / ranks + (int32_t)random_below(&random, 4),
                slots = room * ranks;
        int kind = round % 5;
        for (int32_t e = 0; e < experts; e++)
            weight[e] = draw_weight(&random, kind);
        slow_global(weight, experts, slots, ranks, expected);
        assert_int_equal(
            eplb_rebalance_experts(weight, 1, experts, slots, 1, 1, ranks, held, NULL, count, NULL, NULL),
            EPLB_OK);
        assert_memory_equal(held, expected, (size_t)slots * sizeof *held);
    }
}

/* Hierarchical is "groups packed to nodes, then each node global": composed here from the public
 * primitive. */
static void test_hierarchical_is_composed(void **state)
{
    (void)state;
    random_state random = random_seed(11);
    enum {
        GROUPS = 8,
        SIZE = 6,
        NODES = 4,
        RANKS = 8,
        ROOM = 8,
        EXPERTS = GROUPS * SIZE,
        SLOTS = RANKS * ROOM
    };
    for (int round = 0; round < 300; round++) {
        float weight[EXPERTS], group_weight[GROUPS], inner[SIZE * GROUPS / NODES];
        int32_t held[SLOTS], count[EXPERTS], node[GROUPS], place[GROUPS], expected[SLOTS / NODES];
        int32_t logical[SIZE * GROUPS / NODES];
        for (int e = 0; e < EXPERTS; e++)
            weight[e] = (float)random_below(&random, round % 2 == 0 ? 5 : 5000);
        for (int g = 0; g < GROUPS; g++) {
            group_weight[g] = 0.0f;
            for (int j = 0; j < SIZE; j++)
                group_weight[g] += weight[g * SIZE + j];
        }
        assert_int_equal(eplb_balanced_packing(group_weight, 1, GROUPS, NODES, node, place, NULL, NULL),
                         EPLB_OK);
        assert_int_equal(eplb_rebalance_experts(weight, 1, EXPERTS, SLOTS, GROUPS, NODES, RANKS, held, NULL,
                                                count, NULL, NULL),
                         EPLB_OK);
        for (int n = 0; n < NODES; n++) {
            for (int g = 0; g < GROUPS; g++) {
                for (int j = 0; j < SIZE && node[g] == n; j++) {
                    inner[place[g] * SIZE + j] = weight[g * SIZE + j];
                    logical[place[g] * SIZE + j] = g * SIZE + j;
                }
            }
            slow_global(inner, EXPERTS / NODES, SLOTS / NODES, RANKS / NODES, expected);
            for (int p = 0; p < SLOTS / NODES; p++)
                assert_int_equal(held[n * SLOTS / NODES + p], logical[expected[p]]);
        }
    }
}

static void test_order_of_many(void **state)
{
    (void)state;
    random_state random = random_seed(3);
    arena scratch;
    arena_init(&scratch, NULL);
    for (int round = 0; round < 200; round++) {
        int32_t n = 1 + (int32_t)random_below(&random, 3000);
        float *weight = malloc((size_t)n * sizeof *weight);
        int32_t *order = malloc((size_t)n * sizeof *order);
        for (int32_t i = 0; i < n; i++)
            weight[i] = draw_weight(&random, round % 5);
        assert_int_equal(order_descending(weight, n, &scratch, order, NULL), EPLB_OK);
        for (int32_t i = 1; i < n; i++) {
            float before = weight[order[i - 1]], after = weight[order[i]];
            assert_true(before > after || (before == after && order[i - 1] < order[i]));
        }
        free(order);
        free(weight);
    }
    arena_destroy(&scratch);
}

/* Counts above 2^24 are rounded to single precision exactly as a conversion does. */
static void test_policy_rounds_large_counts(void **state)
{
    (void)state;
    random_state random = random_seed(5);
    enum { LAYERS = 20, EXPERTS = 32, SLOTS = 40, RANKS = 8 };
    int64_t counts[LAYERS][EXPERTS];
    float weight[LAYERS][EXPERTS];
    int32_t expected[LAYERS][SLOTS], count[LAYERS][EXPERTS];
    for (int i = 0; i < LAYERS * EXPERTS; i++) {
        counts[i / EXPERTS][i % EXPERTS] = (int64_t)(random_next(&random) >> 8);
        weight[i / EXPERTS][i % EXPERTS] = (float)counts[i / EXPERTS][i % EXPERTS];
    }
    assert_int_equal(eplb_rebalance_experts(weight[0], LAYERS, EXPERTS, SLOTS, 8, 2, RANKS, expected[0], NULL,
                                            count[0], NULL, NULL),
                     EPLB_OK);
    eplb_load *load = case_load(1, LAYERS, EXPERTS, counts[0]);
    eplb_topology *topology = case_topology(RANKS, 2, SLOTS / RANKS);
    eplb_plan_params params = case_params("deepseek", 8);
    eplb_plan *plan;
    eplb_error error;
    assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_OK);
    assert_memory_equal(case_slots(plan), expected, sizeof expected);
    assert_memory_equal(eplb_placement_replica_count(eplb_plan_placement(plan)), count, sizeof count);
    eplb_plan_destroy(plan);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
}

static void expect_refusal(const char *policy, const eplb_topology_params *ranks,
                           const eplb_plan_params *wishes, const char *says)
{
    const int64_t counts[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    eplb_load *load = case_load(1, 1, 8, counts);
    eplb_topology *topology;
    assert_int_equal(eplb_topology_create(&topology, ranks, NULL, NULL), EPLB_OK);
    eplb_plan_params params = *wishes;
    params.policy = policy;
    eplb_plan *plan;
    eplb_error error;
    assert_int_equal(case_plan(&plan, load, topology, &params, &error), EPLB_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.text, policy));
    assert_non_null(strstr(error.text, says));
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
}

static void test_refusals(void **state)
{
    (void)state;
    const int32_t uneven[4] = {3, 3, 3, 4}, speeds[4] = {1, 1, 2, 1};
    const uint8_t one_dead[4] = {1, 1, 1, 0};
    eplb_topology_params plain, ranks;
    eplb_topology_params_init(&plain, sizeof plain);
    plain.num_ranks = 4;
    plain.num_nodes = 2;
    plain.slots_per_rank = 3;
    const char *const policies[] = {"deepseek", "vllm"};
    for (int i = 0; i < 2; i++) {
        eplb_plan_params params = case_params(NULL, 1);
        ranks = plain;
        ranks.rank_slots = uneven;
        expect_refusal(policies[i], &ranks, &params, "same number of slots");
        ranks = plain;
        ranks.rank_speed = speeds;
        expect_refusal(policies[i], &ranks, &params, "equally fast");
        params.split = EPLB_SPLIT_WEIGHTED;
        expect_refusal(policies[i], &plain, &params, "equal split");
        params = case_params(NULL, 1);
        params.max_moves_per_layer = 3;
        expect_refusal(policies[i], &plain, &params, "bound the moves");
        params = case_params(NULL, 1);
        params.cost.activated = 1;
        expect_refusal(policies[i], &plain, &params, "tokens only");
    }
    eplb_plan_params params = case_params(NULL, 2);
    ranks = plain;
    ranks.rank_alive = one_dead;
    expect_refusal("deepseek", &ranks, &params, "equal nodes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_example),
        cmocka_unit_test(test_published_example_as_policy),
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_flashlb_toy),
        cmocka_unit_test(test_primitives),
        cmocka_unit_test(test_negative_zero),
        cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_against_linear_scans),
        cmocka_unit_test(test_hierarchical_is_composed),
        cmocka_unit_test(test_order_of_many),
        cmocka_unit_test(test_policy_rounds_large_counts),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
