/* Which experts every rank holds: [G, words], bit e % 64 of word e / 64 in a rank's row is expert e. */
#ifndef PLAN_EXPERT_BITS_H
#define PLAN_EXPERT_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Words of a row. */
static inline int32_t expert_bits_words(int32_t num_experts)
{
    return (num_experts + 63) / 64;
}

static inline size_t expert_bits_at(int32_t words, int32_t rank, int32_t expert)
{
    return (size_t)rank * (size_t)words + (size_t)(expert >> 6);
}

static inline bool expert_bits_has(const uint64_t *bits, int32_t words, int32_t rank, int32_t expert)
{
    return (bits[expert_bits_at(words, rank, expert)] >> (expert & 63) & 1) != 0;
}

static inline void expert_bits_add(uint64_t *bits, int32_t words, int32_t rank, int32_t expert)
{
    bits[expert_bits_at(words, rank, expert)] |= UINT64_C(1) << (expert & 63);
}

static inline void expert_bits_remove(uint64_t *bits, int32_t words, int32_t rank, int32_t expert)
{
    bits[expert_bits_at(words, rank, expert)] &= ~(UINT64_C(1) << (expert & 63));
}

#endif
