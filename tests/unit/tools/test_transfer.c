/* Rounds and seconds of a placement change, against hand-made cases and an exhaustive choice of senders. */
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "testing.h"

enum { RANKS = 4, SLOTS = 8, EXPERTS = 5, MAX_TRANSFERS = 8 };

static const transfer_links unit = {1.0, 1.0, 0.5}; /* one second inside a node, two between nodes */

static eplb_placement *make(const int32_t *slots, int32_t nodes, int32_t dead)
{
    eplb_topology_params params;
    eplb_topology *topology;
    eplb_placement *placement;
    uint8_t alive[RANKS] = {1, 1, 1, 1};
    if (dead >= 0)
        alive[dead] = 0;
    eplb_topology_params_init(&params, sizeof params);
    params.num_ranks = RANKS;
    params.num_nodes = nodes;
    params.slots_per_rank = SLOTS / RANKS;
    params.rank_alive = alive;
    assert_int_equal(eplb_topology_create(&topology, &params, NULL, NULL), EPLB_OK);
    assert_int_equal(eplb_placement_create(&placement, topology, 1, EXPERTS, slots, NULL, NULL), EPLB_OK);
    eplb_topology_destroy(topology);
    return placement;
}

static transfer_cost cost(const int32_t *before, const int32_t *after, int32_t nodes, int32_t dead)
{
    eplb_placement *old = make(before, nodes, -1), *new = make(after, nodes, dead);
    transfer_cost result;
    assert_true(transfer_plan(old, new, &unit, &result));
    eplb_placement_destroy(old);
    eplb_placement_destroy(new);
    return result;
}

static void test_nothing_moves(void **state)
{
    static const int32_t slots[SLOTS] = {0, 1, 2, 3, 4, 0, 1, 2};
    static const int32_t swapped[SLOTS] = {1, 0, 2, 3, 4, 0, 1, 2}; /* inside a rank: nothing is received */
    (void)state;
    transfer_cost result = cost(slots, swapped, 1, -1);
    assert_int_equal(result.rounds, 0);
    assert_true(result.seconds == 0.0);
}

static void test_senders_are_levelled(void **state)
{
    /* ranks 2 and 3 both receive expert 0, which ranks 0 and 1 hold: one round, not two */
    static const int32_t before[SLOTS] = {0, 1, 0, 2, 3, 4, 3, 4};
    static const int32_t after[SLOTS] = {0, 1, 0, 2, 3, 0, 4, 0};
    (void)state;
    transfer_cost result = cost(before, after, 1, -1);
    assert_int_equal(result.rounds, 1);
    assert_true(result.seconds == 1.0);
}

static void test_a_sender_moves_aside(void **state)
{
    /* rank 3 takes expert 0 from rank 0 or 1; rank 2 can take expert 1 from rank 0 alone */
    static const int32_t before[SLOTS] = {0, 1, 0, 2, 3, 4, 3, 4};
    static const int32_t after[SLOTS] = {0, 1, 0, 2, 3, 1, 4, 0};
    (void)state;
    assert_int_equal(cost(before, after, 1, -1).rounds, 1);
    static const int32_t turned[SLOTS] = {0, 1, 0, 2, 3, 0, 4, 1};
    assert_int_equal(cost(before, turned, 1, -1).rounds, 1);
}

static void test_the_own_node_sends(void **state)
{
    /* rank 1 receives expert 0 from rank 0 of its node, though rank 2 holds it too: one second, not two */
    static const int32_t before[SLOTS] = {0, 1, 2, 3, 0, 4, 2, 3};
    static const int32_t after[SLOTS] = {0, 1, 2, 0, 0, 4, 2, 3};
    (void)state;
    assert_true(cost(before, after, 2, -1).seconds == 1.0);
    static const int32_t across[SLOTS] = {0, 1, 2, 4, 0, 4, 2, 3};
    assert_true(cost(before, across, 2, -1).seconds == 2.0);
}

static void test_dead_ranks_do_not_send(void **state)
{
    /* expert 4 was on rank 3 alone, which is dead: it comes from storage, as slow as between nodes */
    static const int32_t before[SLOTS] = {0, 1, 2, 3, 0, 1, 4, 2};
    static const int32_t after[SLOTS] = {0, 1, 2, 3, 0, 4, -1, -1};
    (void)state;
    transfer_cost result = cost(before, after, 1, 3);
    assert_int_equal(result.rounds, 1);
    assert_true(result.seconds == 2.0);
}

/* Least largest degree over every choice of senders. */
static int32_t best_rounds(const int32_t *expert, const int32_t *receiver, int32_t count, int32_t at,
                           bool holds[RANKS][EXPERTS], int32_t *sends, int32_t least)
{
    if (at == count) {
        int32_t most = least;
        for (int32_t g = 0; g < RANKS; g++)
            most = sends[g] > most ? sends[g] : most;
        return most;
    }
    int32_t best = INT32_MAX;
    for (int32_t g = 0; g < RANKS; g++) {
        if (!holds[g][expert[at]])
            continue;
        sends[g]++;
        int32_t rounds = best_rounds(expert, receiver, count, at + 1, holds, sends, least);
        sends[g]--;
        best = rounds < best ? rounds : best;
    }
    return best;
}

static void draw(random_state *random, int32_t *slots)
{
    for (int32_t e = 0; e < EXPERTS; e++)
        slots[e] = e;
    for (int32_t p = EXPERTS; p < SLOTS; p++)
        slots[p] = (int32_t)random_below(random, EXPERTS);
    for (int32_t p = SLOTS - 1; p > 0; p--) {
        int32_t q = (int32_t)random_below(random, (uint32_t)p + 1), keep = slots[p];
        slots[p] = slots[q];
        slots[q] = keep;
    }
}

static void test_against_every_choice(void **state)
{
    random_state random = random_seed(5);
    (void)state;
    for (int round = 0; round < 300; round++) {
        int32_t before[SLOTS], after[SLOTS], expert[MAX_TRANSFERS], receiver[MAX_TRANSFERS], count = 0,
                                                                                             least = 0;
        int32_t sends[RANKS] = {0}, receives[RANKS] = {0};
        bool holds[RANKS][EXPERTS] = {{false}}, gets[RANKS][EXPERTS] = {{false}};
        draw(&random, before);
        draw(&random, after);
        for (int32_t p = 0; p < SLOTS; p++)
            holds[p / 2][before[p]] = true;
        for (int32_t p = 0; p < SLOTS; p++) {
            int32_t g = p / 2;
            if (holds[g][after[p]] || gets[g][after[p]])
                continue;
            gets[g][after[p]] = true;
            expert[count] = after[p];
            receiver[count++] = g;
            receives[g]++;
            least = receives[g] > least ? receives[g] : least;
        }
        assert_int_equal(cost(before, after, 1, -1).rounds,
                         best_rounds(expert, receiver, count, 0, holds, sends, least));
    }
}

/* A rank that leaves sends before it goes; one that joins receives only. */
static void test_ranks_come_and_go(void **state)
{
    (void)state;
    static const int32_t slots[6] = {0, 1, 2, 3, 4, 0};
    static const int32_t fewer[4] = {0, 1, 2, 4}; /* 4 comes from rank 2 */
    eplb_placement *placements[2];
    eplb_topology_params params;
    for (int i = 0; i < 2; i++) {
        eplb_topology *topology;
        eplb_topology_params_init(&params, sizeof params);
        params.num_ranks = i == 0 ? 3 : 2;
        params.slots_per_rank = 2;
        assert_int_equal(eplb_topology_create(&topology, &params, NULL, NULL), EPLB_OK);
        assert_int_equal(
            eplb_placement_create(&placements[i], topology, 1, EXPERTS, i == 0 ? slots : fewer, NULL, NULL),
            EPLB_OK);
        eplb_topology_destroy(topology);
    }
    transfer_cost result;
    assert_true(transfer_plan(placements[0], placements[1], &unit, &result));
    assert_int_equal(result.rounds, 1);
    assert_true(result.seconds == 1.0); /* inside the node, not from storage */
    assert_true(transfer_plan(placements[1], placements[0], &unit, &result));
    assert_int_equal(result.rounds, 2); /* rank 2 receives 0 and 4, rank 1 receives 3 from storage */
    assert_true(result.seconds == 2.0);
    eplb_placement_destroy(placements[0]);
    eplb_placement_destroy(placements[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_moves),          cmocka_unit_test(test_senders_are_levelled),
        cmocka_unit_test(test_a_sender_moves_aside),   cmocka_unit_test(test_the_own_node_sends),
        cmocka_unit_test(test_dead_ranks_do_not_send), cmocka_unit_test(test_against_every_choice),
        cmocka_unit_test(test_ranks_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
