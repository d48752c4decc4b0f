/* `eplb bench resplit`: the exact split of a batch against LPLB's interior-point steps, restated in the same
 * library and timed in the same run.
 *
 * Rows `time.*`: microseconds per solve; `ratio` is LPLB's five steps over the exact solve. Rows `gap.*`:
 * mean max / mean rank load over instances, for equal split over the replicas, the exact optimum, and LPLB
 * after 3 to 20 steps (its 0.5 fallback included); `accepted_*` is how often its own test passed. Histories
 * are lognormal 1, placements DeepSeek's, a batch is the history times lognormal(sigma) with sampling noise.
 * With --trace of token routing, rows `next.*`: the placement of the last h windows judged on the next one,
 * as planned and re-split; at most 24 windows of each kind, evenly over the trace. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch_case.h"
#include "benches.h"
#include "synthetic.h"

enum { MOST_EXPERTS = 1024, MOST_SLOTS = 4096, MOST_RANKS = 512, INSTANCES = 100, QUICK_INSTANCES = 2 };

#define TOKENS 32768.0

typedef struct split_case {
    int32_t experts, spare, ranks;
    double sigma, tokens;
} split_case;

typedef struct split_scratch {
    double weights[MOST_EXPERTS];
    int64_t counts[MOST_EXPERTS];
    int64_t quota[MOST_SLOTS];
    double share[MOST_SLOTS];
    double rank[MOST_RANKS];
} split_scratch;

/* max / mean of rank loads under shares (NULL: equal). */
static double imbalance(const eplb_placement *placement, const int64_t *counts, const double *share,
                        double *rank)
{
    const eplb_topology *topology = eplb_placement_topology(placement);
    const int32_t *held = eplb_placement_physical_to_logical(placement),
                  *slot_rank = eplb_topology_slot_rank(topology);
    const int32_t *replicas = eplb_placement_replica_count(placement);
    memset(rank, 0, (size_t)eplb_topology_num_ranks(topology) * sizeof *rank);
    for (int32_t p = 0; p < eplb_placement_num_slots(placement); p++) {
        if (held[p] >= 0)
            rank[slot_rank[p]] +=
                (double)counts[held[p]] * (share != NULL ? share[p] : 1.0 / (double)replicas[held[p]]);
    }
    return eplb_imbalance(topology, rank);
}

static double exact_imbalance(const eplb_placement *placement, const int64_t *counts,
                              const eplb_resplit_result *result)
{
    double total = 0.0;
    for (int32_t e = 0; e < eplb_placement_num_experts(placement); e++)
        total += (double)counts[e];
    double ranks = (double)eplb_topology_num_ranks(eplb_placement_topology(placement));
    return total > 0.0 ? (double)result->max_load * ranks / total : 1.0;
}

/* --- time -------------------------------------------------------------------------------------------- */

enum { EXACT, WARM, LPLB, LOCAL, NUM_TIMED };

typedef struct timed_batch {
    const split_case *shape;
    eplb_resplit *resplit;
    int64_t *sources; /* [G, E] */
    int inner;        /* calls per measurement */
    double seconds[NUM_TIMED];
} timed_batch;

/* Counts by source rank that sum to the batch: the same part for all, the rest to the first. */
static void spread_sources(const timed_batch *batch, const int64_t *counts)
{
    size_t experts = (size_t)batch->shape->experts;
    int64_t ranks = batch->shape->ranks;
    for (size_t e = 0; e < experts; e++) {
        for (int64_t g = 0; g < ranks; g++)
            batch->sources[(size_t)g * experts + e] = counts[e] / ranks + (g < counts[e] % ranks);
    }
}

static void time_solves(timed_batch *batch, split_scratch *scratch, random_state *random)
{
    int64_t changed[MOST_EXPERTS];
    double start = bench_seconds();
    for (int i = 0; i < batch->inner; i++)
        (void)eplb_resplit_solve(batch->resplit, scratch->counts, false, scratch->quota, NULL, NULL);
    batch->seconds[EXACT] = (bench_seconds() - start) / batch->inner;
    for (int32_t e = 0; e < batch->shape->experts; e++)
        changed[e] =
            scratch->counts[e] + (int64_t)random_below(random, 1 + (uint32_t)scratch->counts[e] / 50);
    start = bench_seconds();
    for (int i = 0; i < batch->inner; i++)
        (void)eplb_resplit_solve(batch->resplit, i % 2 != 0 ? scratch->counts : changed, true, scratch->quota,
                                 NULL, NULL);
    batch->seconds[WARM] = (bench_seconds() - start) / batch->inner;
    start = bench_seconds();
    (void)eplb_resplit_lplb(batch->resplit, scratch->counts, 5, scratch->share, NULL, NULL);
    batch->seconds[LPLB] = bench_seconds() - start;
    spread_sources(batch, scratch->counts);
    start = bench_seconds();
    (void)eplb_resplit_solve_local(batch->resplit, batch->sources, scratch->quota, NULL, NULL);
    batch->seconds[LOCAL] = bench_seconds() - start;
}

/* One placement and a few batches: seconds[NUM_TIMED][room] from *count on. */
static void time_instance(timed_batch *batch, split_scratch *scratch, random_state *random, int batches,
                          int *count, double *const seconds[NUM_TIMED])
{
    const split_case *shape = batch->shape;
    synthetic_lognormal(random, 1.0, shape->experts, scratch->weights);
    eplb_placement *placement =
        batch_case_placement(scratch->weights, shape->experts, shape->experts + shape->spare, shape->ranks,
                             shape->ranks > 8 ? shape->ranks / 8 : 1);
    if (placement != NULL && eplb_resplit_create(&batch->resplit, placement, 0, NULL, NULL) == EPLB_OK) {
        for (int b = 0; b < batches; b++, (*count)++) {
            batch_case_draw(random, scratch->weights, shape->experts, shape->sigma, shape->tokens,
                            scratch->counts);
            time_solves(batch, scratch, random);
            for (int k = 0; k < NUM_TIMED; k++)
                seconds[k][*count] = batch->seconds[k];
        }
        eplb_resplit_destroy(batch->resplit);
    }
    eplb_placement_destroy(placement);
}

static void report_times(bench_report *report, const split_case *shape, double *const seconds[NUM_TIMED],
                         int count)
{
    double median[NUM_TIMED];
    char name[64];
    for (int k = 0; k < NUM_TIMED; k++)
        median[k] = count > 0 ? 1e6 * bench_median(seconds[k], count) : 0.0;
    (void)snprintf(name, sizeof name, "time.e%d.r%d.g%d.s%g", (int)shape->experts, (int)shape->spare,
                   (int)shape->ranks, shape->sigma);
    bench_row(report, name);
    bench_number(report, "exact_us", median[EXACT]);
    bench_number(report, "exact_p90_us", count > 0 ? 1e6 * seconds[EXACT][count * 9 / 10] : 0.0);
    bench_number(report, "warm_us", median[WARM]);
    bench_number(report, "lplb5_us", median[LPLB]);
    bench_number(report, "ratio", median[EXACT] > 0.0 ? median[LPLB] / median[EXACT] : 0.0);
    bench_number(report, "local_us", median[LOCAL]);
}

static int time_case(bench_report *report, const split_case *shape, int instances)
{
    static split_scratch scratch;
    random_state random = random_seed(7);
    double *seconds[NUM_TIMED];
    timed_batch batch = {.shape = shape, .inner = 20};
    int count = 0, batches = 5;
    batch.sources = calloc((size_t)shape->ranks * (size_t)shape->experts, sizeof *batch.sources);
    seconds[0] = calloc((size_t)(NUM_TIMED * instances * batches), sizeof **seconds);
    for (int k = 1; k < NUM_TIMED && seconds[0] != NULL; k++)
        seconds[k] = seconds[0] + k * instances * batches;
    bool good = batch.sources != NULL && seconds[0] != NULL;
    for (int i = 0; good && i < instances; i++)
        time_instance(&batch, &scratch, &random, batches, &count, seconds);
    if (good)
        report_times(report, shape, seconds, count);
    free(batch.sources);
    free(seconds[0]);
    return good ? 0 : 3;
}

/* --- gap --------------------------------------------------------------------------------------------- */

static const int32_t lplb_steps[] = {3, 5, 10, 20};
enum { NUM_STEPS = sizeof lplb_steps / sizeof lplb_steps[0] };

static void gap_case(bench_report *report, const split_case *shape, int instances)
{
    static split_scratch scratch;
    random_state random = random_seed(8);
    double equal = 0.0, exact = 0.0, lplb[NUM_STEPS] = {0.0}, accepted[NUM_STEPS] = {0.0};
    char name[64], key[32];
    for (int i = 0; i < instances; i++) {
        synthetic_lognormal(&random, 1.0, shape->experts, scratch.weights);
        eplb_placement *placement = batch_case_placement(scratch.weights, shape->experts,
                                                         shape->experts + shape->spare, shape->ranks, 1);
        eplb_resplit *resplit = NULL;
        eplb_resplit_result result;
        if (placement == NULL || eplb_resplit_create(&resplit, placement, 0, NULL, NULL) != EPLB_OK) {
            eplb_placement_destroy(placement);
            return;
        }
        batch_case_draw(&random, scratch.weights, shape->experts, shape->sigma, shape->tokens,
                        scratch.counts);
        (void)eplb_resplit_solve(resplit, scratch.counts, false, scratch.quota, &result, NULL);
        equal += imbalance(placement, scratch.counts, NULL, scratch.rank) / instances;
        exact += exact_imbalance(placement, scratch.counts, &result) / instances;
        for (int k = 0; k < NUM_STEPS; k++) {
            bool passed = false;
            (void)eplb_resplit_lplb(resplit, scratch.counts, lplb_steps[k], scratch.share, &passed, NULL);
            lplb[k] += imbalance(placement, scratch.counts, scratch.share, scratch.rank) / instances;
            accepted[k] += passed ? 1.0 / instances : 0.0;
        }
        eplb_resplit_destroy(resplit);
        eplb_placement_destroy(placement);
    }
    (void)snprintf(name, sizeof name, "gap.e%d.r%d.g%d.s%g.n%g", (int)shape->experts, (int)shape->spare,
                   (int)shape->ranks, shape->sigma, shape->tokens);
    bench_row(report, name);
    bench_number(report, "equal", equal);
    bench_number(report, "exact", exact);
    for (int k = 0; k < NUM_STEPS; k++) {
        (void)snprintf(key, sizeof key, "lplb%d", (int)lplb_steps[k]);
        bench_number(report, key, lplb[k]);
        (void)snprintf(key, sizeof key, "accepted%d", (int)lplb_steps[k]);
        bench_number(report, key, accepted[k]);
    }
}

/* --- the next window --------------------------------------------------------------------------------- */

/* Windows judged, evenly over the trace: a plan is made for each. */
#define MOST_JUDGED 24

typedef struct next_case {
    const batch_trace *trace;
    int64_t window;
    int32_t ranks;
    const char *policy; /* plans for one window; history: how many windows it is shown */
    eplb_split split;
    int history;
} next_case;

/* A plan of the windows before `first`, [history, L, E]; NULL after telling why. */
static eplb_plan *plan_before(const next_case *next, const eplb_topology *topology, int64_t first,
                              int64_t *counts)
{
    const batch_trace *trace = next->trace;
    size_t cells = (size_t)trace->num_layers * (size_t)trace->num_experts;
    int history = 0;
    for (int h = next->history; h > 0; h--) {
        if (first - h * next->window >= 0)
            batch_trace_count(trace, first - h * next->window, next->window,
                              counts + (size_t)history++ * cells);
    }
    eplb_load_params params;
    eplb_plan_params plan_params;
    eplb_load *load = NULL;
    eplb_plan *plan = NULL;
    eplb_error error;
    eplb_load_params_init(&params, sizeof params);
    params.num_windows = history;
    params.num_layers = trace->num_layers;
    params.num_experts = trace->num_experts;
    params.counts = counts;
    eplb_plan_params_init(&plan_params, sizeof plan_params);
    plan_params.policy = next->policy;
    plan_params.split = next->split;
    if (eplb_load_create(&load, &params, NULL, &error) != EPLB_OK ||
        eplb_plan_create(&plan, load, topology, &plan_params, NULL, &error) != EPLB_OK)
        bench_complain("%s", error.text);
    eplb_load_destroy(load);
    return plan;
}

/* Adds the imbalance of every layer of one window: under the plan's shares, and split anew. */
static bool judge(const eplb_plan *plan, const batch_trace *trace, const int64_t *counts,
                  split_scratch *scratch, double *planned, double *resplit_sum)
{
    const eplb_placement *placement = eplb_plan_placement(plan);
    const eplb_topology *topology = eplb_placement_topology(placement);
    size_t experts = (size_t)trace->num_experts, slots = (size_t)eplb_placement_num_slots(placement);
    for (int32_t l = 0; l < trace->num_layers; l++) {
        const int64_t *row = counts + (size_t)l * experts;
        const int32_t *held = eplb_placement_physical_to_logical(placement) + (size_t)l * slots;
        memset(scratch->rank, 0, sizeof scratch->rank);
        for (size_t p = 0; p < slots; p++) {
            if (held[p] >= 0)
                scratch->rank[eplb_topology_slot_rank(topology)[p]] +=
                    (double)row[held[p]] * eplb_plan_shares(plan)[(size_t)l * slots + p];
        }
        *planned += eplb_imbalance(topology, scratch->rank);
        eplb_resplit *resplit;
        eplb_resplit_result result;
        if (eplb_resplit_create(&resplit, placement, l, NULL, NULL) != EPLB_OK)
            return false;
        (void)eplb_resplit_solve(resplit, row, false, scratch->quota, &result, NULL);
        *resplit_sum += exact_imbalance(placement, row, &result);
        eplb_resplit_destroy(resplit);
    }
    return true;
}

static int next_window(bench_report *report, const next_case *next)
{
    static split_scratch scratch;
    const batch_trace *trace = next->trace;
    size_t cells = (size_t)trace->num_layers * (size_t)trace->num_experts;
    eplb_topology_params params;
    eplb_topology *topology = NULL;
    char name[96];
    eplb_topology_params_init(&params, sizeof params);
    params.num_ranks = next->ranks;
    params.slots_per_rank = (trace->num_experts + next->ranks) / next->ranks;
    int64_t *counts = calloc(((size_t)next->history + 1) * cells, sizeof *counts);
    if (counts == NULL || eplb_topology_create(&topology, &params, NULL, NULL) != EPLB_OK) {
        free(counts);
        return 3;
    }
    double planned = 0.0, split = 0.0;
    int judged = 0;
    int64_t windows = trace->num_tokens / next->window, step = (windows + MOST_JUDGED - 1) / MOST_JUDGED;
    for (int64_t first = next->window; first + next->window <= trace->num_tokens;
         first += step * next->window, judged++) {
        eplb_plan *plan = plan_before(next, topology, first, counts);
        int64_t *now = counts + (size_t)next->history * cells;
        batch_trace_count(trace, first, next->window, now);
        bool good = plan != NULL && judge(plan, trace, now, &scratch, &planned, &split);
        eplb_plan_destroy(plan);
        if (!good)
            break;
    }
    double layers = (double)judged * (double)trace->num_layers;
    (void)snprintf(name, sizeof name, "next.n%d.g%d.%s.%s.h%d", (int)next->window, (int)next->ranks,
                   next->policy, next->split == EPLB_SPLIT_BATCH ? "batch" : "equal", next->history);
    bench_row(report, name);
    bench_number(report, "planned", judged > 0 ? planned / layers : 0.0);
    bench_number(report, "resplit", judged > 0 ? split / layers : 0.0);
    eplb_topology_destroy(topology);
    free(counts);
    return 0;
}

static int bench_trace(bench_report *report, const bench_options *options)
{
    static const struct {
        const char *policy;
        eplb_split split;
        int history;
    } plans[] = {{"deepseek", EPLB_SPLIT_EQUAL, 1},
                 {"auto", EPLB_SPLIT_EQUAL, 1},
                 {"auto", EPLB_SPLIT_BATCH, 1},
                 {"auto", EPLB_SPLIT_BATCH, 2},
                 {"auto", EPLB_SPLIT_BATCH, 4}};
    static const int64_t windows[] = {64, 256, 1024};
    batch_trace trace;
    if (!batch_trace_read(options->trace_path, &trace))
        return 2;
    int status = 0;
    for (size_t w = options->quick ? 2 : 0; w < sizeof windows / sizeof windows[0]; w++) {
        for (int32_t ranks = 8; ranks <= 16; ranks *= 2) {
            for (size_t p = 0; p < sizeof plans / sizeof plans[0] && status == 0; p++) {
                next_case next = {&trace,          windows[w],     ranks,
                                  plans[p].policy, plans[p].split, plans[p].history};
                status = next_window(report, &next);
            }
        }
    }
    batch_trace_clear(&trace);
    return status;
}

int bench_resplit(bench_report *report, const bench_options *options)
{
    static const split_case timed[] = {{256, 32, 8, 0.8, TOKENS},  {256, 32, 16, 0.3, TOKENS},
                                       {256, 32, 32, 0.3, TOKENS}, {256, 32, 32, 0.8, TOKENS},
                                       {256, 64, 64, 0.8, TOKENS}, {256, 64, 320, 0.8, TOKENS}};
    static const split_case gaps[] = {{256, 32, 8, 0.3, TOKENS},  {256, 32, 8, 0.8, TOKENS},
                                      {256, 32, 8, 1.5, 512},     {256, 32, 16, 0.3, TOKENS},
                                      {256, 32, 16, 0.8, TOKENS}, {256, 32, 32, 0.8, TOKENS},
                                      {128, 16, 8, 1.5, 512}};
    int instances = options->quick ? QUICK_INSTANCES : INSTANCES, status = 0;
    if (options->trace_path != NULL)
        return bench_trace(report, options);
    for (size_t i = 0; i < sizeof timed / sizeof timed[0] && status == 0; i++)
        status = time_case(report, &timed[i], instances);
    for (size_t i = 0; i < sizeof gaps / sizeof gaps[0]; i++)
        gap_case(report, &gaps[i], options->repetitions > 0 ? options->repetitions : instances);
    return status;
}
