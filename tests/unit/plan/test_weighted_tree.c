/* The tree: every rank at the mean, in exact integers, for every kind of load; spare slots as an expander. */
#include "../../layer_case.h"
#include "../../testing.h"
#include "base/random.h"
#include "plan/min_max_split.h"
#include "plan/sort_loads.h"
#include "plan/weighted.h"

static layer_case layer;
static int32_t ranks[CASE_RANKS], order[CASE_EXPERTS];

static weighted_part whole(arena *scratch)
{
    const layer_problem *p = &layer.problem;
    for (int32_t g = 0; g < p->num_ranks; g++)
        ranks[g] = g;
    assert_true(sort_loads(layer.load, NULL, p->num_experts, order, scratch));
    return (weighted_part){.num_ranks = p->num_ranks,
                           .ranks = ranks,
                           .num_experts = p->num_experts,
                           .experts = order,
                           .total = p->total,
                           .min_slots = p->uniform_slots,
                           .num_slots = p->num_slots};
}

/* Shares are exact fractions: quotas of an expert sum to unit * load, those of a rank to floor or ceil of the
 * mean. */
static void check_exact(int64_t unit)
{
    int64_t sum[CASE_EXPERTS] = {0};
    const layer_problem *p = &layer.problem;
    assert_null(case_problem(&layer));
    for (int32_t g = 0; g < p->num_ranks; g++) {
        int64_t rank = 0;
        for (int32_t s = layer.first_slot[g]; s < layer.first_slot[g + 1]; s++) {
            rank += layer.quota[s];
            if (layer.expert[s] >= 0)
                sum[layer.expert[s]] += layer.quota[s];
        }
        int64_t mean = p->total * unit / p->num_ranks;
        assert_true(rank == mean || (p->total * unit % p->num_ranks != 0 && rank == mean + 1));
    }
    for (int32_t e = 0; e < p->num_experts; e++)
        assert_int_equal(sum[e], layer.load[e] * unit);
}

static void plan_and_check(int64_t unit, arena *scratch)
{
    case_refresh(&layer);
    weighted_part part = whole(scratch);
    assert_true(weighted_tree_fits(&part));
    assert_true(weighted_tree(&layer.problem, &part, unit, scratch, &layer.answer));
    check_exact(unit);
    assert_true(weighted_expander(&layer.problem, &part, scratch, &layer.answer));
    check_exact(unit);
}

static void draw_load(random_state *random, int kind)
{
    for (int32_t e = 0; e < layer.problem.num_experts; e++) {
        int64_t draw = random_below(random, 1000);
        switch (kind) {
        case 0: /* even */
            layer.load[e] = draw;
            break;
        case 1: /* sparse */
            layer.load[e] = random_below(random, 5) == 0 ? draw : 0;
            break;
        case 2: /* heavy-tailed */
            layer.load[e] = INT64_C(1000000000000) / (1 + draw * draw * draw);
            break;
        case 3: /* one hot */
            layer.load[e] = e == 0 ? 1000000 : draw / 400;
            break;
        default: /* ties */
            layer.load[e] = 7;
            break;
        }
    }
}

static void every_load_is_exact(void **state)
{
    (void)state;
    random_state random = random_seed(11);
    arena scratch;
    arena_init(&scratch, NULL);
    for (int n = 0; n < 20000; n++) {
        int32_t g = 1 + (int32_t)random_below(&random, 12), k = 1 + (int32_t)random_below(&random, 7);
        int32_t most = g * k - g + 1;
        int32_t experts =
            random_below(&random, 2) == 0 ? most : 1 + (int32_t)random_below(&random, (uint32_t)most);
        case_init(&layer, experts, g, k);
        draw_load(&random, n % 5);
        plan_and_check(g, &scratch);
        plan_and_check(1, &scratch); /* whole tokens */
    }
    arena_destroy(&scratch);
}

static void large_shapes_are_exact(void **state)
{
    static const int32_t shapes[][3] = {{256, 32, 9}, {256, 64, 5},  {64, 8, 9},
                                        {64, 16, 5},  {128, 128, 2}, {512, 64, 9}};
    (void)state;
    random_state random = random_seed(12);
    arena scratch;
    arena_init(&scratch, NULL);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int kind = 0; kind < 5; kind++) {
            case_init(&layer, shapes[i][0], shapes[i][1], shapes[i][2]);
            draw_load(&random, kind);
            plan_and_check(shapes[i][1], &scratch);
        }
    }
    arena_destroy(&scratch);
}

/* The product of total and ranks leaves int64: targets then differ by one unit, still far below 1e-12. */
static void totals_near_the_limit_keep_the_mean(void **state)
{
    (void)state;
    arena scratch;
    arena_init(&scratch, NULL);
    case_init(&layer, 9, 3, 4);
    for (int32_t e = 0; e < 9; e++)
        layer.load[e] = INT64_MAX / 9 - e * INT64_C(77777777777777);
    case_refresh(&layer);
    int64_t unit = weighted_unit(layer.problem.total, 3);
    assert_int_equal(unit, 1);
    plan_and_check(unit, &scratch);
    assert_true(case_imbalance(&layer) < 1.0 + 1e-12);
    assert_int_equal(weighted_unit(0, 3), 3);
    assert_int_equal(weighted_unit(1000, 3), 3);
    arena_destroy(&scratch);
}

static void without_load_replicas_spread(void **state)
{
    (void)state;
    arena scratch;
    arena_init(&scratch, NULL);
    case_init(&layer, 8, 4, 4);
    plan_and_check(4, &scratch);
    int32_t count[8] = {0};
    for (int32_t s = 0; s < 16; s++) {
        assert_true(layer.expert[s] >= 0);
        count[layer.expert[s]]++;
    }
    for (int32_t e = 0; e < 8; e++)
        assert_in_range(count[e], 1, 3);
    arena_destroy(&scratch);
}

/* Least maximum over the placement when load is split anew, over the mean. */
static double resplit(const int64_t *load, arena *scratch)
{
    const layer_problem *p = &layer.problem;
    arena_mark mark = arena_position(scratch);
    weighted_shares shares;
    layer_problem drifted = *p;
    drifted.load = load;
    drifted.total = 0;
    for (int32_t e = 0; e < p->num_experts; e++)
        drifted.total += load[e];
    assert_true(weighted_shares_init(&shares, &drifted, scratch));
    assert_true(weighted_shares_solve(&shares, layer.expert, NULL, scratch));
    double imbalance = weighted_shares_imbalance(&shares);
    arena_rewind(scratch, mark);
    return imbalance;
}

/* Spare slots given to the experts with the most load per replica, as peers do. */
static void fill_with_duplicates(void)
{
    int32_t count[CASE_EXPERTS] = {0};
    for (int32_t s = 0; s < layer.problem.num_slots; s++) {
        if (layer.expert[s] >= 0)
            count[layer.expert[s]]++;
    }
    for (int32_t s = 0; s < layer.problem.num_slots; s++) {
        if (layer.expert[s] >= 0)
            continue;
        int32_t best = -1;
        for (int32_t e = 0; e < layer.problem.num_experts; e++) {
            if (case_rank_holds(&layer, layer.expert, layer.slot_rank[s], e))
                continue;
            if (best < 0 || layer.load[e] * count[best] > layer.load[best] * count[e])
                best = e;
        }
        layer.expert[s] = best;
        count[best]++;
    }
}

static void the_expander_absorbs_more_drift_than_duplicates(void **state)
{
    (void)state;
    random_state random = random_seed(13);
    arena scratch;
    arena_init(&scratch, NULL);
    double duplicates = 0.0, expander = 0.0;
    for (int n = 0; n < 20; n++) {
        int64_t drifted[CASE_EXPERTS];
        case_init(&layer, 64, 16, 6);
        for (int32_t e = 0; e < 64; e++) {
            layer.load[e] = 1000 + random_below(&random, 4000);
            drifted[e] = layer.load[e] * (60 + random_below(&random, 80)) / 100;
        }
        case_refresh(&layer);
        weighted_part part = whole(&scratch);
        assert_true(weighted_tree(&layer.problem, &part, 16, &scratch, &layer.answer));
        int32_t tree[CASE_SLOTS];
        memcpy(tree, layer.expert, sizeof tree);
        fill_with_duplicates();
        duplicates += resplit(drifted, &scratch);
        memcpy(layer.expert, tree, sizeof tree);
        assert_true(weighted_expander(&layer.problem, &part, &scratch, &layer.answer));
        expander += resplit(drifted, &scratch);
    }
    assert_true(expander - 20.0 < 0.5 * (duplicates - 20.0));
    arena_destroy(&scratch);
}

/* A rank that has all of its part, and another's expert beside them, keeps its other slots empty. */
static void the_expander_ends_where_nothing_is_left(void **state)
{
    (void)state;
    static const int32_t held[5] = {0, 14, 15, -1, -1};
    int32_t only[1] = {0}, own[2] = {14, 15};
    weighted_part part = {.ranks = only, .num_ranks = 1, .experts = own, .num_experts = 2};
    arena scratch;
    arena_init(&scratch, NULL);
    case_init(&layer, 16, 2, 5);
    memcpy(layer.expert, held, sizeof held);
    layer.quota[0] = -1;
    assert_true(weighted_expander(&layer.problem, &part, &scratch, &layer.answer));
    assert_memory_equal(layer.expert, held, sizeof held);
    arena_destroy(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_load_is_exact),
        cmocka_unit_test(large_shapes_are_exact),
        cmocka_unit_test(totals_near_the_limit_keep_the_mean),
        cmocka_unit_test(without_load_replicas_spread),
        cmocka_unit_test(the_expander_absorbs_more_drift_than_duplicates),
        cmocka_unit_test(the_expander_ends_where_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
