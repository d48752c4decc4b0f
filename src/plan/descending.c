/* Stable descending order of single-precision weights by radix.
 *
 * Keys of float_key.h are sorted least digit first, one byte of the weight at a time; all four histograms are
 * taken in one pass and a byte that is the same everywhere costs nothing. Few items go by insertion. O(n).
 * Sorting is most of the time of DeepSeek's planner when done by comparisons. */
#include "plan/descending.h"

#include <string.h>

#include "base/error.h"
#include "plan/float_key.h"

#define DIGITS           4
#define DIGIT_VALUES     256
#define FEW              40 /* below this the histograms cost more than they save */
#define DIGIT_OF(key, d) ((uint32_t)((key) >> (32 + 8 * (d))) & (DIGIT_VALUES - 1))

static void sort_few(uint64_t *keys, int32_t n)
{
    for (int32_t i = 1; i < n; i++) {
        uint64_t key = keys[i];
        int32_t j = i;
        for (; j > 0 && keys[j - 1] > key; j--)
            keys[j] = keys[j - 1];
        keys[j] = key;
    }
}

/* One counting pass; starts[v] becomes the end of value v's run. */
static void scatter(const uint64_t *from, uint64_t *to, int32_t n, int digit, uint32_t *starts)
{
    for (int32_t i = 0; i < n; i++)
        to[starts[DIGIT_OF(from[i], digit)]++] = from[i];
}

/* Turns counts into starts; false when all n keys have one value: nothing to do for this digit. */
static bool prefix(uint32_t *counts, uint32_t n)
{
    uint32_t sum = 0;
    for (int v = 0; v < DIGIT_VALUES; v++) {
        uint32_t count = counts[v];
        if (count == n)
            return false;
        counts[v] = sum;
        sum += count;
    }
    return true;
}

/* Sorts keys[n] by their upper half with `spare` of the same size; returns the array that holds the result.
 */
static uint64_t *sort_many(uint64_t *keys, uint64_t *spare, int32_t n)
{
    uint32_t counts[DIGITS][DIGIT_VALUES];
    memset(counts, 0, sizeof counts);
    for (int32_t i = 0; i < n; i++) {
        for (int d = 0; d < DIGITS; d++)
            counts[d][DIGIT_OF(keys[i], d)]++;
    }
    for (int d = 0; d < DIGITS; d++) {
        if (!prefix(counts[d], (uint32_t)n))
            continue;
        scatter(keys, spare, n, d, counts[d]);
        uint64_t *swap = keys;
        keys = spare;
        spare = swap;
    }
    return keys;
}

eplb_status order_descending(const float *weight, int32_t n, arena *scratch, int32_t *order,
                             eplb_error *error)
{
    arena_mark mark = arena_position(scratch);
    uint64_t *keys = arena_take(scratch, 2 * (size_t)n, sizeof *keys);
    if (keys == NULL)
        return error_memory(error, 2 * (size_t)n * sizeof *keys, "the order of weights");
    for (int32_t i = 0; i < n; i++)
        keys[i] = key_heaviest(weight[i], (uint32_t)i);
    uint64_t *sorted = keys;
    if (n < FEW)
        sort_few(keys, n);
    else
        sorted = sort_many(keys, keys + n, n);
    for (int32_t i = 0; i < n; i++)
        order[i] = (int32_t)key_index(sorted[i]);
    arena_rewind(scratch, mark);
    return EPLB_OK;
}
