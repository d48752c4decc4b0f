/* Relabelling: the fewest received experts of all permutations, and only among like ranks. */
#include "../../layer_case.h"
#include "../../testing.h"
#include "base/random.h"
#include "plan/relabel.h"

enum { EXPERTS = 12, RANKS = 5, PER_RANK = 3, SLOTS = RANKS * PER_RANK };

static int64_t cost_of(const uint64_t *home, const int32_t *expert, const int32_t *from)
{
    int64_t cost = 0;
    for (int32_t g = 0; g < RANKS; g++) {
        for (int32_t i = 0; i < PER_RANK; i++)
            cost += (home[g] >> expert[from[g] * PER_RANK + i] & 1) == 0;
    }
    return cost;
}

static int64_t least_cost(const uint64_t *home, const int32_t *expert, int32_t *from, int32_t at)
{
    if (at == RANKS)
        return cost_of(home, expert, from);
    int64_t least = INT64_MAX;
    for (int32_t i = at; i < RANKS; i++) {
        int32_t x = from[at];
        from[at] = from[i];
        from[i] = x;
        int64_t cost = least_cost(home, expert, from, at + 1);
        least = cost < least ? cost : least;
        from[i] = from[at];
        from[at] = x;
    }
    return least;
}

static void draw(random_state *random, int32_t *expert)
{
    for (int32_t s = 0; s < SLOTS; s++)
        expert[s] = (s % PER_RANK) * 4 + (int32_t)random_below(random, 4);
}

static void no_permutation_is_better(void **state)
{
    (void)state;
    static layer_case c;
    random_state random = random_seed(4);
    case_init(&c, EXPERTS, RANKS, PER_RANK);
    for (int32_t i = 0; i < 200; i++) {
        uint64_t home[RANKS] = {0};
        int32_t before[SLOTS], expert[SLOTS], from[RANKS] = {0, 1, 2, 3, 4};
        draw(&random, before);
        draw(&random, expert);
        for (int32_t s = 0; s < SLOTS; s++)
            home[s / PER_RANK] |= UINT64_C(1) << before[s];
        int64_t least = least_cost(home, expert, from, 0);
        arena scratch;
        arena_init(&scratch, NULL);
        assert_int_equal(relabel_ranks(&c.problem, NULL, home, 1, expert, &scratch, NULL), EPLB_OK);
        arena_destroy(&scratch);
        assert_int_equal(cost_of(home, expert, from), least);
    }
}

/* The contents of rank 0 would fit rank 4 best, but one is faster, or in another area. */
static void unlike_ranks_do_not_trade(void **state)
{
    (void)state;
    static layer_case c;
    case_init(&c, EXPERTS, RANKS, PER_RANK);
    int32_t area[RANKS] = {0, 0, 0, 1, 1};
    for (int32_t i = 0; i < 3; i++) {
        int32_t expert[SLOTS];
        uint64_t home[RANKS] = {0};
        for (int32_t s = 0; s < SLOTS; s++)
            expert[s] = s < 3 ? s : 3 + s % 9;
        home[4] = 7; /* what rank 0 shall hold */
        c.rank_speed[0] = i == 0 ? 2 : 1;
        arena scratch;
        arena_init(&scratch, NULL);
        assert_int_equal(relabel_ranks(&c.problem, i == 1 ? area : NULL, home, 1, expert, &scratch, NULL),
                         EPLB_OK);
        arena_destroy(&scratch);
        bool traded = expert[4 * PER_RANK] == 0 && expert[4 * PER_RANK + 2] == 2;
        assert_int_equal(traded, i == 2);
    }
}

static void the_nearer_source_is_preferred(void **state)
{
    (void)state;
    static layer_case c;
    case_init(&c, 4, 4, 1);
    c.problem.num_nodes = 2;
    c.rank_node[2] = c.rank_node[3] = 1;
    uint64_t home[4] = {1, 2, 4, 8};
    int32_t expert[4] = {2, 3, 1,
                         1}; /* both copies of 1 must be received by someone: on its own node if possible */
    arena scratch;
    arena_init(&scratch, NULL);
    assert_int_equal(relabel_ranks(&c.problem, NULL, home, 1, expert, &scratch, NULL), EPLB_OK);
    arena_destroy(&scratch);
    assert_int_equal(expert[0], 1);
    assert_int_equal(expert[1], 1);
    assert_int_equal(expert[2], 2);
    assert_int_equal(expert[3], 3);
}

/* Three nodes of two ranks; the new contents are the old ones with nodes, and ranks inside them, in another
 * order. Like nodes trade as wholes, and the one whose ranks are faster keeps what it has. */
static void whole_nodes_trade(void **state)
{
    (void)state;
    static layer_case c;
    for (int32_t fast = 0; fast < 2; fast++) {
        case_init(&c, 12, 6, 2);
        case_nodes(&c, 2, 3);
        uint64_t home[6];
        for (int32_t g = 0; g < 6; g++)
            home[g] = UINT64_C(3) << (2 * g);
        /* node 0 has what node 1 held, node 1 what node 2 held, node 2 what node 0 held, ranks exchanged */
        static const int32_t holds[6] = {3, 2, 5, 4, 1, 0};
        int32_t expert[12];
        for (int32_t p = 0; p < 12; p++)
            expert[p] = 2 * holds[p / 2] + p % 2;
        if (fast == 1)
            c.rank_speed[4] = c.rank_speed[5] = 3; /* node 2 */
        arena scratch;
        arena_init(&scratch, NULL);
        assert_int_equal(relabel_ranks(&c.problem, c.rank_node, home, 1, expert, &scratch, NULL), EPLB_OK);
        arena_destroy(&scratch);
        for (int32_t p = 0; p < 12; p++) {
            if (fast == 0)
                assert_int_equal(expert[p], p);
            else if (p / 2 < 4 && p / 4 == 1)
                assert_int_equal(expert[p], p); /* node 1 has its own back, from node 0 */
            else if (p / 2 >= 4)
                assert_true(expert[p] < 4); /* node 2 keeps what the plan gives it */
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_permutation_is_better),
        cmocka_unit_test(unlike_ranks_do_not_trade),
        cmocka_unit_test(the_nearer_source_is_preferred),
        cmocka_unit_test(whole_nodes_trade),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
