/* Nodes matched to where tokens start: the fewest tokens that cross of all permutations of like nodes. */
#include "../../layer_case.h"
#include "../../testing.h"
#include "base/random.h"
#include "plan/match_nodes.h"

enum { NODES = 4, RANKS = 8, PER_RANK = 3, SLOTS = RANKS * PER_RANK, EXPERTS = 12 };

static void match(layer_case *c)
{
    arena scratch;
    arena_init(&scratch, NULL);
    assert_int_equal(match_nodes(&c->problem, &c->answer, &scratch, NULL), EPLB_OK);
    arena_destroy(&scratch);
}

/* Two nodes of one rank. Expert 0 (60 tokens) is on rank 0 for 2/3 and on rank 1 for 1/3, expert 1 (20) on
 * rank 0, expert 2 (40) on rank 1. Expert 0 starts on node 1 for 5/6, 1 on node 1, 2 on node 0. As it is,
 * min(10, 40) + min(50, 20) = 30 are served at home; with the nodes exchanged 10 + 40 + 20 + 40 = 110. */
static void contents_go_where_tokens_start(void **state)
{
    (void)state;
    static layer_case c;
    static const int64_t sources[2 * 3] = {10, 0, 40, 50, 20, 0};
    static const int32_t plan[] = {0, 1, 2, 0};
    static const int64_t quota[] = {2, 1, 1, 1};
    case_init(&c, 3, 2, 2);
    memcpy(c.load, (const int64_t[]){60, 20, 40}, 3 * sizeof *c.load);
    case_refresh(&c);
    c.problem.num_nodes = 2;
    c.rank_node[1] = 1;
    memcpy(c.expert, plan, sizeof plan);
    memcpy(c.quota, quota, sizeof quota);
    match(&c); /* nobody says where tokens start */
    assert_memory_equal(c.expert, plan, sizeof plan);
    c.problem.source_load = sources;
    c.problem.num_sources = 2;
    c.problem.current = plan;
    match(&c); /* a trade would be four moves */
    assert_memory_equal(c.expert, plan, sizeof plan);
    c.problem.current = NULL;
    c.rank_speed[1] = 2;
    match(&c); /* not alike */
    assert_memory_equal(c.expert, plan, sizeof plan);
    c.rank_speed[1] = 1;
    match(&c);
    assert_memory_equal(c.expert, ((const int32_t[]){2, 0, 0, 1}), sizeof plan);
    assert_memory_equal(c.quota, ((const int64_t[]){1, 1, 2, 1}), sizeof quota);
    match(&c); /* as good as it gets */
    assert_memory_equal(c.expert, ((const int32_t[]){2, 0, 0, 1}), sizeof plan);
}

/* Tokens served on their own node if node n has what node from[n] has now. */
static double served_at_home(const layer_case *c, const int64_t *sources, const int32_t *from)
{
    double sum[EXPERTS] = {0}, part[EXPERTS][NODES] = {{0}}, home = 0;
    bool equal = c->problem.split == EPLB_SPLIT_EQUAL;
    for (int32_t p = 0; p < SLOTS; p++)
        sum[c->expert[p]] += equal ? 1 : (double)c->quota[p];
    for (int32_t p = 0; p < SLOTS; p++)
        part[c->expert[p]][c->rank_node[p / PER_RANK]] +=
            (equal ? 1 : (double)c->quota[p]) / sum[c->expert[p]];
    for (int32_t e = 0; e < EXPERTS; e++) {
        for (int32_t n = 0; n < NODES; n++) {
            double all = 0, here = 0;
            for (int32_t g = 0; g < RANKS; g++) {
                all += (double)sources[g * EXPERTS + e];
                here += c->rank_node[g] == n ? (double)sources[g * EXPERTS + e] : 0;
            }
            double starts = here / all, serves = part[e][from[n]];
            home += (starts < serves ? starts : serves) * (double)c->load[e];
        }
    }
    return home;
}

/* Nodes 0 to `like` - 1 trade places. */
static double most_at_home(const layer_case *c, const int64_t *sources, int32_t *from, int32_t at,
                           int32_t like)
{
    if (at == like)
        return served_at_home(c, sources, from);
    double most = 0;
    for (int32_t i = at; i < like; i++) {
        int32_t x = from[at];
        from[at] = from[i];
        from[i] = x;
        double home = most_at_home(c, sources, from, at + 1, like);
        most = home > most ? home : most;
        from[i] = from[at];
        from[at] = x;
    }
    return most;
}

static void no_permutation_is_better(void **state)
{
    (void)state;
    static layer_case c;
    random_state random = random_seed(3);
    int32_t changed = 0;
    for (int32_t i = 0; i < 200; i++) {
        int64_t sources[RANKS * EXPERTS];
        int32_t from[NODES] = {0, 1, 2, 3}, like = i % 3 == 0 ? 3 : 4;
        case_init(&c, EXPERTS, RANKS, PER_RANK);
        for (int32_t e = 0; e < EXPERTS; e++)
            c.load[e] = random_below(&random, 1000);
        for (int32_t s = 0; s < RANKS * EXPERTS; s++)
            sources[s] = 1 + random_below(&random, random_below(&random, 4) == 0 ? 1000 : 50);
        case_refresh(&c);
        c.problem.num_nodes = NODES;
        c.problem.source_load = sources;
        c.problem.num_sources = RANKS;
        c.problem.split = i % 2 == 0 ? EPLB_SPLIT_EQUAL : EPLB_SPLIT_WEIGHTED;
        for (int32_t g = 0; g < RANKS; g++)
            c.rank_node[g] = g % NODES; /* ranks of nodes need not be neighbours */
        c.rank_speed[RANKS - 1] = like == 3 ? 2 : 1;
        for (int32_t s = 0; s < SLOTS; s++) {
            c.expert[s] = s < EXPERTS ? s : (int32_t)random_below(&random, EXPERTS);
            c.quota[s] = 1 + random_below(&random, 100);
        }
        double before = served_at_home(&c, sources, from);
        double most = most_at_home(&c, sources, from, 0, like);
        match(&c);
        double after = served_at_home(&c, sources, from);
        assert_true(after > most * (1 - 1e-8));
        changed += after > before;
    }
    assert_true(changed > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contents_go_where_tokens_start),
        cmocka_unit_test(no_permutation_is_better),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
