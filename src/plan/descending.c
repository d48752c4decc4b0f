/* Stable descending order of single-precision weights.
 *
 * Keys of float_key.h are thrown into about as many buckets as there are items by their leading bits, counted
 * from the heaviest, and put right by insertion: weights of a layer lie within a few powers of two, so
 * buckets hold few. Where they hold many (a few giants among small weights) a radix sort takes over, byte by
 * byte with the least first; a byte that is the same everywhere costs nothing. O(n) either way. By
 * comparisons, sorting is most of the time of DeepSeek's planner. */
#include "plan/descending.h"

#include <string.h>

#include "base/error.h"
#include "plan/float_key.h"

#define DIGITS           4
#define DIGIT_VALUES     256
#define FEW              24 /* items that insertion sorts at once */
#define MOST_BUCKET_BITS 12
#define MOST_WORK        32 /* sum of squares of bucket sizes per item: insertion moves a quarter of it */

#define DIGIT_OF(key, d) ((uint32_t)((key) >> (32 + 8 * (d))) & (DIGIT_VALUES - 1))

static void insert_all(uint64_t *keys, int32_t n)
{
    for (int32_t i = 1; i < n; i++) {
        uint64_t key = keys[i];
        int32_t j = i;
        for (; j > 0 && keys[j - 1] > key; j--)
            keys[j] = keys[j - 1];
        keys[j] = key;
    }
}

/* How the weights' bits become bucket numbers: (bits - least) >> shift. */
typedef struct buckets {
    uint32_t least;
    int shift;
    uint32_t count; /* of buckets */
} buckets;

static buckets choose_buckets(const uint64_t *keys, int32_t n)
{
    uint32_t least = UINT32_MAX, most = 0;
    for (int32_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)(keys[i] >> 32);
        least = bits < least ? bits : least;
        most = bits > most ? bits : most;
    }
    int bits = 4;
    while (bits < MOST_BUCKET_BITS && (1 << bits) < n + n / 2)
        bits++;
    uint32_t range = most - least;
    int shift = 0;
    while (range >> shift >= 1u << bits)
        shift++;
    return (buckets){least, shift, (range >> shift) + 1};
}

static uint32_t bucket_of(const buckets *b, uint64_t key)
{
    return ((uint32_t)(key >> 32) - b->least) >> b->shift;
}

/* Sorts keys[n] into `into`; false, with `into` unused, when buckets are too full. */
static bool sort_by_buckets(const uint64_t *keys, uint64_t *into, int32_t n)
{
    uint32_t start[1 << MOST_BUCKET_BITS];
    buckets b = choose_buckets(keys, n);
    memset(start, 0, b.count * sizeof *start);
    for (int32_t i = 0; i < n; i++)
        start[bucket_of(&b, keys[i])]++;
    uint32_t sum = 0;
    uint64_t work = 0;
    for (uint32_t v = 0; v < b.count; v++) {
        uint32_t count = start[v];
        work += (uint64_t)count * count;
        start[v] = sum;
        sum += count;
    }
    if (work > MOST_WORK * (uint64_t)n)
        return false;
    for (int32_t i = 0; i < n; i++)
        into[start[bucket_of(&b, keys[i])]++] = keys[i];
    insert_all(into, n);
    return true;
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

/* Sorts keys[n] by their upper half with `spare` of the same size; returns the array that holds the
 * result. */
static uint64_t *sort_by_radix(uint64_t *keys, uint64_t *spare, int32_t n)
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
    if (n <= FEW)
        insert_all(keys, n);
    else if (sort_by_buckets(keys, keys + n, n))
        sorted = keys + n;
    else
        sorted = sort_by_radix(keys, keys + n, n);
    for (int32_t i = 0; i < n; i++)
        order[i] = (int32_t)key_index(sorted[i]);
    arena_rewind(scratch, mark);
    return EPLB_OK;
}
