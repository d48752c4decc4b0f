/* Loads and topologies for tests, one line each; failures end the test. */
#ifndef TESTS_NOUNS_H
#define TESTS_NOUNS_H

#include <eplb/load.h>
#include <eplb/topology.h>

#include "testing.h"

/* Whole counts [windows, layers, experts]. */
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

#endif
