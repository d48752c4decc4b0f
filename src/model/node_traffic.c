/* Tokens that must cross nodes: what starts on a node beyond what the expert's replicas there serve.
 *
 * The least crossing that shares allow is a sum over experts and nodes, since tokens of one expert are alike:
 * no flow is needed. O(L (S + E N)), with sources O(L (S + E (N + G))). */
#include <eplb/metrics.h>

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

/* One call's tables; rows by expert, columns by node. */
typedef struct node_traffic {
    const eplb_load *load;
    const eplb_placement *placement;
    const double *shares;
    const eplb_load *sources;
    const eplb_topology *topology;
    size_t nodes;
    int64_t *count;   /* [E] */
    double *served;   /* [E, N] part of the expert's tokens that a node serves */
    double *starting; /* [N] part of an expert's tokens that starts on a node */
    double *even;     /* [N] part of the live ranks that a node has */
} node_traffic;

static eplb_status check_sizes(const node_traffic *traffic, eplb_error *error)
{
    int32_t layers = eplb_placement_num_layers(traffic->placement);
    int32_t experts = eplb_placement_num_experts(traffic->placement);
    if (eplb_load_num_layers(traffic->load) != layers || eplb_load_num_experts(traffic->load) != experts)
        return error_text(
            error, EPLB_ERROR_INVALID, "the load has %d layers of %d experts, the placement %d of %d",
            eplb_load_num_layers(traffic->load), eplb_load_num_experts(traffic->load), layers, experts);
    const eplb_load *sources = traffic->sources;
    int32_t ranks = eplb_topology_num_ranks(traffic->topology);
    if (sources != NULL &&
        (eplb_load_num_windows(sources) != ranks || eplb_load_num_layers(sources) != layers ||
         eplb_load_num_experts(sources) != experts))
        return error_text(error, EPLB_ERROR_INVALID,
                          "sources are of %d ranks, %d layers, %d experts: expected %d, %d, %d",
                          eplb_load_num_windows(sources), eplb_load_num_layers(sources),
                          eplb_load_num_experts(sources), ranks, layers, experts);
    return EPLB_OK;
}

static void fill_even(node_traffic *traffic)
{
    const int32_t *rank_node = eplb_topology_rank_node(traffic->topology);
    const uint8_t *alive = eplb_topology_rank_alive(traffic->topology);
    for (int32_t g = 0; g < eplb_topology_num_ranks(traffic->topology); g++) {
        if (alive[g])
            traffic->even[rank_node[g]] += 1.0 / eplb_topology_num_live_ranks(traffic->topology);
    }
}

static void fill_served(node_traffic *traffic, int32_t layer)
{
    size_t slots = (size_t)eplb_placement_num_slots(traffic->placement), l = (size_t)layer;
    size_t experts = (size_t)eplb_placement_num_experts(traffic->placement);
    const int32_t *held = eplb_placement_physical_to_logical(traffic->placement) + l * slots;
    const int32_t *replicas = eplb_placement_replica_count(traffic->placement) + l * experts;
    const int32_t *slot_rank = eplb_topology_slot_rank(traffic->topology);
    const int32_t *rank_node = eplb_topology_rank_node(traffic->topology);
    const uint8_t *alive = eplb_topology_rank_alive(traffic->topology);
    memset(traffic->served, 0, experts * traffic->nodes * sizeof *traffic->served);
    for (size_t p = 0; p < slots; p++) {
        if (held[p] < 0 || !alive[slot_rank[p]])
            continue;
        double share = traffic->shares != NULL ? traffic->shares[l * slots + p] : 1.0 / replicas[held[p]];
        traffic->served[(size_t)held[p] * traffic->nodes + (size_t)rank_node[slot_rank[p]]] += share;
    }
}

/* Where the tokens of one expert start: as the sources say, else evenly over live ranks. */
static const double *start_of(node_traffic *traffic, int32_t layer, int32_t expert)
{
    if (traffic->sources == NULL)
        return traffic->even;
    const int32_t *rank_node = eplb_topology_rank_node(traffic->topology);
    const uint8_t *alive = eplb_topology_rank_alive(traffic->topology);
    double total = 0.0;
    memset(traffic->starting, 0, traffic->nodes * sizeof *traffic->starting);
    for (int32_t g = 0; g < eplb_topology_num_ranks(traffic->topology); g++) {
        double tokens = alive[g] ? (double)eplb_load_at(traffic->sources, g, layer, expert) : 0.0;
        traffic->starting[rank_node[g]] += tokens;
        total += tokens;
    }
    if (!(total > 0.0))
        return traffic->even;
    for (size_t n = 0; n < traffic->nodes; n++)
        traffic->starting[n] /= total;
    return traffic->starting;
}

static double cross_layer(node_traffic *traffic, int32_t layer)
{
    double crossing = 0.0;
    eplb_load_sum(traffic->load, layer, traffic->count);
    fill_served(traffic, layer);
    for (int32_t e = 0; e < eplb_placement_num_experts(traffic->placement); e++) {
        const double *start = start_of(traffic, layer, e);
        const double *served = traffic->served + (size_t)e * traffic->nodes;
        for (size_t n = 0; n < traffic->nodes; n++) {
            if (start[n] > served[n])
                crossing += (start[n] - served[n]) * (double)traffic->count[e];
        }
    }
    return crossing;
}

eplb_status eplb_cross_node_tokens(const eplb_load *load, const eplb_placement *placement,
                                   const double *shares, const eplb_load *sources, double *crossing,
                                   const eplb_allocator *allocator, eplb_error *error)
{
    node_traffic traffic = {.load = load, .placement = placement, .shares = shares, .sources = sources};
    traffic.topology = eplb_placement_topology(placement);
    traffic.nodes = (size_t)eplb_topology_num_nodes(traffic.topology);
    eplb_status status = check_sizes(&traffic, error);
    if (status != EPLB_OK)
        return status;
    size_t experts = (size_t)eplb_placement_num_experts(placement);
    arena scratch;
    arena_init(&scratch, allocator);
    traffic.count = arena_take(&scratch, experts, sizeof *traffic.count);
    traffic.served = arena_take(&scratch, experts * traffic.nodes, sizeof *traffic.served);
    traffic.starting = arena_take(&scratch, traffic.nodes, sizeof *traffic.starting);
    traffic.even = arena_take_zero(&scratch, traffic.nodes, sizeof *traffic.even);
    if (traffic.count == NULL || traffic.served == NULL || traffic.starting == NULL || traffic.even == NULL) {
        status = error_memory(error, experts * traffic.nodes * sizeof(double), "traffic between nodes");
    } else {
        fill_even(&traffic);
        for (int32_t l = 0; l < eplb_placement_num_layers(placement); l++)
            crossing[l] = cross_layer(&traffic, l);
    }
    arena_destroy(&scratch);
    return status;
}
