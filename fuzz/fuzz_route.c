/* The route room on arbitrary placements, shares and tokens: whatever the bytes say, calls return, every
 * token of a live expert gets exactly one live slot of its expert, and exact splits are conserved and not
 * above their own bound. */
#include <stdint.h>
#include <string.h>

#include <eplb/eplb.h>

#include "require.h"

typedef struct reader {
    const uint8_t *data;
    size_t left;
} reader;

static uint32_t next(reader *in, uint32_t bound)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->data++ % bound;
}

enum { MOST_E = 12, MOST_G = 8, MOST_S = 32, TOKENS = 64 };

typedef struct world {
    eplb_topology *topology;
    eplb_placement *placement;
    int32_t experts, ranks, slots, layers;
    double shares[MOST_S];
    int64_t load[MOST_E];
    int64_t sources[MOST_G * MOST_E];
} world;

static int make_world(world *w, reader *in)
{
    uint8_t alive[MOST_G];
    int32_t rank_slots[MOST_G], held[MOST_S], speed[MOST_G];
    eplb_topology_params params;
    *w = (world){.experts = 1 + (int32_t)next(in, MOST_E), .ranks = 1 + (int32_t)next(in, MOST_G)};
    for (int32_t g = 0; g < w->ranks; g++) {
        uint32_t byte = next(in, 256);
        alive[g] = byte % 8 != 0;
        rank_slots[g] = (int32_t)(byte / 8 % 5);
        rank_slots[g] = rank_slots[g] > 4 ? 4 : rank_slots[g];
        speed[g] = 1 + (int32_t)(byte / 64);
        w->slots += rank_slots[g];
    }
    eplb_topology_params_init(&params, sizeof params);
    params.num_ranks = w->ranks;
    params.num_nodes = 1 + (int32_t)next(in, (uint32_t)w->ranks);
    params.rank_slots = rank_slots;
    params.rank_alive = alive;
    params.rank_speed = next(in, 2) ? speed : NULL;
    if (eplb_topology_create(&w->topology, &params, NULL, NULL) != EPLB_OK)
        return 0;
    for (int32_t p = 0; p < w->slots; p++) {
        held[p] = (int32_t)next(in, (uint32_t)w->experts + 1) - 1;
        uint32_t share = next(in, 256);
        w->shares[p] = share == 255 ? -1.0 : share == 254 ? 1e308 * 10 : (double)(share / 3) / 7.0;
    }
    for (int32_t i = 0; i < w->ranks * w->experts; i++) {
        w->sources[i] = next(in, 100);
        w->load[i % w->experts] += w->sources[i];
    }
    return eplb_placement_create(&w->placement, w->topology, 1, w->experts, held, NULL, NULL) == EPLB_OK;
}

static int is_live_slot_of(const world *w, int32_t slot, int32_t expert)
{
    return slot >= 0 && slot < w->slots && eplb_placement_physical_to_logical(w->placement)[slot] == expert &&
           eplb_topology_rank_alive(w->topology)[eplb_topology_slot_rank(w->topology)[slot]];
}

static void try_router(const world *w, reader *in)
{
    eplb_router_params params;
    eplb_router *router = NULL;
    eplb_router_params_init(&params, sizeof params);
    params.topology = w->topology;
    params.num_layers = 1;
    params.num_experts = w->experts;
    params.rule = next(in, 2) ? EPLB_ROUTE_NEAREST : EPLB_ROUTE_QUOTA;
    params.source_rank = (int32_t)next(in, (uint32_t)w->ranks + 1) - 1;
    params.row_limit = 1 + (int32_t)next(in, 64);
    if (eplb_router_create(&router, &params, NULL, NULL) != EPLB_OK)
        return;
    int updated =
        eplb_router_update(router, 0, 1, w->placement, next(in, 2) ? w->shares : NULL, NULL, NULL) == EPLB_OK;
    require(eplb_router_is_valid(router));
    int32_t ids[TOKENS], slots[TOKENS], position[MOST_E] = {0}, served[MOST_S] = {0};
    const int32_t *block = eplb_router_acquire(router, 0, NULL);
    eplb_route_table table = eplb_route_table_at(block);
    for (int i = 0; i < TOKENS; i++)
        ids[i] = (int32_t)next(in, (uint32_t)w->experts + 2) - 1;
    eplb_route_ids(block, position, ids, TOKENS, slots);
    for (int i = 0; i < TOKENS; i++) {
        int known = updated && ids[i] >= 0 && ids[i] < w->experts;
        require(known ? is_live_slot_of(w, slots[i], ids[i]) : slots[i] == -1);
        int32_t other = eplb_select_equal(&table, ids[i], (uint32_t)i, next(in, 256));
        require(known ? is_live_slot_of(w, other, ids[i]) : other == -1);
        other = eplb_select_exact(&table, served, ids[i]);
        require(known ? is_live_slot_of(w, other, ids[i]) : other == -1);
        other = eplb_select_invariant(&table, ids[i], (uint32_t)i * 7919u);
        require(known ? is_live_slot_of(w, other, ids[i]) : other == -1);
    }
    eplb_router_release(router, 0, block);
    eplb_router_destroy(router);
}

static void check_quota(const world *w, const int64_t *quota, const eplb_resplit_result *result)
{
    int64_t served[MOST_E] = {0}, rank[MOST_G] = {0};
    for (int32_t p = 0; p < w->slots; p++) {
        int32_t e = eplb_placement_physical_to_logical(w->placement)[p];
        require(quota[p] >= 0 && (quota[p] == 0 || is_live_slot_of(w, p, e)));
        if (e >= 0)
            served[e] += quota[p];
        rank[eplb_topology_slot_rank(w->topology)[p]] += quota[p];
    }
    for (int32_t e = 0; e < w->experts; e++)
        require(served[e] == w->load[e]);
    int64_t most = 0;
    for (int32_t g = 0; g < w->ranks; g++)
        most = rank[g] > most ? rank[g] : most;
    require(result->max_load <= most && result->bound_load >= 0 && result->bound_speed > 0);
}

/* A router made of whole quotas delivers a live slot for every expert that has one. */
static void try_quota_rows(const world *w, const int64_t *quota)
{
    eplb_router_params params;
    eplb_router *router = NULL;
    eplb_router_params_init(&params, sizeof params);
    params.topology = w->topology;
    params.num_layers = 1;
    params.num_experts = w->experts;
    require(eplb_router_create(&router, &params, NULL, NULL) == EPLB_OK);
    if (eplb_router_update_quota(router, 0, w->placement, quota, NULL) == EPLB_OK) {
        require(eplb_router_is_valid(router));
        const int32_t *block = eplb_router_acquire(router, 0, NULL);
        eplb_route_table table = eplb_route_table_at(block);
        for (int32_t e = 0; e < w->experts; e++)
            require(is_live_slot_of(w, eplb_select_quota(&table, e, 3), e));
        eplb_router_release(router, 0, block);
    }
    eplb_router_destroy(router);
}

static void try_resplit(const world *w)
{
    eplb_resplit *resplit = NULL;
    eplb_resplit_result plain, local;
    int64_t quota[MOST_S], part[MOST_G * MOST_S];
    int32_t slot[MOST_E], most = 0;
    if (eplb_resplit_create(&resplit, w->placement, 0, NULL, NULL) != EPLB_OK)
        return;
    if (eplb_resplit_solve(resplit, w->load, false, quota, &plain, NULL) == EPLB_OK) {
        check_quota(w, quota, &plain);
        require(eplb_resplit_solve_local(resplit, w->sources, quota, &local, NULL) == EPLB_OK);
        check_quota(w, quota, &local);
        require(local.bound_load == plain.bound_load && local.bound_speed == plain.bound_speed);
        require(local.cross_node <= local.cross_rank);
        require(eplb_resplit_by_source(resplit, w->sources, quota, part, NULL) == EPLB_OK);
        try_quota_rows(w, quota);
        require(eplb_resplit_activate(resplit, w->load, slot, &most, NULL) == EPLB_OK);
        for (int32_t e = 0; e < w->experts; e++)
            require(w->load[e] > 0 ? is_live_slot_of(w, slot[e], e) : slot[e] == -1);
        double share[MOST_S];
        require(eplb_resplit_lplb(resplit, w->load, 5, share, NULL, NULL) == EPLB_OK);
    }
    require(eplb_resplit_is_valid(resplit));
    eplb_resplit_destroy(resplit);
}

static void try_tables(const world *w, reader *in)
{
    enum { WIDTH = 16 };
    int32_t table[MOST_E * WIDTH], count[MOST_E], own[MOST_G * MOST_E];
    int32_t width = 1 + (int32_t)next(in, WIDTH);
    if (eplb_repeat_table_int32(w->placement, w->shares, width, table, count, NULL, NULL, NULL) == EPLB_OK) {
        for (int32_t i = 0; i < w->experts * width; i++)
            require(i % width < count[i / width] ? is_live_slot_of(w, table[i], i / width) : table[i] == -1);
    }
    require(eplb_sglang_static(w->placement, own, NULL, NULL) == EPLB_OK);
    for (int32_t i = 0; i < w->ranks * w->experts; i++)
        require(own[i] == -1 || is_live_slot_of(w, own[i], i % w->experts));
}

static void try_shared(const world *w, reader *in)
{
    eplb_shared_params params;
    int64_t part[MOST_G * MOST_G], routed[MOST_G], tokens[MOST_G];
    eplb_shared_params_init(&params, sizeof params);
    params.batch_floor = next(in, 100);
    params.price_per_mille = (int32_t)next(in, 200) * 8;
    for (int32_t g = 0; g < w->ranks; g++) {
        routed[g] = next(in, 256);
        tokens[g] = next(in, 256);
    }
    if (eplb_shared_level(w->topology, routed, tokens, &params, part, NULL, NULL) != EPLB_OK)
        return;
    for (int32_t s = 0; s < w->ranks; s++) {
        int64_t sum = 0;
        for (int32_t g = 0; g < w->ranks; g++) {
            require(part[s * w->ranks + g] >= 0);
            sum += part[s * w->ranks + g];
        }
        require(sum == tokens[s]);
    }
}

/* The same with so many tokens on one expert that the total is the largest int64, or just below. */
static void try_largest(world *w, reader *in)
{
    int64_t left = INT64_MAX - (int64_t)next(in, 3);
    uint32_t expert = next(in, (uint32_t)w->experts), source = next(in, (uint32_t)w->ranks);
    for (int32_t e = 0; e < w->experts; e++)
        left -= w->load[e];
    w->load[expert] += left;
    w->sources[source * (uint32_t)w->experts + expert] += left;
    try_resplit(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    reader in = {data, size};
    world w;
    if (make_world(&w, &in)) {
        try_router(&w, &in);
        try_resplit(&w);
        try_tables(&w, &in);
        try_shared(&w, &in);
        try_largest(&w, &in);
    }
    eplb_placement_destroy(w.placement);
    eplb_topology_destroy(w.topology);
    return 0;
}
