/* Single-precision weights as integers: non-negative IEEE floats sort as their bit patterns, so a weight and
 * an index make one 64-bit key whose order is "by weight, ties to the lowest index". */
#ifndef PLAN_FLOAT_KEY_H
#define PLAN_FLOAT_KEY_H

#include <stdint.h>
#include <string.h>

static inline uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Least key: lightest, then lowest index. */
static inline uint64_t key_lightest(float weight, uint32_t index)
{
    return (uint64_t)float_bits(weight) << 32 | index;
}

/* Least key: heaviest, then lowest index. */
static inline uint64_t key_heaviest(float weight, uint32_t index)
{
    return (uint64_t)~float_bits(weight) << 32 | index;
}

static inline uint32_t key_index(uint64_t key)
{
    return (uint32_t)key;
}

/* The weight inside a key of key_lightest. */
static inline float key_weight(uint64_t key)
{
    uint32_t bits = (uint32_t)(key >> 32);
    float weight;
    memcpy(&weight, &bits, sizeof weight);
    return weight;
}

#endif
