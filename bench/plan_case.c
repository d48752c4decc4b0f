/* Loads, ranks and plans for the benches; what goes wrong is told on stderr. */
#include "plan_case.h"

#include "bench.h"

bool plan_case_create(const plan_shape *shape, const int64_t *counts, eplb_load **load,
                      eplb_topology **topology)
{
    eplb_error error;
    eplb_load_params load_params;
    eplb_load_params_init(&load_params, sizeof load_params);
    load_params.num_layers = shape->layers;
    load_params.num_experts = shape->experts;
    load_params.counts = counts;
    eplb_topology_params ranks;
    eplb_topology_params_init(&ranks, sizeof ranks);
    ranks.num_ranks = shape->ranks;
    ranks.num_nodes = shape->nodes;
    ranks.slots_per_rank = shape->slots / shape->ranks;
    if (eplb_load_create(load, &load_params, NULL, &error) != EPLB_OK) {
        bench_complain("%s", error.text);
        return false;
    }
    if (eplb_topology_create(topology, &ranks, NULL, &error) != EPLB_OK) {
        bench_complain("%s", error.text);
        eplb_load_destroy(*load);
        return false;
    }
    return true;
}

eplb_plan *plan_case_run(const plan_shape *shape, const eplb_load *load, const eplb_topology *topology,
                         const char *policy)
{
    eplb_error error;
    eplb_plan *plan = NULL;
    eplb_plan_params params;
    eplb_plan_params_init(&params, sizeof params);
    params.policy = policy;
    params.num_groups = shape->groups;
    eplb_status status = EPLB_ERROR_UNSUPPORTED;
    for (int split = EPLB_SPLIT_EQUAL; status == EPLB_ERROR_UNSUPPORTED && split <= EPLB_SPLIT_BATCH;
         split++) {
        params.split = (eplb_split)split;
        status = eplb_plan_create(&plan, load, topology, &params, NULL, &error);
    }
    if (status != EPLB_OK)
        bench_complain("%s", error.text);
    return plan;
}

plan_figures plan_case_figures(const eplb_plan *plan)
{
    plan_figures figures = {0};
    int32_t layers = eplb_placement_num_layers(eplb_plan_placement(plan));
    for (int32_t l = 0; l < layers; l++) {
        double reached = eplb_plan_imbalance(plan)[l], bound = eplb_plan_lower_bound(plan)[l];
        double above = reached / bound - 1;
        figures.mean += reached / layers;
        figures.worst = reached > figures.worst ? reached : figures.worst;
        figures.bound += bound / layers;
        figures.above = above > figures.above ? above : figures.above;
    }
    return figures;
}
