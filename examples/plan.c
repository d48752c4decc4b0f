/* Plans one layer of eight experts for four ranks and prints which expert each slot holds. Build it with
 *     cc plan.c $(pkg-config --cflags --libs eplb) */
#include <stdio.h>

#include <eplb/eplb.h>

int main(void)
{
    const int64_t tokens[8] = {90, 132, 40, 61, 104, 165, 39, 4}; /* tokens routed to each expert */
    eplb_load *load = NULL;
    eplb_topology *topology = NULL;
    eplb_plan *plan = NULL;
    eplb_error error;

    eplb_load_params load_params;
    eplb_load_params_init(&load_params, sizeof load_params);
    load_params.num_layers = 1;
    load_params.num_experts = 8;
    load_params.counts = tokens;

    eplb_topology_params ranks;
    eplb_topology_params_init(&ranks, sizeof ranks);
    ranks.num_ranks = 4;
    ranks.slots_per_rank = 3; /* 12 slots for 8 experts: four may have a second replica */

    eplb_status status = eplb_load_create(&load, &load_params, NULL, &error);
    if (status == EPLB_OK)
        status = eplb_topology_create(&topology, &ranks, NULL, &error);
    if (status == EPLB_OK)
        status = eplb_plan_create(&plan, load, topology, NULL, NULL, &error);
    if (status == EPLB_OK) {
        const int32_t *expert = eplb_placement_physical_to_logical(eplb_plan_placement(plan));
        for (int slot = 0; slot < 12; slot++)
            printf("rank %d slot %2d: expert %d\n", slot / 3, slot, (int)expert[slot]);
        printf("imbalance %.4f\n", eplb_plan_imbalance(plan)[0]);
    } else {
        fprintf(stderr, "%s\n", error.text);
    }
    eplb_plan_destroy(plan);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
    return status == EPLB_OK ? 0 : 1;
}
