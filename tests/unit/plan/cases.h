/* Loads, topologies and plans for the tests of the planner in one line each; failures end the test. */
#ifndef TESTS_UNIT_PLAN_CASES_H
#define TESTS_UNIT_PLAN_CASES_H

#include <eplb/eplb.h>

#include "testing.h"

static inline eplb_load *case_load(int32_t windows, int32_t layers, int32_t experts, const int64_t *counts)
{
    eplb_load_params params;
    eplb_load_params_init(&params, sizeof params);
    params.num_windows = windows;
    params.num_layers = layers;
    params.num_experts = experts;
    params.counts = counts;
    eplb_load *load = NULL;
    assert_int_equal(eplb_load_create(&load, &params, NULL, NULL), EPLB_OK);
    return load;
}

static inline eplb_topology *case_topology(int32_t ranks, int32_t nodes, int32_t slots_per_rank)
{
    eplb_topology_params params;
    eplb_topology_params_init(&params, sizeof params);
    params.num_ranks = ranks;
    params.num_nodes = nodes;
    params.slots_per_rank = slots_per_rank;
    eplb_topology *topology = NULL;
    assert_int_equal(eplb_topology_create(&topology, &params, NULL, NULL), EPLB_OK);
    return topology;
}

static inline eplb_plan_params case_params(const char *policy, int32_t groups)
{
    eplb_plan_params params;
    eplb_plan_params_init(&params, sizeof params);
    params.policy = policy;
    params.num_groups = groups;
    return params;
}

/* Plans, checks that a refusal leaves nothing, and returns the status. */
static inline eplb_status case_plan(eplb_plan **plan, const eplb_load *load, const eplb_topology *topology,
                                    const eplb_plan_params *params, eplb_error *error)
{
    eplb_status status = eplb_plan_create(plan, load, topology, params, NULL, error);
    if (status != EPLB_OK) {
        assert_null(*plan);
        assert_int_equal(error->status, status);
        assert_true(error->text[0] != '\0');
    } else {
        assert_int_equal(eplb_plan_is_valid(*plan, NULL), EPLB_OK);
    }
    return status;
}

static inline const int32_t *case_slots(const eplb_plan *plan)
{
    return eplb_placement_physical_to_logical(eplb_plan_placement(plan));
}

#endif
