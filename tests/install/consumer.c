/* A stranger's program: it knows the installed headers and nothing else, and names a function of its own as
 * the library names an internal one. It plans one layer of four experts, one of them hot, and prints where
 * they went. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <eplb/eplb.h>

int arena_take(int number);

int arena_take(int number)
{
    return number;
}

static eplb_status plan_and_print(eplb_error *error)
{
    static const int64_t counts[4] = {90, 10, 10, 10};
    eplb_load_params load_params;
    eplb_load_params_init(&load_params, sizeof load_params);
    load_params.num_layers = 1;
    load_params.num_experts = 4;
    load_params.counts = counts;
    eplb_topology_params topology_params;
    eplb_topology_params_init(&topology_params, sizeof topology_params);
    topology_params.num_ranks = 2;
    topology_params.slots_per_rank = 3;
    eplb_plan_params plan_params;
    eplb_plan_params_init(&plan_params, sizeof plan_params);

    eplb_load *load = NULL;
    eplb_topology *topology = NULL;
    eplb_plan *plan = NULL;
    eplb_status status = eplb_load_create(&load, &load_params, NULL, error);
    if (status == EPLB_OK)
        status = eplb_topology_create(&topology, &topology_params, NULL, error);
    if (status == EPLB_OK)
        status = eplb_plan_create(&plan, load, topology, &plan_params, NULL, error);
    if (status == EPLB_OK) {
        const int32_t *slots = eplb_placement_physical_to_logical(eplb_plan_placement(plan));
        for (int slot = 0; slot < 6; slot++)
            printf("%" PRId32 "%c", slots[slot], slot < 5 ? ' ' : '\n');
    }
    eplb_plan_destroy(plan);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
    return status;
}

int main(void)
{
    char built[32];
    snprintf(built, sizeof built, "%d.%d.%d", EPLB_VERSION_MAJOR, EPLB_VERSION_MINOR, EPLB_VERSION_PATCH);
    if (strcmp(built, eplb_version()) != 0 || arena_take(1) != 1) {
        fprintf(stderr, "headers of %s, library of %s\n", built, eplb_version());
        return 1;
    }
    eplb_error error = {.text = ""};
    if (plan_and_print(&error) != EPLB_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    return 0;
}
