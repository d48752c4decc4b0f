/* A layout after any number of changes is the layout made anew from its slots; undoing restores every bit. */
#include "../../layer_case.h"
#include "../../testing.h"
#include "base/random.h"
#include "plan/layout.h"

enum { EXPERTS = 30, RANKS = 6, PER_RANK = 7, SLOTS = RANKS * PER_RANK };

static void start(layer_case *c, arena *scratch, replica_work *work, layout *seats)
{
    random_state random = random_seed(2);
    case_init(c, EXPERTS, RANKS, PER_RANK);
    for (int32_t e = 0; e < EXPERTS; e++)
        c->load[e] = random_below(&random, 100000);
    case_refresh(c);
    for (int32_t s = 0; s < SLOTS; s++)
        c->expert[s] = s == 20 ? -1 : s % EXPERTS;
    assert_int_equal(replica_work_init(work, &c->problem, scratch, NULL), EPLB_OK);
    assert_int_equal(layout_init(seats, &c->problem, work, scratch, NULL), EPLB_OK);
    layout_set(seats, c->expert);
}

static void assert_same(const layout *a, const layout *b)
{
    assert_memory_equal(a->expert, b->expert, SLOTS * sizeof *a->expert);
    assert_memory_equal(a->slot_load, b->slot_load, SLOTS * sizeof *a->slot_load);
    assert_memory_equal(a->rank_load, b->rank_load, RANKS * sizeof *a->rank_load);
    assert_memory_equal(a->sorted_load, b->sorted_load, SLOTS * sizeof *a->sorted_load);
    assert_memory_equal(a->count, b->count, EXPERTS * sizeof *a->count);
    assert_memory_equal(a->replica_load, b->replica_load, EXPERTS * sizeof *a->replica_load);
    assert_memory_equal(a->fewer_load, b->fewer_load, EXPERTS * sizeof *a->fewer_load);
    assert_memory_equal(a->more_load, b->more_load, EXPERTS * sizeof *a->more_load);
    assert_memory_equal(a->holds, b->holds, RANKS * sizeof *a->holds);
}

static void chains_are_whole(const layout *seats)
{
    for (int32_t e = 0; e < EXPERTS; e++) {
        int32_t n = 0;
        for (int32_t p = seats->first[e]; p >= 0; p = seats->next[p], n++)
            assert_int_equal(seats->expert[p], e);
        assert_int_equal(n, seats->count[e]);
    }
    for (int32_t p = 0; p < SLOTS; p++)
        assert_true(seats->sorted_load[p] == seats->slot_load[seats->sorted_slot[p]]);
}

static void changes_equal_a_fresh_start(void **state)
{
    (void)state;
    static layer_case c;
    arena scratch;
    replica_work work;
    layout seats, fresh;
    arena_init(&scratch, NULL);
    start(&c, &scratch, &work, &seats);
    assert_int_equal(layout_init(&fresh, &c.problem, &work, &scratch, NULL), EPLB_OK);
    random_state random = random_seed(9);
    int32_t made = 0;
    for (int32_t i = 0; i < 3000; i++) {
        int32_t p = (int32_t)random_below(&random, SLOTS), q = (int32_t)random_below(&random, SLOTS);
        int32_t a = seats.slot_rank[p], b = seats.slot_rank[q], x = seats.expert[p], y = seats.expert[q];
        if (i % 2 == 0 && a != b && !layout_holds(&seats, a, y) && !layout_holds(&seats, b, x)) {
            layout_swap(&seats, p, q);
            made++;
        }
        int32_t e = (int32_t)random_below(&random, EXPERTS);
        if (i % 2 == 1 && !layout_holds(&seats, a, e) && (x < 0 || seats.count[x] > 1)) {
            layout_reassign(&seats, p, e);
            made++;
        }
        layout_set(&fresh, seats.expert);
        assert_same(&seats, &fresh);
        chains_are_whole(&seats);
    }
    assert_true(made > 500);
    arena_destroy(&scratch);
}

static void undoing_restores_every_bit(void **state)
{
    (void)state;
    static layer_case c;
    arena scratch;
    replica_work work;
    layout seats, fresh;
    arena_init(&scratch, NULL);
    start(&c, &scratch, &work, &seats);
    assert_int_equal(layout_init(&fresh, &c.problem, &work, &scratch, NULL), EPLB_OK);
    layout_set(&fresh, c.expert);
    layout_swap(&seats, 0, 20);
    layout_reassign(&seats, 1, 25);
    layout_reassign(&seats, 1, 1);
    layout_swap(&seats, 20, 0);
    assert_same(&seats, &fresh);
    arena_destroy(&scratch);
}

static void the_hottest_rank_is_the_slowest_to_finish(void **state)
{
    (void)state;
    static layer_case c;
    arena scratch;
    replica_work work;
    layout seats;
    arena_init(&scratch, NULL);
    case_init(&c, 4, 2, 2);
    c.rank_speed[1] = 4;
    c.load[0] = c.load[1] = 10;
    c.load[2] = c.load[3] = 30;
    case_refresh(&c);
    for (int32_t s = 0; s < 4; s++)
        c.expert[s] = s;
    assert_int_equal(replica_work_init(&work, &c.problem, &scratch, NULL), EPLB_OK);
    assert_int_equal(layout_init(&seats, &c.problem, &work, &scratch, NULL), EPLB_OK);
    layout_set(&seats, c.expert);
    int32_t hottest;
    assert_true(layout_hottest(&seats, &hottest) == 20 * work.scale);
    assert_int_equal(hottest, 0);
    arena_destroy(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_equal_a_fresh_start),
        cmocka_unit_test(undoing_restores_every_bit),
        cmocka_unit_test(the_hottest_rank_is_the_slowest_to_finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
