/* The best change: its promised gain is what the excess really drops by, and nothing legal is
 * better, unless it already leaves the hot rank under the goal. */
#include <math.h>

#include "../../layer_case.h"
#include "../../testing.h"
#include "base/random.h"
#include "plan/neighbourhood.h"

enum { EXPERTS = 14, RANKS = 5, PER_RANK = 4, SLOTS = RANKS * PER_RANK };

typedef struct fixture {
    layer_case c;
    arena scratch;
    replica_work work;
    layout seats;
    neighbourhood around;
} fixture;

static void start(fixture *f, uint64_t seed)
{
    random_state random = random_seed(seed);
    case_init(&f->c, EXPERTS, RANKS, PER_RANK);
    for (int32_t e = 0; e < EXPERTS; e++)
        f->c.load[e] = 1 + random_below(&random, 1000);
    case_refresh(&f->c);
    for (int32_t s = 0; s < SLOTS; s++)
        f->c.expert[s] = s % EXPERTS;
    arena_init(&f->scratch, NULL);
    assert_int_equal(replica_work_init(&f->work, &f->c.problem, &f->scratch, NULL), EPLB_OK);
    assert_int_equal(layout_init(&f->seats, &f->c.problem, &f->work, &f->scratch, NULL), EPLB_OK);
    assert_int_equal(neighbourhood_init(&f->around, &f->seats, &f->c.problem, &f->scratch, NULL), EPLB_OK);
    layout_set(&f->seats, f->c.expert);
}

/* Excess of the slots as they are. */
static double excess_now(fixture *f)
{
    return neighbourhood_excess(&f->around);
}

/* The best gain of all changes that the search may make around the hot rank, by trying each. */
static double best_by_trying(fixture *f, int32_t hot)
{
    double before = excess_now(f), best = -INFINITY;
    layout *seats = &f->seats;
    for (int32_t p = 0; p < SLOTS; p++) {
        int32_t a = seats->slot_rank[p], x = seats->expert[p];
        for (int32_t q = 0; q < SLOTS; q++) {
            int32_t b = seats->slot_rank[q];
            if (a != hot || b == hot || layout_holds(seats, a, seats->expert[q]) || layout_holds(seats, b, x))
                continue;
            layout_swap(seats, p, q);
            best = fmax(best, before - excess_now(f));
            layout_swap(seats, p, q);
        }
        for (int32_t e = 0; e < EXPERTS; e++) {
            if (seats->count[x] < 2 || layout_holds(seats, a, e) ||
                (a != hot && !layout_holds(seats, hot, e)))
                continue;
            layout_reassign(seats, p, e);
            best = fmax(best, before - excess_now(f));
            layout_reassign(seats, p, x);
        }
    }
    (void)excess_now(f);
    return best;
}

static void the_best_change_is_the_best(void **state)
{
    (void)state;
    static fixture f;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        start(&f, seed);
        int32_t hot;
        double hottest = layout_hottest(&f.seats, &hot), mean = f.work.least_total / RANKS;
        for (int32_t i = 1; i < 4; i++) {
            neighbourhood_goal(&f.around, mean + (hottest - mean) * i / 4);
            double before = excess_now(&f), best = best_by_trying(&f, hot);
            change found = neighbourhood_best(&f.around, hot);
            double enough = fmin(best, f.around.excess[hot]); /* such a swap ends the search at once */
            assert_true(found.gain >= enough - 1e-9 * before && found.gain <= best + 1e-9 * before);
            int32_t loser = f.seats.expert[found.slot];
            neighbourhood_apply(&f.around, &found);
            assert_true(fabs(before - excess_now(&f) - found.gain) <= 1e-9 * before);
            if (found.kind == CHANGE_SWAP)
                layout_swap(&f.seats, found.slot, found.other);
            else
                layout_reassign(&f.seats, found.slot, loser);
        }
        arena_destroy(&f.scratch);
    }
}

static void refused_changes_are_not_found(void **state)
{
    (void)state;
    static fixture f;
    start(&f, 1);
    int32_t hot;
    double hottest = layout_hottest(&f.seats, &hot);
    neighbourhood_goal(&f.around, hottest * 0.9);
    (void)excess_now(&f);
    for (int32_t p = 0; p < SLOTS; p++)
        f.around.slot_free[p] = 5;
    assert_int_equal(neighbourhood_best(&f.around, hot).kind, CHANGE_NONE);
    neighbourhood_forget(&f.around);
    assert_int_not_equal(neighbourhood_best(&f.around, hot).kind, CHANGE_NONE);
    arena_destroy(&f.scratch);
}

static void what_cannot_be_paid_is_not_found(void **state)
{
    (void)state;
    static fixture f;
    start(&f, 2);
    uint64_t home[RANKS];
    for (int32_t g = 0; g < RANKS; g++)
        home[g] = f.seats.holds[g];
    f.around.home = home;
    int32_t hot;
    neighbourhood_goal(&f.around, layout_hottest(&f.seats, &hot) * 0.9);
    (void)excess_now(&f);
    assert_int_equal(neighbourhood_best(&f.around, hot).kind, CHANGE_NONE);
    f.around.purse = 1;
    change found = neighbourhood_best(&f.around, hot);
    assert_int_equal(found.kind, CHANGE_REASSIGN);
    assert_int_equal(found.price, 1);
    arena_destroy(&f.scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_change_is_the_best),
        cmocka_unit_test(refused_changes_are_not_found),
        cmocka_unit_test(what_cannot_be_paid_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
