/* What stays in a slot when ranks shrink, grow, leave or join, against the definition and an independent
 * largest matching. */
#include "plan/carry_over.h"

#include <string.h>

#include "base/random.h"
#include "cases.h"
#include "plan/layer_loop.h"

enum { MOST_RANKS = 5, MOST_SLOTS = 5, MOST_EXPERTS = 12, ALL = MOST_RANKS * MOST_SLOTS };

typedef struct change {
    int32_t experts, ranks[2], slots[2][MOST_RANKS];
    uint8_t alive[2][MOST_RANKS];
    int32_t before[ALL], first[2][MOST_RANKS + 1];
    int64_t load[MOST_EXPERTS];
    eplb_topology *topology[2];
} change;

static eplb_topology *draw_topology(change *c, int side)
{
    eplb_topology_params params;
    eplb_topology *topology;
    eplb_topology_params_init(&params, sizeof params);
    params.num_ranks = c->ranks[side];
    params.rank_slots = c->slots[side];
    params.rank_alive = c->alive[side];
    assert_int_equal(eplb_topology_create(&topology, &params, NULL, NULL), EPLB_OK);
    memcpy(c->first[side], eplb_topology_first_slot(topology),
           ((size_t)c->ranks[side] + 1) * sizeof(int32_t));
    return topology;
}

/* False if the experts do not fit afterwards. */
static bool draw(change *c, random_state *random)
{
    *c = (change){.experts = 1 + (int32_t)random_below(random, MOST_EXPERTS)};
    bool dies = random_below(random, 3) == 0;
    for (int side = 0; side < 2; side++) {
        c->ranks[side] = 1 + (int32_t)random_below(random, MOST_RANKS);
        for (int32_t g = 0; g < c->ranks[side]; g++) {
            c->slots[side][g] = 1 + (int32_t)random_below(random, MOST_SLOTS);
            c->alive[side][g] = !dies || g == 0 || random_below(random, 3) > 0;
        }
        c->topology[side] = draw_topology(c, side);
    }
    for (int32_t p = 0; p < c->first[0][c->ranks[0]]; p++)
        c->before[p] = (int32_t)random_below(random, (uint32_t)c->experts + 1) - 1;
    for (int32_t e = 0; e < c->experts; e++)
        c->load[e] = (int64_t)random_below(random, 100);
    return eplb_topology_num_live_slots(c->topology[1]) >= c->experts;
}

/* Whether the rank, by its number afterwards, holds the expert and lives on. */
static bool held(const change *c, int32_t rank, int32_t expert)
{
    if (rank >= c->ranks[0] || !c->alive[0][rank] || !c->alive[1][rank])
        return false;
    for (int32_t p = c->first[0][rank]; p < c->first[0][rank + 1]; p++) {
        if (c->before[p] == expert)
            return true;
    }
    return false;
}

/* Kuhn's recursion over single slots: another way to the size of a largest matching. */
static bool place(const change *c, int32_t expert, int32_t *taken, bool *tried)
{
    for (int32_t g = 0; g < c->ranks[1]; g++) {
        for (int32_t p = c->first[1][g]; p < c->first[1][g + 1] && held(c, g, expert); p++) {
            if (tried[p])
                continue;
            tried[p] = true;
            if (taken[p] < 0 || place(c, taken[p], taken, tried)) {
                taken[p] = expert;
                return true;
            }
        }
    }
    return false;
}

static int32_t most_kept(const change *c)
{
    int32_t taken[ALL], kept = 0;
    memset(taken, -1, sizeof taken);
    for (int32_t e = 0; e < c->experts; e++) {
        bool tried[ALL] = {false};
        kept += place(c, e, taken, tried);
    }
    return kept;
}

/* An expert of a rank that shrinks: in a slot or let go, never both; in its old slot if it can be. */
static int32_t check_expert(const change *c, const layer_problem *problem, int32_t dense, int32_t rank,
                            int32_t expert)
{
    const int32_t *now = problem->current + problem->first_slot[dense], *old = c->before + c->first[0][rank];
    int32_t times = 0;
    bool in_place = false, could_stay = false;
    for (int32_t i = 0; i < c->slots[1][rank]; i++) {
        times += now[i] == expert;
        in_place |= now[i] == expert && old[i] == expert;
        could_stay |= old[i] == expert;
    }
    assert_true(times == 0 || in_place == could_stay);
    if (problem->cut_off != NULL) {
        bool let_go = layer_is_cut_off(problem, problem->cut_off, dense, expert);
        assert_int_equal(times + let_go, held(c, rank, expert));
    }
    return times;
}

/* Slot by slot where nothing is cut off; else what the rank held, and no slot empty while an expert has
 * none. */
static void check_rank(const change *c, const layer_problem *problem, int32_t dense, int32_t rank)
{
    const int32_t *now = problem->current + problem->first_slot[dense];
    bool was = rank < c->ranks[0] && c->alive[0][rank];
    int32_t had = was ? c->slots[0][rank] : 0, room = c->slots[1][rank], empty = 0, kept = 0, let_go = 0;
    for (int32_t i = 0; i < room && had <= room; i++)
        assert_int_equal(now[i], i < had ? c->before[c->first[0][rank] + i] : -1);
    if (had <= room)
        return;
    for (int32_t e = 0; e < c->experts; e++) {
        kept += check_expert(c, problem, dense, rank, e);
        let_go += layer_is_cut_off(problem, problem->cut_off, dense, e);
    }
    for (int32_t i = 0; i < room; i++)
        empty += now[i] < 0;
    assert_true(empty == 0 || let_go == 0);
    assert_int_equal(kept + empty, room);
}

static void check(const change *c)
{
    eplb_load *load = case_load(1, 1, c->experts, c->load);
    eplb_placement *before;
    assert_int_equal(eplb_placement_create(&before, c->topology[0], 1, c->experts, c->before, NULL, NULL),
                     EPLB_OK);
    eplb_plan_params params = case_params("auto", 1);
    params.current = before;
    plan_request request;
    assert_int_equal(request_check(&request, load, c->topology[1], &params, NULL), EPLB_OK);
    arena scratch;
    arena_init(&scratch, NULL);
    live_ranks live;
    layer_problem problem;
    assert_int_equal(live_ranks_create(&live, c->topology[1], &scratch, NULL), EPLB_OK);
    request.live = &live;
    assert_int_equal(layer_problem_create(&problem, &request, 0, &scratch, NULL), EPLB_OK);
    int32_t kept = 0;
    for (int32_t e = 0; e < c->experts; e++) {
        bool any = false;
        for (int32_t p = 0; p < problem.num_slots; p++)
            any |= problem.current[p] == e;
        kept += any;
    }
    assert_int_equal(kept, most_kept(c));
    for (int32_t g = 0; g < live.num_ranks; g++)
        check_rank(c, &problem, g, live.rank[g]);
    arena_destroy(&scratch);
    eplb_placement_destroy(before);
    eplb_load_destroy(load);
}

static void as_many_experts_as_possible_keep_a_slot(void **state)
{
    (void)state;
    random_state random = random_seed(3);
    int32_t checked = 0;
    while (checked < 3000) {
        change c;
        if (draw(&c, &random)) {
            check(&c);
            checked++;
        }
        eplb_topology_destroy(c.topology[0]);
        eplb_topology_destroy(c.topology[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_many_experts_as_possible_keep_a_slot)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
