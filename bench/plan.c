/* `bench plan`: how long planning a whole model takes on one thread, against a plain heap-based restatement
 * in the same process, and how it grows to 1,024 ranks. Runs of both are interleaved; medians of processor
 * time are told: with one thread, that is the time on an idle machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches.h"
#include "heap_planner.h"
#include "plan_case.h"
#include "synthetic.h"

#define MOST_REPETITIONS 1000
#define MOST_MS          1000.0 /* spent on one policy, the first plan apart */

static const plan_shape model = {58, 256, 288, 32, 1, 1};
static const plan_shape large = {94, 512, 2048, 1024, 1, 1};

/* Lognormal 0.5, a million tokens a layer; NULL when memory is out. */
static int64_t *draw_counts(const plan_shape *shape)
{
    size_t experts = (size_t)shape->experts;
    int64_t *counts = malloc((size_t)shape->layers * experts * sizeof *counts);
    double *weights = malloc(experts * sizeof *weights);
    random_state random = random_seed(1);
    for (int32_t l = 0; counts != NULL && weights != NULL && l < shape->layers; l++) {
        synthetic_lognormal(&random, 0.5, shape->experts, weights);
        synthetic_counts(weights, shape->experts, 1e6, 0, counts + (size_t)l * experts);
    }
    if (weights == NULL) {
        free(counts);
        counts = NULL;
    }
    free(weights);
    return counts;
}

/* A case that is ready to run. */
typedef struct timed_case {
    const plan_shape *shape;
    int64_t *counts;
    eplb_load *load;
    eplb_topology *topology;
    int32_t *expert; /* the baseline's answer */
} timed_case;

static bool open_case(timed_case *timed, const plan_shape *shape)
{
    size_t slots = (size_t)shape->layers * (size_t)shape->slots;
    *timed = (timed_case){shape, draw_counts(shape), NULL, NULL, malloc(slots * sizeof(int32_t))};
    return timed->counts != NULL && timed->expert != NULL &&
           plan_case_create(shape, timed->counts, &timed->load, &timed->topology);
}

static void close_case(timed_case *timed)
{
    eplb_topology_destroy(timed->topology);
    eplb_load_destroy(timed->load);
    free(timed->expert);
    free(timed->counts);
}

/* Milliseconds of one plan with all its checks and measures, counted outside the library; negative:
 * failed. */
static double time_plan(const timed_case *timed, const char *policy)
{
    double start = bench_cpu_seconds();
    eplb_plan *plan = plan_case_run(timed->shape, timed->load, timed->topology, policy);
    double seconds = bench_cpu_seconds() - start;
    if (plan == NULL)
        return -1.0;
    eplb_plan_destroy(plan);
    return 1e3 * seconds;
}

static double time_heap(const timed_case *timed)
{
    const plan_shape *s = timed->shape;
    double start = bench_cpu_seconds();
    if (heap_planner(timed->counts, s->layers, s->experts, s->slots, s->ranks, timed->expert) != 0)
        return -1.0;
    return 1e3 * (bench_cpu_seconds() - start);
}

/* Both planners follow one rule: their answers are the same slot for slot. */
static bool answers_agree(const timed_case *timed)
{
    eplb_plan *plan = plan_case_run(timed->shape, timed->load, timed->topology, "deepseek");
    if (plan == NULL || time_heap(timed) < 0.0)
        return false;
    size_t count = (size_t)timed->shape->layers * (size_t)timed->shape->slots;
    const int32_t *ours = eplb_placement_physical_to_logical(eplb_plan_placement(plan));
    bool same = memcmp(ours, timed->expert, count * sizeof *ours) == 0;
    eplb_plan_destroy(plan);
    if (!same)
        bench_complain("the baseline answers differently");
    return same;
}

/* Every policy plans the model, the baseline beside each plan; slow policies get fewer repetitions. */
static bool time_policy(bench_report *report, const timed_case *timed, const char *policy, int repetitions)
{
    double heap[MOST_REPETITIONS], ours[MOST_REPETITIONS], spent = 0.0;
    char name[64];
    int done = 0;
    while (done < repetitions && (done == 0 || spent < MOST_MS)) {
        heap[done] = time_heap(timed);
        ours[done] = time_plan(timed, policy);
        if (heap[done] < 0.0 || ours[done] < 0.0)
            return false;
        spent += ours[done++];
    }
    double heap_ms = bench_median(heap, done), plan_ms = bench_median(ours, done);
    (void)snprintf(name, sizeof name, "plan58x256.%s", policy);
    bench_row(report, name);
    bench_number(report, "plan_ms", plan_ms);
    bench_number(report, "heap_ms", heap_ms);
    bench_number(report, "times_as_fast", heap_ms / plan_ms);
    return true;
}

static bool time_policies(bench_report *report, const timed_case *timed, int repetitions)
{
    bool good = true;
    for (int32_t i = 0; good && i < eplb_policy_count(); i++)
        good = time_policy(report, timed, eplb_policy_name(i), repetitions);
    return good;
}

/* The large case with the small one just before it, each beside its baseline. */
static bool time_growth(bench_report *report, const timed_case *small, const timed_case *big,
                        const char *policy, int repetitions)
{
    double few[MOST_REPETITIONS], many[MOST_REPETITIONS], heap[MOST_REPETITIONS];
    char name[64];
    for (int r = 0; r < repetitions; r++) {
        heap[r] = time_heap(big);
        (void)time_plan(small, policy); /* warms the caches that the large case filled */
        few[r] = time_plan(small, policy);
        many[r] = time_plan(big, policy);
        if (few[r] < 0.0 || heap[r] < 0.0 || many[r] < 0.0)
            return false;
    }
    double few_ms = bench_median(few, repetitions), plan_ms = bench_median(many, repetitions);
    double heap_ms = bench_median(heap, repetitions);
    (void)snprintf(name, sizeof name, "plan94x512.%s", policy);
    bench_row(report, name);
    bench_number(report, "plan_ms", plan_ms);
    bench_number(report, "heap_ms", heap_ms);
    bench_number(report, "times_as_fast", heap_ms / plan_ms);
    bench_number(report, "times_of_58x256", plan_ms / few_ms);
    return true;
}

int bench_plan(bench_report *report, const bench_options *options)
{
    int repetitions = options->repetitions > 0 ? options->repetitions : options->quick ? 5 : 101;
    if (repetitions > MOST_REPETITIONS)
        repetitions = MOST_REPETITIONS;
    timed_case small = {0}, big = {0};
    bool good = open_case(&small, &model) && open_case(&big, &large) && answers_agree(&small) &&
                answers_agree(&big) && time_policies(report, &small, repetitions) &&
                time_growth(report, &small, &big, "deepseek", repetitions / 4 + 1) &&
                time_growth(report, &small, &big, "weighted", repetitions / 4 + 1);
    close_case(&big);
    close_case(&small);
    return good ? 0 : 3;
}
