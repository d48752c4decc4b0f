/* Checked and wide integer arithmetic: additions and products that report overflow, and exact comparison of
 * fractions a/b < c/d for non-negative int64 through a portable 64x64 -> 128 bit product. */
#ifndef BASE_CHECKED_H
#define BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

/* *sum = a + b for a, b >= 0; false on overflow. */
static inline bool checked_add(int64_t a, int64_t b, int64_t *sum)
{
    if (a > INT64_MAX - b)
        return false;
    *sum = a + b;
    return true;
}

/* *result = a * b for a, b >= 0; false on overflow. */
static inline bool checked_multiply(int64_t a, int64_t b, int64_t *result)
{
    if (a != 0 && b > INT64_MAX / a)
        return false;
    *result = a * b;
    return true;
}

typedef struct wide {
    uint64_t high;
    uint64_t low;
} wide;

/* Full product of two unsigned 64-bit numbers. */
static inline wide wide_multiply(uint64_t a, uint64_t b)
{
#if defined(__SIZEOF_INT128__) && !defined(EPLB_NO_INT128)
    __extension__ typedef unsigned __int128 wide_integer;
    wide_integer p = (wide_integer)a * b;
    return (wide){(uint64_t)(p >> 64), (uint64_t)p};
#else
    uint64_t a_low = a & 0xffffffffu, a_high = a >> 32, b_low = b & 0xffffffffu, b_high = b >> 32;
    uint64_t low = a_low * b_low;
    uint64_t middle = a_high * b_low + (low >> 32);
    uint64_t middle_low = (middle & 0xffffffffu) + a_low * b_high;
    return (wide){a_high * b_high + (middle >> 32) + (middle_low >> 32),
                  (middle_low << 32) | (low & 0xffffffffu)};
#endif
}

/* -1, 0, 1 as a/b is less than, equal to or greater than c/d; a, c >= 0 and b, d > 0. */
static inline int fraction_compare(int64_t a, int64_t b, int64_t c, int64_t d)
{
    wide left = wide_multiply((uint64_t)a, (uint64_t)d);
    wide right = wide_multiply((uint64_t)c, (uint64_t)b);
    if (left.high != right.high)
        return left.high < right.high ? -1 : 1;
    if (left.low != right.low)
        return left.low < right.low ? -1 : 1;
    return 0;
}

#endif
