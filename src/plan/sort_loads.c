/* Stable sort of experts by load.
 *
 * A radix sort from the low digit up, over as few digits as the largest load has; all histograms come from
 * one pass. For a few items an insertion sort is quicker. Cost: O(n) per digit, about 2 us for 256 experts.
 * Source: Knuth, The Art of Computer Programming 3, 5.2.5. */
#include "plan/sort_loads.h"

#include <string.h>

enum { DIGIT_BITS = 9, DIGITS = 1 << DIGIT_BITS, MAX_PASSES = 7, FEW_ITEMS = 24 };

typedef struct keyed {
    uint64_t key;
    int32_t expert;
} keyed;

static void insertion_sort(keyed *items, int32_t n)
{
    for (int32_t i = 1; i < n; i++) {
        keyed item = items[i];
        int32_t j = i;
        for (; j > 0 && items[j - 1].key > item.key; j--)
            items[j] = items[j - 1];
        items[j] = item;
    }
}

static void count_digits(const keyed *items, int32_t n, int passes, uint32_t count[][DIGITS])
{
    memset(count, 0, (size_t)passes * sizeof *count);
    for (int32_t i = 0; i < n; i++) {
        uint64_t key = items[i].key;
        for (int pass = 0; pass < passes; pass++) {
            count[pass][key & (DIGITS - 1)]++;
            key >>= DIGIT_BITS;
        }
    }
}

/* One stable pass on one digit; false if all items share it, so that nothing moved. */
static bool scatter(const keyed *from, keyed *to, int32_t n, int shift, uint32_t *count)
{
    if (count[(from[0].key >> shift) & (DIGITS - 1)] == (uint32_t)n)
        return false;
    uint32_t start = 0;
    for (int digit = 0; digit < DIGITS; digit++) {
        uint32_t items = count[digit];
        count[digit] = start;
        start += items;
    }
    for (int32_t i = 0; i < n; i++)
        to[count[(from[i].key >> shift) & (DIGITS - 1)]++] = from[i];
    return true;
}

/* Leaves the sorted items in one of the two arrays and returns which. */
static keyed *radix_sort(keyed *items, keyed *spare, int32_t n, uint64_t bits, uint32_t count[][DIGITS])
{
    int passes = 0;
    while (passes < MAX_PASSES && (bits >> (passes * DIGIT_BITS)) != 0)
        passes++;
    count_digits(items, n, passes, count);
    for (int pass = 0; pass < passes; pass++) {
        if (!scatter(items, spare, n, pass * DIGIT_BITS, count[pass]))
            continue;
        keyed *swap = items;
        items = spare;
        spare = swap;
    }
    return items;
}

bool sort_loads(const int64_t *load, const int32_t *subset, int32_t n, int32_t *order, arena *scratch)
{
    arena_mark mark = arena_position(scratch);
    keyed *items = arena_take(scratch, 2 * (size_t)n, sizeof *items);
    uint32_t(*count)[DIGITS] = arena_take(scratch, MAX_PASSES, sizeof *count);
    if (items == NULL || count == NULL)
        return false;
    uint64_t bits = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t expert = subset != NULL ? subset[i] : i;
        items[i] = (keyed){(uint64_t)load[expert], expert};
        bits |= items[i].key;
    }
    if (n <= FEW_ITEMS)
        insertion_sort(items, n);
    else
        items = radix_sort(items, items + n, n, bits, count);
    for (int32_t i = 0; i < n; i++)
        order[i] = items[i].expert;
    arena_rewind(scratch, mark);
    return true;
}
