/* Placement: inverses, dense forms, the start layout, every invariant, and moves between two placements. */
#include <stdlib.h>
#include <string.h>

#include <eplb/eplb.h>

#include "base/random.h"
#include "testing.h"

static eplb_topology *topology_of(int32_t ranks, int32_t nodes, int32_t slots, const uint8_t *alive)
{
    eplb_topology_params params;
    eplb_topology_params_init(&params, sizeof params);
    params.num_ranks = ranks;
    params.num_nodes = nodes;
    params.slots_per_rank = slots;
    params.rank_alive = alive;
    eplb_topology *topology;
    assert_int_equal(eplb_topology_create(&topology, &params, NULL, NULL), EPLB_OK);
    return topology;
}

static void test_inverses(void **state)
{
    (void)state;
    eplb_topology *topology = topology_of(3, 1, 2, NULL);
    const int32_t slots[2][6] = {{0, 1, 2, 0, 0, -1}, {2, 1, 0, 1, 2, 0}};
    eplb_placement *placement, *copy;
    assert_int_equal(eplb_placement_create(&placement, topology, 2, 3, slots[0], NULL, NULL), EPLB_OK);
    const int32_t counts[6] = {3, 1, 1, 2, 2, 2};
    assert_memory_equal(eplb_placement_replica_count(placement), counts, sizeof counts);
    assert_int_equal(eplb_placement_max_replicas(placement), 3);
    const int32_t dense[2][3][3] = {{{0, 3, 4}, {1, -1, -1}, {2, -1, -1}},
                                    {{2, 5, -1}, {1, 3, -1}, {0, 4, -1}}};
    int32_t narrow[18];
    int64_t broad[24];
    assert_int_equal(eplb_placement_dense_int32(placement, 3, narrow, NULL), EPLB_OK);
    assert_memory_equal(narrow, dense, sizeof dense);
    assert_int_equal(eplb_placement_dense_int64(placement, 4, broad, NULL), EPLB_OK);
    assert_int_equal(broad[2], 4);
    assert_int_equal(broad[3], -1);
    assert_int_equal(broad[4], 1);
    assert_int_equal(eplb_placement_dense_int32(placement, 2, narrow, NULL), EPLB_ERROR_INVALID);
    assert_int_equal(eplb_placement_copy(&copy, placement, NULL, NULL), EPLB_OK);
    assert_true(eplb_placement_equal(placement, copy));
    assert_int_equal(eplb_placement_is_valid(placement, NULL), EPLB_OK);
    eplb_placement_destroy(copy);
    eplb_placement_destroy(placement);
    eplb_topology_destroy(topology);
}

static void test_initial_layout_skips_dead_ranks(void **state)
{
    (void)state;
    const uint8_t alive[3] = {1, 0, 1};
    eplb_topology *topology = topology_of(3, 1, 3, alive);
    eplb_placement *placement;
    eplb_error error;
    assert_int_equal(eplb_placement_create_initial(&placement, topology, 2, 4, NULL, NULL), EPLB_OK);
    const int32_t expected[9] = {0, 1, 2, -1, -1, -1, 3, 0, 1};
    assert_memory_equal(eplb_placement_physical_to_logical(placement) + 9, expected, sizeof expected);
    assert_int_equal(eplb_placement_is_valid(placement, NULL), EPLB_OK);
    eplb_placement_destroy(placement);
    assert_int_equal(eplb_placement_create_initial(&placement, topology, 1, 7, NULL, &error),
                     EPLB_ERROR_INFEASIBLE);
    assert_null(placement);
    assert_int_equal(error.value, 6);
    eplb_topology_destroy(topology);
}

static void test_create_refuses_unknown_experts(void **state)
{
    (void)state;
    eplb_topology *topology = topology_of(1, 1, 3, NULL);
    const int32_t slots[3] = {0, 5, 1};
    eplb_placement *placement;
    eplb_error error;
    assert_int_equal(eplb_placement_create(&placement, topology, 1, 2, slots, NULL, &error),
                     EPLB_ERROR_INVALID);
    assert_null(placement);
    assert_int_equal(error.slot, 1);
    assert_int_equal(error.value, 5);
    eplb_topology_destroy(topology);
}

typedef struct findings {
    int count;
    int stop_after;
    eplb_problem list[16];
} findings;

static bool collect(void *context, const eplb_problem *problem)
{
    findings *found = context;
    found->list[found->count++] = *problem;
    return found->count < found->stop_after;
}

static void test_every_problem_is_reported(void **state)
{
    (void)state;
    const uint8_t alive[3] = {1, 1, 0};
    eplb_topology *topology = topology_of(3, 1, 2, alive);
    const int32_t slots[6] = {0, 0, 9, -1, 1, -1};
    findings found = {.stop_after = 16};
    eplb_error error;
    assert_int_equal(eplb_placement_check(topology, 1, 2, slots, collect, &found, NULL, &error),
                     EPLB_ERROR_INVALID);
    const eplb_problem_kind kinds[5] = {EPLB_PROBLEM_EXPERT_RANGE, EPLB_PROBLEM_EXPERT_MISSING,
                                        EPLB_PROBLEM_DEAD_SLOT, EPLB_PROBLEM_DUPLICATE,
                                        EPLB_PROBLEM_EMPTY_SLOT};
    assert_int_equal(found.count, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(found.list[i].kind, kinds[i]);
    assert_int_equal(found.list[0].slot, 2);
    assert_int_equal(found.list[1].expert, 1);
    assert_int_equal(found.list[2].rank, 2);
    assert_int_equal(found.list[3].slot, 1);
    assert_int_equal(found.list[4].slot, 3);
    assert_int_equal(error.slot, 2);
    found = (findings){.stop_after = 2};
    (void)eplb_placement_check(topology, 1, 2, slots, collect, &found, NULL, NULL);
    assert_int_equal(found.count, 2);
    eplb_topology_destroy(topology);
}

static void test_duplicates_are_legal_when_ranks_run_out(void **state)
{
    (void)state;
    eplb_topology *topology = topology_of(2, 1, 2, NULL);
    const int32_t forced[4] = {0, 0, 0, 1}, wasteful[4] = {0, 0, 1, 1};
    assert_int_equal(eplb_placement_check(topology, 1, 2, forced, NULL, NULL, NULL, NULL), EPLB_OK);
    assert_int_equal(eplb_placement_check(topology, 1, 2, wasteful, NULL, NULL, NULL, NULL),
                     EPLB_ERROR_INVALID);
    eplb_topology_destroy(topology);
}

static void test_moves(void **state)
{
    (void)state;
    eplb_topology *topology = topology_of(4, 2, 2, NULL);
    const int32_t old_slots[8] = {0, 1, 2, 3, 4, 5, 0, 2};
    /* rank 0 shuffles inside; rank 1 gets 0 from its own node; rank 2 gets 1 from the other node and drops
     * 4. */
    const int32_t new_slots[8] = {1, 0, 2, 0, 1, 5, 3, 2};
    eplb_placement *before, *after;
    assert_int_equal(eplb_placement_create(&before, topology, 1, 6, old_slots, NULL, NULL), EPLB_OK);
    assert_int_equal(eplb_placement_create(&after, topology, 1, 6, new_slots, NULL, NULL), EPLB_OK);
    eplb_move_count total, layer;
    assert_int_equal(eplb_placement_count_moves(before, after, &total, &layer, NULL, NULL), EPLB_OK);
    assert_int_equal(total.slots, 5);
    assert_int_equal(total.received, 3);
    assert_int_equal(total.cross_node, 2);
    assert_int_equal(total.max_received_per_rank, 1);
    assert_int_equal(total.lost, 0);
    assert_memory_equal(&total, &layer, sizeof total);
    assert_int_equal(eplb_placement_count_moves(before, before, &total, NULL, NULL, NULL), EPLB_OK);
    assert_int_equal(total.slots + total.received + total.cross_node, 0);
    eplb_placement_destroy(before);
    eplb_placement_destroy(after);
    eplb_topology_destroy(topology);
}

static void test_an_emptied_slot_has_changed(void **state)
{
    (void)state;
    eplb_topology *topology = topology_of(2, 1, 2, NULL);
    const int32_t old_slots[4] = {0, 0, 0, 1}, new_slots[4] = {0, -1, 1, 0};
    eplb_placement *before, *after;
    assert_int_equal(eplb_placement_create(&before, topology, 1, 2, old_slots, NULL, NULL), EPLB_OK);
    assert_int_equal(eplb_placement_create(&after, topology, 1, 2, new_slots, NULL, NULL), EPLB_OK);
    eplb_move_count total;
    assert_int_equal(eplb_placement_count_moves(before, after, &total, NULL, NULL, NULL), EPLB_OK);
    assert_int_equal(total.slots, 3);
    assert_int_equal(total.received, 0);
    eplb_placement_destroy(before);
    eplb_placement_destroy(after);
    eplb_topology_destroy(topology);
}

static void test_moves_after_a_death(void **state)
{
    (void)state;
    const uint8_t alive[3] = {1, 1, 0};
    eplb_topology *all = topology_of(3, 1, 2, NULL), *some = topology_of(3, 1, 2, alive);
    const int32_t old_slots[6] = {0, 1, 2, 0, 3, 1}, new_slots[6] = {0, 3, 2, 1, -1, -1};
    eplb_placement *before, *after;
    assert_int_equal(eplb_placement_create(&before, all, 1, 4, old_slots, NULL, NULL), EPLB_OK);
    assert_int_equal(eplb_placement_create(&after, some, 1, 4, new_slots, NULL, NULL), EPLB_OK);
    eplb_move_count total;
    assert_int_equal(eplb_placement_count_moves(before, after, &total, NULL, NULL, NULL), EPLB_OK);
    assert_int_equal(total.received, 2); /* 3 on rank 0, 1 on rank 1 */
    assert_int_equal(total.lost, 1);     /* 3 lived on the dead rank alone */
    eplb_placement_destroy(before);
    eplb_placement_destroy(after);
    eplb_topology_destroy(all);
    eplb_topology_destroy(some);
}

/* One side of a change: ranks with their slots, some of them dead. */
typedef struct side {
    int32_t ranks, nodes, rank_slots[6], first[7], slots[24];
    uint8_t alive[6];
    eplb_placement *placement;
} side;

static void draw_side(side *s, random_state *random, int32_t experts)
{
    *s = (side){.ranks = 1 + (int32_t)random_below(random, 6)};
    s->nodes = 1 + (int32_t)random_below(random, (uint32_t)s->ranks);
    for (int32_t g = 0; g < s->ranks; g++) {
        s->rank_slots[g] = 1 + (int32_t)random_below(random, 4);
        s->alive[g] = g == 0 || random_below(random, 5) > 0;
        s->first[g + 1] = s->first[g] + s->rank_slots[g];
    }
    for (int32_t p = 0; p < s->first[s->ranks]; p++)
        s->slots[p] = (int32_t)random_below(random, (uint32_t)experts + 1) - 1;
    eplb_topology_params params;
    eplb_topology *topology;
    eplb_topology_params_init(&params, sizeof params);
    params.num_ranks = s->ranks;
    params.num_nodes = s->nodes;
    params.rank_slots = s->rank_slots;
    params.rank_alive = s->alive;
    assert_int_equal(eplb_topology_create(&topology, &params, NULL, NULL), EPLB_OK);
    assert_int_equal(eplb_placement_create(&s->placement, topology, 1, experts, s->slots, NULL, NULL),
                     EPLB_OK);
    eplb_topology_destroy(topology);
}

static bool holds(const side *s, int32_t rank, int32_t expert)
{
    for (int32_t p = s->first[rank]; p < s->first[rank + 1] && s->alive[rank]; p++) {
        if (s->slots[p] == expert)
            return true;
    }
    return false;
}

/* Whether the rank held the expert before and can send it: it lives, or leaves. Sets its node. */
static bool can_send(const side *before, const side *after, int32_t rank, int32_t expert, int32_t *node)
{
    bool leaves = rank >= after->ranks;
    *node = leaves ? rank * before->nodes / before->ranks : rank * after->nodes / after->ranks;
    return holds(before, rank, expert) && (leaves || after->alive[rank]);
}

static int64_t slots_changed(const side *before, const side *after, int32_t rank)
{
    bool stays = rank < before->ranks;
    int64_t changed = 0;
    for (int32_t i = 0; i < after->rank_slots[rank]; i++) {
        int32_t now = after->slots[after->first[rank] + i], then = -1;
        if (stays && i < before->rank_slots[rank])
            then = before->slots[before->first[rank] + i];
        changed += now != then && (now >= 0 || (stays && before->alive[rank]));
    }
    return changed;
}

/* From the definitions. */
static eplb_move_count count_plainly(const side *before, const side *after, int32_t experts)
{
    eplb_move_count count = {0};
    for (int32_t g = 0; g < after->ranks; g++) {
        int64_t received = 0;
        count.slots += after->alive[g] ? slots_changed(before, after, g) : 0;
        for (int32_t e = 0; e < experts; e++) {
            if (!holds(after, g, e) || (g < before->ranks && holds(before, g, e)))
                continue;
            bool near = false, any = false;
            for (int32_t r = 0; r < before->ranks; r++) {
                int32_t node;
                bool sends = can_send(before, after, r, e, &node);
                any |= sends;
                near |= sends && node == g * after->nodes / after->ranks;
            }
            received++;
            count.cross_node += any && !near;
            count.lost += !any;
        }
        count.received += received;
        if (received > count.max_received_per_rank)
            count.max_received_per_rank = received;
    }
    return count;
}

/* Also between other numbers of ranks and slots, and with dead ranks. */
static void test_moves_match_their_definition(void **state)
{
    (void)state;
    random_state random = random_seed(11);
    for (int round = 0; round < 2000; round++) {
        int32_t experts = 1 + (int32_t)random_below(&random, 8);
        side before, after;
        draw_side(&before, &random, experts);
        draw_side(&after, &random, experts);
        eplb_move_count total, plain = count_plainly(&before, &after, experts);
        assert_int_equal(
            eplb_placement_count_moves(before.placement, after.placement, &total, NULL, NULL, NULL), EPLB_OK);
        assert_memory_equal(&total, &plain, sizeof total);
        eplb_placement_destroy(before.placement);
        eplb_placement_destroy(after.placement);
    }
}

static void test_moves_refuse_other_models(void **state)
{
    (void)state;
    eplb_topology *two = topology_of(2, 1, 3, NULL), *three = topology_of(3, 1, 2, NULL);
    const int32_t slots[6] = {0, 1, 0, 1, 0, 1};
    eplb_placement *a, *b;
    eplb_move_count total;
    assert_int_equal(eplb_placement_create(&a, two, 1, 2, slots, NULL, NULL), EPLB_OK);
    assert_int_equal(eplb_placement_create(&b, three, 1, 3, slots, NULL, NULL), EPLB_OK);
    assert_int_equal(eplb_placement_count_moves(a, b, &total, NULL, NULL, NULL), EPLB_ERROR_INVALID);
    assert_false(eplb_placement_equal(a, b));
    eplb_placement_destroy(a);
    eplb_placement_destroy(b);
    eplb_placement_destroy(NULL);
    eplb_topology_destroy(two);
    eplb_topology_destroy(three);
    assert_int_equal(eplb_placement_is_valid(NULL, NULL), EPLB_ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inverses),
        cmocka_unit_test(test_initial_layout_skips_dead_ranks),
        cmocka_unit_test(test_create_refuses_unknown_experts),
        cmocka_unit_test(test_every_problem_is_reported),
        cmocka_unit_test(test_duplicates_are_legal_when_ranks_run_out),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_an_emptied_slot_has_changed),
        cmocka_unit_test(test_moves_after_a_death),
        cmocka_unit_test(test_moves_match_their_definition),
        cmocka_unit_test(test_moves_refuse_other_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
