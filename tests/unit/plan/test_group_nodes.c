/* Groups to nodes: near the best of all assignments, within the nodes' slots, and as they are now. */
#include "../../layer_case.h"
#include "../../testing.h"
#include "base/random.h"
#include "plan/group_nodes.h"

enum { GROUPS = 8, SIZE = 2, EXPERTS = GROUPS * SIZE, NODES = 3, RANKS = 6, PER_RANK = 4 };

static double node_time(const layer_case *c, const int32_t *node)
{
    double most = 0;
    for (int32_t n = 0; n < NODES; n++) {
        double load = 0;
        int32_t experts = 0;
        for (int32_t e = 0; e < EXPERTS; e++) {
            load += node[e / SIZE] == n ? (double)c->load[e] : 0;
            experts += node[e / SIZE] == n;
        }
        if (experts > RANKS / NODES * PER_RANK)
            return 1e300;
        most = load > most ? load : most;
    }
    return most;
}

static double best_time(const layer_case *c, int32_t *node, int32_t at)
{
    if (at == GROUPS)
        return node_time(c, node);
    double least = 1e300;
    for (node[at] = 0; node[at] < NODES; node[at]++) {
        double time = best_time(c, node, at + 1);
        least = time < least ? time : least;
    }
    return least;
}

static void start(layer_case *c, random_state *random)
{
    case_init(c, EXPERTS, RANKS, PER_RANK);
    for (int32_t e = 0; e < EXPERTS; e++)
        c->load[e] = random_below(random, 1000);
    case_refresh(c);
    case_nodes(c, 2, GROUPS);
}

static void nearly_the_best_assignment(void **state)
{
    (void)state;
    static layer_case c;
    random_state random = random_seed(8);
    double excess = 0;
    for (int32_t i = 0; i < 30; i++) {
        arena scratch;
        replica_work work;
        int32_t node[GROUPS], all[GROUPS];
        bool fits;
        start(&c, &random);
        arena_init(&scratch, NULL);
        assert_int_equal(replica_work_init(&work, &c.problem, &scratch, NULL), EPLB_OK);
        assert_int_equal(group_nodes_choose(&c.problem, &work, node, &fits, &scratch, NULL), EPLB_OK);
        arena_destroy(&scratch);
        assert_true(fits);
        excess += node_time(&c, node) / best_time(&c, all, 0) - 1;
    }
    assert_true(excess / 30 < 0.002);
}

static void the_present_nodes_are_read(void **state)
{
    (void)state;
    static layer_case c;
    random_state random = random_seed(8);
    arena scratch;
    int32_t node[GROUPS];
    bool fits;
    start(&c, &random);
    for (int32_t s = 0; s < RANKS * PER_RANK; s++)
        c.current[s] = (s / 8) * 4 + s % 4; /* groups 2n and 2n + 1 on node n */
    c.current[0] = 15;
    c.problem.current = c.current;
    arena_init(&scratch, NULL);
    assert_int_equal(group_nodes_read(&c.problem, node, &fits, &scratch, NULL), EPLB_OK);
    arena_destroy(&scratch);
    for (int32_t i = 0; i < 6; i++)
        assert_int_equal(node[i], i / 2);
    assert_int_equal(node[7], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearly_the_best_assignment),
        cmocka_unit_test(the_present_nodes_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
