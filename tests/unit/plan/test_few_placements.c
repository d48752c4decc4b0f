/* The listing of all placements against counting them another way. */
#include "../../layer_case.h"
#include "../../testing.h"
#include "plan/few_placements.h"

enum { MOST = 2000 };

typedef struct seen {
    const layer_case *c;
    int32_t slots;
    int32_t count;
    int32_t stop_at;
    int32_t expert[MOST][12];
} seen;

static bool note(void *context, const int32_t *expert)
{
    seen *all = context;
    assert_true(all->count < MOST);
    memcpy(all->expert[all->count++], expert, (size_t)all->slots * sizeof *expert);
    return all->count != all->stop_at;
}

static bool list(layer_case *c, seen *all, int64_t most, int32_t stop_at)
{
    arena scratch;
    bool complete;
    arena_init(&scratch, NULL);
    *all = (seen){.c = c, .slots = c->problem.num_slots, .stop_at = stop_at};
    assert_true(few_placements(&c->problem, most, note, all, &complete, &scratch));
    arena_destroy(&scratch);
    return complete;
}

/* Every listed placement is legal, and none is listed twice. */
static void check(layer_case *c, const seen *all)
{
    for (int32_t i = 0; i < all->count; i++) {
        memcpy(c->expert, all->expert[i], (size_t)all->slots * sizeof *c->expert);
        assert_null(case_problem(c));
        for (int32_t j = 0; j < i; j++)
            assert_int_not_equal(memcmp(all->expert[i], all->expert[j], (size_t)all->slots * sizeof(int32_t)),
                                 0);
    }
}

/* Sets of slots[g] experts for every rank, all experts served: masks, ranks in any order. */
static int32_t count_masks(int32_t experts, const int32_t *slots, int32_t ranks, int32_t rank,
                           uint32_t served)
{
    if (rank == ranks)
        return served == (1u << experts) - 1u;
    int32_t count = 0;
    for (uint32_t mask = 0; mask < (1u << experts); mask++) {
        int32_t size = 0;
        for (int32_t e = 0; e < experts; e++)
            size += (int32_t)(mask >> e & 1u);
        if (size == (slots[rank] < experts ? slots[rank] : experts))
            count += count_masks(experts, slots, ranks, rank + 1, served | mask);
    }
    return count;
}

static void unlike_ranks_are_all_listed(void **state)
{
    (void)state;
    static layer_case c;
    static seen all;
    static const int32_t shapes[][3] = {{1, 2, 3}, {3, 2, 1}, {2, 3, 0}, {1, 4, 2}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int32_t experts = 2; experts <= 5; experts++) {
            int32_t slots[CASE_RANKS] = {shapes[i][0], shapes[i][1], shapes[i][2]};
            if (slots[0] + slots[1] + slots[2] < experts)
                continue;
            case_init(&c, experts, 3, 1);
            case_finish(&c, slots);
            assert_true(list(&c, &all, 100000, -1));
            check(&c, &all);
            assert_int_equal(all.count, count_masks(experts, slots, 3, 0, 0));
        }
    }
}

/* Of like ranks the order does not count: 4 experts in pairs on two ranks are (6 + 6 * 5 / 2) pairs of sets,
 * of which 3 serve all. */
static void like_ranks_are_listed_once(void **state)
{
    (void)state;
    static layer_case c;
    static seen all;
    case_init(&c, 4, 2, 2);
    assert_true(list(&c, &all, 1000, -1));
    check(&c, &all);
    assert_int_equal(all.count, 3);
    c.rank_speed[1] = 2;
    case_refresh(&c);
    assert_true(list(&c, &all, 1000, -1));
    assert_int_equal(all.count, 6);
}

static void limits_end_the_listing(void **state)
{
    (void)state;
    static layer_case c;
    static seen all;
    case_init(&c, 6, 3, 3);
    assert_false(list(&c, &all, 20, -1));
    assert_false(list(&c, &all, 100000, 5));
    assert_int_equal(all.count, 5);
    case_init(&c, 40, 10, 4); /* too many slots to begin with */
    assert_false(list(&c, &all, INT64_MAX, -1));
    assert_int_equal(all.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unlike_ranks_are_all_listed),
        cmocka_unit_test(like_ranks_are_listed_once),
        cmocka_unit_test(limits_end_the_listing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
