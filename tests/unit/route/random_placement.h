/* Random placements for the tests of the route room: every expert has a live replica, slots of dead ranks are
 * empty. */
#ifndef ROUTE_RANDOM_PLACEMENT_H
#define ROUTE_RANDOM_PLACEMENT_H

#include "testing.h"

#include <stdlib.h>

#include <eplb/placement.h>

#include "base/random.h"

typedef struct placement_shape {
    int32_t num_layers;
    int32_t num_experts;
    int32_t num_ranks;
    int32_t num_nodes;
    int32_t slots_per_rank;
    int32_t num_dead;
    int speeds; /* random speeds 1 .. 4 */
} placement_shape;

static inline eplb_placement *random_placement(random_state *random, placement_shape shape)
{
    eplb_topology_params params;
    eplb_topology_params_init(&params, sizeof params);
    uint8_t *alive = malloc((size_t)shape.num_ranks);
    int32_t *speed = malloc((size_t)shape.num_ranks * sizeof *speed);
    assert_non_null(alive);
    assert_non_null(speed);
    for (int32_t g = 0; g < shape.num_ranks; g++) {
        alive[g] = 1;
        speed[g] = shape.speeds ? (int32_t)(1 + random_below(random, 4)) : 1;
    }
    for (int32_t n = 0; n < shape.num_dead; n++)
        alive[random_below(random, (uint32_t)shape.num_ranks)] = 0;
    params.num_ranks = shape.num_ranks;
    params.num_nodes = shape.num_nodes;
    params.slots_per_rank = shape.slots_per_rank;
    params.rank_alive = alive;
    params.rank_speed = speed;
    eplb_topology *topology;
    assert_int_equal(eplb_topology_create(&topology, &params, NULL, NULL), EPLB_OK);
    size_t slots = (size_t)eplb_topology_num_slots(topology);
    int32_t *held = malloc((size_t)shape.num_layers * slots * sizeof *held);
    int32_t *live = malloc(slots * sizeof *live);
    assert_non_null(held);
    assert_non_null(live);
    for (int32_t l = 0; l < shape.num_layers; l++) {
        int32_t *row = held + (size_t)l * slots;
        int32_t count = 0;
        for (size_t p = 0; p < slots; p++) {
            row[p] = -1;
            if (alive[eplb_topology_slot_rank(topology)[p]])
                live[count++] = (int32_t)p;
        }
        assert_true(count >= shape.num_experts);
        for (int32_t i = count - 1; i > 0; i--) {
            int32_t j = (int32_t)random_below(random, (uint32_t)i + 1), swap = live[i];
            live[i] = live[j];
            live[j] = swap;
        }
        for (int32_t i = 0; i < count; i++) {
            if (i < shape.num_experts)
                row[live[i]] = i;
            else if (random_below(random, 10) > 0)
                row[live[i]] = (int32_t)random_below(random, (uint32_t)shape.num_experts);
        }
    }
    eplb_placement *placement;
    assert_int_equal(
        eplb_placement_create(&placement, topology, shape.num_layers, shape.num_experts, held, NULL, NULL),
        EPLB_OK);
    eplb_topology_destroy(topology);
    free(live);
    free(held);
    free(speed);
    free(alive);
    return placement;
}

/* Random shares [L, S], some of them 0, positive for at least one live replica of every expert. */
static inline double *random_shares(random_state *random, const eplb_placement *placement)
{
    int32_t layers = eplb_placement_num_layers(placement), experts = eplb_placement_num_experts(placement);
    size_t slots = (size_t)eplb_placement_num_slots(placement);
    const int32_t *held = eplb_placement_physical_to_logical(placement);
    double *shares = calloc((size_t)layers * slots, sizeof *shares);
    double *sum = calloc((size_t)experts, sizeof *sum);
    assert_non_null(shares);
    assert_non_null(sum);
    for (int32_t l = 0; l < layers; l++) {
        double *row = shares + (size_t)l * slots;
        for (int32_t e = 0; e < experts; e++)
            sum[e] = 0.0;
        for (size_t p = 0; p < slots; p++) {
            int32_t e = held[(size_t)l * slots + p];
            if (e < 0)
                continue;
            row[p] = sum[e] > 0.0 && random_below(random, 6) == 0 ? 0.0 : 0.01 + random_unit(random);
            sum[e] += row[p];
        }
        for (size_t p = 0; p < slots; p++) {
            int32_t e = held[(size_t)l * slots + p];
            row[p] = e >= 0 ? row[p] / sum[e] : 0.0;
        }
    }
    free(sum);
    return shares;
}

#endif
