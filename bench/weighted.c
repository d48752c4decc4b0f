/* `bench weighted`: what unequal shares reach.
 *
 * exact.*: 256 experts (some dead) and G spare slots, EP8 to EP64: imbalance, recomputed by the library from
 * slots and shares, worst layer, against DeepSeek's equal split. few.*: fewer spare slots than exact balance
 * takes, with the proved bound. nodes.*: groups on nodes. speeds: ranks that differ by 5 %. time.*: whole
 * models on one thread, interleaved with DeepSeek's planner, and growth to 1,024 ranks. drift.*: a plan
 * judged on a later load, whose tokens are split anew over it: spare slots as an expander against duplicates
 * of the hottest. repair.*: imbalance with so many received experts per layer after a drift. trace.*: layers
 * of --trace (or the shipped example). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches.h"
#include "plan_case.h"
#include "synthetic.h"
#include "trace_load.h"

enum { MOST_LAYERS = 94, MOST_EXPERTS = 512, MOST_REPETITIONS = 501, DEAD_EVERY = 16 };

#define TOKENS 1e6

static int64_t counts[MOST_LAYERS * MOST_EXPERTS], drifted[MOST_LAYERS * MOST_EXPERTS];

/* Lognormal loads, every 16th expert dead, and the same after a drift of 0.2. */
static void draw(const plan_shape *shape, double sigma, bool dead)
{
    double weights[MOST_EXPERTS];
    random_state random = random_seed(7), drift = random_seed(8);
    for (int32_t l = 0; l < shape->layers; l++) {
        size_t at = (size_t)l * (size_t)shape->experts;
        synthetic_lognormal(&random, sigma, shape->experts, weights);
        for (int32_t e = 0; dead && e < shape->experts; e += DEAD_EVERY)
            weights[e] = 0.0;
        synthetic_counts(weights, shape->experts, TOKENS, 0, counts + at);
        synthetic_drift(&drift, 0.2, shape->experts, weights);
        synthetic_counts(weights, shape->experts, TOKENS, 0, drifted + at);
    }
}

/* One plan and what it says of itself; false after telling why. */
static bool plan_quality(const plan_shape *shape, const int64_t *load_counts, const char *policy,
                         plan_figures *out)
{
    eplb_load *load;
    eplb_topology *topology;
    if (!plan_case_create(shape, load_counts, &load, &topology))
        return false;
    eplb_plan *plan = plan_case_run(shape, load, topology, policy);
    bool good = plan != NULL;
    if (good)
        *out = plan_case_figures(plan);
    eplb_plan_destroy(plan);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
    return good;
}

static bool add_quality(bench_report *report, const char *name, const plan_shape *shape,
                        const int64_t *load_counts)
{
    plan_figures ours, theirs;
    if (!plan_quality(shape, load_counts, "weighted", &ours) ||
        !plan_quality(shape, load_counts, "deepseek", &theirs))
        return false;
    bench_row(report, name);
    bench_number(report, "imbalance", ours.mean);
    bench_number(report, "worst_imbalance", ours.worst);
    bench_number(report, "lower_bound", ours.bound);
    bench_number(report, "deepseek_imbalance", theirs.mean);
    return true;
}

static bool balance_rows(bench_report *report, int32_t layers)
{
    static const double sigmas[] = {0.5, 1.0, 1.9};
    const plan_shape exact[] = {{layers, 256, 264, 8, 1, 1},
                                {layers, 256, 272, 16, 1, 1},
                                {layers, 256, 288, 32, 1, 1},
                                {layers, 256, 320, 64, 1, 1}};
    const plan_shape few[] = {
        {layers, 256, 288, 72, 1, 1}, {layers, 256, 288, 144, 1, 1}, {layers, 256, 256, 32, 1, 1}};
    char name[64];
    for (size_t s = 0; s < 3; s++) {
        for (size_t i = 0; i < 4; i++) {
            draw(&exact[i], sigmas[s], true);
            (void)snprintf(name, sizeof name, "exact.ep%d.lognormal%.1f", exact[i].ranks, sigmas[s]);
            if (!add_quality(report, name, &exact[i], counts))
                return false;
        }
        for (size_t i = 0; i < 3; i++) {
            draw(&few[i], sigmas[s], false);
            (void)snprintf(name, sizeof name, "few.%don%d.lognormal%.1f", few[i].slots, few[i].ranks,
                           sigmas[s]);
            if (!add_quality(report, name, &few[i], counts))
                return false;
        }
    }
    return true;
}

static void draw_zipf(const plan_shape *shape)
{
    double weights[MOST_EXPERTS];
    random_state random = random_seed(9);
    for (int32_t l = 0; l < shape->layers; l++) {
        synthetic_zipf(&random, 1.0, shape->experts, weights);
        synthetic_counts(weights, shape->experts, TOKENS, 0, counts + (size_t)l * (size_t)shape->experts);
    }
}

/* With up to `spill` replicas a layer outside their group's node. */
static bool spill_row(bench_report *report, const plan_shape *shape, const char *name, int32_t spill)
{
    eplb_load *load;
    eplb_topology *topology;
    eplb_plan *plan = NULL;
    eplb_plan_params params;
    if (!plan_case_create(shape, counts, &load, &topology))
        return false;
    eplb_plan_params_init(&params, sizeof params);
    params.policy = "weighted";
    params.split = EPLB_SPLIT_WEIGHTED;
    params.num_groups = shape->groups;
    params.max_spill = spill;
    bool good = eplb_plan_create(&plan, load, topology, &params, NULL, NULL) == EPLB_OK;
    if (good) {
        plan_figures figures = plan_case_figures(plan);
        bench_row(report, name);
        bench_number(report, "imbalance", figures.mean);
        bench_number(report, "worst_imbalance", figures.worst);
        bench_number(report, "spilled_per_layer", (double)eplb_plan_spilled(plan) / shape->layers);
    }
    eplb_plan_destroy(plan);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
    return good;
}

static bool node_rows(bench_report *report, int32_t layers)
{
    static const int32_t spills[] = {2, 4, 6, 8};
    const plan_shape shape = {layers, 256, 288, 32, 4, 8};
    char name[64];
    draw(&shape, 0.5, false);
    if (!add_quality(report, "nodes.lognormal0.5", &shape, counts))
        return false;
    draw_zipf(&shape);
    bool good = add_quality(report, "nodes.zipf1.0", &shape, counts);
    for (size_t i = 0; good && i < sizeof spills / sizeof *spills; i++) {
        (void)snprintf(name, sizeof name, "nodes.zipf1.0.spill%d", spills[i]);
        good = spill_row(report, &shape, name, spills[i]);
    }
    return good;
}

/* Ranks 95 .. 105 fast: imbalance is max over ranks of load / speed over the mean. */
static bool speed_row(bench_report *report, int32_t layers)
{
    const plan_shape shape = {layers, 256, 288, 32, 1, 1};
    int32_t speed[32];
    eplb_load *load;
    eplb_topology *plain, *topology = NULL;
    eplb_topology_params params;
    random_state random = random_seed(10);
    draw(&shape, 1.0, false);
    if (!plan_case_create(&shape, counts, &load, &plain))
        return false;
    for (int32_t g = 0; g < 32; g++)
        speed[g] = 95 + (int32_t)random_below(&random, 11);
    eplb_topology_params_init(&params, sizeof params);
    params.num_ranks = 32;
    params.slots_per_rank = 9;
    params.rank_speed = speed;
    eplb_plan *plan = NULL;
    if (eplb_topology_create(&topology, &params, NULL, NULL) == EPLB_OK)
        plan = plan_case_run(&shape, load, topology, "weighted");
    bool good = plan != NULL;
    if (good) {
        bench_row(report, "speeds.lognormal1.0");
        bench_number(report, "worst_imbalance", plan_case_figures(plan).worst);
    }
    eplb_plan_destroy(plan);
    eplb_topology_destroy(topology);
    eplb_topology_destroy(plain);
    eplb_load_destroy(load);
    return good;
}

/* --- time -------------------------------------------------------------------------------------------- */

/* Milliseconds of one plan with its checks and measures; negative: failed. */
static double time_plan(const plan_shape *shape, const eplb_load *load, const eplb_topology *topology,
                        const char *policy)
{
    double start = bench_cpu_seconds();
    eplb_plan *plan = plan_case_run(shape, load, topology, policy);
    double seconds = bench_cpu_seconds() - start;
    bool good = plan != NULL;
    eplb_plan_destroy(plan);
    return good ? 1e3 * seconds : -1.0;
}

/* Milliseconds: medians of interleaved runs. */
typedef struct plan_times {
    double weighted;
    double deepseek;
} plan_times;

static bool time_shape(const plan_shape *shape, int repetitions, plan_times *times)
{
    static double ours[MOST_REPETITIONS], theirs[MOST_REPETITIONS];
    eplb_load *load;
    eplb_topology *topology;
    draw(shape, 0.5, false);
    if (!plan_case_create(shape, counts, &load, &topology))
        return false;
    bool good = true;
    for (int r = 0; good && r < repetitions; r++) {
        ours[r] = time_plan(shape, load, topology, "weighted");
        theirs[r] = time_plan(shape, load, topology, "deepseek");
        good = ours[r] >= 0.0 && theirs[r] >= 0.0;
    }
    times->weighted = bench_median(ours, repetitions);
    times->deepseek = bench_median(theirs, repetitions);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
    return good;
}

static bool time_rows(bench_report *report, int repetitions)
{
    const plan_shape model = {58, 256, 288, 32, 1, 1}, large = {94, 512, 2048, 1024, 1, 1};
    plan_times small_times, large_times;
    if (!time_shape(&model, repetitions, &small_times) ||
        !time_shape(&large, repetitions / 2 + 1, &large_times))
        return false;
    bench_row(report, "time.58x256.on32");
    bench_number(report, "plan_ms", small_times.weighted);
    bench_number(report, "deepseek_ms", small_times.deepseek);
    bench_number(report, "ratio_to_deepseek", small_times.weighted / small_times.deepseek);
    bench_row(report, "time.94x512.on1024");
    bench_number(report, "plan_ms", large_times.weighted);
    bench_number(report, "deepseek_ms", large_times.deepseek);
    bench_number(report, "times_of_58x256", large_times.weighted / small_times.weighted);
    return true;
}

/* --- drift ------------------------------------------------------------------------------------------- */

/* Mean over layers of the least maximum when the drifted load is split anew over the placement. */
static bool resplit_mean(const plan_shape *shape, const eplb_placement *placement, double *mean)
{
    *mean = 0.0;
    int64_t *quota = malloc((size_t)shape->slots * sizeof *quota);
    bool good = quota != NULL;
    for (int32_t l = 0; good && l < shape->layers; l++) {
        const int64_t *load = drifted + (size_t)l * (size_t)shape->experts;
        eplb_resplit *resplit = NULL;
        eplb_resplit_result result;
        int64_t total = 0;
        for (int32_t e = 0; e < shape->experts; e++)
            total += load[e];
        good = eplb_resplit_create(&resplit, placement, l, NULL, NULL) == EPLB_OK &&
               eplb_resplit_solve(resplit, load, false, quota, &result, NULL) == EPLB_OK;
        if (good)
            *mean += (double)result.bound_load / (double)result.bound_speed * shape->ranks / (double)total /
                     shape->layers;
        eplb_resplit_destroy(resplit);
    }
    free(quota);
    return good;
}

static bool rank_holds(const int32_t *slots, int32_t per_rank, int32_t rank, int32_t expert)
{
    for (int32_t i = 0; i < per_rank; i++) {
        if (slots[rank * per_rank + i] == expert)
            return true;
    }
    return false;
}

/* Copies a tight placement into ranks of more slots and gives each new slot to the expert with the most load
 * per replica that its rank lacks. */
static void widen_with_duplicates(const plan_shape *tight, const plan_shape *wide, const int32_t *from,
                                  int32_t *to)
{
    int32_t narrow = tight->slots / tight->ranks, broad = wide->slots / wide->ranks;
    for (int32_t l = 0; l < wide->layers; l++) {
        int32_t count[MOST_EXPERTS] = {0}, *row = to + (size_t)l * (size_t)wide->slots;
        const int64_t *load = counts + (size_t)l * (size_t)wide->experts;
        for (int32_t s = 0; s < wide->slots; s++) {
            bool kept = s % broad < narrow;
            row[s] =
                kept ? from[(size_t)l * (size_t)tight->slots + (size_t)(s / broad * narrow + s % broad)] : -1;
            if (kept)
                count[row[s]]++;
        }
        for (int32_t s = 0; s < wide->slots; s++) {
            int32_t best = -1;
            for (int32_t e = 0; row[s] < 0 && e < wide->experts; e++) {
                if (!rank_holds(row, broad, s / broad, e) &&
                    (best < 0 || load[e] * count[best] > load[best] * count[e]))
                    best = e;
            }
            if (best >= 0) {
                row[s] = best;
                count[best]++;
            }
        }
    }
}

static bool duplicates_mean(const plan_shape *tight, const plan_shape *wide, const eplb_plan *plan,
                            const eplb_topology *topology, double *mean)
{
    int32_t *slots = malloc((size_t)wide->layers * (size_t)wide->slots * sizeof *slots);
    eplb_placement *placement = NULL;
    bool good = slots != NULL;
    if (good) {
        widen_with_duplicates(tight, wide, eplb_placement_physical_to_logical(eplb_plan_placement(plan)),
                              slots);
        good = eplb_placement_create(&placement, topology, wide->layers, wide->experts, slots, NULL, NULL) ==
                   EPLB_OK &&
               resplit_mean(wide, placement, mean);
    }
    eplb_placement_destroy(placement);
    free(slots);
    return good;
}

/* 288 slots that exact balance takes, and 32 or 64 more. */
static bool drift_row(bench_report *report, int32_t layers, double sigma, int32_t per_rank)
{
    const plan_shape tight = {layers, 256, 288, 32, 1, 1}, wide = {layers, 256, 32 * per_rank, 32, 1, 1};
    eplb_load *load, *same;
    eplb_topology *narrow, *broad;
    char name[64];
    draw(&tight, sigma, false);
    if (!plan_case_create(&tight, counts, &load, &narrow))
        return false;
    if (!plan_case_create(&wide, counts, &same, &broad)) {
        eplb_topology_destroy(narrow);
        eplb_load_destroy(load);
        return false;
    }
    eplb_plan *base = plan_case_run(&tight, load, narrow, "weighted");
    eplb_plan *ours = plan_case_run(&wide, load, broad, "weighted");
    double none, expander, duplicates;
    bool good = base != NULL && ours != NULL && resplit_mean(&tight, eplb_plan_placement(base), &none) &&
                resplit_mean(&wide, eplb_plan_placement(ours), &expander) &&
                duplicates_mean(&tight, &wide, base, broad, &duplicates);
    if (good) {
        (void)snprintf(name, sizeof name, "drift.%dslots.lognormal%.1f", wide.slots, sigma);
        bench_row(report, name);
        bench_number(report, "no_more_slots", none);
        bench_number(report, "duplicates", duplicates);
        bench_number(report, "expander", expander);
    }
    eplb_plan_destroy(ours);
    eplb_plan_destroy(base);
    eplb_topology_destroy(broad);
    eplb_topology_destroy(narrow);
    eplb_load_destroy(same);
    eplb_load_destroy(load);
    return good;
}

/* --- repair ------------------------------------------------------------------------------------------ */

/* Mean imbalance of the drifted load with at most `moves` received experts per layer; negative: failed. */
static double repaired(const plan_shape *shape, const eplb_plan *before, int64_t moves, double *received,
                       double *ms)
{
    eplb_load *load;
    eplb_topology *topology;
    eplb_plan *plan = NULL;
    eplb_plan_params params;
    if (!plan_case_create(shape, drifted, &load, &topology))
        return -1.0;
    eplb_plan_params_init(&params, sizeof params);
    params.policy = "weighted";
    params.split = EPLB_SPLIT_WEIGHTED;
    params.current = eplb_plan_placement(before);
    params.max_moves_per_layer = moves;
    double start = bench_seconds(), mean = -1.0;
    if (eplb_plan_create(&plan, load, topology, &params, NULL, NULL) == EPLB_OK) {
        *ms = 1e3 * (bench_seconds() - start);
        *received = (double)eplb_plan_moves(plan).received / shape->layers;
        mean = plan_case_figures(plan).mean;
    }
    eplb_plan_destroy(plan);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
    return mean;
}

static bool repair_row(bench_report *report, int32_t layers, double sigma, const char *start_policy)
{
    static const int64_t moves[] = {0, 1, 2, 4, 8, 16, 32, EPLB_UNLIMITED};
    const plan_shape shape = {layers, 256, 288, 32, 1, 1};
    eplb_load *load;
    eplb_topology *topology;
    char text[64];
    draw(&shape, sigma, false);
    if (!plan_case_create(&shape, counts, &load, &topology))
        return false;
    eplb_plan *before = plan_case_run(&shape, load, topology, start_policy);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
    if (before == NULL)
        return false;
    (void)snprintf(text, sizeof text, "repair.from_%s.lognormal%.1f", start_policy, sigma);
    bench_row(report, text);
    bool good = true;
    for (size_t i = 0; good && i < sizeof moves / sizeof *moves; i++) {
        double received = 0.0, ms = 0.0, reached = repaired(&shape, before, moves[i], &received, &ms);
        good = reached >= 0.0;
        if (moves[i] == EPLB_UNLIMITED) {
            bench_number(report, "end", reached);
            bench_number(report, "received_per_layer", received);
            bench_number(report, "ms_per_layer", ms / layers);
        } else {
            (void)snprintf(text, sizeof text, "after_%d", (int)moves[i]);
            bench_number(report, text, reached);
        }
    }
    eplb_plan_destroy(before);
    return good;
}

/* --- recorded layers --------------------------------------------------------------------------------- */

static bool trace_rows(bench_report *report, const trace_load *trace)
{
    int64_t *sum = trace_load_sum(trace);
    bool good = sum != NULL;
    for (int32_t ranks = 8; good && ranks <= 64; ranks *= 2) {
        int32_t per_rank = (trace->experts + ranks - 1) / ranks + 1;
        const plan_shape shape = {trace->layers, trace->experts, ranks * per_rank, ranks, 1, 1};
        char name[64];
        (void)snprintf(name, sizeof name, "trace.ep%d.%dslots", ranks, shape.slots);
        good = add_quality(report, name, &shape, sum);
    }
    free(sum);
    return good;
}

static bool drift_rows(bench_report *report, int32_t layers)
{
    bool good = true;
    for (int32_t per_rank = 10; good && per_rank <= 11; per_rank++)
        good = drift_row(report, layers, 0.5, per_rank) && drift_row(report, layers, 1.0, per_rank);
    return good;
}

static bool repair_rows(bench_report *report, int32_t layers)
{
    return repair_row(report, layers, 0.5, "weighted") && repair_row(report, layers, 1.0, "weighted") &&
           repair_row(report, layers, 0.5, "deepseek");
}

int bench_weighted(bench_report *report, const bench_options *options)
{
    int32_t layers = options->quick ? 2 : 58;
    int repetitions = options->repetitions > 0 ? options->repetitions : options->quick ? 3 : 101;
    repetitions = repetitions < MOST_REPETITIONS ? repetitions : MOST_REPETITIONS;
    trace_load trace;
    if (!trace_load_read(&trace, options, 0))
        return 2;
    bool good = balance_rows(report, layers) && node_rows(report, layers) && speed_row(report, layers) &&
                trace_rows(report, &trace) && drift_rows(report, layers) && repair_rows(report, layers) &&
                time_rows(report, repetitions);
    trace_load_clear(&trace);
    return good ? 0 : 3;
}
