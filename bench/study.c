/* `bench study`: the published experiments on DeepSeek-V3's shape. 58 layers of 256 experts in 8 groups, 32
 * ranks on 4 nodes, 288 and 320 slots, equal split. Loads: lognormal of five widths, and Zipf 1.0. Each load
 * is left as it is, balanced within nodes (hierarchical) and balanced over all ranks (global); then the
 * number of groups grows. `mean` and `worst` are over the layers of a model, averaged over seeds; `node` and
 * `node_floor` are imbalances between nodes, which no placement inside the nodes can undo. */
#include <stdio.h>
#include <stdlib.h>

#include "benches.h"
#include "plan_case.h"
#include "synthetic.h"

enum { LAYERS = 58, EXPERTS = 256, RANKS = 32, NODES = 4, SEEDS = 20, QUICK_SEEDS = 2, MOST_RANKS = 64 };

#define TOKENS 1e9 /* of a layer: rounding to whole counts does not show */

/* Imbalances of one model's layers, summed up over seeds. */
typedef struct figure {
    double mean;
    double worst;
} figure;

/* One model's loads: lognormal(sigma) for sigma > 0, else Zipf 1.0. */
static void draw_model(int seed, double sigma, int64_t *counts)
{
    double weights[EXPERTS];
    random_state random = random_seed((uint64_t)seed);
    for (int32_t l = 0; l < LAYERS; l++) {
        if (sigma > 0.0)
            synthetic_lognormal(&random, sigma, EXPERTS, weights);
        else
            synthetic_zipf(&random, 1.0, EXPERTS, weights);
        synthetic_counts(weights, EXPERTS, TOKENS, 0, counts + (size_t)l * EXPERTS);
    }
}

static void add_layers(figure *sum, const double *imbalance)
{
    double mean = 0.0, worst = 0.0;
    for (int32_t l = 0; l < LAYERS; l++) {
        mean += imbalance[l] / LAYERS;
        worst = imbalance[l] > worst ? imbalance[l] : worst;
    }
    sum->mean += mean;
    sum->worst += worst;
}

/* Experts in order on the ranks, nothing redundant. */
static bool add_unbalanced(figure *sum, const int64_t *counts)
{
    const plan_shape shape = {LAYERS, EXPERTS, EXPERTS, RANKS, NODES, 1};
    eplb_load *load = NULL;
    eplb_topology *topology = NULL;
    eplb_placement *placement = NULL;
    double imbalance[LAYERS];
    if (!plan_case_create(&shape, counts, &load, &topology))
        return false;
    bool good = eplb_placement_create_initial(&placement, topology, LAYERS, EXPERTS, NULL, NULL) == EPLB_OK &&
                eplb_imbalance_per_layer(load, placement, NULL, imbalance, NULL, NULL) == EPLB_OK;
    if (good)
        add_layers(sum, imbalance);
    eplb_placement_destroy(placement);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
    return good;
}

/* Imbalance between nodes of every layer of a plan. */
static bool measure_nodes(const eplb_load *load, const eplb_topology *topology, const eplb_plan *plan,
                          double *imbalance)
{
    double rank_load[MOST_RANKS];
    const int32_t *rank_node = eplb_topology_rank_node(topology);
    for (int32_t l = 0; l < LAYERS; l++) {
        double node_load[NODES] = {0.0}, total = 0.0, most = 0.0;
        if (eplb_rank_load(load, l, -1, eplb_plan_placement(plan), NULL, rank_load, NULL, NULL) != EPLB_OK)
            return false;
        for (int32_t g = 0; g < RANKS; g++) {
            total += rank_load[g];
            node_load[rank_node[g]] += rank_load[g];
        }
        for (int32_t n = 0; n < NODES; n++)
            most = node_load[n] > most ? node_load[n] : most;
        imbalance[l] = most * NODES / total;
    }
    return true;
}

/* DeepSeek's planner; one group means global. `nodes` may be NULL. */
static bool add_plan(figure *overall, figure *nodes, const int64_t *counts, int32_t slots, int32_t groups)
{
    const plan_shape shape = {LAYERS, EXPERTS, slots, RANKS, NODES, groups};
    eplb_load *load = NULL;
    eplb_topology *topology = NULL;
    double node_imbalance[LAYERS];
    if (!plan_case_create(&shape, counts, &load, &topology))
        return false;
    eplb_plan *plan = plan_case_run(&shape, load, topology, "deepseek");
    bool good = plan != NULL && measure_nodes(load, topology, plan, node_imbalance);
    if (good)
        add_layers(overall, eplb_plan_imbalance(plan));
    if (good && nodes != NULL)
        add_layers(nodes, node_imbalance);
    eplb_plan_destroy(plan);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
    return good;
}

static void tell(bench_report *report, const char *load, const char *what, const figure *sum, int seeds)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s.%s", load, what);
    bench_row(report, name);
    bench_number(report, "mean", sum->mean / seeds);
    bench_number(report, "worst", sum->worst / seeds);
}

/* One kind of load: nothing, hierarchical and global at both numbers of slots, and the nodes' part. */
static bool study_load(bench_report *report, const char *name, double sigma, int seeds, int64_t *counts)
{
    figure none = {0}, floor = {0}, hierarchical[2] = {{0}}, global[2] = {{0}};
    for (int seed = 1; seed <= seeds; seed++) {
        draw_model(seed, sigma, counts);
        if (!add_unbalanced(&none, counts) || !add_plan(&hierarchical[0], &floor, counts, 288, 8) ||
            !add_plan(&global[0], NULL, counts, 288, 1) ||
            !add_plan(&hierarchical[1], NULL, counts, 320, 8) || !add_plan(&global[1], NULL, counts, 320, 1))
            return false;
    }
    tell(report, name, "none", &none, seeds);
    tell(report, name, "hierarchical", &hierarchical[0], seeds);
    tell(report, name, "node_floor", &floor, seeds);
    tell(report, name, "global", &global[0], seeds);
    tell(report, name, "hierarchical.slots320", &hierarchical[1], seeds);
    tell(report, name, "global.slots320", &global[1], seeds);
    return true;
}

/* More and smaller groups on the same nodes, lognormal 0.5. */
static bool study_groups(bench_report *report, int32_t groups, int seeds, int64_t *counts)
{
    figure overall = {0}, node = {0};
    char name[32];
    for (int seed = 1; seed <= seeds; seed++) {
        draw_model(seed, 0.5, counts);
        if (!add_plan(&overall, &node, counts, 288, groups))
            return false;
    }
    (void)snprintf(name, sizeof name, "groups%d", groups);
    tell(report, name, "overall", &overall, seeds);
    tell(report, name, "node", &node, seeds);
    return true;
}

int bench_study(bench_report *report, const bench_options *options)
{
    int seeds = options->repetitions > 0 ? options->repetitions : options->quick ? QUICK_SEEDS : SEEDS;
    int64_t *counts = malloc((size_t)LAYERS * EXPERTS * sizeof *counts);
    bool good = counts != NULL;
    for (int tenth = 1; good && tenth <= 5; tenth++) {
        char name[32];
        (void)snprintf(name, sizeof name, "lognormal0.%d", tenth);
        good = study_load(report, name, 0.1 * tenth, seeds, counts);
    }
    if (good)
        good = study_load(report, "zipf1", 0.0, seeds, counts);
    for (int32_t groups = 8; good && groups <= 64; groups *= 2)
        good = study_groups(report, groups, seeds, counts);
    free(counts);
    return good ? 0 : 3;
}
