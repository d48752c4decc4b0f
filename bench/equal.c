/* `bench equal`: quality and time of the equal split.
 *
 * trace.epG: every layer of a trace (all its tokens) with one redundant slot per rank; DeepSeek's planner,
 * ours and a million steps of simulated annealing in the same process. `times_as_fast` is annealing's time
 * over ours. model.*: 58 layers of 256 experts, 288 slots on 32 ranks; `times_of_deepseek` is our time over
 * that of the deepseek policy, runs interleaved; `above_bound` is the largest excess over the proved bound.
 * toy: the eight experts of FlashLB's example. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "annealing.h"
#include "benches.h"
#include "plan_case.h"
#include "synthetic.h"
#include "trace_load.h"

enum { ANNEALING_STEPS = 1000000, QUICK_STEPS = 20000, MOST_REPETITIONS = 200 };

/* One planner on the layers of one shape. */
typedef struct outcome {
    plan_figures plan;
    double ms;
} outcome;

/* expert [layers, slots] (NULL: not wanted) receives the placement. */
static bool run_plan(outcome *out, const plan_shape *shape, const int64_t *counts, const char *policy,
                     int32_t *expert)
{
    eplb_load *load;
    eplb_topology *topology;
    if (!plan_case_create(shape, counts, &load, &topology))
        return false;
    double start = bench_cpu_seconds();
    eplb_plan *plan = plan_case_run(shape, load, topology, policy);
    out->ms = 1e3 * (bench_cpu_seconds() - start);
    if (plan != NULL)
        out->plan = plan_case_figures(plan);
    if (plan != NULL && expert != NULL)
        memcpy(expert, eplb_placement_physical_to_logical(eplb_plan_placement(plan)),
               (size_t)shape->layers * (size_t)shape->slots * sizeof *expert);
    bool good = plan != NULL;
    eplb_plan_destroy(plan);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
    return good;
}

/* Mean of annealing over the layers, each started from a greedy placement without duplicates. */
static bool run_annealing(outcome *out, const plan_shape *shape, const int64_t *counts, bool quick)
{
    size_t slots = (size_t)shape->slots;
    outcome ignored;
    *out = (outcome){0};
    int32_t *expert = malloc((size_t)shape->layers * slots * sizeof *expert);
    bool good = expert != NULL && run_plan(&ignored, shape, counts, "greedy", expert);
    for (int32_t l = 0; good && l < shape->layers; l++) {
        annealing_case problem = {counts + (size_t)l * (size_t)shape->experts, shape->experts, shape->ranks,
                                  shape->slots / shape->ranks};
        double start = bench_cpu_seconds();
        double reached = anneal(&problem, quick ? QUICK_STEPS : ANNEALING_STEPS, expert + (size_t)l * slots);
        out->ms += 1e3 * (bench_cpu_seconds() - start);
        out->plan.mean += reached / shape->layers;
        good = reached >= 0;
    }
    free(expert);
    return good;
}

static bool judge_trace(bench_report *report, const bench_options *options, const trace_load *trace,
                        const int64_t *counts)
{
    for (int32_t ranks = 8; ranks <= 64; ranks *= 2) {
        plan_shape shape = {trace->layers, trace->experts, trace->experts + ranks, ranks, 1, 1};
        if (shape.slots % ranks != 0 || (options->quick && ranks > 16))
            continue;
        outcome deepseek, ours, annealed;
        if (!run_plan(&deepseek, &shape, counts, "deepseek", NULL) ||
            !run_plan(&ours, &shape, counts, "equal", NULL) ||
            !run_annealing(&annealed, &shape, counts, options->quick))
            return false;
        char name[64];
        (void)snprintf(name, sizeof name, "trace.ep%d", (int)ranks);
        bench_row(report, name);
        bench_number(report, "slots", shape.slots);
        bench_number(report, "bound", ours.plan.bound);
        bench_number(report, "deepseek", deepseek.plan.mean);
        bench_number(report, "equal", ours.plan.mean);
        bench_number(report, "equal_worst", ours.plan.worst);
        bench_number(report, "annealing", annealed.plan.mean);
        bench_number(report, "equal_ms_per_layer", ours.ms / shape.layers);
        bench_number(report, "annealing_ms_per_layer", annealed.ms / shape.layers);
        bench_number(report, "times_as_fast", annealed.ms / ours.ms);
    }
    return true;
}

static void draw_model(const plan_shape *shape, double sigma, double zipf, int64_t *counts)
{
    double weights[256];
    random_state random = random_seed(1);
    for (int32_t l = 0; l < shape->layers; l++) {
        if (sigma > 0)
            synthetic_lognormal(&random, sigma, shape->experts, weights);
        else
            synthetic_zipf(&random, zipf, shape->experts, weights);
        synthetic_counts(weights, shape->experts, 1048576, 0, counts + (size_t)l * (size_t)shape->experts);
    }
}

static bool judge_model(bench_report *report, const char *name, const plan_shape *shape,
                        const int64_t *counts, int repetitions)
{
    double theirs[MOST_REPETITIONS], times[MOST_REPETITIONS];
    outcome deepseek, ours;
    for (int r = 0; r < repetitions; r++) {
        if (!run_plan(&deepseek, shape, counts, "deepseek", NULL) ||
            !run_plan(&ours, shape, counts, "equal", NULL))
            return false;
        theirs[r] = deepseek.ms;
        times[r] = ours.ms;
    }
    double deepseek_ms = bench_median(theirs, repetitions), equal_ms = bench_median(times, repetitions);
    bench_row(report, name);
    bench_number(report, "slots", shape->slots);
    bench_number(report, "bound", ours.plan.bound);
    bench_number(report, "deepseek", deepseek.plan.mean);
    bench_number(report, "equal", ours.plan.mean);
    bench_number(report, "equal_worst", ours.plan.worst);
    bench_number(report, "above_bound", ours.plan.above);
    bench_number(report, "deepseek_ms", deepseek_ms);
    bench_number(report, "equal_ms", equal_ms);
    bench_number(report, "times_of_deepseek", equal_ms / deepseek_ms);
    return true;
}

static bool judge_models(bench_report *report, int repetitions)
{
    static const struct {
        const char *name;
        double sigma;
        double zipf;
    } loads[] = {{"model.lognormal0.3", 0.3, 0}, {"model.lognormal0.5", 0.5, 0}, {"model.lognormal1.0", 1, 0},
                 {"model.lognormal1.9", 1.9, 0}, {"model.zipf0.5", 0, 0.5},      {"model.zipf1.0", 0, 1}};
    const plan_shape shape = {58, 256, 288, 32, 1, 1};
    int64_t *counts = malloc((size_t)shape.layers * (size_t)shape.experts * sizeof *counts);
    bool good = counts != NULL;
    for (size_t i = 0; good && i < sizeof loads / sizeof *loads; i++) {
        draw_model(&shape, loads[i].sigma, loads[i].zipf, counts);
        good = judge_model(report, loads[i].name, &shape, counts, repetitions);
    }
    free(counts);
    return good;
}

static bool judge_toy(bench_report *report)
{
    static const int64_t counts[8] = {600, 560, 120, 120, 20, 10, 10, 10};
    const plan_shape shape = {1, 8, 16, 8, 1, 1};
    outcome deepseek, ours;
    if (!run_plan(&deepseek, &shape, counts, "deepseek", NULL) ||
        !run_plan(&ours, &shape, counts, "equal", NULL))
        return false;
    bench_row(report, "toy");
    bench_number(report, "mean_load", 1450.0 / 8);
    bench_number(report, "deepseek_load", deepseek.plan.mean * 1450 / 8);
    bench_number(report, "equal_load", ours.plan.mean * 1450 / 8);
    return true;
}

int bench_equal(bench_report *report, const bench_options *options)
{
    int repetitions = options->repetitions > 0 ? options->repetitions : options->quick ? 1 : 21;
    trace_load trace;
    if (repetitions > MOST_REPETITIONS)
        repetitions = MOST_REPETITIONS;
    if (!trace_load_read(&trace, options, 0))
        return 2;
    int64_t *counts = trace_load_sum(&trace);
    bool good = counts != NULL && judge_trace(report, options, &trace, counts) &&
                judge_models(report, repetitions) && judge_toy(report);
    free(counts);
    trace_load_clear(&trace);
    return good ? 0 : 3;
}
