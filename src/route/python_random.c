/* Python's `random`, restated: a Mersenne Twister, whole numbers by rejection, samples and shuffles that draw
 * in the same order, so that a seed gives what it gives there. O(1) a draw. Source: CPython's random module;
 * Matsumoto and Nishimura 1998. */
#include "route/python_random.h"

#include <string.h>

#define STATE_SHIFT 397

static void start(python_random *random, uint32_t seed)
{
    random->word[0] = seed;
    for (uint32_t i = 1; i < PYTHON_RANDOM_WORDS; i++)
        random->word[i] = 1812433253u * (random->word[i - 1] ^ (random->word[i - 1] >> 30)) + i;
    random->next = PYTHON_RANDOM_WORDS;
}

/* Seeding by a key of one word. */
void python_random_seed(python_random *random, uint32_t key)
{
    start(random, 19650218u);
    uint32_t i = 1;
    for (int k = 0; k < PYTHON_RANDOM_WORDS; k++) {
        random->word[i] =
            (random->word[i] ^ ((random->word[i - 1] ^ (random->word[i - 1] >> 30)) * 1664525u)) + key;
        if (++i == PYTHON_RANDOM_WORDS) {
            random->word[0] = random->word[PYTHON_RANDOM_WORDS - 1];
            i = 1;
        }
    }
    for (int k = 0; k < PYTHON_RANDOM_WORDS - 1; k++) {
        random->word[i] =
            (random->word[i] ^ ((random->word[i - 1] ^ (random->word[i - 1] >> 30)) * 1566083941u)) - i;
        if (++i == PYTHON_RANDOM_WORDS) {
            random->word[0] = random->word[PYTHON_RANDOM_WORDS - 1];
            i = 1;
        }
    }
    random->word[0] = 0x80000000u;
}

static uint32_t next_word(python_random *random)
{
    if (random->next == PYTHON_RANDOM_WORDS) {
        for (int i = 0; i < PYTHON_RANDOM_WORDS; i++) {
            uint32_t y =
                (random->word[i] & 0x80000000u) | (random->word[(i + 1) % PYTHON_RANDOM_WORDS] & 0x7fffffffu);
            random->word[i] = random->word[(i + STATE_SHIFT) % PYTHON_RANDOM_WORDS] ^ (y >> 1) ^
                              (y & 1u ? 0x9908b0dfu : 0u);
        }
        random->next = 0;
    }
    uint32_t y = random->word[random->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

/* Uniform in 0 .. bound-1: top bits, drawn again while too large. */
static int32_t below(python_random *random, int32_t bound)
{
    int bits = 0;
    while (bits < 31 && (bound >> bits) != 0)
        bits++;
    uint32_t value;
    do {
        value = next_word(random) >> (32 - bits);
    } while (value >= (uint32_t)bound);
    return (int32_t)value;
}

/* Python draws from a shrinking pool when the population is small beside the sample, and redraws repeats
 * otherwise. */
void python_random_sample(python_random *random, int32_t *pool, int32_t count, int32_t wanted,
                          int32_t *sample, uint8_t *taken)
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
            int32_t j = below(random, count - i);
            sample[i] = pool[j];
            pool[j] = pool[count - i - 1];
            continue;
        }
        int32_t j = below(random, count);
        while (taken[j])
            j = below(random, count);
        taken[j] = 1;
        sample[i] = pool[j];
    }
}

void python_random_shuffle(python_random *random, int32_t *values, int32_t count)
{
    for (int32_t i = count - 1; i > 0; i--) {
        int32_t j = below(random, i + 1);
        int32_t swap = values[i];
        values[i] = values[j];
        values[j] = swap;
    }
}
