/* Tournament tree: the least of n 64-bit keys, with one key replaced at a time.
 *
 * A replaced leaf replays the matches on its way to the root; the opponents' places are known beforehand and
 * the winner is chosen without a branch, so a step is log2(n) compares that the processor never mispredicts:
 * on the 32 to 1,024 ranks of a real group several times a binary heap's speed. Knuth, TAOCP 3, 5.4.1. */
#ifndef PLAN_TOURNAMENT_H
#define PLAN_TOURNAMENT_H

#include <stdint.h>

#include "base/memory.h"

#define TOURNAMENT_LAST UINT64_MAX /* a key that never wins against another */

typedef struct tournament {
    uint64_t *node; /* node[1] is the winner, node[width .. 2 width - 1] are the leaves */
    uint32_t width; /* power of two */
} tournament;

/* Takes memory for n leaves, all TOURNAMENT_LAST; node is NULL when memory is out. Set leaves, then build. */
static inline tournament tournament_take(arena *scratch, int32_t n)
{
    uint32_t width = 1;
    while (width < (uint32_t)n)
        width *= 2;
    tournament tree = {arena_take(scratch, 2 * (size_t)width, sizeof(uint64_t)), width};
    if (tree.node != NULL) {
        for (uint32_t i = (uint32_t)n; i < width; i++)
            tree.node[width + i] = TOURNAMENT_LAST;
    }
    return tree;
}

static inline void tournament_set(tournament *tree, int32_t leaf, uint64_t key)
{
    tree->node[tree->width + (uint32_t)leaf] = key;
}

static inline void tournament_build(tournament *tree)
{
    for (uint32_t i = tree->width - 1; i > 0; i--) {
        uint64_t left = tree->node[2 * i], right = tree->node[2 * i + 1];
        tree->node[i] = right < left ? right : left;
    }
}

static inline uint64_t tournament_least(const tournament *tree)
{
    return tree->node[1];
}

static inline void tournament_replace(tournament *tree, uint32_t leaf, uint64_t key)
{
    uint64_t *node = tree->node;
    uint32_t i = tree->width + leaf;
    node[i] = key;
    while (i > 1) {
        uint64_t other = node[i ^ 1u];
        key = other < key ? other : key;
        i /= 2;
        node[i] = key;
    }
}

#endif
