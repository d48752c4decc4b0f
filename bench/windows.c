/* `bench windows`: plans for many windows, judged on windows that the planner did not see.
 *
 * Bursty, mild and near-static topics: planned on 64 windows, judged on the 64 that follow; `hindsight` is
 * planned on those 64 themselves, and bursty_256 on 256 windows. A recorded stream
 * (--trace FILE [T, L, E], else the shipped example): planned on windows t .. t+15, judged on the next 8, for
 * t = 0, 24, 48 ...; under equal split, and with the tokens of every judged window split anew. `mean` and
 * `p95` are over all layers and judged windows of max/mean per window; p95 interpolates linearly. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <eplb/eplb.h>

#include "benches.h"
#include "synthetic.h"
#include "trace_load.h"

enum {
    TOPIC_EXPERTS = 256,
    TOPIC_LAYERS = 12,
    QUICK_LAYERS = 2,
    TOPIC_WINDOWS = 64,
    LONG_WINDOWS = 256,
    PLANNED = 16,
    JUDGED = 8
};

/* Imbalances of many windows. */
typedef struct series {
    double *value;
    size_t count;
    size_t room;
} series;

static bool series_add(series *s, double value)
{
    if (s->count == s->room) {
        size_t room = s->room > 0 ? 2 * s->room : 1024;
        double *grown = realloc(s->value, room * sizeof *grown);
        if (grown == NULL)
            return false;
        s->value = grown;
        s->room = room;
    }
    s->value[s->count++] = value;
    return true;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double series_mean(const series *s)
{
    double sum = 0.0;
    for (size_t i = 0; i < s->count; i++)
        sum += s->value[i];
    return s->count > 0 ? sum / (double)s->count : 0.0;
}

static double series_p95(series *s)
{
    if (s->count == 0)
        return 0.0;
    qsort(s->value, s->count, sizeof *s->value, ascending);
    double place = 0.95 * (double)(s->count - 1);
    size_t low = (size_t)place, high = low + 1 < s->count ? low + 1 : low;
    return s->value[low] + (place - (double)low) * (s->value[high] - s->value[low]);
}

/* Whole counts [windows, layers, experts] and the ranks to plan for. */
typedef struct stream {
    int64_t *counts;
    int32_t windows;
    int32_t layers;
    int32_t experts;
    eplb_topology *topology;
} stream;

static bool stream_ranks(stream *s, int32_t ranks, int32_t slots_per_rank)
{
    eplb_topology_params params;
    eplb_topology_params_init(&params, sizeof params);
    params.num_ranks = ranks;
    params.slots_per_rank = slots_per_rank;
    return eplb_topology_create(&s->topology, &params, NULL, NULL) == EPLB_OK;
}

static void stream_clear(stream *s)
{
    eplb_topology_destroy(s->topology);
    free(s->counts);
}

/* Windows first .. first + count - 1 as a load that borrows them. */
static eplb_load *stream_load(const stream *s, int32_t first, int32_t count)
{
    eplb_load_params params;
    eplb_load_params_init(&params, sizeof params);
    params.num_windows = count;
    params.num_layers = s->layers;
    params.num_experts = s->experts;
    params.counts = s->counts + (size_t)first * (size_t)s->layers * (size_t)s->experts;
    params.borrow = true;
    eplb_load *load = NULL;
    return eplb_load_create(&load, &params, NULL, NULL) == EPLB_OK ? load : NULL;
}

/* What is compared. */
typedef struct contender {
    const char *name;
    const char *policy;
    eplb_split split;  /* the planner's */
    bool resplit;      /* judged windows are split anew */
    int64_t max_moves; /* per layer, from the plan before; EPLB_UNLIMITED: planned from nothing */
} contender;

typedef struct verdict {
    series planned; /* imbalance of the windows planned on */
    series judged;
    double seconds;
    double received;
    int64_t plans; /* layers planned */
} verdict;

static void verdict_clear(verdict *v)
{
    free(v->planned.value);
    free(v->judged.value);
}

static bool judge_equal(series *out, const stream *s, const eplb_load *load, const eplb_placement *placement)
{
    double *rank = malloc((size_t)eplb_topology_num_ranks(s->topology) * sizeof *rank);
    bool good = rank != NULL;
    for (int32_t t = 0; good && t < eplb_load_num_windows(load); t++) {
        for (int32_t l = 0; good && l < s->layers; l++)
            good = eplb_rank_load(load, l, t, placement, NULL, rank, NULL, NULL) == EPLB_OK &&
                   series_add(out, eplb_imbalance(s->topology, rank));
    }
    free(rank);
    return good;
}

/* Exact split of every window: the fractional optimum, the certificate of the solve. */
static bool judge_resplit(series *out, const stream *s, int32_t first, int32_t count,
                          const eplb_placement *placement)
{
    double ranks = (double)eplb_topology_num_ranks(s->topology);
    int64_t *quota = malloc((size_t)eplb_topology_num_slots(s->topology) * sizeof *quota);
    bool good = quota != NULL;
    for (int32_t l = 0; good && l < s->layers; l++) {
        eplb_resplit *split = NULL;
        good = eplb_resplit_create(&split, placement, l, NULL, NULL) == EPLB_OK;
        for (int32_t t = first; good && t < first + count; t++) {
            const int64_t *load =
                s->counts + ((size_t)t * (size_t)s->layers + (size_t)l) * (size_t)s->experts;
            eplb_resplit_result result;
            double total = 0.0;
            for (int32_t e = 0; e < s->experts; e++)
                total += (double)load[e];
            good = eplb_resplit_solve(split, load, false, quota, &result, NULL) == EPLB_OK &&
                   series_add(out, total > 0.0 ? (double)result.bound_load / (double)result.bound_speed /
                                                     (total / ranks)
                                               : 1.0);
        }
        eplb_resplit_destroy(split);
    }
    free(quota);
    return good;
}

static bool judge(series *out, const stream *s, const contender *c, int32_t first, int32_t count,
                  const eplb_plan *plan)
{
    if (c->resplit)
        return judge_resplit(out, s, first, count, eplb_plan_placement(plan));
    eplb_load *load = stream_load(s, first, count);
    bool good = load != NULL && judge_equal(out, s, load, eplb_plan_placement(plan));
    eplb_load_destroy(load);
    return good;
}

/* Plans on `count` windows from `first`; the plan before is replaced by the new one. */
static bool plan_next(const stream *s, const contender *c, int32_t first, int32_t count, eplb_plan **plan)
{
    eplb_error error;
    eplb_plan_params params;
    eplb_plan_params_init(&params, sizeof params);
    params.policy = c->policy;
    params.split = c->split;
    if (c->max_moves != EPLB_UNLIMITED && *plan != NULL) {
        params.current = eplb_plan_placement(*plan);
        params.max_moves_per_layer = c->max_moves;
    }
    eplb_load *load = stream_load(s, first, count);
    eplb_plan *next = NULL;
    bool good = load != NULL && eplb_plan_create(&next, load, s->topology, &params, NULL, &error) == EPLB_OK;
    if (!good)
        bench_complain("%s", load == NULL ? "out of memory" : error.text);
    eplb_load_destroy(load);
    eplb_plan_destroy(*plan);
    *plan = next;
    return good;
}

/* One plan on windows first .. first + planned - 1, judged on those that follow. */
static bool contend_once(verdict *v, const stream *s, const contender *c, int32_t first, int32_t planned,
                         int32_t judged, eplb_plan **plan)
{
    if (!plan_next(s, c, first, planned, plan))
        return false;
    v->seconds += eplb_plan_seconds(*plan);
    v->received += (double)eplb_plan_moves(*plan).received;
    v->plans += s->layers;
    return judge(&v->planned, s, c, first, planned, *plan) &&
           judge(&v->judged, s, c, first + planned, judged, *plan);
}

static void report_verdict(bench_report *report, const char *where, const contender *c, verdict *v)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s.%s", where, c->name);
    bench_row(report, name);
    bench_number(report, "planned_mean", series_mean(&v->planned));
    bench_number(report, "mean", series_mean(&v->judged));
    bench_number(report, "p95", series_p95(&v->judged));
    bench_number(report, "received", v->received / (double)v->plans);
    bench_number(report, "layer_ms", 1e3 * v->seconds / (double)v->plans);
}

static const contender contenders[] = {
    {"deepseek", "deepseek", EPLB_SPLIT_EQUAL, false, EPLB_UNLIMITED},
    {"sum", "equal", EPLB_SPLIT_EQUAL, false, EPLB_UNLIMITED},
    {"windows", "windows", EPLB_SPLIT_EQUAL, false, EPLB_UNLIMITED},
    {"windows_8_moves", "windows", EPLB_SPLIT_EQUAL, false, 8},
    {"deepseek_resplit", "deepseek", EPLB_SPLIT_EQUAL, true, EPLB_UNLIMITED},
    {"windows_resplit", "windows", EPLB_SPLIT_EQUAL, true, EPLB_UNLIMITED},
    {"batch_resplit", "batch", EPLB_SPLIT_BATCH, true, EPLB_UNLIMITED},
    {"batch_8_moves", "batch", EPLB_SPLIT_BATCH, true, 8},
};

enum { TOPIC_CONTENDERS = 3, STREAM_CONTENDERS = (int)(sizeof contenders / sizeof *contenders) };

/* One model: each layer has its own topics and mixes. */
static bool draw_topics(stream *s, int32_t layers, int32_t num_windows, double concentration)
{
    size_t experts = TOPIC_EXPERTS, windows = (size_t)num_windows;
    *s = (stream){.windows = num_windows, .layers = layers, .experts = TOPIC_EXPERTS};
    s->counts = malloc(windows * (size_t)layers * experts * sizeof *s->counts);
    int64_t *layer = malloc(windows * experts * sizeof *layer);
    for (int32_t l = 0; s->counts != NULL && layer != NULL && l < layers; l++) {
        random_state random = random_seed((uint64_t)(1000 + l));
        synthetic_topics(&random, num_windows, TOPIC_EXPERTS, 8, concentration, 524288.0, layer);
        for (size_t t = 0; t < windows; t++)
            memcpy(s->counts + (t * (size_t)layers + (size_t)l) * experts, layer + t * experts,
                   experts * sizeof *layer);
    }
    bool good = s->counts != NULL && layer != NULL && stream_ranks(s, 32, 9);
    free(layer);
    return good;
}

/* Planned on `planned` windows from `first`, judged on the last TOPIC_WINDOWS. */
static bool contend_topics(bench_report *report, const char *where, const stream *s, const contender *c,
                           int32_t first, int32_t planned)
{
    verdict v = {0};
    eplb_plan *plan = NULL;
    bool good = plan_next(s, c, first, planned, &plan);
    if (good) {
        v.seconds = eplb_plan_seconds(plan);
        v.plans = s->layers;
        good = judge(&v.planned, s, c, first, planned, plan) &&
               judge(&v.judged, s, c, s->windows - TOPIC_WINDOWS, TOPIC_WINDOWS, plan);
    }
    if (good)
        report_verdict(report, where, c, &v);
    eplb_plan_destroy(plan);
    verdict_clear(&v);
    return good;
}

static bool run_topics(bench_report *report, const char *where, double concentration, bool quick)
{
    static const contender hindsight = {"hindsight", "windows", EPLB_SPLIT_EQUAL, false, EPLB_UNLIMITED};
    stream s;
    bool good = draw_topics(&s, quick ? QUICK_LAYERS : TOPIC_LAYERS, 2 * TOPIC_WINDOWS, concentration);
    for (int i = 0; good && i < TOPIC_CONTENDERS; i++)
        good = contend_topics(report, where, &s, &contenders[i], 0, TOPIC_WINDOWS);
    good = good && contend_topics(report, where, &s, &hindsight, TOPIC_WINDOWS, TOPIC_WINDOWS);
    stream_clear(&s);
    return good;
}

/* Bursty topics with more to plan on: several times the mixes. */
static bool run_long(bench_report *report, bool quick)
{
    stream s;
    bool good = draw_topics(&s, quick ? QUICK_LAYERS : TOPIC_LAYERS, LONG_WINDOWS + TOPIC_WINDOWS, 1.0);
    for (int i = 0; good && i < TOPIC_CONTENDERS; i++)
        good = contend_topics(report, "topics_bursty_256", &s, &contenders[i], 0, LONG_WINDOWS);
    stream_clear(&s);
    return good;
}

/* 16 ranks with one spare slot each, if the experts divide; else as many ranks as do. */
static bool stream_default_ranks(stream *s)
{
    int32_t ranks = 16;
    while (ranks > 1 && s->experts % ranks != 0)
        ranks--;
    return stream_ranks(s, ranks, s->experts / ranks + 1);
}

static bool run_stream(bench_report *report, const bench_options *options, const trace_load *trace)
{
    /* the stream releases the counts */
    stream s = {trace->counts, trace->windows, trace->layers, trace->experts, NULL};
    bool good = stream_default_ranks(&s);
    int32_t step = PLANNED + JUDGED, end = options->quick && s.windows > 2 * step ? 2 * step : s.windows;
    for (int i = 0; good && i < STREAM_CONTENDERS; i++) {
        verdict v = {0};
        eplb_plan *plan = NULL;
        for (int32_t t = 0; good && t + step <= end; t += step)
            good = contend_once(&v, &s, &contenders[i], t, PLANNED, JUDGED, &plan);
        if (good && v.plans > 0)
            report_verdict(report, "stream", &contenders[i], &v);
        eplb_plan_destroy(plan);
        verdict_clear(&v);
    }
    stream_clear(&s);
    return good;
}

int bench_windows(bench_report *report, const bench_options *options)
{
    trace_load trace = {.counts = NULL};
    /* a bench may run away from the sources */
    bool has_stream = options->trace_path != NULL || access(TRACE_LOAD_SHIPPED, R_OK) == 0;
    if (has_stream && !trace_load_read(&trace, options, 0))
        return 2;
    bool good = run_topics(report, "topics_bursty", 1.0, options->quick) &&
                run_long(report, options->quick) && run_topics(report, "topics_mild", 10.0, options->quick) &&
                run_topics(report, "topics_static", 100.0, options->quick);
    if (!good)
        trace_load_clear(&trace);
    else if (has_stream)
        good = run_stream(report, options, &trace);
    return good ? 0 : 3;
}
