/* `bench spill`: node-limited groups with a few replicas outside, DeepSeek-V3's shape (58 layers of 256
 * experts in 8 groups, 32 ranks on 4 nodes, 288 slots), Zipf 1.0 and lognormal 1.0.
 *
 * `mean` and `worst` are imbalances over layers. `floor` is the mean over layers of what no plan is below
 * that has as many replicas outside, for the split of the row, as the plan proves it (src/plan/spill_level.c;
 * DeepSeek's proves nothing). `crossing` is the part of all tokens that leave the node they start on: tokens
 * start evenly over ranks, and an expert's replicas on a node serve tokens of that node first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <eplb/eplb.h>

#include "benches.h"
#include "plan_case.h"
#include "synthetic.h"

enum { LAYERS = 58, QUICK_LAYERS = 4, EXPERTS = 256, RANKS = 32, NODES = 4, GROUPS = 8, SLOTS = 288 };

#define TOKENS 1e6 /* of a layer */

static void draw_layers(int64_t *counts, int32_t layers, double sigma)
{
    double weights[EXPERTS];
    random_state random = random_seed(7);
    for (int32_t l = 0; l < layers; l++) {
        if (sigma > 0.0)
            synthetic_lognormal(&random, sigma, EXPERTS, weights);
        else
            synthetic_zipf(&random, 1.0, EXPERTS, weights);
        synthetic_counts(weights, EXPERTS, TOKENS, 0, counts + (size_t)l * EXPERTS);
    }
}

/* One row: a policy, a split and how many replicas may spill. */
typedef struct spill_row {
    const char *name;
    const char *policy;
    eplb_split split;
    int32_t spill;
} spill_row;

static bool run_row(bench_report *report, const char *where, const spill_row *row, int32_t layers,
                    const eplb_load *load, const eplb_topology *topology)
{
    char name[64];
    eplb_error error;
    eplb_plan *plan = NULL;
    eplb_plan_params params;
    eplb_plan_params_init(&params, sizeof params);
    params.policy = row->policy;
    params.split = row->split;
    params.num_groups = GROUPS;
    params.max_spill = row->spill;
    double crossing[LAYERS];
    if (eplb_plan_create(&plan, load, topology, &params, NULL, &error) != EPLB_OK ||
        eplb_cross_node_tokens(load, eplb_plan_placement(plan), eplb_plan_shares(plan), NULL, crossing, NULL,
                               &error) != EPLB_OK) {
        bench_complain("%s", error.text);
        eplb_plan_destroy(plan);
        return false;
    }
    plan_figures figures = plan_case_figures(plan);
    double least = 0.0, crossed = 0.0, total = 0.0;
    for (int32_t l = 0; l < layers; l++) {
        least += eplb_plan_lower_bound(plan)[l] / layers;
        crossed += crossing[l];
        total += (double)eplb_load_total(load, l);
    }
    (void)snprintf(name, sizeof name, "%s.%s", where, row->name);
    bench_row(report, name);
    bench_number(report, "mean", figures.mean);
    bench_number(report, "floor", least);
    bench_number(report, "worst", figures.worst);
    bench_number(report, "spilled", (double)eplb_plan_spilled(plan) / layers);
    bench_number(report, "crossing", crossed / total);
    bench_number(report, "layer_ms", 1e3 * eplb_plan_seconds(plan) / layers);
    eplb_plan_destroy(plan);
    return true;
}

static bool run_load(bench_report *report, const char *where, double sigma, int32_t layers)
{
    static const spill_row rows[] = {
        {"deepseek", "deepseek", EPLB_SPLIT_EQUAL, 0},
        {"equal", "auto", EPLB_SPLIT_EQUAL, 0},
        {"equal_spill_1", "auto", EPLB_SPLIT_EQUAL, 1},
        {"equal_spill_2", "auto", EPLB_SPLIT_EQUAL, 2},
        {"equal_spill_4", "auto", EPLB_SPLIT_EQUAL, 4},
        {"equal_spill_8", "auto", EPLB_SPLIT_EQUAL, 8},
        {"weighted", "auto", EPLB_SPLIT_WEIGHTED, 0},
        {"weighted_spill_1", "auto", EPLB_SPLIT_WEIGHTED, 1},
        {"weighted_spill_2", "auto", EPLB_SPLIT_WEIGHTED, 2},
        {"weighted_spill_4", "auto", EPLB_SPLIT_WEIGHTED, 4},
        {"weighted_spill_8", "auto", EPLB_SPLIT_WEIGHTED, 8},
    };
    const plan_shape shape = {layers, EXPERTS, SLOTS, RANKS, NODES, GROUPS};
    int64_t *counts = malloc((size_t)layers * EXPERTS * sizeof *counts);
    eplb_load *load = NULL;
    eplb_topology *topology = NULL;
    if (counts == NULL)
        return false;
    draw_layers(counts, layers, sigma);
    bool good = plan_case_create(&shape, counts, &load, &topology);
    for (size_t i = 0; good && i < sizeof rows / sizeof *rows; i++)
        good = run_row(report, where, &rows[i], layers, load, topology);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
    free(counts);
    return good;
}

int bench_spill(bench_report *report, const bench_options *options)
{
    int32_t layers = options->quick ? QUICK_LAYERS : LAYERS;
    return run_load(report, "zipf1", 0.0, layers) && run_load(report, "lognormal1", 1.0, layers) ? 0 : 3;
}
