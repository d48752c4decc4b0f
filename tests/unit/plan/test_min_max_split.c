/* The exact min-max split against two independent references: the cut formula over all sets of ranks, and a
 * general max-flow with bisection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "base/random.h"
#include "plan/min_max_split.h"
#include "reference/max_flow.h"

#define MAX_E 64
#define MAX_G 40
#define MAX_S 256

typedef struct instance {
    int32_t num_experts;
    int32_t num_ranks;
    int32_t first[MAX_E + 1];
    int32_t rank[MAX_S];
    int64_t load[MAX_E];
    int32_t speed[MAX_G];
    int has_speed;
} instance;

typedef struct solution {
    int64_t quota[MAX_S];
    int64_t rank_load[MAX_G];
    uint8_t tight[MAX_G];
    min_max_result result;
} solution;

static instance draw(random_state *random, uint32_t max_experts, uint32_t max_ranks, uint32_t max_load,
                     int has_speed)
{
    instance x = {.num_experts = (int32_t)(1 + random_below(random, max_experts)),
                  .num_ranks = (int32_t)(1 + random_below(random, max_ranks)),
                  .has_speed = has_speed};
    for (int32_t e = 0; e < x.num_experts; e++) {
        uint32_t replicas = random_below(random, 3) > 0 ? 1 : 1 + random_below(random, 4);
        x.first[e + 1] = x.first[e] + (int32_t)replicas;
        for (int32_t i = x.first[e]; i < x.first[e + 1]; i++)
            x.rank[i] = (int32_t)random_below(random, (uint32_t)x.num_ranks);
        uint32_t kind = random_below(random, 8);
        x.load[e] = kind == 0 ? 0 : (int64_t)random_below(random, kind == 1 ? 8 * max_load : max_load);
    }
    for (int32_t g = 0; g < x.num_ranks; g++)
        x.speed[g] = (int32_t)(1 + random_below(random, 5));
    return x;
}

static void solve(const instance *x, const int64_t *warm, int exact, arena *scratch, solution *s)
{
    min_max_graph graph;
    arena_mark mark = arena_position(scratch);
    assert_true(min_max_graph_init(&graph, x->num_experts, x->num_ranks, x->first, x->rank,
                                   x->has_speed ? x->speed : NULL, scratch));
    s->result = (min_max_result){.quota = s->quota, .rank_load = s->rank_load, .tight_rank = s->tight};
    assert_true(min_max_split(&graph, x->load, warm, exact != 0, scratch, &s->result));
    arena_rewind(scratch, mark);
}

static int64_t speed_of(const instance *x, int32_t g)
{
    return x->has_speed ? x->speed[g] : 1;
}

/* Conservation, rank loads, and that max_load / max_speed is really the maximum allowed. */
static void check_split(const instance *x, const solution *s)
{
    int64_t rank_load[MAX_G] = {0};
    for (int32_t e = 0; e < x->num_experts; e++) {
        int64_t sum = 0;
        for (int32_t i = x->first[e]; i < x->first[e + 1]; i++) {
            assert_true(s->quota[i] >= 0);
            sum += s->quota[i];
            rank_load[x->rank[i]] += s->quota[i];
        }
        assert_int_equal(sum, x->load[e]);
    }
    int reached = 0;
    for (int32_t g = 0; g < x->num_ranks; g++) {
        assert_int_equal(rank_load[g], s->rank_load[g]);
        int order = fraction_compare(rank_load[g], speed_of(x, g), s->result.max_load, s->result.max_speed);
        assert_true(order <= 0);
        reached |= order == 0;
    }
    assert_true(reached);
}

/* The certificate read back: experts that live only on the tight ranks carry bound_load. */
static void check_certificate(const instance *x, const solution *s)
{
    int64_t load = 0, speed = 0;
    for (int32_t g = 0; g < x->num_ranks; g++)
        speed += s->tight[g] ? speed_of(x, g) : 0;
    for (int32_t e = 0; e < x->num_experts; e++) {
        int inside = 1;
        for (int32_t i = x->first[e]; i < x->first[e + 1]; i++)
            inside &= s->tight[x->rank[i]];
        load += inside ? x->load[e] : 0;
    }
    assert_int_equal(load, s->result.bound_load);
    assert_int_equal(speed, s->result.bound_speed);
}

/* Load of the experts inside each set of ranks: zeta transform over subsets. */
static void inner_load(const instance *x, int64_t *inside)
{
    uint32_t sets = 1u << x->num_ranks;
    memset(inside, 0, sets * sizeof *inside);
    for (int32_t e = 0; e < x->num_experts; e++) {
        uint32_t mask = 0;
        for (int32_t i = x->first[e]; i < x->first[e + 1]; i++)
            mask |= 1u << x->rank[i];
        inside[mask] += x->load[e];
    }
    for (int32_t g = 0; g < x->num_ranks; g++) {
        for (uint32_t set = 0; set < sets; set++) {
            if (set & (1u << g))
                inside[set] += inside[set ^ (1u << g)];
        }
    }
}

static void test_equals_cut_formula(void **state)
{
    (void)state;
    static int64_t inside[1u << 12];
    random_state random = random_seed(11);
    arena scratch;
    arena_init(&scratch, NULL);
    for (int round = 0; round < 4000; round++) {
        instance x = draw(&random, 24, 10, round % 2 != 0 ? 9 : 100000, 0);
        solution s;
        solve(&x, NULL, 1, &scratch, &s);
        check_split(&x, &s);
        check_certificate(&x, &s);
        inner_load(&x, inside);
        int64_t best_load = 0, best_speed = 1;
        for (uint32_t set = 1; set < 1u << x.num_ranks; set++) {
            int64_t size = __builtin_popcount(set);
            if (fraction_compare(inside[set], size, best_load, best_speed) > 0) {
                best_load = inside[set];
                best_speed = size;
            }
        }
        assert_true(s.result.bound_exact);
        assert_int_equal(fraction_compare(s.result.bound_load, s.result.bound_speed, best_load, best_speed),
                         0);
        assert_int_equal(s.result.max_load, best_load / best_speed + (best_load % best_speed != 0));
        assert_int_equal(s.result.max_speed, 1);
    }
    arena_destroy(&scratch);
}

/* With speeds the least level is a candidate n / speed; each is tested by Hall's condition over all sets. */
static void test_speeds_are_integer_optimal(void **state)
{
    (void)state;
    static int64_t inside[1u << 12];
    random_state random = random_seed(12);
    arena scratch;
    arena_init(&scratch, NULL);
    for (int round = 0; round < 1500; round++) {
        instance x = draw(&random, 12, 6, 30, 1);
        solution s;
        solve(&x, NULL, round % 2, &scratch, &s);
        check_split(&x, &s);
        check_certificate(&x, &s);
        inner_load(&x, inside);
        /* Is there a level strictly below? Capacities one step lower: the largest n with n / speed < the
         * level. */
        int fits = 1;
        for (uint32_t set = 1; set < 1u << x.num_ranks; set++) {
            int64_t room = 0;
            for (int32_t g = 0; g < x.num_ranks; g++) {
                int64_t top = s.result.max_load * x.speed[g];
                room += set & (1u << g) ? (top + s.result.max_speed - 1) / s.result.max_speed - 1 : 0;
            }
            fits &= inside[set] <= room;
        }
        assert_false(fits && s.result.max_load > 0);
        for (uint32_t set = 1; round % 2 != 0 && set < 1u << x.num_ranks; set++) {
            int64_t speed = 0;
            for (int32_t g = 0; g < x.num_ranks; g++)
                speed += set & (1u << g) ? x.speed[g] : 0;
            assert_true(fraction_compare(inside[set], speed, s.result.bound_load, s.result.bound_speed) <= 0);
        }
    }
    arena_destroy(&scratch);
}

static void test_equals_max_flow(void **state)
{
    (void)state;
    random_state random = random_seed(13);
    arena scratch;
    arena_init(&scratch, NULL);
    for (int round = 0; round < 60; round++) {
        instance x = draw(&random, MAX_E, MAX_G, 5000, 0);
        solution s;
        solve(&x, NULL, 0, &scratch, &s);
        check_split(&x, &s);
        check_certificate(&x, &s);
        assert_int_equal(s.result.max_load,
                         max_flow_min_max(x.num_experts, x.num_ranks, x.first, x.rank, x.load));
    }
    arena_destroy(&scratch);
}

/* A warm start changes which optimal split comes out, never its maximum. Rubbish is a legal start. */
static void test_warm_start_reaches_the_same(void **state)
{
    (void)state;
    random_state random = random_seed(14);
    arena scratch;
    arena_init(&scratch, NULL);
    for (int round = 0; round < 1000; round++) {
        instance x = draw(&random, 40, 20, 2000, round % 3 == 0);
        solution cold, warm;
        solve(&x, NULL, 0, &scratch, &cold);
        int64_t hint[MAX_S];
        memcpy(hint, cold.quota, sizeof hint);
        for (int32_t i = 0; i < x.first[x.num_experts]; i++) {
            uint32_t kind = random_below(&random, 10);
            hint[i] = kind == 0 ? INT64_MAX : kind == 1 ? 0 : hint[i] + random_below(&random, 50);
        }
        solve(&x, hint, 0, &scratch, &warm);
        check_split(&x, &warm);
        assert_int_equal(fraction_compare(cold.result.max_load, cold.result.max_speed, warm.result.max_load,
                                          warm.result.max_speed),
                         0);
    }
    arena_destroy(&scratch);
}

/* Loads near the top of int64 neither overflow nor lose the integer optimum. */
static void test_large_loads(void **state)
{
    (void)state;
    arena scratch;
    arena_init(&scratch, NULL);
    instance x = {.num_experts = 3, .num_ranks = 3, .first = {0, 3, 4, 5}, .rank = {0, 1, 2, 0, 1}};
    x.load[0] = INT64_MAX / 2;
    x.load[1] = INT64_MAX / 4;
    x.load[2] = 7;
    solution s;
    solve(&x, NULL, 1, &scratch, &s);
    check_split(&x, &s);
    check_certificate(&x, &s);
    int64_t total = x.load[0] + x.load[1] + x.load[2];
    assert_int_equal(s.result.max_load, total / 3 + (total % 3 != 0));
    for (int32_t g = 0; g < 3; g++)
        x.speed[g] = g == 0 ? 1 : 1000000;
    x.has_speed = 1;
    solve(&x, NULL, 1, &scratch, &s);
    check_split(&x, &s);
    arena_destroy(&scratch);
}

/* All that int64 holds on an expert of one rank: the level is the largest number there is, and is reached. */
static void test_largest_total(void **state)
{
    (void)state;
    arena scratch;
    arena_init(&scratch, NULL);
    random_state random = random_seed(16);
    for (int round = 0; round < 600; round++) {
        instance x = draw(&random, 8, 4, 50, round % 2);
        int64_t left = INT64_MAX;
        for (int32_t e = 0; e < x.num_experts; e++)
            left -= x.load[e];
        x.load[random_below(&random, (uint32_t)x.num_experts)] += left;
        solution cold, warm;
        solve(&x, NULL, round % 3 == 0, &scratch, &cold);
        check_split(&x, &cold);
        if (round % 3 != 0)
            check_certificate(&x, &cold);
        int64_t hint[MAX_S];
        memcpy(hint, cold.quota, sizeof hint);
        x.load[0] -= x.load[0] > 0;
        solve(&x, hint, 0, &scratch, &warm);
        check_split(&x, &warm);
    }
    instance x = {.num_experts = 4, .num_ranks = 3, .first = {0, 1, 3, 5, 6}, .rank = {0, 0, 2, 1, 2, 1}};
    x.load[0] = INT64_MAX;
    solution s;
    solve(&x, NULL, 1, &scratch, &s);
    check_split(&x, &s);
    check_certificate(&x, &s);
    assert_int_equal(s.result.max_load, INT64_MAX);
    arena_destroy(&scratch);
}

static void test_empty_cases(void **state)
{
    (void)state;
    arena scratch;
    arena_init(&scratch, NULL);
    instance x = {.num_experts = 3, .num_ranks = 2, .first = {0, 0, 2, 2}, .rank = {1, 1}};
    solution s;
    solve(&x, NULL, 1, &scratch, &s);
    check_split(&x, &s);
    assert_int_equal(s.result.max_load, 0);
    x.load[1] = 5;
    solve(&x, NULL, 1, &scratch, &s);
    check_split(&x, &s);
    assert_int_equal(s.result.max_load, 5);
    assert_int_equal(s.quota[0], 5);
    assert_int_equal(s.quota[1], 0);
    uint8_t tight_expert[3];
    min_max_graph graph;
    assert_true(min_max_graph_init(&graph, 3, 2, x.first, x.rank, NULL, &scratch));
    min_max_tight_experts(&graph, s.tight, tight_expert);
    assert_int_equal(tight_expert[0], 0);
    assert_int_equal(tight_expert[1], 1);
    arena_destroy(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_cut_formula), cmocka_unit_test(test_speeds_are_integer_optimal),
        cmocka_unit_test(test_equals_max_flow),    cmocka_unit_test(test_warm_start_reaches_the_same),
        cmocka_unit_test(test_large_loads),        cmocka_unit_test(test_largest_total),
        cmocka_unit_test(test_empty_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
