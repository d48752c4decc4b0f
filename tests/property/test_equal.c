/* Equal-split planning and repair on random legal inputs: every answer keeps every promise.
 *
 * EPLB_PROPERTY_CASES sets the number of cases (default 4,000). Inputs: any ranks, slots, speeds, health,
 * nodes, groups, costs, loads with zeros and with one hot expert, and current placements that are whole,
 * broken or made for other ranks. What is promised is checked from the slots alone. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <eplb/eplb.h>

#include "../nouns.h"
#include "base/random.h"

#define MOST_RANKS   12
#define MOST_EXPERTS 40
#define MOST_SLOTS   (MOST_RANKS * 8)

typedef struct random_case {
    random_state random;
    int32_t num_experts, num_ranks, num_nodes, num_slots, live_slots;
    int32_t rank_slots[MOST_RANKS], rank_speed[MOST_RANKS], rank_node[MOST_RANKS];
    uint8_t rank_alive[MOST_RANKS];
    int64_t load[MOST_EXPERTS];
    int32_t current[MOST_SLOTS];
    bool has_current, uniform;
    eplb_topology *topology;
    eplb_load *loads;
    eplb_placement *placement;
    eplb_plan_params params;
} random_case;

static int32_t pick(random_case *c, int32_t least, int32_t most)
{
    return least + (int32_t)random_below(&c->random, (uint32_t)(most - least + 1));
}

static bool chance(random_case *c, int32_t percent)
{
    return pick(c, 1, 100) <= percent;
}

static void draw_ranks(random_case *c)
{
    c->num_ranks = pick(c, 1, MOST_RANKS);
    c->num_nodes = pick(c, 1, c->num_ranks);
    c->uniform = chance(c, 60);
    bool speeds = chance(c, 25), dead = chance(c, 25);
    int32_t k = pick(c, 1, 8);
    c->num_slots = c->live_slots = 0;
    for (int32_t g = 0; g < c->num_ranks; g++) {
        c->rank_slots[g] = c->uniform ? k : pick(c, 0, 8);
        c->rank_speed[g] = speeds ? pick(c, 1, 5) : 1;
        c->rank_node[g] = g * c->num_nodes / c->num_ranks;
        c->rank_alive[g] = !(dead && g > 0 && chance(c, 30));
        c->num_slots += c->rank_slots[g];
        c->live_slots += c->rank_alive[g] ? c->rank_slots[g] : 0;
    }
}

static void draw_load(random_case *c)
{
    int32_t kind = pick(c, 0, 4);
    for (int32_t e = 0; e < c->num_experts; e++) {
        int64_t base = pick(c, 0, 1000);
        c->load[e] = kind == 0 ? 0 : kind == 1 ? base : kind == 2 ? base * base * base : pick(c, 1, 4);
        if (kind == 4)
            c->load[e] = e == 0 ? INT64_C(1) << 58 : base;
    }
}

/* Random contents; sometimes a whole placement, sometimes with holes and duplicates. */
static void draw_current(random_case *c)
{
    bool broken = chance(c, 40);
    for (int32_t p = 0; p < c->num_slots; p++)
        c->current[p] = broken && chance(c, 10) ? -1 : pick(c, 0, c->num_experts - 1);
    if (broken)
        return;
    int32_t next = 0, p = 0;
    for (int32_t g = 0; g < c->num_ranks; g++) {
        for (int32_t i = 0; i < c->rank_slots[g]; i++, p++) {
            if (c->rank_alive[g])
                c->current[p] = next++ % c->num_experts;
        }
    }
    for (int32_t i = 0; i < c->num_slots; i++) { /* shuffle by swaps of slots */
        int32_t a = pick(c, 0, c->num_slots - 1), x = c->current[a];
        c->current[a] = c->current[i];
        c->current[i] = x;
    }
}

static void draw_wishes(random_case *c)
{
    eplb_plan_params_init(&c->params, sizeof c->params);
    c->params.policy = chance(c, 50) ? "equal" : "auto";
    c->params.current = c->placement;
    for (int32_t d = 2; d <= c->num_experts; d++) {
        if (c->num_experts % d == 0 && chance(c, 20))
            c->params.num_groups = d;
    }
    if (chance(c, 10))
        c->params.cost.tiles = pick(c, 1, 3), c->params.cost.tile_tokens = pick(c, 1, 200);
    if (chance(c, 10))
        c->params.cost.activated = pick(c, 1, 100);
    if (c->has_current && chance(c, 50))
        c->params.max_moves_per_layer = pick(c, 0, 12);
    if (chance(c, 20))
        c->params.target_imbalance = 1 + 0.1 * pick(c, 0, 5);
    if (chance(c, 10))
        c->params.work_limit = pick(c, 1, 20000);
}

/* False if the draw is not legal (fewer live slots than experts can be served from). */
static bool draw(random_case *c, uint64_t seed)
{
    memset(c, 0, sizeof *c);
    c->random = random_seed(seed);
    draw_ranks(c);
    if (c->live_slots < 1)
        return false;
    c->num_experts = pick(c, 1, c->live_slots < MOST_EXPERTS ? c->live_slots : MOST_EXPERTS);
    draw_load(c);
    eplb_topology_params ranks;
    eplb_topology_params_init(&ranks, sizeof ranks);
    ranks.num_ranks = c->num_ranks;
    ranks.num_nodes = c->num_nodes;
    ranks.rank_slots = c->rank_slots;
    ranks.rank_speed = c->rank_speed;
    ranks.rank_node = c->rank_node;
    ranks.rank_alive = c->rank_alive;
    assert_int_equal(eplb_topology_create(&c->topology, &ranks, NULL, NULL), EPLB_OK);
    c->loads = case_load(1, 1, c->num_experts, c->load);
    c->has_current = chance(c, 60);
    if (c->has_current) {
        draw_current(c);
        assert_int_equal(
            eplb_placement_create(&c->placement, c->topology, 1, c->num_experts, c->current, NULL, NULL),
            EPLB_OK);
    }
    draw_wishes(c);
    return true;
}

static void undraw(random_case *c)
{
    eplb_placement_destroy(c->placement);
    eplb_load_destroy(c->loads);
    eplb_topology_destroy(c->topology);
}

static bool held(const random_case *c, const int32_t *slots, int32_t rank, int32_t expert)
{
    int32_t p = 0;
    for (int32_t g = 0; g < rank; g++)
        p += c->rank_slots[g];
    for (int32_t i = 0; i < c->rank_slots[rank]; i++) {
        if (slots[p + i] == expert)
            return true;
    }
    return false;
}

/* Experts that no live rank holds. */
static int32_t count_lost(const random_case *c, const int32_t *slots)
{
    int32_t lost = 0;
    for (int32_t e = 0; e < c->num_experts; e++) {
        bool alive = false;
        for (int32_t g = 0; g < c->num_ranks; g++)
            alive |= c->rank_alive[g] && held(c, slots, g, e);
        lost += !alive;
    }
    return lost;
}

static int64_t count_received(const random_case *c, const int32_t *before, const int32_t *after)
{
    int64_t received = 0;
    for (int32_t g = 0; g < c->num_ranks; g++) {
        for (int32_t e = 0; e < c->num_experts; e++)
            received += held(c, after, g, e) && !held(c, before, g, e);
    }
    return received;
}

static bool twice(const random_case *c, const int32_t *slots)
{
    int32_t p = 0;
    for (int32_t g = 0; g < c->num_ranks; g++) {
        for (int32_t i = 0; i < c->rank_slots[g]; i++) {
            for (int32_t j = 0; j < i; j++) {
                if (c->rank_alive[g] && slots[p + i] >= 0 && slots[p + i] == slots[p + j])
                    return true;
            }
        }
        p += c->rank_slots[g];
    }
    return false;
}

static bool plain(const random_case *c)
{
    return c->params.cost.tiles == 0 && c->params.cost.activated == 0;
}

/* True if a group has replicas on several nodes: a plan may pay for bringing them together. */
static bool scattered(const random_case *c, const int32_t *slots)
{
    int32_t home[MOST_EXPERTS] = {0}, p = 0; /* node + 1 */
    for (int32_t g = 0; g < c->num_ranks; g++) {
        for (int32_t i = 0; i < c->rank_slots[g]; i++, p++) {
            if (!c->rank_alive[g] || slots[p] < 0)
                continue;
            int32_t group = slots[p] / (c->num_experts / c->params.num_groups);
            if (home[group] != 0 && home[group] != c->rank_node[g] + 1)
                return true;
            home[group] = c->rank_node[g] + 1;
        }
    }
    return false;
}

static double imbalance_of(const random_case *c, const eplb_placement *placement)
{
    double value;
    assert_int_equal(eplb_imbalance_per_layer(c->loads, placement, NULL, &value, NULL, NULL), EPLB_OK);
    return value;
}

/* value <= limit up to rounding; names the seed if not. */
static void check_not_above(uint64_t seed, const char *what, double value, double limit)
{
    if (value > limit * (1 + 1e-12))
        fail_msg("seed %llu: %s: %.15g is above %.15g", (unsigned long long)seed, what, value, limit);
}

static void check_moves(uint64_t seed, const random_case *c, const eplb_plan *plan, const int32_t *slots)
{
    int64_t received = count_received(c, c->current, slots);
    assert_int_equal(eplb_plan_moves(plan).received, received);
    if (c->params.max_moves_per_layer != EPLB_UNLIMITED)
        assert_true(received <= c->params.max_moves_per_layer);
    bool whole = count_lost(c, c->current) == 0 && !twice(c, c->current) &&
                 (c->params.num_groups <= 1 || !scattered(c, c->current));
    if (whole && plain(c) && c->params.target_imbalance == 0)
        check_not_above(seed, "worse than keeping", eplb_plan_imbalance(plan)[0],
                        imbalance_of(c, c->placement));
}

static void check_deepseek(uint64_t seed, const random_case *c, const eplb_plan *plan)
{
    if (c->has_current || !plain(c) || c->params.target_imbalance > 0)
        return;
    eplb_plan_params params = c->params;
    params.policy = "deepseek";
    eplb_plan *other;
    if (eplb_plan_create(&other, c->loads, c->topology, &params, NULL, NULL) != EPLB_OK)
        return;
    const int32_t *slots = eplb_placement_physical_to_logical(eplb_plan_placement(other));
    /* where groups do not divide by nodes it does not look at nodes, and ours does */
    bool free = c->params.num_groups > 1 && c->params.num_groups % c->num_nodes != 0;
    if (!twice(c, slots) && !free)
        check_not_above(seed, "worse than DeepSeek's", eplb_plan_imbalance(plan)[0],
                        eplb_plan_imbalance(other)[0]);
    eplb_plan_destroy(other);
}

static void check_case(uint64_t seed)
{
    random_case c;
    if (!draw(&c, seed)) {
        undraw(&c);
        return;
    }
    eplb_plan *plan;
    eplb_error error;
    eplb_status status = eplb_plan_create(&plan, c.loads, c.topology, &c.params, NULL, &error);
    int32_t lost = c.has_current ? count_lost(&c, c.current) : 0;
    bool covered = c.params.max_moves_per_layer == EPLB_UNLIMITED || lost <= c.params.max_moves_per_layer;
    if (covered && status != EPLB_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
    assert_int_equal(status, covered ? EPLB_OK : EPLB_ERROR_INFEASIBLE);
    if (status == EPLB_OK) {
        const int32_t *slots = eplb_placement_physical_to_logical(eplb_plan_placement(plan));
        assert_false(twice(&c, slots));
        assert_int_equal(count_lost(&c, slots), 0);
        check_not_above(seed, "bound", eplb_plan_lower_bound(plan)[0], eplb_plan_imbalance(plan)[0]);
        if (c.has_current)
            check_moves(seed, &c, plan, slots);
        check_deepseek(seed, &c, plan);
        eplb_plan_destroy(plan);
    }
    undraw(&c);
}

static void every_answer_keeps_its_promises(void **state)
{
    (void)state;
    const char *text = getenv("EPLB_PROPERTY_CASES");
    long cases = text != NULL ? atol(text) : 4000;
    for (long i = 0; i < cases; i++)
        check_case((uint64_t)i * 7919 + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_answer_keeps_its_promises)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
