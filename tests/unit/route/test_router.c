/* Router: tables deliver what they promise, never a dead slot, and readers see whole tables while they are
 * replaced. */
#include "nouns.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <eplb/route.h>

#include "allocator.h"
#include "random_placement.h"

static eplb_router *make_router(const eplb_placement *placement, eplb_route_rule rule, int32_t source,
                                int32_t limit)
{
    eplb_router_params params;
    eplb_router_params_init(&params, sizeof params);
    params.topology = eplb_placement_topology(placement);
    params.num_layers = eplb_placement_num_layers(placement);
    params.num_experts = eplb_placement_num_experts(placement);
    params.rule = rule;
    params.source_rank = source;
    params.row_limit = limit;
    eplb_router *router;
    eplb_error error;
    assert_int_equal(eplb_router_create(&router, &params, NULL, &error), EPLB_OK);
    return router;
}

static void update(eplb_router *router, const eplb_placement *placement, const double *shares)
{
    eplb_error error;
    assert_int_equal(
        eplb_router_update(router, 0, eplb_placement_num_layers(placement), placement, shares, NULL, &error),
        EPLB_OK);
    assert_true(eplb_router_is_valid(router));
}

static void empty_tables_select_nothing(void **state)
{
    (void)state;
    random_state random = random_seed(1);
    eplb_placement *placement = random_placement(&random, (placement_shape){1, 4, 2, 1, 3, 0, 0});
    eplb_router *router = make_router(placement, EPLB_ROUTE_QUOTA, -1, 16);
    uint64_t epoch = 99;
    const int32_t *block = eplb_router_acquire(router, 0, &epoch);
    eplb_route_table table = eplb_route_table_at(block);
    int32_t position[4] = {0};
    assert_int_equal(epoch, 0);
    assert_int_equal(eplb_select_quota(&table, 0, 0), -1);
    assert_int_equal(eplb_select_equal(&table, 0, 0, 0), -1);
    assert_int_equal(eplb_select_next(&table, position, 3), -1);
    assert_int_equal(eplb_select_vllm(&table, 3, 1), -1);
    eplb_router_release(router, 0, block);
    eplb_router_destroy(router);
    eplb_placement_destroy(placement);
}

/* Every prefix of a row is within one token of the served share, and the served share within 1 / limit of the
 * asked. */
static void rows_deliver_the_shares(void **state)
{
    (void)state;
    random_state random = random_seed(2);
    for (int round = 0; round < 60; round++) {
        placement_shape shape = {2, 12, 8, 2, 4, (int32_t)random_below(&random, 3), 0};
        eplb_placement *placement = random_placement(&random, shape);
        double *shares = random_shares(&random, placement);
        eplb_router *router = make_router(placement, EPLB_ROUTE_QUOTA, -1, 64);
        update(router, placement, shares);
        assert_true(eplb_router_worst_error(router) <= 1.0 / 64);
        const eplb_topology *topology = eplb_placement_topology(placement);
        for (int32_t l = 0; l < 2; l++) {
            const int32_t *block = eplb_router_acquire(router, l, NULL);
            eplb_route_table table = eplb_route_table_at(block);
            for (int32_t e = 0; e < 12; e++) {
                double served[32] = {0};
                int32_t position[12] = {0};
                for (uint32_t n = 0; n < 500; n++) {
                    int32_t slot = eplb_select_quota(&table, e, n);
                    assert_int_equal(slot, eplb_select_next(&table, position, e));
                    assert_in_range(slot, 0, 31);
                    assert_int_equal(eplb_placement_physical_to_logical(placement)[l * 32 + slot], e);
                    assert_true(eplb_topology_rank_alive(topology)[eplb_topology_slot_rank(topology)[slot]]);
                    served[slot] += 1.0;
                    for (int32_t p = 0; p < 32; p++) {
                        int32_t held = eplb_placement_physical_to_logical(placement)[l * 32 + p];
                        double share = held == e ? shares[l * 32 + p] : 0.0;
                        assert_true(fabs(served[p] - (double)(n + 1) * share) < 1.0 + (double)(n + 1) / 64.0);
                    }
                }
            }
            eplb_router_release(router, l, block);
        }
        eplb_router_destroy(router);
        free(shares);
        eplb_placement_destroy(placement);
    }
}

/* The rule without rows: every prefix of 20,000 tokens is within one token of the shares, for any number of
 * replicas; counters of another table do no harm but to the first tokens. */
static void exact_choices_follow_the_shares(void **state)
{
    (void)state;
    random_state random = random_seed(12);
    for (int round = 0; round < 6; round++) {
        eplb_placement *placement = random_placement(&random, (placement_shape){1, 6, 8, 2, 4, round % 3, 0});
        double *shares = random_shares(&random, placement);
        eplb_router *router = make_router(placement, EPLB_ROUTE_QUOTA, -1, 64);
        update(router, placement, round == 0 ? NULL : shares);
        const int32_t *block = eplb_router_acquire(router, 0, NULL);
        eplb_route_table table = eplb_route_table_at(block);
        int32_t served[32] = {0}, other[32];
        assert_int_equal(eplb_select_exact(&table, served, -1), -1);
        assert_int_equal(eplb_select_exact(&table, served, 6), -1);
        for (int32_t e = 0; e < 6; e++) {
            double delivered[32] = {0}, share[32] = {0}, sum = 0;
            for (int32_t i = table.replica_first[e]; i < table.replica_first[e + 1]; i++)
                sum += share[table.slots[i]] = round == 0 ? 1.0 : shares[table.slots[i]];
            for (int32_t n = 1; n <= 20000; n++) {
                delivered[eplb_select_exact(&table, served, e)] += 1.0;
                for (int32_t i = table.replica_first[e]; i < table.replica_first[e + 1]; i++) {
                    int32_t p = table.slots[i];
                    assert_true(fabs(delivered[p] - n * share[p] / sum) < 1.0 + 1e-3);
                }
            }
            for (int32_t i = 0; i < 32; i++)
                other[i] = (int32_t)(random_next(&random) >> 33);
            int32_t slot = eplb_select_exact(&table, other, e);
            assert_true(slot >= 0 && eplb_placement_physical_to_logical(placement)[slot] == e);
        }
        eplb_router_release(router, 0, block);
        eplb_router_destroy(router);
        free(shares);
        eplb_placement_destroy(placement);
    }
}

/* Small weights: the counters come round exactly. */
static void exact_choices_come_round(void **state)
{
    (void)state;
    int32_t first[] = {0, 3}, slots[] = {7, 8, 9}, weights[] = {3, 0, 4}, served[3] = {0}, count[10] = {0};
    eplb_route_table table = {.num_experts = 1, .replica_first = first, .slots = slots, .weights = weights};
    for (int n = 1; n <= 70; n++) {
        count[eplb_select_exact(&table, served, 0)]++;
        assert_true(abs(7 * count[7] - 3 * n) < 7 && abs(7 * count[9] - 4 * n) < 7);
    }
    assert_int_equal(served[0] + served[1] + served[2] + count[8], 0);
}

/* Whole batches, small and large, give what one selection after the other gives; -1 passes through. */
static void batches_equal_single_choices(void **state)
{
    (void)state;
    random_state random = random_seed(8);
    eplb_placement *placement = random_placement(&random, (placement_shape){1, 20, 8, 2, 4, 0, 0});
    double *shares = random_shares(&random, placement);
    eplb_router *router = make_router(placement, EPLB_ROUTE_QUOTA, -1, 64);
    update(router, placement, shares);
    const int32_t *block = eplb_router_acquire(router, 0, NULL);
    eplb_route_table table = eplb_route_table_at(block);
    int32_t one[20], many[20], ids[300], slots[300];
    for (int32_t e = 0; e < 20; e++)
        one[e] = many[e] = (int32_t)random_below(&random, 200) - 50; /* counters of another table, too */
    for (int round = 0; round < 200; round++) {
        int32_t count = (int32_t)random_below(&random, 300);
        for (int32_t i = 0; i < count; i++)
            ids[i] = (int32_t)random_below(&random, 22) - 1;
        eplb_route_ids(block, many, ids, count, slots);
        for (int32_t i = 0; i < count; i++)
            assert_int_equal(slots[i], eplb_select_next(&table, one, ids[i]));
    }
    eplb_router_release(router, 0, block);
    eplb_router_destroy(router);
    free(shares);
    eplb_placement_destroy(placement);
}

/* Over all sources together, `nearest` keeps the shares, and a source that holds a replica uses it first. */
static void nearest_keeps_the_balance(void **state)
{
    (void)state;
    random_state random = random_seed(3);
    for (int round = 0; round < 20; round++) {
        eplb_placement *placement = random_placement(&random, (placement_shape){1, 10, 8, 2, 3, 0, 0});
        const eplb_topology *topology = eplb_placement_topology(placement);
        const int32_t *held = eplb_placement_physical_to_logical(placement);
        double *shares = random_shares(&random, placement);
        double served[24] = {0};
        for (int32_t g = 0; g < 8; g++) {
            eplb_router *router = make_router(placement, EPLB_ROUTE_NEAREST, g, 512);
            update(router, placement, shares);
            const int32_t *block = eplb_router_acquire(router, 0, NULL);
            eplb_route_table table = eplb_route_table_at(block);
            for (int32_t e = 0; e < 10; e++) {
                double length = (double)(table.row_first[e + 1] - table.row_first[e]), own = 0.0,
                       own_share = 0.0;
                for (int32_t n = table.row_first[e]; n < table.row_first[e + 1]; n++) {
                    served[table.rows[n]] += 1.0 / length;
                    own += eplb_topology_slot_rank(topology)[table.rows[n]] == g ? 1.0 / length : 0.0;
                }
                for (int32_t p = 0; p < 24; p++)
                    own_share += held[p] == e && eplb_topology_slot_rank(topology)[p] == g ? shares[p] : 0.0;
                double most = own_share * 8.0 < 1.0 ? own_share * 8.0 : 1.0;
                assert_true(own >= most - 0.01);
            }
            eplb_router_release(router, 0, block);
            eplb_router_destroy(router);
        }
        for (int32_t p = 0; p < 24; p++)
            assert_true(fabs(served[p] / 8.0 - (held[p] >= 0 ? shares[p] : 0.0)) < 0.005);
        free(shares);
        eplb_placement_destroy(placement);
    }
}

/* Known tokens by source: the local part follows them. */
static void nearest_follows_the_sources(void **state)
{
    (void)state;
    eplb_topology *topology = case_topology(2, 1, 1);
    int32_t held[2] = {0, 0};
    int64_t counts[2] = {300, 100}; /* tokens of the one expert that start on rank 0 and on rank 1 */
    eplb_placement *placement;
    assert_int_equal(eplb_placement_create(&placement, topology, 1, 1, held, NULL, NULL), EPLB_OK);
    eplb_load *sources = case_load(2, 1, 1, counts);
    for (int32_t g = 0; g < 2; g++) {
        eplb_router *router = make_router(placement, EPLB_ROUTE_NEAREST, g, 256);
        assert_int_equal(eplb_router_update(router, 0, 1, placement, NULL, sources, NULL), EPLB_OK);
        const int32_t *block = eplb_router_acquire(router, 0, NULL);
        eplb_route_table table = eplb_route_table_at(block);
        /* Each replica serves 200: rank 0 keeps 200 of its 300, rank 1 all of its 100. */
        int32_t own = 0, length = table.row_first[1];
        for (int32_t n = 0; n < length; n++)
            own += table.rows[n] == g;
        assert_int_equal(own * 3, g == 0 ? length * 2 : length * 3);
        eplb_router_release(router, 0, block);
        eplb_router_destroy(router);
    }
    eplb_load_destroy(sources);
    eplb_placement_destroy(placement);
    eplb_topology_destroy(topology);
}

/* Random quotas of layer 1 of a placement of 6 experts on 16 slots: up to 12 a slot, more than a row holds
 * for expert 4, none for expert 5. */
static void draw_quotas(random_state *random, const eplb_placement *placement, int64_t *quota, int64_t *sum)
{
    const eplb_topology *topology = eplb_placement_topology(placement);
    const int32_t *held = eplb_placement_physical_to_logical(placement) + 16;
    for (int p = 0; p < 16; p++) {
        quota[p] = 0;
        if (held[p] < 0 || !eplb_topology_rank_alive(topology)[eplb_topology_slot_rank(topology)[p]])
            continue;
        quota[p] = (int64_t)random_below(random, 12);
        if (held[p] >= 4)
            quota[p] = held[p] == 4 ? 1000 + p : 0;
        sum[held[p]] += quota[p];
    }
}

/* One expert of a table made of quotas that fit its row: every prefix, and the whole. */
static void check_quota_row(const eplb_route_table *table, int32_t expert, const int32_t *held,
                            const int64_t *quota, int64_t sum)
{
    int64_t served[16] = {0};
    for (int64_t n = 1; n <= sum; n++) {
        served[eplb_select_quota(table, expert, (uint32_t)(n - 1))]++;
        for (int p = 0; p < 16; p++)
            assert_true(llabs(served[p] * sum - n * (held[p] == expert ? quota[p] : 0)) < sum);
    }
    for (int p = 0; p < 16; p++)
        assert_int_equal(served[p], held[p] == expert ? quota[p] : 0);
}

/* Whole quotas of a batch: rows of exactly these, in an order that keeps every prefix; too long ones are
 * rounded; an expert without tokens can still be chosen. */
static void quotas_become_rows(void **state)
{
    (void)state;
    random_state random = random_seed(13);
    for (int round = 0; round < 30; round++) {
        eplb_placement *placement = random_placement(&random, (placement_shape){2, 6, 4, 1, 4, round % 2, 0});
        const int32_t *held = eplb_placement_physical_to_logical(placement) + 16;
        int64_t quota[16], sum[6] = {0};
        draw_quotas(&random, placement, quota, sum);
        eplb_router *router = make_router(placement, EPLB_ROUTE_QUOTA, -1, 200);
        assert_int_equal(eplb_router_update_quota(router, 1, placement, quota, NULL), EPLB_OK);
        assert_true(eplb_router_is_valid(router));
        assert_true(eplb_router_worst_error(router) < 1.0 / 200);
        const int32_t *block = eplb_router_acquire(router, 1, NULL);
        eplb_route_table table = eplb_route_table_at(block);
        for (int32_t e = 0; e < 4; e++)
            check_quota_row(&table, e, held, quota, sum[e]);
        for (int32_t e = 0; e < 6; e++)
            assert_int_equal(held[eplb_select_quota(&table, e, 0)], e);
        eplb_router_release(router, 1, block);
        eplb_router_destroy(router);
        eplb_placement_destroy(placement);
    }
}

static void refuses_odd_quotas(void **state)
{
    (void)state;
    random_state random = random_seed(14);
    eplb_placement *placement = random_placement(&random, (placement_shape){2, 6, 4, 1, 4, 1, 0});
    int64_t quota[16], sum[6] = {0};
    draw_quotas(&random, placement, quota, sum);
    eplb_router *router = make_router(placement, EPLB_ROUTE_QUOTA, -1, 200);
    eplb_error error;
    for (int p = 0; p < 16; p++) {
        int64_t kept = quota[p];
        quota[p] = -1;
        assert_int_equal(eplb_router_update_quota(router, 1, placement, quota, &error), EPLB_ERROR_INVALID);
        assert_int_equal(error.slot, p);
        bool holds = eplb_placement_physical_to_logical(placement)[16 + p] >= 0;
        quota[p] = 1;
        assert_int_equal(eplb_router_update_quota(router, 1, placement, quota, &error),
                         holds ? EPLB_OK : EPLB_ERROR_INVALID);
        quota[p] = kept;
    }
    assert_int_equal(eplb_router_update_quota(router, 2, placement, quota, NULL), EPLB_ERROR_INVALID);
    eplb_router_destroy(router);
    eplb_placement_destroy(placement);
}

static void refuses_what_cannot_be_served(void **state)
{
    (void)state;
    random_state random = random_seed(4);
    eplb_placement *placement = random_placement(&random, (placement_shape){2, 6, 4, 1, 3, 0, 0});
    eplb_router *router = make_router(placement, EPLB_ROUTE_QUOTA, -1, 16);
    update(router, placement, NULL);
    double *shares = random_shares(&random, placement);
    eplb_error error;
    int32_t used = 12; /* a slot of layer 1 that holds something */
    while (eplb_placement_physical_to_logical(placement)[used] < 0)
        used++;
    shares[used] = -0.5;
    assert_int_equal(eplb_router_update(router, 0, 2, placement, shares, NULL, &error), EPLB_ERROR_INVALID);
    assert_int_equal(error.layer, 1);
    assert_int_equal(error.slot, used - 12);
    shares[used] = NAN;
    assert_int_equal(eplb_router_update(router, 0, 2, placement, shares, NULL, &error), EPLB_ERROR_INVALID);
    memset(shares, 0, 24 * sizeof *shares);
    assert_int_equal(eplb_router_update(router, 0, 2, placement, shares, NULL, &error), EPLB_ERROR_INVALID);
    assert_int_equal(eplb_router_update(router, 1, 2, placement, NULL, NULL, &error), EPLB_ERROR_INVALID);
    /* The tables before the refusals are still there. */
    uint64_t epoch;
    const int32_t *block = eplb_router_acquire(router, 1, &epoch);
    assert_int_equal(epoch, 1);
    eplb_router_release(router, 1, block);
    int32_t first_expert = -1, empty[12];
    for (int32_t p = 0; p < 12; p++)
        empty[p] = first_expert;
    eplb_placement *hollow;
    assert_int_equal(
        eplb_placement_create(&hollow, eplb_placement_topology(placement), 1, 6, empty, NULL, NULL), EPLB_OK);
    assert_int_equal(eplb_router_update(router, 0, 1, hollow, NULL, NULL, &error), EPLB_ERROR_INVALID);
    eplb_placement_destroy(hollow);
    free(shares);
    eplb_router_destroy(router);
    eplb_placement_destroy(placement);
}

static void a_held_table_blocks_only_the_second_update(void **state)
{
    (void)state;
    random_state random = random_seed(5);
    eplb_placement *a = random_placement(&random, (placement_shape){1, 6, 4, 1, 3, 0, 0});
    eplb_router *router = make_router(a, EPLB_ROUTE_QUOTA, -1, 16);
    eplb_error error;
    update(router, a, NULL);
    const int32_t *block = eplb_router_acquire(router, 0, NULL);
    int32_t *copy = malloc((size_t)eplb_router_block_length(router) * sizeof *copy);
    assert_non_null(copy);
    memcpy(copy, block, (size_t)eplb_router_block_length(router) * sizeof *copy);
    update(router, a, NULL);
    assert_int_equal(eplb_router_update(router, 0, 1, a, NULL, NULL, &error), EPLB_ERROR_BUSY);
    assert_int_equal(error.layer, 0);
    assert_memory_equal(copy, block, (size_t)eplb_router_block_length(router) * sizeof *copy);
    eplb_router_release(router, 0, block);
    update(router, a, NULL);
    /* Two fixed addresses, in turn. */
    const int32_t *now = eplb_router_acquire(router, 0, NULL);
    assert_ptr_equal(now, block);
    eplb_router_release(router, 0, now);
    eplb_router_copy_block(router, 0, copy);
    eplb_route_table table = eplb_route_table_at(copy);
    assert_int_equal(table.num_experts, 6);
    free(copy);
    eplb_router_destroy(router);
    eplb_placement_destroy(a);
}

/* --- readers and a writer
 * ------------------------------------------------------------------------------------ */

#define NUM_READERS 2

typedef struct shared {
    eplb_router *router;
    const int32_t *allowed[2]; /* slots by expert of the two placements */
    atomic_int stop;
    atomic_int mixtures;
    atomic_llong reads;
} shared;

/* Both placements give every expert one replica, each at a known slot: a table is one of the two or a
 * mixture. */
static void *read_tables(void *argument)
{
    shared *s = argument;
    uint64_t last = 0;
    while (!atomic_load(&s->stop)) {
        uint64_t epoch;
        const int32_t *block = eplb_router_acquire(s->router, 0, &epoch);
        eplb_route_table table = eplb_route_table_at(block);
        const int32_t *allowed = s->allowed[epoch % 2];
        for (int32_t e = 0; e < 64; e++) {
            if (eplb_select_quota(&table, e, 0) != allowed[e])
                atomic_fetch_add(&s->mixtures, 1);
        }
        if (epoch < last)
            atomic_fetch_add(&s->mixtures, 1);
        last = epoch;
        eplb_router_release(s->router, 0, block);
        atomic_fetch_add(&s->reads, 1);
    }
    return NULL;
}

static void readers_see_old_or_new(void **state)
{
    (void)state;
    eplb_topology *topology = case_topology(8, 1, 8);
    int32_t held[2][64], where[2][64];
    for (int32_t e = 0; e < 64; e++) {
        where[0][e] = e;
        where[1][e] = 63 - e;
        held[0][where[0][e]] = e;
        held[1][where[1][e]] = e;
    }
    eplb_placement *placement[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(eplb_placement_create(&placement[i], topology, 1, 64, held[i], NULL, NULL), EPLB_OK);
    shared s = {.router = make_router(placement[0], EPLB_ROUTE_QUOTA, -1, 8)};
    s.allowed[0] = where[0];
    s.allowed[1] = where[1];
    update(s.router, placement[1], NULL); /* epoch 1 */
    pthread_t thread[NUM_READERS];
    for (int i = 0; i < NUM_READERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, read_tables, &s), 0);
    for (uint64_t epoch = 2; epoch < 600; epoch++) {
        eplb_status status;
        do {
            status = eplb_router_update(s.router, 0, 1, placement[epoch % 2], NULL, NULL, NULL);
            assert_true(status == EPLB_OK || status == EPLB_ERROR_BUSY);
            if (status == EPLB_ERROR_BUSY)
                sched_yield();
        } while (status != EPLB_OK);
    }
    while (atomic_load(&s.reads) < 100)
        sched_yield();
    atomic_store(&s.stop, 1);
    for (int i = 0; i < NUM_READERS; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_int_equal(atomic_load(&s.mixtures), 0);
    eplb_router_destroy(s.router);
    eplb_placement_destroy(placement[0]);
    eplb_placement_destroy(placement[1]);
    eplb_topology_destroy(topology);
}

/* --- selection rules
 * ------------------------------------------------------------------------------------------- */

/* A table of one expert with `count` replicas in slots 0 .. count-1. */
static eplb_route_table one_expert(int32_t *first, int32_t *slots, int32_t *inverse, int32_t count)
{
    first[0] = 0;
    first[1] = count;
    *inverse = (int32_t)(UINT32_MAX / (uint32_t)count);
    for (int32_t i = 0; i < count; i++)
        slots[i] = i;
    return (eplb_route_table){1, -1, first, slots, first, slots, slots, inverse, inverse, NULL};
}

static void modulo_is_exact(void **state)
{
    (void)state;
    random_state random = random_seed(9);
    for (int round = 0; round < 200000; round++) {
        uint32_t divisor = 1 + random_below(&random, round % 2 != 0 ? 70 : 70000);
        uint32_t number = (uint32_t)random_next(&random) >> random_below(&random, 32);
        number = round % 7 == 0 ? UINT32_MAX - number % 70000 : number;
        assert_int_equal(eplb_route_modulo(number, divisor, (int32_t)(UINT32_MAX / divisor)),
                         number % divisor);
    }
}

static void equal_split_has_low_discrepancy(void **state)
{
    (void)state;
    int32_t first[2], slots[64], inverse;
    for (int32_t count = 1; count <= 64; count++) {
        eplb_route_table table = one_expert(first, slots, &inverse, count);
        for (uint32_t rank = 0; rank < 70; rank += 3) {
            for (uint32_t start = 0; start < 100; start += 7) {
                int32_t served[64] = {0};
                for (int32_t n = 1; n <= 2 * count + 3; n++) {
                    served[eplb_select_equal(&table, 0, start + (uint32_t)n - 1, rank)]++;
                    for (int32_t i = 0; i < count; i++)
                        assert_true(abs(served[i] * count - n) < count);
                }
            }
        }
        /* One token per rank: small batches of many ranks spread too. */
        int32_t served[64] = {0};
        for (uint32_t rank = 0; rank < 2 * (uint32_t)count; rank++)
            served[eplb_select_equal(&table, 0, 0, rank)]++;
        for (int32_t i = 0; i < count; i++)
            assert_int_equal(served[i], 2);
    }
}

static void engine_rules_as_described(void **state)
{
    (void)state;
    int32_t first[2], slots[64], inverse, count = 3;
    eplb_route_table table = one_expert(first, slots, &inverse, count);
    int32_t served[3] = {0};
    for (uint32_t row = 0; row < 16; row++)
        served[eplb_select_vllm(&table, 0, row)]++;
    assert_int_equal(served[0], 7); /* the figures measured for count 3, 16 tokens */
    assert_int_equal(served[1], 4);
    assert_int_equal(served[2], 5);
    for (uint32_t n = 0; n < 9; n++)
        assert_int_equal(eplb_select_trtllm(&table, 0, n, 2, 1), (int32_t)((n + 3) % 3));
    assert_int_equal(eplb_select_sglang_dynamic(&table, 0, 0x10005u), 2);
    assert_int_equal(eplb_select_equal(&table, -1, 0, 0), -1);
    assert_int_equal(eplb_select_equal(&table, 1, 0, 0), -1);
    assert_int_equal(eplb_select_quota(&table, INT32_MIN, 0), -1);
    assert_int_equal(eplb_select_dense(slots, &count, 64, 1, 0, 0), 0);
    assert_int_equal(eplb_select_dense(slots, &count, 64, 1, 1, 0), -1);
    for (uint32_t token = 0; token < 100; token++)
        assert_int_equal(eplb_select_invariant(&table, 0, token), eplb_select_invariant(&table, 0, token));
}

/* Counters that begin apart: first tokens of many ranks follow the shares as well. */
static void starts_spread_over_ranks(void **state)
{
    (void)state;
    random_state random = random_seed(6);
    eplb_placement *placement = random_placement(&random, (placement_shape){1, 4, 4, 1, 4, 0, 0});
    double *shares = random_shares(&random, placement);
    eplb_router *router = make_router(placement, EPLB_ROUTE_QUOTA, -1, 256);
    update(router, placement, shares);
    const int32_t *block = eplb_router_acquire(router, 0, NULL);
    double served[16] = {0};
    int32_t ids[4] = {0, 1, 2, 3}, out[4];
    for (int32_t rank = 0; rank < 64; rank++) {
        int32_t position[4];
        eplb_route_start(block, rank, position);
        eplb_route_ids(block, position, ids, 4, out);
        for (int i = 0; i < 4; i++)
            served[out[i]] += 1.0;
        for (int32_t p = 0; p < 16; p++)
            assert_true(fabs(served[p] - (double)(rank + 1) * shares[p]) < 1.0 + (double)(rank + 1) / 256.0);
    }
    eplb_router_release(router, 0, block);
    eplb_router_destroy(router);
    free(shares);
    eplb_placement_destroy(placement);
}

static void every_failed_allocation_is_survived(void **state)
{
    (void)state;
    random_state random = random_seed(7);
    eplb_placement *placement = random_placement(&random, (placement_shape){2, 6, 4, 1, 3, 0, 0});
    eplb_router_params params;
    eplb_router_params_init(&params, sizeof params);
    params.topology = eplb_placement_topology(placement);
    params.num_layers = 2;
    params.num_experts = 6;
    int64_t n = 0;
    for (;; n++) {
        test_allocator memory = test_allocator_make(n);
        eplb_allocator allocator = test_allocator_use(&memory);
        eplb_router *router;
        eplb_status status = eplb_router_create(&router, &params, &allocator, NULL);
        bool made = router != NULL;
        eplb_router_destroy(router);
        assert_int_equal(memory.num_live, 0);
        assert_int_equal(made, status == EPLB_OK);
        if (status == EPLB_OK)
            break;
        assert_int_equal(status, EPLB_ERROR_MEMORY);
    }
    assert_true(n > 3);
    eplb_placement_destroy(placement);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_tables_select_nothing),
        cmocka_unit_test(rows_deliver_the_shares),
        cmocka_unit_test(exact_choices_follow_the_shares),
        cmocka_unit_test(exact_choices_come_round),
        cmocka_unit_test(batches_equal_single_choices),
        cmocka_unit_test(nearest_keeps_the_balance),
        cmocka_unit_test(nearest_follows_the_sources),
        cmocka_unit_test(quotas_become_rows),
        cmocka_unit_test(refuses_odd_quotas),
        cmocka_unit_test(refuses_what_cannot_be_served),
        cmocka_unit_test(a_held_table_blocks_only_the_second_update),
        cmocka_unit_test(readers_see_old_or_new),
        cmocka_unit_test(modulo_is_exact),
        cmocka_unit_test(equal_split_has_low_discrepancy),
        cmocka_unit_test(engine_rules_as_described),
        cmocka_unit_test(starts_spread_over_ranks),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
