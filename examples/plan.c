/* Plans one layer of eight experts for four ranks and prints which expert each slot holds. Build it with
 *     cc plan.c $(pkg-config --cflags --libs eplb) */
#include <stdio.h>

#include <eplb/eplb.h>

int main(void)
{
    const int64_t tokens[8] = {90, 132, 40, 61, 104, 165, 39, 4}; /* routed to each expert */
    eplb_load *load = NULL;
    eplb_topology *topology = NULL;
    eplb_plan *plan = NULL;
    eplb_error error;

    eplb_load_params counts;
    eplb_load_params_init(&counts, sizeof counts);
    counts.num_layers = 1;
    counts.num_experts = 8;
    counts.counts = tokens;
    eplb_topology_params ranks;
    eplb_topology_params_init(&ranks, sizeof ranks);
    ranks.num_ranks = 4;
    ranks.slots_per_rank = 3; /* 12 slots: four experts may have a second replica */

    if (eplb_load_create(&load, &counts, NULL, &error) != EPLB_OK ||
        eplb_topology_create(&topology, &ranks, NULL, &error) != EPLB_OK ||
        eplb_plan_create(&plan, load, topology, NULL, NULL, &error) != EPLB_OK) {
        fprintf(stderr, "%s\n", error.text);
    } else {
        const int32_t *expert = eplb_placement_physical_to_logical(eplb_plan_placement(plan));
        for (int slot = 0; slot < 12; slot++)
            printf("rank %d slot %2d: expert %d\n", slot / 3, slot, (int)expert[slot]);
        printf("imbalance %.4f\n", eplb_plan_imbalance(plan)[0]);
    }
    int status = plan != NULL ? 0 : 1;
    eplb_plan_destroy(plan);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
    return status;
}
