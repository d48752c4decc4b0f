/* Python's `random`, for restating engines that draw by it: the same numbers for the same seed. */
#ifndef ROUTE_PYTHON_RANDOM_H
#define ROUTE_PYTHON_RANDOM_H

#include <stdint.h>

#define PYTHON_RANDOM_WORDS 624

typedef struct python_random {
    uint32_t word[PYTHON_RANDOM_WORDS];
    int next;
} python_random;

/* As `random.seed(key)` for 0 <= key < 2^32. */
void python_random_seed(python_random *random, uint32_t key);
/* sample[wanted] of pool[count] without replacement; uses the pool up. `taken` [count] is scratch. */
void python_random_sample(python_random *random, int32_t *pool, int32_t count, int32_t wanted,
                          int32_t *sample, uint8_t *taken);
void python_random_shuffle(python_random *random, int32_t *values, int32_t count);

#endif
