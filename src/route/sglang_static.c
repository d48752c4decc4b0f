/* SGLang's `static` dispatch: one slot per source rank and expert, restated for comparison.
 *
 * Per expert every rank takes its own replica, else the first replica of its node when the node has some but
 * not all of them; the ranks left share out the replicas: as many full rounds as fit, the remainder drawn
 * without replacement, all shuffled. The draws are those of Python's `random` with seed 42, layer by layer
 * and expert by expert. O(L E G). Source: SGLang expert_location. */
#include <eplb/route.h>

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "route/python_random.h"
#include "route/replicas.h"

#define STATIC_SEED 42u

typedef struct static_scratch {
    int32_t *first; /* [E + 1] */
    int32_t *slot;  /* [S] */
    int32_t *pool;  /* [S] */
    int32_t *fair;  /* [G + S] */
    uint8_t *taken; /* [S] */
} static_scratch;

/* The replica that rank g takes without a draw, or -1. */
static int32_t nearest(const eplb_topology *topology, int32_t rank, const int32_t *slot, int32_t count)
{
    const int32_t *slot_rank = eplb_topology_slot_rank(topology),
                  *rank_node = eplb_topology_rank_node(topology);
    if (count == 1)
        return slot[0];
    int32_t near = 0, first_near = -1;
    for (int32_t i = 0; i < count; i++) {
        if (slot_rank[slot[i]] == rank)
            return slot[i];
        if (rank_node[slot_rank[slot[i]]] == rank_node[rank]) {
            first_near = near == 0 ? slot[i] : first_near;
            near++;
        }
    }
    return near < count ? first_near : -1;
}

static void fill_expert(const eplb_topology *topology, python_random *random, const int32_t *slot,
                        int32_t count, static_scratch *scratch, int32_t *own, size_t stride)
{
    int32_t ranks = eplb_topology_num_ranks(topology), open = 0;
    for (int32_t g = 0; g < ranks; g++) {
        int32_t choice = count > 0 ? nearest(topology, g, slot, count) : -1;
        own[(size_t)g * stride] = choice;
        open += choice < 0;
    }
    if (count == 0)
        return;
    int32_t n = 0;
    for (int32_t round = 0; round < open / count; round++) {
        for (int32_t i = 0; i < count; i++)
            scratch->fair[n++] = slot[i];
    }
    memcpy(scratch->pool, slot, (size_t)count * sizeof *slot);
    python_random_sample(random, scratch->pool, count, open % count, scratch->fair + n, scratch->taken);
    python_random_shuffle(random, scratch->fair, open);
    n = 0;
    for (int32_t g = 0; g < ranks; g++) {
        if (own[(size_t)g * stride] < 0)
            own[(size_t)g * stride] = scratch->fair[n++];
    }
}

eplb_status eplb_sglang_static(const eplb_placement *placement, int32_t *own, const eplb_allocator *given,
                               eplb_error *error)
{
    eplb_allocator allocator = memory_allocator(given);
    const eplb_topology *topology = eplb_placement_topology(placement);
    size_t experts = (size_t)eplb_placement_num_experts(placement);
    size_t slots = (size_t)eplb_placement_num_slots(placement),
           ranks = (size_t)eplb_topology_num_ranks(topology);
    size_t layers = (size_t)eplb_placement_num_layers(placement);
    static_scratch scratch = {.first =
                                  memory_take(&allocator, experts + 1 + 3 * slots + ranks, sizeof(int32_t)),
                              .taken = memory_take(&allocator, slots, 1)};
    python_random *random = memory_take(&allocator, 1, sizeof *random);
    eplb_status status = EPLB_OK;
    if (scratch.first == NULL || scratch.taken == NULL || random == NULL) {
        status = error_memory(error, slots * sizeof(int32_t), "a static table");
        goto release;
    }
    scratch.slot = scratch.first + experts + 1;
    scratch.pool = scratch.slot + slots;
    scratch.fair = scratch.pool + slots;
    python_random_seed(random, STATIC_SEED);
    for (size_t l = 0; l < layers; l++) {
        replicas_list(placement, (int32_t)l, scratch.first, scratch.slot);
        for (size_t e = 0; e < experts; e++)
            fill_expert(topology, random, scratch.slot + scratch.first[e],
                        scratch.first[e + 1] - scratch.first[e], &scratch, own + l * experts + e,
                        layers * experts);
    }
release:
    memory_give(&allocator, scratch.first);
    memory_give(&allocator, scratch.taken);
    memory_give(&allocator, random);
    return status;
}
