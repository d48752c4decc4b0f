/* The greedy start: every expert served, none twice on a rank, all slots used where shapes allow. */
#include "../../layer_case.h"
#include "../../testing.h"
#include "base/random.h"
#include "plan/lightest_first.h"
#include "plan/replica_counts.h"

static void place(layer_case *c, int32_t slots, int32_t cap)
{
    arena scratch;
    replica_work work;
    int32_t count[CASE_EXPERTS];
    double replica[CASE_EXPERTS];
    arena_init(&scratch, NULL);
    assert_int_equal(replica_work_init(&work, &c->problem, &scratch, NULL), EPLB_OK);
    assert_int_equal(replica_counts(&work, c->problem.num_experts, slots, cap, count, &scratch, NULL),
                     EPLB_OK);
    for (int32_t e = 0; e < c->problem.num_experts; e++)
        replica[e] = replica_work_at(&work, e, count[e]);
    assert_int_equal(lightest_first(&c->problem, count, replica, c->expert, &scratch, NULL), EPLB_OK);
    arena_destroy(&scratch);
}

static void any_shape_is_filled(void **state)
{
    (void)state;
    static layer_case c;
    random_state random = random_seed(21);
    for (int32_t i = 0; i < 500; i++) {
        int32_t ranks = 1 + (int32_t)random_below(&random, 8), rank_slots[CASE_RANKS] = {0}, slots = 0,
                used = 0;
        for (int32_t g = 0; g < ranks; g++) {
            rank_slots[g] = (int32_t)random_below(&random, 7);
            slots += rank_slots[g];
            used += rank_slots[g] > 0;
        }
        if (slots == 0)
            continue;
        int32_t experts = 1 + (int32_t)random_below(&random, (uint32_t)slots), useful = 0;
        case_init(&c, experts, ranks, 1);
        for (int32_t g = 0; g < ranks; g++) {
            c.rank_speed[g] = i % 3 == 0 ? 1 + (int32_t)random_below(&random, 4) : 1;
            useful += rank_slots[g] < experts ? rank_slots[g] : experts;
        }
        for (int32_t e = 0; e < experts; e++)
            c.load[e] = random_below(&random, 4) * (int64_t)random_below(&random, 1000);
        case_finish(&c, rank_slots);
        place(&c, useful, used);
        assert_null(case_problem(&c));
        int32_t filled = 0;
        for (int32_t s = 0; s < slots; s++)
            filled += c.expert[s] >= 0;
        assert_int_equal(filled, useful);
    }
}

static void heaviest_goes_to_the_lightest(void **state)
{
    (void)state;
    static layer_case c;
    case_init(&c, 6, 3, 2);
    for (int32_t e = 0; e < 6; e++)
        c.load[e] = 10 - e; /* 10 9 8 | 7 6 5 */
    case_refresh(&c);
    place(&c, 6, 3);
    static const int32_t expected[6] = {0, 5, 1, 4, 2, 3};
    assert_memory_equal(c.expert, expected, sizeof expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_shape_is_filled),
        cmocka_unit_test(heaviest_goes_to_the_lightest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
