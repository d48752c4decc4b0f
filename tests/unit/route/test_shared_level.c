/* Shared-expert levelling against brute force: the least largest load, the price, the floor, conservation. */
#include "testing.h"

#include <string.h>

#include <eplb/route.h>

#include "base/random.h"

#define MAX_G 80

static eplb_topology *make_topology(int32_t ranks, int32_t nodes, const uint8_t *alive)
{
    eplb_topology_params params;
    eplb_topology_params_init(&params, sizeof params);
    params.num_ranks = ranks;
    params.num_nodes = nodes;
    params.slots_per_rank = 1;
    params.rank_alive = alive;
    eplb_topology *topology;
    assert_int_equal(eplb_topology_create(&topology, &params, NULL, NULL), EPLB_OK);
    return topology;
}

/* Cost in thousandths: largest load and price of what left its rank, at the best level found by trying
 * all. */
static int64_t best_cost(int32_t ranks, const uint8_t *alive, const int64_t *routed, const int64_t *tokens,
                         const eplb_shared_params *params)
{
    int64_t best = INT64_MAX, top = 0;
    for (int32_t g = 0; g < ranks; g++)
        top = routed[g] + tokens[g] > top ? routed[g] + tokens[g] : top;
    for (int64_t level = 0; level <= top; level++) {
        int64_t leave = 0, room = 0;
        int possible = 1;
        for (int32_t g = 0; g < ranks; g++) {
            int64_t all = routed[g] + tokens[g], may = tokens[g] < params->batch_floor ? 0 : tokens[g];
            if (!alive[g])
                continue;
            possible &= all - level <= may;
            leave += all > level ? all - level : 0;
            room += all < level ? level - all : 0;
        }
        int64_t cost = 1000 * level + params->price_per_mille * leave;
        if (possible && leave <= room && cost < best)
            best = cost;
    }
    return best;
}

/* Conservation and the floor; returns the cost in thousandths. */
static int64_t check_parts(int32_t ranks, const uint8_t *alive, const int64_t *routed, const int64_t *tokens,
                           const eplb_shared_params *params, const int64_t *part)
{
    int64_t load[MAX_G], leave = 0, top = 0;
    memcpy(load, routed, (size_t)ranks * sizeof *load);
    for (int32_t s = 0; s < ranks; s++) {
        int64_t sum = 0;
        for (int32_t g = 0; g < ranks; g++) {
            int64_t here = part[s * ranks + g];
            assert_true(here >= 0 && (here == 0 || alive[g]));
            sum += here;
            load[g] += here;
            leave += g != s ? here : 0;
        }
        assert_int_equal(sum, tokens[s]);
        if (tokens[s] < params->batch_floor)
            assert_int_equal(part[s * ranks + s], tokens[s]);
    }
    for (int32_t g = 0; g < ranks; g++)
        top = load[g] > top ? load[g] : top;
    return 1000 * top + params->price_per_mille * leave;
}

/* Tokens that must leave their node at the level of `part`: what its ranks have above it, less the room of
 * the others. */
static void check_nodes(const eplb_topology *topology, const int64_t *routed, const int64_t *tokens,
                        const int64_t *part)
{
    int32_t ranks = eplb_topology_num_ranks(topology);
    const int32_t *node = eplb_topology_rank_node(topology);
    int64_t level = 0, cross = 0, least = 0, load[MAX_G];
    memcpy(load, routed, (size_t)ranks * sizeof *load);
    for (int32_t i = 0; i < ranks * ranks; i++) {
        load[i % ranks] += part[i];
        cross += node[i / ranks] != node[i % ranks] ? part[i] : 0;
    }
    for (int32_t g = 0; g < ranks; g++)
        level = load[g] > level ? load[g] : level;
    for (int32_t n = 0; n < eplb_topology_num_nodes(topology); n++) {
        int64_t over = 0;
        for (int32_t g = 0; g < ranks; g++)
            over += node[g] == n && eplb_topology_rank_alive(topology)[g] ? routed[g] + tokens[g] - level : 0;
        least += over > 0 ? over : 0;
    }
    assert_int_equal(cross, least);
}

/* The emptiest rank is on another node: only the four tokens that their own node has no room for go there. */
static void nodes_keep_what_they_can(void **state)
{
    (void)state;
    static const int32_t rank_node[] = {0, 0, 0, 0, 0, 1};
    static const int64_t routed[] = {1, 8, 4, 9, 9, 2}, tokens[] = {8, 2, 5, 7, 6, 0};
    int64_t part[36];
    eplb_topology_params tp;
    eplb_topology_params_init(&tp, sizeof tp);
    tp.num_ranks = 6;
    tp.num_nodes = 2;
    tp.slots_per_rank = 1;
    tp.rank_node = rank_node;
    eplb_topology *topology;
    assert_int_equal(eplb_topology_create(&topology, &tp, NULL, NULL), EPLB_OK);
    eplb_shared_params params;
    eplb_shared_params_init(&params, sizeof params);
    params.batch_floor = 0;
    assert_int_equal(eplb_shared_level(topology, routed, tokens, &params, part, NULL, NULL), EPLB_OK);
    check_nodes(topology, routed, tokens, part);
    eplb_topology_destroy(topology);
}

static void global_is_cheapest(void **state)
{
    (void)state;
    random_state random = random_seed(41);
    static int64_t part[MAX_G * MAX_G];
    for (int round = 0; round < 3000; round++) {
        int32_t ranks = (int32_t)(1 + random_below(&random, round % 20 == 0 ? MAX_G : 6));
        uint8_t alive[MAX_G];
        int64_t routed[MAX_G], tokens[MAX_G];
        for (int32_t g = 0; g < ranks; g++) {
            alive[g] = g == 0 || random_below(&random, 8) > 0;
            routed[g] = alive[g] * (int64_t)random_below(&random, 60);
            tokens[g] = alive[g] * (int64_t)random_below(&random, 40);
        }
        eplb_topology *topology = make_topology(ranks, ranks > 2 ? ranks / 3 + 1 : 1, alive);
        eplb_shared_params params;
        eplb_shared_params_init(&params, sizeof params);
        params.batch_floor = random_below(&random, 3) * 10;
        params.price_per_mille = (int32_t)random_below(&random, 5) * 260;
        eplb_error error;
        assert_int_equal(eplb_shared_level(topology, routed, tokens, &params, part, NULL, &error), EPLB_OK);
        assert_int_equal(check_parts(ranks, alive, routed, tokens, &params, part),
                         best_cost(ranks, alive, routed, tokens, &params));
        check_nodes(topology, routed, tokens, part);
        eplb_topology_destroy(topology);
    }
}

static void own_counts_are_levelled(void **state)
{
    (void)state;
    random_state random = random_seed(42);
    for (int round = 0; round < 3000; round++) {
        int32_t ranks = (int32_t)(1 + random_below(&random, 70)), source;
        int64_t routed[MAX_G], part[MAX_G], tokens = random_below(&random, 300), sum = 0, top = 0, least = 0;
        for (int32_t g = 0; g < ranks; g++)
            routed[g] = random_below(&random, 40);
        source = (int32_t)random_below(&random, (uint32_t)ranks);
        eplb_topology *topology = make_topology(ranks, 1 + (ranks - 1) / 8, NULL);
        eplb_shared_params params;
        eplb_shared_params_init(&params, sizeof params);
        assert_int_equal(eplb_shared_level_own(topology, source, routed, tokens, &params, part, NULL, NULL),
                         EPLB_OK);
        for (int32_t g = 0; g < ranks; g++) {
            assert_true(part[g] >= 0);
            sum += part[g];
            top = routed[g] + part[g] > top ? routed[g] + part[g] : top;
        }
        assert_int_equal(sum, tokens);
        if (tokens < 64) {
            assert_int_equal(part[source], tokens);
        } else {
            for (int64_t room = 0; room < tokens || least < 39; least++) {
                int fits = 1;
                room = 0;
                for (int32_t g = 0; g < ranks; g++) {
                    fits &= routed[g] <= least;
                    room += routed[g] < least ? least - routed[g] : 0;
                }
                if (fits && room >= tokens)
                    break;
            }
            assert_int_equal(top, least);
        }
        params.price_per_mille = 1001;
        assert_int_equal(eplb_shared_level_own(topology, source, routed, tokens, &params, part, NULL, NULL),
                         EPLB_OK);
        assert_int_equal(part[source], tokens);
        eplb_topology_destroy(topology);
    }
}

static void own_node_comes_first(void **state)
{
    (void)state;
    eplb_topology *topology = make_topology(4, 2, NULL);
    eplb_shared_params params;
    eplb_shared_params_init(&params, sizeof params);
    int64_t routed[4] = {0, 0, 0, 0}, tokens[4] = {200, 0, 0, 0}, part[16], own[4];
    assert_int_equal(eplb_shared_level(topology, routed, tokens, &params, part, NULL, NULL), EPLB_OK);
    for (int g = 0; g < 4; g++)
        assert_int_equal(part[g], 50);
    routed[0] = 100; /* ranks 1 to 3 have room for all that leaves; rank 1 is on the node of rank 0 */
    assert_int_equal(eplb_shared_level_own(topology, 0, routed, 64, &params, own, NULL, NULL), EPLB_OK);
    assert_int_equal(own[0], 0);
    assert_int_equal(own[1], 64);
    eplb_topology_destroy(topology);
}

static void refuses_bad_counts(void **state)
{
    (void)state;
    uint8_t alive[2] = {1, 0};
    eplb_topology *topology = make_topology(2, 1, alive);
    eplb_shared_params params;
    eplb_shared_params_init(&params, sizeof params);
    int64_t part[4];
    eplb_error error;
    assert_int_equal(
        eplb_shared_level(topology, (int64_t[]){0, 0}, (int64_t[]){1, 1}, &params, part, NULL, &error),
        EPLB_ERROR_INVALID);
    assert_int_equal(error.rank, 1);
    assert_int_equal(
        eplb_shared_level(topology, (int64_t[]){-4, 0}, (int64_t[]){1, 0}, &params, part, NULL, &error),
        EPLB_ERROR_INVALID);
    assert_int_equal(error.value, -4);
    assert_int_equal(eplb_shared_level(topology, (int64_t[]){INT64_MAX, 0}, (int64_t[]){1, 0}, &params, part,
                                       NULL, &error),
                     EPLB_ERROR_OVERFLOW);
    assert_int_equal(eplb_shared_level_own(topology, 1, (int64_t[]){0, 0}, 5, &params, part, NULL, &error),
                     EPLB_ERROR_INVALID);
    eplb_topology_destroy(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_keep_what_they_can), cmocka_unit_test(global_is_cheapest),
        cmocka_unit_test(own_counts_are_levelled),  cmocka_unit_test(own_node_comes_first),
        cmocka_unit_test(refuses_bad_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
