/* Up to two slots a rank: the places against every way to deal, the counts against every way to count. */
#include "../../allocator.h"
#include "../../layer_case.h"
#include "../../testing.h"
#include "base/random.h"
#include "plan/pair_counts.h"

enum { MOST_RANKS = 5 };

/* The first `singles` ranks have one slot, the others two. */
static void draw(layer_case *c, random_state *random, int32_t experts, int32_t ranks, int32_t singles)
{
    int32_t slots[CASE_RANKS];
    case_init(c, experts, ranks, 2);
    for (int32_t e = 0; e < experts; e++)
        c->load[e] = 1 + (int64_t)random_below(random, 1000) * (1 + (int64_t)random_below(random, 8));
    for (int32_t g = 0; g < ranks; g++)
        slots[g] = g < singles ? 1 : 2;
    case_finish(c, slots);
}

static double hottest(const layer_case *c, const replica_work *work, const int32_t *count,
                      const int32_t *expert)
{
    double most = 0;
    for (int32_t g = 0; g < c->problem.num_ranks; g++) {
        double load = 0;
        for (int32_t s = c->first_slot[g]; s < c->first_slot[g + 1]; s++)
            load += replica_work_at(work, expert[s], count[expert[s]]);
        most = load > most ? load : most;
    }
    return most;
}

/* Least hottest rank over all ways to deal item[n] to pairs and to so many that stay alone; an expert may
 * meet itself. */
static double least_dealt(const double *item, int32_t n, int32_t singles)
{
    if (n == 0)
        return 0;
    double least = singles > 0 ? least_dealt(item + 1, n - 1, singles - 1) : 1e300;
    if (singles > 0)
        least = item[0] > least ? item[0] : least;
    for (int32_t i = 1; i < n && n >= singles + 2; i++) {
        double rest[2 * MOST_RANKS];
        int32_t m = 0;
        for (int32_t j = 1; j < n; j++) {
            if (j != i)
                rest[m++] = item[j];
        }
        double other = least_dealt(rest, m, singles), pair = item[0] + item[i];
        double most = pair > other ? pair : other;
        least = most < least ? most : least;
    }
    return least;
}

static int32_t count_singles(const layer_case *c)
{
    return 2 * c->problem.num_ranks - c->problem.num_slots;
}

static double best_places(const layer_case *c, const replica_work *work, const int32_t *count)
{
    double item[2 * MOST_RANKS];
    int32_t n = 0;
    for (int32_t e = 0; e < c->problem.num_experts; e++) {
        for (int32_t i = 0; i < count[e]; i++)
            item[n++] = replica_work_at(work, e, count[e]);
    }
    return least_dealt(item, n, count_singles(c));
}

/* Least over all counts: `left` replicas are to be given to experts from `at` on. */
static double best_counts(const layer_case *c, const replica_work *work, int32_t *count, int32_t at,
                          int32_t left)
{
    int32_t cap = c->problem.num_ranks;
    double least = 1e300;
    if (at == c->problem.num_experts)
        return left == 0 ? best_places(c, work, count) : least;
    for (int32_t more = 0; more <= left && more < cap; more++) {
        count[at] = 1 + more;
        double value = best_counts(c, work, count, at + 1, left - more);
        least = value < least ? value : least;
    }
    count[at] = 1;
    return least;
}

static void pairs_are_the_best_for_their_counts(void **state)
{
    (void)state;
    static layer_case c;
    random_state random = random_seed(4);
    int32_t alone = 0; /* cases where no expert met itself: there the places are optimal */
    for (int32_t i = 0; i < 300; i++) {
        int32_t ranks = 2 + (int32_t)random_below(&random, MOST_RANKS - 1);
        int32_t singles = i % 2 == 0 ? 0 : (int32_t)random_below(&random, (uint32_t)ranks);
        int32_t slots = 2 * ranks - singles;
        int32_t experts = 2 + (int32_t)random_below(&random, (uint32_t)(slots - 2));
        draw(&c, &random, experts, ranks, singles);
        int32_t count[2 * MOST_RANKS], left = slots - experts;
        for (int32_t e = 0; e < experts; e++)
            count[e] = 1;
        while (left > 0) {
            int32_t e = (int32_t)random_below(&random, (uint32_t)experts);
            left -= count[e] < ranks;
            count[e] += count[e] < ranks;
        }
        arena scratch;
        replica_work work;
        bool legal;
        arena_init(&scratch, NULL);
        assert_int_equal(replica_work_init(&work, &c.problem, &scratch, NULL), EPLB_OK);
        assert_int_equal(pair_counts_place(&c.problem, &work, count, c.expert, &legal, &scratch, NULL),
                         EPLB_OK);
        if (legal) {
            assert_null(case_problem(&c));
            double least = best_places(&c, &work, count), reached = hottest(&c, &work, count, c.expert);
            assert_true(reached >= least);
            alone += reached == least;
        }
        arena_destroy(&scratch);
    }
    assert_true(alone > 200);
}

static void counts_are_mostly_the_best_on_small_layers(void **state)
{
    (void)state;
    static layer_case c;
    random_state random = random_seed(5);
    int32_t optimal = 0;
    for (int32_t i = 0; i < 40; i++) {
        int32_t ranks = 3 + (int32_t)random_below(&random, 2);
        int32_t singles = i % 2 == 0 ? 0 : (int32_t)random_below(&random, 3), slots = 2 * ranks - singles;
        int32_t experts = ranks + (int32_t)random_below(&random, (uint32_t)(slots - ranks));
        int32_t count[2 * MOST_RANKS], all[2 * MOST_RANKS], sum = 0;
        draw(&c, &random, experts, ranks, singles);
        for (int32_t e = 0; e < experts; e++)
            count[e] = all[e] = 1;
        for (int32_t left = slots - experts, e = 0; left > 0; e = (e + 1) % experts, left--)
            count[e]++;
        arena scratch;
        replica_work work;
        arena_init(&scratch, NULL);
        assert_int_equal(replica_work_init(&work, &c.problem, &scratch, NULL), EPLB_OK);
        double mean = work.least_total / ranks;
        pair_limits limits = {mean, mean, 4000};
        assert_int_equal(pair_counts_anneal(&c.problem, &work, &limits, count, &scratch, NULL), EPLB_OK);
        for (int32_t e = 0; e < experts; e++) {
            assert_in_range(count[e], 1, ranks);
            sum += count[e];
        }
        assert_int_equal(sum, slots);
        double least = best_counts(&c, &work, all, 0, slots - experts);
        optimal += best_places(&c, &work, count) == least;
        arena_destroy(&scratch);
    }
    assert_true(optimal >= 38); /* single changes do not leave every trap of three experts */
}

static void memory_may_run_out(void **state)
{
    (void)state;
    static layer_case c;
    random_state random = random_seed(6);
    draw(&c, &random, 6, 5, 0);
    eplb_status status = EPLB_ERROR_MEMORY;
    int64_t fail_at = 0;
    for (; status == EPLB_ERROR_MEMORY && fail_at < 100; fail_at++) {
        test_allocator memory = test_allocator_make(fail_at);
        eplb_allocator allocator = test_allocator_use(&memory);
        arena scratch;
        replica_work work;
        bool legal;
        int32_t count[6] = {2, 2, 2, 2, 1, 1};
        pair_limits limits = {1, 1, 10};
        arena_init(&scratch, &allocator);
        status = replica_work_init(&work, &c.problem, &scratch, NULL);
        if (status == EPLB_OK)
            status = pair_counts_anneal(&c.problem, &work, &limits, count, &scratch, NULL);
        if (status == EPLB_OK)
            status = pair_counts_place(&c.problem, &work, count, c.expert, &legal, &scratch, NULL);
        arena_destroy(&scratch);
        assert_int_equal(memory.num_live, 0);
    }
    assert_int_equal(status, EPLB_OK);
}

static void only_ranks_as_fast_of_up_to_two_slots(void **state)
{
    (void)state;
    static layer_case c;
    random_state random = random_seed(7);
    draw(&c, &random, 6, 5, 0);
    assert_true(pair_counts_apply(&c.problem));
    draw(&c, &random, 6, 5, 3);
    assert_true(pair_counts_apply(&c.problem));
    c.rank_speed[1] = 2;
    case_refresh(&c);
    assert_false(pair_counts_apply(&c.problem));
    draw(&c, &random, 10, 5, 0); /* no spare slot */
    assert_false(pair_counts_apply(&c.problem));
    case_init(&c, 6, 5, 3);
    assert_false(pair_counts_apply(&c.problem));
    case_init(&c, 1, 2, 2); /* slots that nobody can use */
    assert_false(pair_counts_apply(&c.problem));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_the_best_for_their_counts),
        cmocka_unit_test(counts_are_mostly_the_best_on_small_layers),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(only_ranks_as_fast_of_up_to_two_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
