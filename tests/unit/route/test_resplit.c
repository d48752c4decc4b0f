/* Re-split: exact against a general max-flow, most local against brute force, LPLB's answer near the optimum,
 * decode assignments against brute force. */
#include "testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <eplb/route.h>

#include "allocator.h"
#include "random_placement.h"
#include "reference/max_flow.h"

static eplb_resplit *make_resplit(const eplb_placement *placement)
{
    eplb_resplit *resplit;
    eplb_error error;
    assert_int_equal(eplb_resplit_create(&resplit, placement, 0, NULL, &error), EPLB_OK);
    assert_true(eplb_resplit_is_valid(resplit));
    return resplit;
}

/* Live replicas by expert, as ranks, for the references. */
typedef struct replicas {
    int32_t first[65];
    int32_t rank[512];
    int32_t slot[512];
} replicas;

static replicas list_replicas(const eplb_placement *placement)
{
    replicas r = {{0}, {0}, {0}};
    const eplb_topology *topology = eplb_placement_topology(placement);
    int32_t n = 0;
    for (int32_t e = 0; e < eplb_placement_num_experts(placement); e++) {
        for (int32_t p = 0; p < eplb_placement_num_slots(placement); p++) {
            int32_t g = eplb_topology_slot_rank(topology)[p];
            if (eplb_placement_physical_to_logical(placement)[p] == e &&
                eplb_topology_rank_alive(topology)[g]) {
                r.rank[n] = g;
                r.slot[n++] = p;
            }
        }
        r.first[e + 1] = n;
    }
    return r;
}

static void check_quota(const eplb_placement *placement, const int64_t *load, const int64_t *quota)
{
    const eplb_topology *topology = eplb_placement_topology(placement);
    int64_t sum[64] = {0};
    for (int32_t p = 0; p < eplb_placement_num_slots(placement); p++) {
        int32_t e = eplb_placement_physical_to_logical(placement)[p];
        assert_true(quota[p] >= 0);
        if (e < 0 || !eplb_topology_rank_alive(topology)[eplb_topology_slot_rank(topology)[p]])
            assert_int_equal(quota[p], 0);
        else
            sum[e] += quota[p];
    }
    for (int32_t e = 0; e < eplb_placement_num_experts(placement); e++)
        assert_int_equal(sum[e], load[e]);
}

static int64_t largest_load(const eplb_placement *placement, const int64_t *quota)
{
    const int32_t *slot_rank = eplb_topology_slot_rank(eplb_placement_topology(placement));
    int64_t load[64] = {0}, largest = 0;
    for (int32_t p = 0; p < eplb_placement_num_slots(placement); p++)
        load[slot_rank[p]] += quota[p];
    for (int g = 0; g < 64; g++)
        largest = load[g] > largest ? load[g] : largest;
    return largest;
}

static void equals_max_flow(void **state)
{
    (void)state;
    random_state random = random_seed(31);
    for (int round = 0; round < 80; round++) {
        placement_shape shape = {1, 40, 16, 4, 4, (int32_t)random_below(&random, 4), 0};
        eplb_placement *placement = random_placement(&random, shape);
        eplb_resplit *resplit = make_resplit(placement);
        replicas r = list_replicas(placement);
        int64_t load[40], quota[64];
        eplb_resplit_result result;
        for (int step = 0; step < 3; step++) {
            for (int e = 0; e < 40; e++)
                load[e] =
                    random_below(&random, 4) == 0 ? random_below(&random, 3000) : random_below(&random, 100);
            eplb_error error;
            assert_int_equal(eplb_resplit_solve(resplit, load, step > 0, quota, &result, &error), EPLB_OK);
            check_quota(placement, load, quota);
            int64_t best = max_flow_min_max(40, 16, r.first, r.rank, load);
            assert_int_equal(result.max_load, best);
            assert_int_equal(largest_load(placement, quota), best);
            assert_int_equal((result.bound_load + result.bound_speed - 1) / result.bound_speed, best);
            uint8_t expert[40], rank[16];
            int64_t sum = 0, ranks = 0;
            eplb_resplit_tight_experts(resplit, expert);
            eplb_resplit_tight_ranks(resplit, rank);
            for (int e = 0; e < 40; e++)
                sum += expert[e] ? load[e] : 0;
            for (int g = 0; g < 16; g++)
                ranks += rank[g];
            assert_int_equal(sum, result.bound_load);
            assert_int_equal(ranks, result.bound_speed);
        }
        eplb_resplit_destroy(resplit);
        eplb_placement_destroy(placement);
    }
}

/* --- locality
 * ------------------------------------------------------------------------------------------------- */

#define SMALL_E 4
#define SMALL_G 4

typedef struct search {
    const replicas *r;
    const int32_t *rank_node;
    const int64_t *source; /* [G, E] */
    const int64_t *load;
    int64_t most; /* rank load allowed */
    int64_t rank_load[SMALL_G];
    int64_t quota[64];
    int64_t best;
} search;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Cost of one expert's quotas: what its sources cannot be served on their rank, and on their node. */
static int64_t cost_of(const search *s, int32_t e)
{
    int64_t by_rank[SMALL_G] = {0}, cost = 4 * s->load[e];
    for (int32_t i = s->r->first[e]; i < s->r->first[e + 1]; i++)
        by_rank[s->r->rank[i]] += s->quota[i];
    for (int32_t g = 0; g < SMALL_G; g++)
        cost -= least(by_rank[g], s->source[g * SMALL_E + e]);
    for (int32_t node = 0; node < 2; node++) {
        int64_t served = 0, start = 0;
        for (int32_t g = 0; g < SMALL_G; g++) {
            served += s->rank_node[g] == node ? by_rank[g] : 0;
            start += s->rank_node[g] == node ? s->source[g * SMALL_E + e] : 0;
        }
        cost -= 3 * least(served, start);
    }
    return cost;
}

static void try_replica(search *s, int32_t e, int32_t i, int64_t left, int64_t cost)
{
    if (cost >= s->best)
        return;
    if (e == SMALL_E) {
        s->best = cost;
        return;
    }
    if (i == s->r->first[e + 1]) {
        if (left == 0)
            try_replica(s, e + 1, i, e + 1 < SMALL_E ? s->load[e + 1] : 0, cost + cost_of(s, e));
        return;
    }
    int32_t g = s->r->rank[i];
    for (int64_t q = 0; q <= left && s->rank_load[g] + q <= s->most; q++) {
        s->quota[i] = q;
        s->rank_load[g] += q;
        try_replica(s, e, i + 1, left - q, cost);
        s->rank_load[g] -= q;
    }
}

static void local_is_cheapest(void **state)
{
    (void)state;
    random_state random = random_seed(32);
    for (int round = 0; round < 300; round++) {
        eplb_placement *placement =
            random_placement(&random, (placement_shape){1, SMALL_E, SMALL_G, 2, 2, 0, 0});
        eplb_resplit *resplit = make_resplit(placement);
        replicas r = list_replicas(placement);
        int64_t source[SMALL_G * SMALL_E], load[SMALL_E] = {0}, quota[8], part[SMALL_G * 8];
        for (int i = 0; i < SMALL_G * SMALL_E; i++) {
            source[i] = random_below(&random, 4);
            load[i % SMALL_E] += source[i];
        }
        eplb_resplit_result result, plain;
        int64_t other[8];
        eplb_error error;
        assert_int_equal(eplb_resplit_solve_local(resplit, source, quota, &result, &error), EPLB_OK);
        check_quota(placement, load, quota);
        assert_int_equal(eplb_resplit_solve(resplit, load, false, other, &plain, &error), EPLB_OK);
        assert_int_equal(result.max_load, plain.max_load);
        assert_int_equal(largest_load(placement, quota), plain.max_load);
        search s = {.r = &r,
                    .rank_node = eplb_topology_rank_node(eplb_placement_topology(placement)),
                    .source = source,
                    .load = load,
                    .most = plain.max_load,
                    .best = INT64_MAX};
        try_replica(&s, 0, 0, load[0], 0);
        assert_int_equal(result.cross_rank + 3 * result.cross_node, s.best);
        /* The parts by source reach what was counted. */
        assert_int_equal(eplb_resplit_by_source(resplit, source, quota, part, &error), EPLB_OK);
        int64_t cross_rank = 0, cross_node = 0;
        for (int32_t g = 0; g < SMALL_G; g++) {
            int64_t sent[SMALL_E] = {0};
            for (int32_t p = 0; p < 8; p++) {
                int32_t e = eplb_placement_physical_to_logical(placement)[p], to = p / 2;
                assert_true(part[g * 8 + p] >= 0);
                if (e >= 0)
                    sent[e] += part[g * 8 + p];
                cross_rank += to != g ? part[g * 8 + p] : 0;
                cross_node += s.rank_node[to] != s.rank_node[g] ? part[g * 8 + p] : 0;
            }
            for (int32_t e = 0; e < SMALL_E; e++)
                assert_int_equal(sent[e], source[g * SMALL_E + e]);
        }
        for (int32_t p = 0; p < 8; p++) {
            int64_t sum = 0;
            for (int32_t g = 0; g < SMALL_G; g++)
                sum += part[g * 8 + p];
            assert_int_equal(sum, quota[p]);
        }
        assert_int_equal(cross_rank, result.cross_rank);
        assert_int_equal(cross_node, result.cross_node);
        quota[0]++;
        assert_int_equal(eplb_resplit_by_source(resplit, source, quota, part, &error), EPLB_ERROR_INVALID);
        eplb_resplit_destroy(resplit);
        eplb_placement_destroy(placement);
    }
}

static void local_keeps_the_optimum_with_speeds(void **state)
{
    (void)state;
    random_state random = random_seed(33);
    for (int round = 0; round < 100; round++) {
        placement_shape shape = {1, 30, 12, 3, 4, (int32_t)random_below(&random, 3), 1};
        eplb_placement *placement = random_placement(&random, shape);
        const eplb_topology *topology = eplb_placement_topology(placement);
        eplb_resplit *resplit = make_resplit(placement);
        int64_t source[12 * 30], load[30] = {0}, quota[2][48];
        for (int i = 0; i < 12 * 30; i++) {
            source[i] = random_below(&random, 50);
            load[i % 30] += source[i];
        }
        eplb_resplit_result result[2];
        eplb_error error;
        assert_int_equal(eplb_resplit_solve(resplit, load, false, quota[0], &result[0], &error), EPLB_OK);
        assert_int_equal(eplb_resplit_solve_local(resplit, source, quota[1], &result[1], &error), EPLB_OK);
        double worst[2] = {0.0, 0.0};
        for (int k = 0; k < 2; k++) {
            double rank[12] = {0.0};
            check_quota(placement, load, quota[k]);
            for (int p = 0; p < 48; p++)
                rank[p / 4] += (double)quota[k][p] / (double)eplb_topology_rank_speed(topology)[p / 4];
            for (int g = 0; g < 12; g++)
                worst[k] = rank[g] > worst[k] ? rank[g] : worst[k];
        }
        assert_true(fabs(worst[0] - worst[1]) < 1e-9);
        eplb_resplit_destroy(resplit);
        eplb_placement_destroy(placement);
    }
}

/* --- the others
 * ------------------------------------------------------------------------------------------------- */

static void lplb_comes_near(void **state)
{
    (void)state;
    random_state random = random_seed(34);
    int num_accepted = 0;
    double ratio = 0.0;
    for (int round = 0; round < 40; round++) {
        eplb_placement *placement = random_placement(&random, (placement_shape){1, 48, 8, 1, 7, 0, 0});
        eplb_resplit *resplit = make_resplit(placement);
        int64_t load[48], quota[56];
        double share[56], rank[8] = {0.0}, worst = 0.0;
        for (int e = 0; e < 48; e++)
            load[e] = 200 + random_below(&random, 400);
        bool accepted;
        eplb_resplit_result result;
        eplb_error error;
        assert_int_equal(eplb_resplit_solve(resplit, load, false, quota, &result, &error), EPLB_OK);
        assert_int_equal(eplb_resplit_lplb(resplit, load, 5, share, &accepted, &error), EPLB_OK);
        double sum[48] = {0.0};
        for (int p = 0; p < 56; p++) {
            int32_t e = eplb_placement_physical_to_logical(placement)[p];
            if (e < 0)
                continue;
            sum[e] += share[p];
            rank[p / 7] += share[p] * (double)load[e];
        }
        for (int e = 0; e < 48; e++)
            assert_true(fabs(sum[e] - 1.0) < 1e-9);
        for (int g = 0; g < 8; g++)
            worst = rank[g] > worst ? rank[g] : worst;
        num_accepted += accepted;
        ratio += worst / (double)result.max_load / 40.0;
        assert_true(worst * (double)result.bound_speed >= (double)result.bound_load * 0.9999);
        /* No step: the test fails and replicas share equally. */
        assert_int_equal(eplb_resplit_lplb(resplit, load, 0, share, &accepted, &error), EPLB_OK);
        assert_false(accepted);
        eplb_resplit_destroy(resplit);
        eplb_placement_destroy(placement);
    }
    assert_true(num_accepted > 20);
    assert_true(ratio < 1.05);
}

/* Least largest number of activated replicas, by trying all choices. */
static int32_t fewest_activated(const replicas *r, const int64_t *tokens, int32_t e, int32_t num_experts,
                                int32_t *count, int32_t best)
{
    int32_t largest = 0;
    for (int g = 0; g < 8; g++)
        largest = count[g] > largest ? count[g] : largest;
    if (largest >= best)
        return best;
    if (e == num_experts)
        return largest;
    if (tokens[e] == 0)
        return fewest_activated(r, tokens, e + 1, num_experts, count, best);
    for (int32_t i = r->first[e]; i < r->first[e + 1]; i++) {
        count[r->rank[i]]++;
        best = fewest_activated(r, tokens, e + 1, num_experts, count, best);
        count[r->rank[i]]--;
    }
    return best;
}

static void activates_the_fewest(void **state)
{
    (void)state;
    random_state random = random_seed(35);
    for (int round = 0; round < 300; round++) {
        placement_shape shape = {1, 12, 6, 2, 4, (int32_t)random_below(&random, 2), 1};
        eplb_placement *placement = random_placement(&random, shape);
        eplb_resplit *resplit = make_resplit(placement);
        replicas r = list_replicas(placement);
        int64_t tokens[12];
        int32_t slot[12], most, count[8] = {0}, seen[8] = {0};
        for (int e = 0; e < 12; e++)
            tokens[e] = random_below(&random, 3) == 0 ? 0 : random_below(&random, 20);
        eplb_error error;
        assert_int_equal(eplb_resplit_activate(resplit, tokens, slot, &most, &error), EPLB_OK);
        for (int e = 0; e < 12; e++) {
            if (tokens[e] == 0) {
                assert_int_equal(slot[e], -1);
                continue;
            }
            int found = 0;
            for (int32_t i = r.first[e]; i < r.first[e + 1]; i++)
                found |= r.slot[i] == slot[e];
            assert_true(found);
            seen[slot[e] / 4]++;
        }
        for (int g = 0; g < 6; g++)
            assert_true(seen[g] <= most);
        assert_int_equal(most, fewest_activated(&r, tokens, 0, 12, count, 13));
        eplb_resplit_destroy(resplit);
        eplb_placement_destroy(placement);
    }
}

static void refuses_bad_counts(void **state)
{
    (void)state;
    eplb_topology_params tp;
    eplb_topology_params_init(&tp, sizeof tp);
    tp.num_ranks = 2;
    tp.slots_per_rank = 1;
    uint8_t alive[2] = {1, 0};
    tp.rank_alive = alive;
    eplb_topology *topology;
    int32_t held[2] = {0, 1};
    eplb_placement *placement;
    assert_int_equal(eplb_topology_create(&topology, &tp, NULL, NULL), EPLB_OK);
    assert_int_equal(eplb_placement_create(&placement, topology, 1, 2, held, NULL, NULL), EPLB_OK);
    eplb_resplit *resplit = make_resplit(placement);
    int64_t quota[2];
    eplb_error error;
    assert_int_equal(eplb_resplit_solve(resplit, (int64_t[]){5, 0}, false, quota, NULL, &error), EPLB_OK);
    assert_int_equal(quota[0], 5);
    assert_int_equal(eplb_resplit_solve(resplit, (int64_t[]){5, 1}, false, quota, NULL, &error),
                     EPLB_ERROR_INVALID);
    assert_int_equal(error.expert, 1);
    assert_int_equal(eplb_resplit_solve(resplit, (int64_t[]){-5, 0}, false, quota, NULL, &error),
                     EPLB_ERROR_INVALID);
    assert_int_equal(error.value, -5);
    assert_int_equal(eplb_resplit_solve_local(resplit, (int64_t[]){1, 0, -1, 0}, quota, NULL, &error),
                     EPLB_ERROR_INVALID);
    assert_int_equal(
        eplb_resplit_solve_local(resplit, (int64_t[]){INT64_MAX, 0, INT64_MAX, 0}, quota, NULL, &error),
        EPLB_ERROR_OVERFLOW);
    eplb_resplit *none;
    assert_int_equal(eplb_resplit_create(&none, placement, 1, NULL, &error), EPLB_ERROR_INVALID);
    eplb_resplit_destroy(resplit);
    eplb_placement_destroy(placement);
    eplb_topology_destroy(topology);
}

/* Memory is taken at creation only: exact and local solves, warm or not, never ask again. */
static void solves_never_allocate(void **state)
{
    (void)state;
    random_state random = random_seed(36);
    eplb_placement *placement = random_placement(&random, (placement_shape){1, 48, 16, 4, 4, 0, 0});
    int64_t source[16 * 48], load[48] = {0}, quota[64], part[16 * 64];
    for (int i = 0; i < 16 * 48; i++) {
        source[i] = random_below(&random, 300);
        load[i % 48] += source[i];
    }
    for (int64_t fail_at = 0;; fail_at++) {
        test_allocator memory = test_allocator_make(fail_at);
        eplb_allocator allocator = test_allocator_use(&memory);
        eplb_resplit *resplit;
        eplb_status status = eplb_resplit_create(&resplit, placement, 0, &allocator, NULL);
        if (status != EPLB_OK) {
            assert_int_equal(status, EPLB_ERROR_MEMORY);
            assert_int_equal(memory.num_live, 0);
            continue;
        }
        int64_t made = memory.num_made;
        int32_t slot[48];
        for (int step = 0; step < 3; step++) {
            assert_int_equal(eplb_resplit_solve(resplit, load, step > 0, quota, NULL, NULL), EPLB_OK);
            assert_int_equal(eplb_resplit_solve_local(resplit, source, quota, NULL, NULL), EPLB_OK);
            assert_int_equal(eplb_resplit_by_source(resplit, source, quota, part, NULL), EPLB_OK);
            assert_int_equal(eplb_resplit_activate(resplit, load, slot, NULL, NULL), EPLB_OK);
        }
        assert_int_equal(memory.num_made, made);
        eplb_resplit_destroy(resplit);
        assert_int_equal(memory.num_live, 0);
        break;
    }
    eplb_placement_destroy(placement);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_max_flow),       cmocka_unit_test(local_is_cheapest),
        cmocka_unit_test(lplb_comes_near),       cmocka_unit_test(local_keeps_the_optimum_with_speeds),
        cmocka_unit_test(activates_the_fewest),  cmocka_unit_test(refuses_bad_counts),
        cmocka_unit_test(solves_never_allocate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
