/* Every rule: each token gets, for every choice, exactly one live slot of its expert; nothing is lost or
 * doubled; the rules that plan a batch deliver exactly what they plan. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#include <eplb/eplb.h>

#include "base/random.h"
#include "routing_state.h"

enum {
    LAYERS = 3,
    EXPERTS = 16,
    RANKS = 6,
    SLOTS_PER_RANK = 6,
    SLOTS = RANKS * SLOTS_PER_RANK,
    WIDTH = 4,
    BATCH = 96
};

/* Experts in turn over the slots: every expert has replicas on at least two ranks, so that one may die. */
static eplb_placement *make_placement(int dead)
{
    eplb_topology_params params;
    uint8_t alive[RANKS];
    int32_t held[LAYERS * SLOTS];
    eplb_topology *topology;
    eplb_placement *placement;
    memset(alive, 1, sizeof alive);
    if (dead >= 0)
        alive[dead] = 0;
    eplb_topology_params_init(&params, sizeof params);
    params.num_ranks = RANKS;
    params.num_nodes = 3;
    params.slots_per_rank = SLOTS_PER_RANK;
    params.rank_alive = alive;
    for (int i = 0; i < LAYERS * SLOTS; i++)
        held[i] = (i % SLOTS + 5 * (i / SLOTS)) % EXPERTS;
    assert_int_equal(eplb_topology_create(&topology, &params, NULL, NULL), EPLB_OK);
    assert_int_equal(eplb_placement_create(&placement, topology, LAYERS, EXPERTS, held, NULL, NULL), EPLB_OK);
    eplb_topology_destroy(topology);
    return placement;
}

static void draw_ids(random_state *random, int64_t tokens, int32_t *ids)
{
    for (int64_t i = 0; i < tokens * LAYERS; i++) {
        int32_t start = (int32_t)random_below(random, EXPERTS);
        for (int k = 0; k < WIDTH; k++)
            ids[i * WIDTH + k] = random_below(random, 20) == 0 ? -1 : (start + k * k) % EXPERTS;
    }
}

static void check_last_layer(const eplb_placement *placement, const int32_t *ids, int64_t tokens,
                             const int32_t *slots)
{
    const eplb_topology *topology = eplb_placement_topology(placement);
    for (int64_t t = 0; t < tokens; t++) {
        for (int k = 0; k < WIDTH; k++) {
            int32_t e = ids[(t * LAYERS + LAYERS - 1) * WIDTH + k], slot = slots[t * WIDTH + k];
            if (e < 0) {
                assert_int_equal(slot, -1);
                continue;
            }
            assert_in_range(slot, 0, SLOTS - 1);
            assert_int_equal(eplb_placement_physical_to_logical(placement)[(LAYERS - 1) * SLOTS + slot], e);
            assert_true(eplb_topology_rank_alive(topology)[eplb_topology_slot_rank(topology)[slot]]);
        }
    }
}

static void run_rule(routing_rule rule, int dead)
{
    random_state random = random_seed(71);
    eplb_placement *placement = make_placement(dead);
    double shares[LAYERS * SLOTS];
    for (int i = 0; i < LAYERS * SLOTS; i++)
        shares[i] = 0.1 + random_unit(&random); /* not summing to 1: dead ranks leave such rows behind */
    routing_params params = {placement, shares, rule, WIDTH, BATCH, 64};
    routing *run;
    eplb_error error;
    assert_int_equal(routing_create(&run, &params, &error), EPLB_OK);
    static int32_t ids[BATCH * LAYERS * WIDTH];
    int64_t pairs = 0, planned_pairs = 0, sizes[] = {BATCH, 1, 7, 0, BATCH};
    for (size_t b = 0; b < sizeof sizes / sizeof sizes[0]; b++) {
        draw_ids(&random, sizes[b], ids);
        for (int64_t i = 0; i < sizes[b] * LAYERS * WIDTH; i++)
            pairs += ids[i] >= 0;
        assert_int_equal(routing_batch(run, ids, sizes[b], &error), EPLB_OK);
        check_last_layer(placement, ids, sizes[b], run->slots);
    }
    routing_result result;
    double planned = 0.0;
    routing_finish(run, &result);
    assert_int_equal(result.tokens, 2 * BATCH + 8);
    assert_int_equal(result.pairs, pairs);
    for (int i = 0; i < LAYERS * RANKS; i++) {
        planned_pairs += result.delivered[i];
        planned += result.planned[i];
        if (dead >= 0 && i % RANKS == dead)
            assert_int_equal(result.delivered[i], 0);
        if (rule == ROUTING_RESPLIT || rule == ROUTING_ACTIVATED)
            assert_true(result.planned[i] == (double)result.delivered[i]);
    }
    assert_int_equal(planned_pairs, pairs);
    assert_true(planned > (double)pairs - 1e-6 && planned < (double)pairs + 1e-6);
    assert_true(result.cross_node <= result.cross_rank && result.cross_rank <= pairs);
    if (rule == ROUTING_QUOTA || rule == ROUTING_NEAREST)
        assert_true(result.max_deviation < 1.001);
    if (rule == ROUTING_TABLE)
        assert_true(result.max_deviation < 2.0 * RANKS + 1.0);
    routing_destroy(run);
    eplb_placement_destroy(placement);
}

static void every_rule_conserves(void **state)
{
    (void)state;
    for (int rule = ROUTING_QUOTA; rule <= ROUTING_REPEAT; rule++)
        run_rule((routing_rule)rule, -1);
}

static void no_rule_picks_the_dead(void **state)
{
    (void)state;
    for (int rule = ROUTING_QUOTA; rule <= ROUTING_REPEAT; rule++) {
        for (int dead = 0; dead < RANKS; dead++)
            run_rule((routing_rule)rule, dead);
    }
}

/* The plan is kept after every token, not only at the end of a batch. */
static void quota_holds_after_every_token(void **state)
{
    (void)state;
    random_state random = random_seed(72);
    eplb_placement *placement = make_placement(1);
    double shares[LAYERS * SLOTS];
    for (int i = 0; i < LAYERS * SLOTS; i++)
        shares[i] = 0.1 + random_unit(&random);
    routing_params params = {placement, shares, ROUTING_QUOTA, WIDTH, 1, 64};
    routing *run;
    eplb_error error;
    assert_int_equal(routing_create(&run, &params, &error), EPLB_OK);
    for (int t = 0; t < 3000; t++) {
        int32_t ids[LAYERS * WIDTH];
        draw_ids(&random, 1, ids);
        assert_int_equal(routing_batch(run, ids, 1, &error), EPLB_OK);
    }
    routing_result result;
    routing_finish(run, &result);
    assert_true(result.max_deviation < 1.001);
    routing_destroy(run);
    eplb_placement_destroy(placement);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_conserves),
        cmocka_unit_test(no_rule_picks_the_dead),
        cmocka_unit_test(quota_holds_after_every_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
