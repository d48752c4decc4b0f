/* SGLang's `static` dispatch: one slot per source rank and expert, restated for comparison.
 * Per expert every rank takes its own replica, else the first replica of its node when the node has some but
 * not all of them; the ranks left share out the replicas: as many full rounds as fit, the remainder drawn
 * without replacement, all shuffled. The draws are those of Python's `random` with seed 42, layer by layer
 * and expert by expert. O(L E G). Source: SGLang expert_location; Mersenne Twister (Matsumoto and Nishimura
 * 1998). */
#include <eplb/route.h>

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "route/replicas.h"

#define STATE_WORDS 624
#define STATE_SHIFT 397
#define STATIC_SEED 42u

typedef struct twister {
    uint32_t word[STATE_WORDS];
    int next;
} twister;

static void twister_start(twister *t, uint32_t seed)
{
    t->word[0] = seed;
    for (uint32_t i = 1; i < STATE_WORDS; i++)
        t->word[i] = 1812433253u * (t->word[i - 1] ^ (t->word[i - 1] >> 30)) + i;
    t->next = STATE_WORDS;
}

/* Seeding by a key of one word, as Python seeds with a small integer. */
static void twister_seed(twister *t, uint32_t key)
{
    twister_start(t, 19650218u);
    uint32_t i = 1;
    for (int k = 0; k < STATE_WORDS; k++) {
        t->word[i] = (t->word[i] ^ ((t->word[i - 1] ^ (t->word[i - 1] >> 30)) * 1664525u)) + key;
        if (++i == STATE_WORDS) {
            t->word[0] = t->word[STATE_WORDS - 1];
            i = 1;
        }
    }
    for (int k = 0; k < STATE_WORDS - 1; k++) {
        t->word[i] = (t->word[i] ^ ((t->word[i - 1] ^ (t->word[i - 1] >> 30)) * 1566083941u)) - i;
        if (++i == STATE_WORDS) {
            t->word[0] = t->word[STATE_WORDS - 1];
            i = 1;
        }
    }
    t->word[0] = 0x80000000u;
}

static uint32_t twister_word(twister *t)
{
    if (t->next == STATE_WORDS) {
        for (int i = 0; i < STATE_WORDS; i++) {
            uint32_t y = (t->word[i] & 0x80000000u) | (t->word[(i + 1) % STATE_WORDS] & 0x7fffffffu);
            t->word[i] = t->word[(i + STATE_SHIFT) % STATE_WORDS] ^ (y >> 1) ^ (y & 1u ? 0x9908b0dfu : 0u);
        }
        t->next = 0;
    }
    uint32_t y = t->word[t->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

/* Uniform in 0 .. bound-1: top bits, drawn again while too large. */
static int32_t twister_below(twister *t, int32_t bound)
{
    int bits = 0;
    while (bits < 31 && (bound >> bits) != 0)
        bits++;
    uint32_t value;
    do {
        value = twister_word(t) >> (32 - bits);
    } while (value >= (uint32_t)bound);
    return (int32_t)value;
}

/* sample[wanted] of pool[count] without replacement. Python draws from a shrinking pool when the population
 * is small beside the sample, and redraws repeats otherwise; `taken` [count] marks repeats. */
static void draw_sample(twister *t, int32_t *pool, int32_t count, int32_t wanted, int32_t *sample,
                        uint8_t *taken)
{
    int32_t set_size = 21;
    if (wanted > 5) {
        int32_t power = 1;
        while (power < 3 * wanted)
            power *= 4;
        set_size += power;
    }
    memset(taken, 0, (size_t)count);
    for (int32_t i = 0; i < wanted; i++) {
        if (count <= set_size) {
            int32_t j = twister_below(t, count - i);
            sample[i] = pool[j];
            pool[j] = pool[count - i - 1];
            continue;
        }
        int32_t j = twister_below(t, count);
        while (taken[j])
            j = twister_below(t, count);
        taken[j] = 1;
        sample[i] = pool[j];
    }
}

static void shuffle(twister *t, int32_t *values, int32_t count)
{
    for (int32_t i = count - 1; i > 0; i--) {
        int32_t j = twister_below(t, i + 1);
        int32_t swap = values[i];
        values[i] = values[j];
        values[j] = swap;
    }
}

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

static void fill_expert(const eplb_topology *topology, twister *t, const int32_t *slot, int32_t count,
                        static_scratch *scratch, int32_t *own, size_t stride)
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
    draw_sample(t, scratch->pool, count, open % count, scratch->fair + n, scratch->taken);
    shuffle(t, scratch->fair, open);
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
    twister *t = memory_take(&allocator, 1, sizeof *t);
    eplb_status status = EPLB_OK;
    if (scratch.first == NULL || scratch.taken == NULL || t == NULL) {
        status = error_memory(error, slots * sizeof(int32_t), "a static table");
        goto release;
    }
    scratch.slot = scratch.first + experts + 1;
    scratch.pool = scratch.slot + slots;
    scratch.fair = scratch.pool + slots;
    twister_seed(t, STATIC_SEED);
    for (size_t l = 0; l < layers; l++) {
        replicas_list(placement, (int32_t)l, scratch.first, scratch.slot);
        for (size_t e = 0; e < experts; e++)
            fill_expert(topology, t, scratch.slot + scratch.first[e], scratch.first[e + 1] - scratch.first[e],
                        &scratch, own + l * experts + e, layers * experts);
    }
release:
    memory_give(&allocator, scratch.first);
    memory_give(&allocator, scratch.taken);
    memory_give(&allocator, t);
    return status;
}
