/* `eplb bench route`: the cost of choosing a slot, and how exactly quotas are delivered.
 *
 * One layer of 256 experts and 288 slots on 32 ranks, weighted shares, ids drawn from a lognormal load. Rows:
 * nanoseconds per token-expert pair on one core, and the ratio to `plain`, the same loop without a choice
 * (slots[i] = table[ids[i]]: the ids are read, one table is looked up, the slots are written). `quota` is
 * eplb_route_ids, `ordinal` eplb_select_quota with given ordinals as a device would do it. Row `deviation`:
 * the largest |delivered - quota| of any replica over all prefixes of the batch, for quotas of this batch and
 * for rows of at most 256 entries. */
#include <stdlib.h>
#include <string.h>

#include "batch_case.h"
#include "benches.h"
#include "synthetic.h"

enum { EXPERTS = 256, SLOTS = 288, RANKS = 32, PAIRS = 65536, QUICK_PAIRS = 4096 };

typedef struct route_case {
    int64_t pairs;
    int32_t *ids, *slots;
    uint32_t *ordinal;
    int32_t table[EXPERTS];
    int32_t position[EXPERTS];
    int32_t served[SLOTS];
    eplb_placement *placement;
    double share[SLOTS];
    eplb_router *router;
} route_case;

static void draw_ids(route_case *c, random_state *random, const double *weights)
{
    double sum[EXPERTS], total = 0.0;
    uint32_t seen[EXPERTS] = {0};
    for (int e = 0; e < EXPERTS; e++)
        sum[e] = total += weights[e];
    for (int64_t i = 0; i < c->pairs; i++) {
        double u = random_unit(random) * total;
        int low = 0, high = EXPERTS - 1;
        while (low < high) {
            int middle = (low + high) / 2;
            if (sum[middle] <= u)
                low = middle + 1;
            else
                high = middle;
        }
        c->ids[i] = low;
        c->ordinal[i] = seen[low]++;
    }
}

static bool make_case(route_case *c, int64_t pairs)
{
    double weights[EXPERTS];
    int64_t counts[EXPERTS], quota[SLOTS];
    random_state random = random_seed(23);
    eplb_resplit *resplit = NULL;
    eplb_router_params params;
    *c = (route_case){.pairs = pairs};
    c->ids = calloc((size_t)pairs, sizeof *c->ids);
    c->slots = calloc((size_t)pairs, sizeof *c->slots);
    c->ordinal = calloc((size_t)pairs, sizeof *c->ordinal);
    synthetic_lognormal(&random, 1.0, EXPERTS, weights);
    c->placement = batch_case_placement(weights, EXPERTS, SLOTS, RANKS, 4);
    if (c->ids == NULL || c->slots == NULL || c->ordinal == NULL || c->placement == NULL)
        return false;
    draw_ids(c, &random, weights);
    synthetic_counts(weights, EXPERTS, 1e6, 1, counts);
    if (eplb_resplit_create(&resplit, c->placement, 0, NULL, NULL) != EPLB_OK)
        return false;
    (void)eplb_resplit_solve(resplit, counts, false, quota, NULL, NULL);
    eplb_resplit_destroy(resplit);
    for (int p = 0; p < SLOTS; p++) {
        int32_t e = eplb_placement_physical_to_logical(c->placement)[p];
        c->share[p] = (double)quota[p] / (double)counts[e];
        c->table[e] = p;
    }
    eplb_router_params_init(&params, sizeof params);
    params.topology = eplb_placement_topology(c->placement);
    params.num_layers = 1;
    params.num_experts = EXPERTS;
    return eplb_router_create(&c->router, &params, NULL, NULL) == EPLB_OK &&
           eplb_router_update(c->router, 0, 1, c->placement, c->share, NULL, NULL) == EPLB_OK;
}

static void clear_case(route_case *c)
{
    eplb_router_destroy(c->router);
    eplb_placement_destroy(c->placement);
    free(c->ids);
    free(c->slots);
    free(c->ordinal);
}

/* --- time -------------------------------------------------------------------------------------------- */

typedef void (*loop_function)(route_case *c, const int32_t *block);

static void loop_plain(route_case *c, const int32_t *block)
{
    (void)block;
    for (int64_t i = 0; i < c->pairs; i++)
        c->slots[i] = (uint32_t)c->ids[i] < EXPERTS ? c->table[c->ids[i]] : -1;
}

static void loop_quota(route_case *c, const int32_t *block)
{
    eplb_route_ids(block, c->position, c->ids, c->pairs, c->slots);
}

static void loop_ordinal(route_case *c, const int32_t *block)
{
    eplb_route_table table = eplb_route_table_at(block);
    for (int64_t i = 0; i < c->pairs; i++)
        c->slots[i] = eplb_select_quota(&table, c->ids[i], c->ordinal[i]);
}

static void loop_exact(route_case *c, const int32_t *block)
{
    eplb_route_table table = eplb_route_table_at(block);
    for (int64_t i = 0; i < c->pairs; i++)
        c->slots[i] = eplb_select_exact(&table, c->served, c->ids[i]);
}

static void loop_equal(route_case *c, const int32_t *block)
{
    eplb_route_table table = eplb_route_table_at(block);
    for (int64_t i = 0; i < c->pairs; i++)
        c->slots[i] = eplb_select_equal(&table, c->ids[i], c->ordinal[i], 3);
}

static void loop_invariant(route_case *c, const int32_t *block)
{
    eplb_route_table table = eplb_route_table_at(block);
    for (int64_t i = 0; i < c->pairs; i++)
        c->slots[i] = eplb_select_invariant(&table, c->ids[i], (uint32_t)i / 8);
}

static void loop_vllm(route_case *c, const int32_t *block)
{
    eplb_route_table table = eplb_route_table_at(block);
    for (int64_t i = 0; i < c->pairs; i++)
        c->slots[i] = eplb_select_vllm(&table, c->ids[i], (uint32_t)i / 8);
}

static const struct {
    const char *name;
    loop_function run;
} loops[] = {{"plain", loop_plain}, {"quota", loop_quota}, {"ordinal", loop_ordinal},
             {"exact", loop_exact}, {"equal", loop_equal}, {"invariant", loop_invariant},
             {"vllm", loop_vllm}};
enum { NUM_LOOPS = sizeof loops / sizeof loops[0], MOST_ROUNDS = 101 };

static void time_loops(bench_report *report, route_case *c, int rounds)
{
    static double seconds[NUM_LOOPS][MOST_ROUNDS];
    const int32_t *block = eplb_router_acquire(c->router, 0, NULL);
    for (int r = 0; r < rounds; r++) {
        for (int k = 0; k < NUM_LOOPS; k++) {
            double start = bench_seconds();
            loops[k].run(c, block);
            seconds[k][r] = (bench_seconds() - start) / (double)c->pairs;
        }
    }
    eplb_router_release(c->router, 0, block);
    double plain = bench_median(seconds[0], rounds);
    for (int k = 0; k < NUM_LOOPS; k++) {
        double median = k == 0 ? plain : bench_median(seconds[k], rounds);
        bench_row(report, loops[k].name);
        bench_number(report, "ns_per_pair", 1e9 * median);
        bench_number(report, "ratio", median / plain);
    }
}

/* --- deviation --------------------------------------------------------------------------------------- */

/* Largest |delivered - n * share| of any replica after each of the n tokens of its expert. */
static double worst_prefix(const route_case *c, const double *share)
{
    static double served[SLOTS];
    double seen[EXPERTS] = {0.0}, worst = 0.0;
    const int32_t *first = eplb_placement_replica_first(c->placement),
                  *slots = eplb_placement_replica_slots(c->placement);
    memset(served, 0, sizeof served);
    for (int64_t i = 0; i < c->pairs; i++) {
        int32_t e = c->ids[i];
        seen[e] += 1.0;
        served[c->slots[i]] += 1.0;
        for (int32_t n = first[e]; n < first[e + 1]; n++) {
            double off = served[slots[n]] - seen[e] * share[slots[n]];
            off = off < 0.0 ? -off : off;
            worst = off > worst ? off : worst;
        }
    }
    return worst;
}

/* Routes the batch by rows made for exactly its quotas; returns false when memory is out. */
static bool route_exactly(route_case *c, double *share)
{
    int64_t counts[EXPERTS] = {0}, quota[SLOTS];
    int32_t start[EXPERTS], scratch[SLOTS], part[SLOTS], used = 0;
    eplb_resplit *resplit = NULL;
    int32_t *row = calloc((size_t)c->pairs, sizeof *row);
    const int32_t *first = eplb_placement_replica_first(c->placement),
                  *slots = eplb_placement_replica_slots(c->placement);
    for (int64_t i = 0; i < c->pairs; i++)
        counts[c->ids[i]]++;
    if (row == NULL || eplb_resplit_create(&resplit, c->placement, 0, NULL, NULL) != EPLB_OK) {
        free(row);
        return false;
    }
    (void)eplb_resplit_solve(resplit, counts, false, quota, NULL, NULL);
    eplb_resplit_destroy(resplit);
    for (int32_t e = 0; e < EXPERTS; e++) {
        start[e] = used;
        for (int32_t n = first[e]; n < first[e + 1]; n++) {
            part[n - first[e]] = (int32_t)quota[slots[n]];
            share[slots[n]] = counts[e] > 0 ? (double)quota[slots[n]] / (double)counts[e] : 0.0;
        }
        eplb_route_row(part, first[e + 1] - first[e], row + used, scratch);
        for (int64_t n = 0; n < counts[e]; n++, used++)
            row[used] = slots[first[e] + row[used]];
    }
    for (int64_t i = 0; i < c->pairs; i++)
        c->slots[i] = row[start[c->ids[i]] + (int32_t)c->ordinal[i]];
    free(row);
    return true;
}

static void measure_deviation(bench_report *report, route_case *c)
{
    static double exact_share[SLOTS];
    bench_row(report, "deviation");
    if (route_exactly(c, exact_share))
        bench_number(report, "batch_quota", worst_prefix(c, exact_share));
    memset(c->position, 0, sizeof c->position);
    const int32_t *block = eplb_router_acquire(c->router, 0, NULL);
    loop_quota(c, block);
    bench_number(report, "rows_256", worst_prefix(c, c->share));
    bench_number(report, "row_share_error", eplb_router_worst_error(c->router));
    memset(c->served, 0, sizeof c->served);
    loop_exact(c, block);
    bench_number(report, "exact", worst_prefix(c, c->share));
    loop_vllm(c, block);
    bench_number(report, "vllm", worst_prefix(c, c->share));
    eplb_router_release(c->router, 0, block);
}

int bench_route(bench_report *report, const bench_options *options)
{
    static route_case c;
    if (!make_case(&c, options->quick ? QUICK_PAIRS : PAIRS)) {
        clear_case(&c);
        return 3;
    }
    int rounds = options->repetitions > 0 ? options->repetitions : options->quick ? 3 : MOST_ROUNDS;
    time_loops(report, &c, rounds < MOST_ROUNDS ? rounds : MOST_ROUNDS);
    measure_deviation(report, &c);
    clear_case(&c);
    return 0;
}
