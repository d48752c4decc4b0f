/* Policy `weighted` on one layer: each branch, each promise. */
#include <math.h>

#include <eplb/deepseek.h>

#include "../../layer_case.h"
#include "../../testing.h"
#include "base/random.h"
#include "plan/policies.h"

static layer_case layer;
static arena scratch;

static int set_up(void **state)
{
    (void)state;
    arena_init(&scratch, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_destroy(&scratch);
    return 0;
}

static void plan(void)
{
    eplb_error error;
    arena_mark mark = arena_position(&scratch);
    eplb_status status = plan_layer_weighted(&layer.problem, &scratch, &layer.answer, &error);
    if (status != EPLB_OK)
        fail_msg("%s", error.text);
    arena_rewind(&scratch, mark);
    assert_null(case_problem(&layer));
    assert_true(layer.answer.bound >= 1.0);
    assert_true(case_imbalance(&layer) >= layer.answer.bound * (1.0 - 1e-12));
}

static void draw(random_state *random, uint32_t range)
{
    for (int32_t e = 0; e < layer.problem.num_experts; e++)
        layer.load[e] = random_below(random, range);
    case_refresh(&layer);
}

static void spare_slots_enough_means_exact(void **state)
{
    (void)state;
    random_state random = random_seed(1);
    case_init(&layer, 256, 32, 9);
    draw(&random, 100000);
    plan();
    assert_true(case_imbalance(&layer) <= 1.0 + 1e-12);
    assert_true(layer.answer.bound == 1.0);
    for (int32_t s = 0; s < layer.problem.num_slots; s++)
        assert_true(layer.expert[s] >= 0);
}

static void equal_split_and_other_costs_are_refused(void **state)
{
    (void)state;
    eplb_error error;
    case_init(&layer, 4, 2, 3);
    layer.problem.split = EPLB_SPLIT_EQUAL;
    assert_int_equal(plan_layer_weighted(&layer.problem, &scratch, &layer.answer, &error),
                     EPLB_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "split"));
    layer.problem.split = EPLB_SPLIT_WEIGHTED;
    layer.problem.plain_cost = false;
    assert_int_equal(plan_layer_weighted(&layer.problem, &scratch, &layer.answer, &error),
                     EPLB_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "tiles"));
}

/* No spare slot and one dominant expert: the rank that holds it holds k - 1 others, at best the smallest. */
static void a_dominant_expert_without_spare_slots_is_proved(void **state)
{
    (void)state;
    case_init(&layer, 8, 4, 2);
    layer.load[3] = 1000;
    for (int32_t e = 0; e < 8; e++)
        layer.load[e] += e + 1;
    case_refresh(&layer);
    plan();
    double expected = (1004.0 + 1.0) / ((1000.0 + 36.0) / 4.0);
    assert_true(case_imbalance(&layer) < expected + 1e-9);
    assert_true(layer.answer.bound > expected - 1e-9);
}

static void uneven_slots_are_exact_where_they_differ_by_one(void **state)
{
    (void)state;
    random_state random = random_seed(2);
    static const int32_t rank_slots[] = {3, 4, 3, 4, 4, 3};
    for (int n = 0; n < 500; n++) {
        case_init(&layer, 16, 6, 3);
        case_finish(&layer, rank_slots); /* 21 slots: 16 + 6 - 1 */
        draw(&random, n % 2 == 0 ? 10 : 10000);
        plan();
        assert_true(case_imbalance(&layer) <= 1.0 + 1e-12);
    }
}

/* Ranks without slots cannot serve, but count: the bound says so. */
static void a_rank_without_slots_is_in_the_bound(void **state)
{
    (void)state;
    random_state random = random_seed(3);
    static const int32_t rank_slots[] = {4, 0, 4, 4};
    case_init(&layer, 10, 4, 4);
    case_finish(&layer, rank_slots);
    draw(&random, 1000);
    plan();
    assert_true(case_imbalance(&layer) < 4.0 / 3.0 + 1e-9);
    assert_true(layer.answer.bound > 4.0 / 3.0 - 1e-9);
}

/* Imbalance of policy equal's plan for the same layer, which is left as it was but for slots and quotas. */
static double equal_imbalance(void)
{
    eplb_error error;
    arena_mark mark = arena_position(&scratch);
    layer.problem.split = EPLB_SPLIT_EQUAL;
    case_refresh(&layer);
    assert_int_equal(plan_layer_equal(&layer.problem, &scratch, &layer.answer, &error), EPLB_OK);
    double imbalance = case_imbalance(&layer);
    layer.problem.split = EPLB_SPLIT_WEIGHTED;
    case_refresh(&layer);
    arena_rewind(&scratch, mark);
    return imbalance;
}

/* Ranks with 1 to 7 slots, some with speeds or on two nodes: shares of one's own choice lose to equal ones
 * nowhere. */
static void never_worse_than_equal_shares(void **state)
{
    (void)state;
    random_state random = random_seed(77);
    for (int32_t i = 0; i < 150; i++) {
        int32_t ranks = 2 + (int32_t)random_below(&random, 10), slots = 0, rank_slots[12];
        for (int32_t g = 0; g < ranks; g++)
            slots += rank_slots[g] = 1 + (int32_t)random_below(&random, 7);
        int32_t least = slots > ranks ? slots - ranks : 1;
        case_init(&layer, least + (int32_t)random_below(&random, (uint32_t)(slots - least + 1)), ranks, 1);
        for (int32_t g = 0; i % 3 == 0 && g < ranks; g++)
            layer.rank_speed[g] = 1 + (int32_t)random_below(&random, 4);
        for (int32_t e = 0; e < layer.problem.num_experts; e++)
            layer.load[e] = random_below(&random, i % 2 == 0 ? 1000 : 30 + 1000 / (uint32_t)(e + 1));
        case_finish(&layer, rank_slots);
        double equal = equal_imbalance();
        plan();
        assert_true(case_imbalance(&layer) <= equal + 1e-12);
    }
}

/* 0 | 1 | 0, 2 is the optimum: a replica of 0 and expert 1 must change places. */
static void a_spare_replica_is_exchanged(void **state)
{
    (void)state;
    static const int32_t rank_slots[] = {1, 1, 2};
    static const int64_t load[] = {42, 20, 20};
    case_init(&layer, 3, 3, 1);
    memcpy(layer.load, load, sizeof load);
    case_finish(&layer, rank_slots);
    plan();
    assert_true(case_imbalance(&layer) < 31.0 * 3.0 / 82.0 + 1e-9);
}

static void similar_speeds_are_exact(void **state)
{
    (void)state;
    random_state random = random_seed(4);
    for (int n = 0; n < 200; n++) {
        case_init(&layer, 256, 32, 9);
        for (int32_t g = 0; g < 32; g++)
            layer.rank_speed[g] = 95 + (int32_t)random_below(&random, 11);
        for (int32_t e = 0; e < 256; e++)
            layer.load[e] = 100 + random_below(&random, 100000) / (1 + random_below(&random, 50));
        case_refresh(&layer);
        plan();
        assert_true(case_imbalance(&layer) <= 1.0 + 1e-12);
    }
}

/* Layers on which moves for the better alone end above the optimum, which integer programs have found. */
static void kicks_lead_out_of_local_optima(void **state)
{
    (void)state;
    static const struct {
        int64_t load[6];
        int32_t experts;
        int32_t slots[4];
        int32_t speeds[4];
        int32_t ranks;
        double optimum;
    } cases[] = {{{46, 27, 109, 21, 152, 78}, 6, {1, 3, 3, 1}, {1, 1, 1, 1}, 4, 1.0069284064665125},
                 {{112, 117, 84}, 3, {1, 2, 1, 1}, {4, 3, 3, 5}, 4, 1.0063897763578276},
                 {{0, 0, 53, 36, 27}, 5, {2, 2, 1, 2}, {3, 4, 5, 5}, 4, 1.003315649867374},
                 {{53, 127, 74, 44, 23, 31}, 6, {1, 3, 2, 2}, {4, 5, 3, 5}, 4, 1.0142045454545392},
                 {{42, 20, 20}, 3, {1, 1, 2}, {1, 1, 1}, 3, 1.1341463414634125}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        case_init(&layer, cases[i].experts, cases[i].ranks, 1);
        for (int32_t e = 0; e < cases[i].experts; e++)
            layer.load[e] = cases[i].load[e];
        for (int32_t g = 0; g < cases[i].ranks; g++)
            layer.rank_speed[g] = cases[i].speeds[g];
        case_finish(&layer, cases[i].slots);
        plan();
        assert_null(case_problem(&layer));
        assert_true(case_imbalance(&layer) <= cases[i].optimum * (1.0 + 1e-9));
    }
}

/* Loads 1, 1, 1 on two ranks with targets 0.1 and 2.9 and two slots each: the fast one can hold two
 * experts. */
static void speeds_beyond_reach_are_proved(void **state)
{
    (void)state;
    case_init(&layer, 3, 2, 2);
    layer.rank_speed[0] = 1;
    layer.rank_speed[1] = 29;
    for (int32_t e = 0; e < 3; e++)
        layer.load[e] = 1000;
    case_refresh(&layer);
    plan();
    double expected = 1000.0 / (3000.0 / 30.0); /* the slow rank is left with one whole expert */
    assert_true(case_imbalance(&layer) < expected + 1e-9);
    assert_true(layer.answer.bound > expected - 1e-9);
}

static void keep_as_current(void)
{
    memcpy(layer.current, layer.expert, sizeof layer.current);
    layer.problem.current = layer.current;
}

/* Rank 0 holds expert 2 in a slot that it is to lose: to have it back in its empty slot is no move. */
static void what_a_rank_still_holds_is_free(void **state)
{
    (void)state;
    static const int64_t load[] = {10, 10, 100, 10};
    static const int32_t rank_slots[] = {3, 2}, current[] = {0, 1, -1, 2, 3};
    static const uint64_t cut_off[] = {1 << 2, 0};
    case_init(&layer, 4, 2, 3);
    memcpy(layer.load, load, sizeof load);
    memcpy(layer.current, current, sizeof current);
    case_finish(&layer, rank_slots);
    layer.problem.current = layer.current;
    layer.problem.max_moves = 0;
    plan();
    assert_true(case_imbalance(&layer) > 1.6);
    case_refresh(&layer);
    layer.problem.cut_off = cut_off;
    plan();
    assert_true(case_imbalance(&layer) < 1.0 + 1e-9);
}

static void node_of_each_group_is_one(void)
{
    int32_t size = layer.problem.num_experts / layer.problem.num_groups, node[64];
    for (int32_t i = 0; i < layer.problem.num_groups; i++)
        node[i] = -1;
    for (int32_t s = 0; s < layer.problem.num_slots; s++) {
        int32_t *home = &node[layer.expert[s] / size], here = layer.rank_node[layer.slot_rank[s]];
        assert_true(*home < 0 || *home == here);
        *home = here;
    }
}

/* A rank without slots serves nothing for its node: four groups of two, the first node has one rank. */
static void idle_ranks_do_not_speed_their_node_up(void **state)
{
    (void)state;
    static const int64_t load[8] = {7, 27, 1, 5, 74, 1000, 62, 91};
    static const int32_t slots[4] = {0, 4, 4, 4};
    case_init(&layer, 8, 4, 4);
    for (int32_t e = 0; e < 8; e++)
        layer.load[e] = load[e];
    case_finish(&layer, slots);
    case_nodes(&layer, 2, 4);
    plan();
    node_of_each_group_is_one();
    assert_true(case_imbalance(&layer) < 1.70482); /* the optimum, by an integer program */
}

static void groups_stay_on_nodes_and_reach_the_floor(void **state)
{
    (void)state;
    random_state random = random_seed(5);
    double ours = 0.0, theirs = 0.0;
    for (int n = 0; n < 50; n++) {
        case_init(&layer, 256, 32, 9);
        case_nodes(&layer, 8, 8);
        for (int32_t e = 0; e < 256; e++)
            layer.load[e] = 1 + 100000 / (1 + random_below(&random, 2000));
        case_refresh(&layer);
        plan();
        node_of_each_group_is_one();
        assert_true(case_imbalance(&layer) <= layer.answer.bound * (1.0 + 1e-12));
        ours += case_imbalance(&layer);

        float weight[256];
        int32_t slots[288], count[256];
        double rank[32] = {0.0}, worst = 0.0;
        for (int32_t e = 0; e < 256; e++)
            weight[e] = (float)layer.load[e];
        assert_int_equal(
            eplb_rebalance_experts(weight, 1, 256, 288, 8, 4, 32, slots, NULL, count, NULL, NULL), EPLB_OK);
        for (int32_t s = 0; s < 288; s++) {
            rank[s / 9] += (double)layer.load[slots[s]] / count[slots[s]];
            worst = rank[s / 9] > worst ? rank[s / 9] : worst;
        }
        worst /= (double)layer.problem.total / 32.0;
        assert_true(case_imbalance(&layer) <= worst * (1.0 + 1e-9));
        theirs += worst;
    }
    assert_true(ours < theirs);
}

/* Replicas outside the node that holds most of their group, as eplb_plan_spilled counts them. */
static int32_t count_spilled(void)
{
    int32_t size = layer.problem.num_experts / layer.problem.num_groups, spilled = 0;
    for (int32_t i = 0; i < layer.problem.num_groups; i++) {
        int32_t on_node[8] = {0}, sum = 0, most = 0;
        for (int32_t s = 0; s < layer.problem.num_slots; s++) {
            if (layer.expert[s] >= 0 && layer.expert[s] / size == i) {
                on_node[layer.rank_node[layer.slot_rank[s]]]++;
                sum++;
            }
        }
        for (int32_t n = 0; n < layer.problem.num_nodes; n++)
            most = on_node[n] > most ? on_node[n] : most;
        spilled += sum - most;
    }
    return spilled;
}

static void draw_hot_group(random_state *random)
{
    case_init(&layer, 256, 32, 9);
    case_nodes(&layer, 8, 8);
    for (int32_t e = 0; e < 256; e++)
        layer.load[e] = 500 + random_below(random, 1000);
    layer.load[random_below(random, 256)] = 40000; /* a node with 4 to 5 ranks' worth too much */
    case_refresh(&layer);
}

static void a_few_spilled_replicas_lower_the_floor_of_nodes(void **state)
{
    (void)state;
    random_state random = random_seed(13);
    for (int n = 0; n < 20; n++) {
        draw_hot_group(&random);
        plan();
        double floor = layer.answer.bound, last = floor;
        assert_true(floor > 1.2);
        for (int32_t spill = 1; spill <= 4; spill++) {
            case_refresh(&layer);
            layer.problem.max_spill = spill;
            plan();
            assert_in_range(count_spilled(), 1, spill);
            assert_true(case_imbalance(&layer) < last);
            last = case_imbalance(&layer);
        }
        assert_true(last - 1.0 < 0.4 * (floor - 1.0));
    }
}

/* What was spilled may stay, nothing is added, and moves keep the limit. */
static void repair_keeps_spilled_replicas(void **state)
{
    (void)state;
    random_state random = random_seed(14);
    draw_hot_group(&random);
    layer.problem.max_spill = 3;
    plan();
    int32_t spilled = count_spilled();
    keep_as_current();
    for (int32_t e = 0; e < 256; e++)
        layer.load[e] = layer.load[e] * (90 + random_below(&random, 20)) / 100;
    case_refresh(&layer);
    layer.problem.max_moves = 0;
    plan();
    double kept = case_imbalance(&layer);
    layer.problem.max_moves = 6;
    plan();
    assert_true(case_imbalance(&layer) <= kept);
    assert_in_range(case_received(&layer), 0, 6);
    assert_in_range(count_spilled(), 0, spilled);
}

static void groups_that_do_not_fit_are_placed_anyway(void **state)
{
    (void)state;
    random_state random = random_seed(6);
    static const int32_t rank_slots[] = {5, 5, 2, 2};
    case_init(&layer, 12, 4, 5);
    layer.problem.num_nodes = 2;
    layer.problem.num_groups = 2;
    layer.rank_node[2] = layer.rank_node[3] = 1;
    case_finish(&layer, rank_slots);
    draw(&random, 100);
    plan();
    assert_non_null(strstr(layer.answer.reason, "do not fit"));
}

static void shares_alone_follow_a_small_drift(void **state)
{
    (void)state;
    random_state random = random_seed(7);
    case_init(&layer, 64, 16, 6);
    for (int32_t e = 0; e < 64; e++)
        layer.load[e] = 1000 + random_below(&random, 3000);
    case_refresh(&layer);
    plan();
    keep_as_current();
    for (int32_t e = 0; e < 64; e++)
        layer.load[e] += random_below(&random, 200);
    case_refresh(&layer);
    plan();
    assert_int_equal(case_received(&layer), 0);
    assert_memory_equal(layer.expert, layer.current, (size_t)layer.problem.num_slots * sizeof(int32_t));
    assert_true(case_imbalance(&layer) < 1.0 + 1e-9);
    assert_non_null(strstr(layer.answer.reason, "nothing moves"));
}

static void draw_drift(random_state *random)
{
    case_init(&layer, 256, 32, 9);
    for (int32_t e = 0; e < 256; e++)
        layer.load[e] = 500 + random_below(random, 4000);
    case_refresh(&layer);
    plan();
    keep_as_current();
    for (int32_t e = 0; e < 256; e++)
        layer.load[e] = layer.load[e] * (70 + random_below(random, 60)) / 100;
    case_refresh(&layer);
}

static void few_moves_repair_a_drift(void **state)
{
    (void)state;
    random_state random = random_seed(8);
    double kept = 0.0, four = 0.0, all = 0.0;
    int64_t received = 0;
    for (int n = 0; n < 10; n++) {
        draw_drift(&random);
        layer.problem.max_moves = 0;
        plan();
        assert_int_equal(case_received(&layer), 0);
        kept += case_imbalance(&layer) - 1.0;
        layer.problem.max_moves = 4;
        plan();
        assert_in_range(case_received(&layer), 0, 4);
        four += case_imbalance(&layer) - 1.0;
        layer.problem.max_moves = INT64_MAX;
        plan();
        all += case_imbalance(&layer) - 1.0;
        received += case_received(&layer);
    }
    assert_true(four < 0.25 * kept);
    assert_true(all < 0.001);
    assert_true(received < 10 * 20);
}

/* With few spare slots, or none, experts have to change places; equal shares are shares, too. */
static void limited_repair_is_never_worse_than_with_equal_shares(void **state)
{
    (void)state;
    random_state random = random_seed(12);
    for (int n = 0; n < 40; n++) {
        int32_t ranks = 4 << random_below(&random, 3), slots = 2 + (int32_t)random_below(&random, 6);
        case_init(&layer, ranks * slots - (int32_t)random_below(&random, (uint32_t)ranks), ranks, slots);
        draw(&random, 1000);
        plan();
        keep_as_current();
        for (int32_t e = 0; e < layer.problem.num_experts; e++)
            layer.load[e] = layer.load[e] * (30 + random_below(&random, 140)) / 100;
        case_refresh(&layer);
        for (int64_t moves = 1; moves <= 16; moves *= 2) {
            layer.problem.max_moves = moves;
            plan();
            double weighted = case_imbalance(&layer);
            assert_in_range(case_received(&layer), 0, moves);
            layer.problem.split = EPLB_SPLIT_EQUAL;
            eplb_error error;
            memset(layer.quota, 0, sizeof layer.quota);
            assert_int_equal(plan_layer_equal(&layer.problem, &scratch, &layer.answer, &error), EPLB_OK);
            assert_true(weighted <= case_imbalance(&layer) * (1.0 + 1e-9));
            layer.problem.split = EPLB_SPLIT_WEIGHTED;
        }
    }
}

static void a_target_stops_the_moves(void **state)
{
    (void)state;
    random_state random = random_seed(9);
    draw_drift(&random);
    plan();
    int64_t all = case_received(&layer);
    layer.problem.target_imbalance = 1.02;
    plan();
    assert_true(case_imbalance(&layer) <= 1.02 + 1e-9);
    assert_true(case_received(&layer) < all);
}

static void lost_experts_need_moves_or_are_listed(void **state)
{
    (void)state;
    random_state random = random_seed(10);
    case_init(&layer, 40, 8, 6);
    draw(&random, 1000);
    plan();
    keep_as_current();
    for (int32_t s = 0; s < layer.problem.num_slots; s++)
        layer.current[s] = layer.current[s] == 17 || layer.current[s] == 30 ? -1 : layer.current[s];
    eplb_error error;
    frontier_point points[4];
    int32_t num_points;
    for (int64_t moves = 0; moves < 2; moves++) {
        layer.problem.max_moves = moves;
        assert_int_equal(plan_layer_weighted(&layer.problem, &scratch, &layer.answer, &error),
                         EPLB_ERROR_INFEASIBLE);
        assert_non_null(strstr(error.text, "holds 17, 30"));
        assert_int_equal(plan_frontier_weighted(&layer.problem, &scratch, points, 4, &num_points, &error),
                         EPLB_ERROR_INFEASIBLE);
    }
    layer.problem.max_moves = 2;
    plan();
    assert_int_equal(case_received(&layer), 2);
}

static void a_current_placement_with_duplicates_is_mended(void **state)
{
    (void)state;
    case_init(&layer, 4, 2, 4);
    for (int32_t e = 0; e < 4; e++)
        layer.load[e] = 10;
    case_refresh(&layer);
    static const int32_t current[] = {0, 0, 1, 1, 2, 2, 3, 3};
    memcpy(layer.current, current, sizeof current);
    layer.problem.current = layer.current;
    plan();
    assert_true(case_imbalance(&layer) < 1.0 + 1e-9);
    assert_int_equal(case_received(&layer), 0);
}

/* The flow has no capacity for the largest number of all: loads are scaled down before it. */
static void the_largest_total_is_repaired(void **state)
{
    (void)state;
    case_init(&layer, 1, 1, 3);
    layer.load[0] = INT64_MAX;
    case_refresh(&layer);
    layer.problem.current = layer.current; /* expert 0 three times */
    plan();
    assert_int_equal(case_received(&layer), 0);
    case_init(&layer, 4, 2, 3);
    for (int32_t e = 0; e < 4; e++)
        layer.load[e] = INT64_MAX / 4 - e;
    case_refresh(&layer);
    static const int32_t current[] = {0, 1, 2, 2, 3, 1};
    memcpy(layer.current, current, sizeof current);
    layer.problem.current = layer.current;
    plan();
    assert_true(case_imbalance(&layer) < 1.0 + 1e-12);
}

static void the_frontier_falls_with_moves(void **state)
{
    (void)state;
    random_state random = random_seed(11);
    draw_drift(&random);
    frontier_point points[64];
    int32_t count = 0;
    assert_int_equal(plan_frontier_weighted(&layer.problem, &scratch, points, 64, &count, NULL), EPLB_OK);
    assert_true(count >= 3);
    assert_int_equal(points[0].moves, 0);
    for (int32_t i = 1; i < count; i++) {
        assert_true(points[i].moves > points[i - 1].moves);
        assert_true(points[i].imbalance < points[i - 1].imbalance);
    }
    layer.problem.max_moves = points[count - 1].moves;
    plan();
    assert_true(case_imbalance(&layer) <= points[count - 1].imbalance + 1e-9);
}

/* The least imbalance of a frontier within so many moves. */
static double within(const frontier_point *points, int32_t count, int64_t moves)
{
    double least = HUGE_VAL;
    for (int32_t i = 0; i < count && points[i].moves <= moves; i++)
        least = points[i].imbalance;
    return least;
}

/* Where there is hardly anything to share the frontier is no higher than that for equal shares. */
static void the_frontier_knows_equal_shares(void **state)
{
    (void)state;
    random_state random = random_seed(14);
    for (int n = 0; n < 6; n++) {
        frontier_point points[64], equal[64];
        int32_t count, num_equal;
        case_init(&layer, 78, 16, 5);
        draw(&random, 1000);
        plan();
        keep_as_current();
        for (int32_t e = 0; e < layer.problem.num_experts; e++)
            layer.load[e] = layer.load[e] * (30 + random_below(&random, 140)) / 100;
        case_refresh(&layer);
        layer.problem.max_moves = 20;
        assert_int_equal(plan_frontier_weighted(&layer.problem, &scratch, points, 64, &count, NULL), EPLB_OK);
        layer.problem.split = EPLB_SPLIT_EQUAL;
        assert_int_equal(plan_frontier_equal(&layer.problem, &scratch, equal, 64, &num_equal, NULL), EPLB_OK);
        layer.problem.split = EPLB_SPLIT_WEIGHTED;
        assert_int_equal(points[0].moves, 0);
        for (int64_t moves = 0; moves <= 20; moves++)
            assert_true(within(points, count, moves) <= within(equal, num_equal, moves) * (1.0 + 1e-9));
        for (int32_t i = 1; i < count; i++) {
            assert_true(points[i].moves > points[i - 1].moves);
            assert_true(points[i].imbalance < points[i - 1].imbalance);
        }
    }
}

static void the_same_input_gives_the_same_bytes(void **state)
{
    (void)state;
    random_state random = random_seed(12);
    int32_t expert[CASE_SLOTS];
    int64_t quota[CASE_SLOTS];
    draw_drift(&random);
    plan();
    memcpy(expert, layer.expert, sizeof expert);
    memcpy(quota, layer.quota, sizeof quota);
    case_refresh(&layer);
    plan();
    assert_memory_equal(expert, layer.expert, (size_t)layer.problem.num_slots * sizeof *expert);
    assert_memory_equal(quota, layer.quota, (size_t)layer.problem.num_slots * sizeof *quota);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spare_slots_enough_means_exact),
        cmocka_unit_test(equal_split_and_other_costs_are_refused),
        cmocka_unit_test(a_dominant_expert_without_spare_slots_is_proved),
        cmocka_unit_test(uneven_slots_are_exact_where_they_differ_by_one),
        cmocka_unit_test(a_rank_without_slots_is_in_the_bound),
        cmocka_unit_test(never_worse_than_equal_shares),
        cmocka_unit_test(a_spare_replica_is_exchanged),
        cmocka_unit_test(similar_speeds_are_exact),
        cmocka_unit_test(kicks_lead_out_of_local_optima),
        cmocka_unit_test(speeds_beyond_reach_are_proved),
        cmocka_unit_test(what_a_rank_still_holds_is_free),
        cmocka_unit_test(idle_ranks_do_not_speed_their_node_up),
        cmocka_unit_test(groups_stay_on_nodes_and_reach_the_floor),
        cmocka_unit_test(a_few_spilled_replicas_lower_the_floor_of_nodes),
        cmocka_unit_test(repair_keeps_spilled_replicas),
        cmocka_unit_test(groups_that_do_not_fit_are_placed_anyway),
        cmocka_unit_test(shares_alone_follow_a_small_drift),
        cmocka_unit_test(few_moves_repair_a_drift),
        cmocka_unit_test(limited_repair_is_never_worse_than_with_equal_shares),
        cmocka_unit_test(a_target_stops_the_moves),
        cmocka_unit_test(lost_experts_need_moves_or_are_listed),
        cmocka_unit_test(a_current_placement_with_duplicates_is_mended),
        cmocka_unit_test(the_largest_total_is_repaired),
        cmocka_unit_test(the_frontier_falls_with_moves),
        cmocka_unit_test(the_frontier_knows_equal_shares),
        cmocka_unit_test(the_same_input_gives_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
