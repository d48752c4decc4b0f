/* `bench moves`: what repair reaches with how many weights received.
 *
 * drift.*: 58 layers of 256 experts, 288 slots on 32 ranks; the load drifts by exp(0.2 z) after DeepSeek's
 * planner has planned; imbalance (mean over layers) with at most so many received experts per layer: ours,
 * and steepest descent of sum (load/mean)^16 as a yardstick. stream.*: a trace in windows, planned on each
 * from the placement before and judged on the next window; DeepSeek's and our full replan against repair
 * within a few moves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches.h"
#include "descent.h"
#include "plan_case.h"
#include "synthetic.h"
#include "trace_load.h"

enum { LAYERS = 58, EXPERTS = 256, RANKS = 32, PER_RANK = 9, SLOTS = RANKS * PER_RANK, MOST_MOVES = 64 };

static const plan_shape model = {LAYERS, EXPERTS, SLOTS, RANKS, 1, 1};

static void draw(double sigma, int64_t *before, int64_t *after)
{
    double weights[EXPERTS];
    random_state random = random_seed(1234), drift = random_seed(99);
    for (int32_t l = 0; l < LAYERS; l++) {
        synthetic_lognormal(&random, sigma, EXPERTS, weights);
        synthetic_counts(weights, EXPERTS, 1048576, 0, before + (size_t)l * EXPERTS);
        synthetic_drift(&drift, 0.2, EXPERTS, weights);
        synthetic_counts(weights, EXPERTS, 1048576, 0, after + (size_t)l * EXPERTS);
    }
}

/* One plan from `current` (NULL: from nothing) with at most `moves` received experts per layer. */
static eplb_plan *plan_from(const plan_shape *shape, const int64_t *counts, const char *policy,
                            const eplb_placement *current, int64_t moves, double target, double *ms)
{
    eplb_load *load;
    eplb_topology *topology;
    if (!plan_case_create(shape, counts, &load, &topology))
        return NULL;
    eplb_error error;
    eplb_plan *plan = NULL;
    eplb_plan_params params;
    eplb_plan_params_init(&params, sizeof params);
    params.policy = policy;
    params.current = current;
    params.max_moves_per_layer = moves;
    params.target_imbalance = target;
    double start = bench_seconds();
    if (eplb_plan_create(&plan, load, topology, &params, NULL, &error) != EPLB_OK)
        bench_complain("%s", error.text);
    *ms = 1e3 * (bench_seconds() - start);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
    return plan;
}

/* Mean over layers of the yardstick's frontier. */
static bool descend_all(const eplb_plan *start, const int64_t *after, double *mean)
{
    const int32_t *expert = eplb_placement_physical_to_logical(eplb_plan_placement(start));
    double one[MOST_MOVES + 1];
    memset(mean, 0, (MOST_MOVES + 1) * sizeof *mean);
    for (int32_t l = 0; l < LAYERS; l++) {
        if (descent_frontier(after + (size_t)l * EXPERTS, EXPERTS, RANKS, PER_RANK,
                             expert + (size_t)l * SLOTS, MOST_MOVES, one) != 0)
            return false;
        for (int32_t m = 0; m <= MOST_MOVES; m++)
            mean[m] += one[m] / LAYERS;
    }
    return true;
}

static bool judge_drift(bench_report *report, const char *name, double sigma, const bench_options *options)
{
    static const int32_t budgets[] = {0, 2, 4, 8, 16, 32, 64};
    int64_t *before = malloc(sizeof *before * LAYERS * EXPERTS),
            *after = malloc(sizeof *after * LAYERS * EXPERTS);
    double yardstick[MOST_MOVES + 1] = {0}, ms;
    eplb_plan *start = NULL;
    bool good = before != NULL && after != NULL;
    if (good) {
        draw(sigma, before, after);
        start = plan_from(&model, before, "deepseek", NULL, EPLB_UNLIMITED, 0, &ms);
        good = start != NULL && (options->quick || descend_all(start, after, yardstick));
    }
    for (size_t i = 0; good && i < sizeof budgets / sizeof *budgets; i++) {
        eplb_plan *plan = plan_from(&model, after, "equal", eplb_plan_placement(start), budgets[i], 0, &ms);
        good = plan != NULL;
        if (!good)
            break;
        char row[64];
        (void)snprintf(row, sizeof row, "drift.%s.%d", name, (int)budgets[i]);
        bench_row(report, row);
        bench_number(report, "receives_allowed", budgets[i]);
        bench_number(report, "received", (double)eplb_plan_moves(plan).received / LAYERS);
        bench_number(report, "equal", plan_case_figures(plan).mean);
        if (!options->quick)
            bench_number(report, "descent", yardstick[budgets[i]]);
        bench_number(report, "plan_ms", ms);
        eplb_plan_destroy(plan);
    }
    eplb_plan_destroy(start);
    free(before);
    free(after);
    return good;
}

/* How the placement is renewed from window to window. */
typedef struct renewal {
    const char *name;
    const char *policy;
    bool from_current;
    int64_t moves;
    double target;
} renewal;

typedef struct stream_sums {
    double next;
    double here;
    double received;
    double slots;
    double ms;
    int32_t plans;
} stream_sums;

static bool add_window(stream_sums *sums, const renewal *how, const plan_shape *shape,
                       const trace_load *trace, int32_t window, eplb_plan **current)
{
    size_t row = (size_t)trace->layers * (size_t)trace->experts;
    const int64_t *now = trace->counts + (size_t)window * row;
    const eplb_placement *before = *current != NULL ? eplb_plan_placement(*current) : NULL;
    double ms;
    eplb_plan *plan =
        plan_from(shape, now, how->policy, how->from_current ? before : NULL,
                  how->from_current && before != NULL ? how->moves : EPLB_UNLIMITED, how->target, &ms);
    eplb_load *next;
    eplb_topology *topology;
    if (plan == NULL || !plan_case_create(shape, now + row, &next, &topology))
        return false;
    double *imbalance = malloc((size_t)shape->layers * sizeof *imbalance);
    eplb_move_count moves = {0};
    bool good = imbalance != NULL && eplb_imbalance_per_layer(next, eplb_plan_placement(plan), NULL,
                                                              imbalance, NULL, NULL) == EPLB_OK;
    if (good && before != NULL)
        good = eplb_placement_count_moves(before, eplb_plan_placement(plan), &moves, NULL, NULL, NULL) ==
               EPLB_OK;
    for (int32_t l = 0; good && l < shape->layers; l++)
        sums->next += imbalance[l] / shape->layers;
    sums->here += plan_case_figures(plan).mean;
    sums->received += (double)moves.received / shape->layers;
    sums->slots += (double)moves.slots / shape->layers;
    sums->ms += ms / shape->layers;
    sums->plans++;
    free(imbalance);
    eplb_topology_destroy(topology);
    eplb_load_destroy(next);
    eplb_plan_destroy(*current);
    *current = plan;
    return good;
}

static bool judge_renewal(bench_report *report, const renewal *how, const plan_shape *shape,
                          const trace_load *trace)
{
    stream_sums sums = {0};
    eplb_plan *current = NULL;
    bool good = true;
    for (int32_t t = 0; good && t + 1 < trace->windows; t++)
        good = add_window(&sums, how, shape, trace, t, &current);
    eplb_plan_destroy(current);
    if (!good || sums.plans < 2)
        return good;
    char row[64];
    (void)snprintf(row, sizeof row, "stream.ep%d.%s", (int)shape->ranks, how->name);
    bench_row(report, row);
    bench_number(report, "next_window", sums.next / sums.plans);
    bench_number(report, "this_window", sums.here / sums.plans);
    bench_number(report, "received", sums.received / (sums.plans - 1));
    bench_number(report, "slots_changed", sums.slots / (sums.plans - 1));
    bench_number(report, "plan_ms_per_layer", sums.ms / sums.plans);
    return true;
}

static bool judge_stream(bench_report *report, trace_load *trace)
{
    for (int32_t ranks = 8; ranks <= 16; ranks *= 2) {
        const renewal renewals[] = {{"deepseek", "deepseek", false, EPLB_UNLIMITED, 0},
                                    {"replan", "equal", false, EPLB_UNLIMITED, 0},
                                    {"keep", "equal", true, 0, 0},
                                    {"repair2", "equal", true, 2, 0},
                                    {"repair6", "equal", true, 6, 0},
                                    {"repair_to_1.05", "equal", true, EPLB_UNLIMITED, 1.05},
                                    {"repair_to_1.10", "equal", true, EPLB_UNLIMITED, 1.1},
                                    {"repair", "equal", true, EPLB_UNLIMITED, 0}};
        plan_shape shape = {trace->layers, trace->experts, trace->experts + ranks, ranks, 1, 1};
        if (shape.slots % ranks != 0)
            continue;
        for (size_t i = 0; i < sizeof renewals / sizeof *renewals; i++) {
            if (!judge_renewal(report, &renewals[i], &shape, trace))
                return false;
        }
    }
    return true;
}

int bench_moves(bench_report *report, const bench_options *options)
{
    trace_load trace;
    if (!trace_load_read(&trace, options, 1024))
        return 2;
    if (options->quick && trace.windows > 6)
        trace.windows = 6;
    bool good = judge_drift(report, "lognormal0.5", 0.5, options) &&
                (options->quick || judge_drift(report, "lognormal1.0", 1.0, options)) &&
                judge_stream(report, &trace);
    trace_load_clear(&trace);
    return good ? 0 : 3;
}
