/* Routes tokens of one layer by a plan's shares, then one batch by its exact split. Build it with
 *     cc route.c $(pkg-config --cflags --libs eplb) */
#include <stdio.h>
#include <string.h>

#include <eplb/eplb.h>

enum { EXPERTS = 8, RANKS = 4, SLOTS = 12, PAIRS = 400 };

/* Routes the batch by the current table, from given counters (one per expert, kept by whoever routes). */
static void route(eplb_router *router, int32_t *position, const int32_t *ids, const char *name)
{
    int32_t slot[PAIRS];
    int tokens[RANKS] = {0};
    const int32_t *table = eplb_router_acquire(router, 0, NULL); /* unchanged until it is released */
    eplb_route_ids(table, position, ids, PAIRS, slot);
    eplb_router_release(router, 0, table);
    for (int i = 0; i < PAIRS; i++)
        tokens[slot[i] / (SLOTS / RANKS)]++;
    printf("%s: rank loads %d %d %d %d\n", name, tokens[0], tokens[1], tokens[2], tokens[3]);
}

int main(void)
{
    const int64_t seen[EXPERTS] = {90, 132, 40, 61, 104, 165, 39, 4}; /* what the plan is made for */
    int32_t ids[PAIRS], position[EXPERTS] = {0};
    int64_t counts[EXPERTS] = {0}, quota[SLOTS];
    for (int i = 0; i < PAIRS; i++) { /* a batch that differs from it: the expert of each token */
        ids[i] = i % 3 == 0 ? 5 : i * 7 % EXPERTS;
        counts[ids[i]]++;
    }
    eplb_load *load = NULL;
    eplb_topology *topology = NULL;
    eplb_plan *plan = NULL;
    eplb_router *router = NULL;
    eplb_resplit *resplit = NULL;
    eplb_error error;
    int status = 1;

    eplb_load_params of_load;
    eplb_load_params_init(&of_load, sizeof of_load);
    of_load.num_layers = 1;
    of_load.num_experts = EXPERTS;
    of_load.counts = seen;
    eplb_topology_params of_ranks;
    eplb_topology_params_init(&of_ranks, sizeof of_ranks);
    of_ranks.num_ranks = RANKS;
    of_ranks.slots_per_rank = SLOTS / RANKS;
    eplb_plan_params of_plan;
    eplb_plan_params_init(&of_plan, sizeof of_plan);
    of_plan.split = EPLB_SPLIT_WEIGHTED;
    if (eplb_load_create(&load, &of_load, NULL, &error) != EPLB_OK ||
        eplb_topology_create(&topology, &of_ranks, NULL, &error) != EPLB_OK ||
        eplb_plan_create(&plan, load, topology, &of_plan, NULL, &error) != EPLB_OK)
        goto done;

    /* By shares: no counts needed. After a new plan, update again; BUSY means: after the next step. */
    const eplb_placement *placement = eplb_plan_placement(plan);
    eplb_router_params of_router;
    eplb_router_params_init(&of_router, sizeof of_router);
    of_router.topology = topology;
    of_router.num_layers = 1;
    of_router.num_experts = EXPERTS;
    if (eplb_router_create(&router, &of_router, NULL, &error) != EPLB_OK ||
        eplb_router_update(router, 0, 1, placement, eplb_plan_shares(plan), NULL, &error) != EPLB_OK)
        goto done;
    route(router, position, ids, "by shares");

    /* The counts of the batch are known: its exact split, as a table (counters from 0) or as shares. */
    eplb_resplit_result result;
    if (eplb_resplit_create(&resplit, placement, 0, NULL, &error) != EPLB_OK ||
        eplb_resplit_solve(resplit, counts, false, quota, &result, &error) != EPLB_OK ||
        eplb_router_update_quota(router, 0, placement, quota, &error) != EPLB_OK)
        goto done;
    memset(position, 0, sizeof position);
    route(router, position, ids, "re-split");
    printf("largest load %lld, proved\n", (long long)result.max_load);
    for (int slot = 0; slot < SLOTS; slot++) { /* for engines that take a table of shares */
        int32_t expert = eplb_placement_physical_to_logical(placement)[slot];
        double share = expert >= 0 && counts[expert] > 0 ? (double)quota[slot] / (double)counts[expert] : 0.0;
        printf("slot %d: %.3f of expert %d\n", slot, share, (int)expert);
    }
    status = 0;
done:
    if (status != 0)
        fprintf(stderr, "%s\n", error.text);
    eplb_resplit_destroy(resplit);
    eplb_router_destroy(router);
    eplb_plan_destroy(plan);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
    return status;
}
