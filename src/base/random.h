/* Random numbers: SplitMix64 (Steele, Lea, Flood 2014). Explicit state, the same stream on every host. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

typedef struct random_state {
    uint64_t state;
} random_state;

static inline random_state random_seed(uint64_t seed)
{
    return (random_state){seed};
}

static inline uint64_t random_next(random_state *random)
{
    uint64_t z = (random->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Uniform in 0 .. bound-1 (bound >= 1) with a bias below bound / 2^32. */
static inline uint32_t random_below(random_state *random, uint32_t bound)
{
    return (uint32_t)(((random_next(random) >> 32) * bound) >> 32);
}

/* Uniform double in [0, 1) with 53 bits. */
static inline double random_unit(random_state *random)
{
    return (double)(random_next(random) >> 11) * 0x1p-53;
}

#endif
