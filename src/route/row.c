/* Rows: whole quotas in proportion to shares, and the order that keeps every prefix within one token of them.
 *
 * Quotas are largest remainders over the row length that rounds best. The order is earliest deadline first:
 * the j-th entry of i may stand from position floor((j-1) L / q) and must stand before ceil(j L / q); serving
 * the nearest deadline meets all of them, so each prefix is off by less than 1. O(length * count). Source:
 * chairman assignment (Tijdeman 1980); just-in-time sequences (Steiner and Yeomans 1993). */
#include "route/row.h"

#include <string.h>

#include <eplb/route.h>

#include "base/checked.h"

/* Above this many replicas lengths are no longer tried one by one. */
#define ROW_SEARCH_COUNT 16
#define ROW_SEARCH_TAIL  16

void eplb_route_row(const int32_t *quota, int32_t count, int32_t *row, int32_t *scratch)
{
    int64_t length = 0;
    int32_t *served = scratch;
    for (int32_t i = 0; i < count; i++) {
        length += quota[i];
        served[i] = 0;
    }
    for (int64_t n = 0; n < length; n++) {
        int32_t best = -1;
        for (int32_t i = 0; i < count; i++) {
            /* Released, and not yet served in full: served * length / quota < n + 1. */
            if (served[i] >= quota[i] || served[i] * length >= (n + 1) * quota[i])
                continue;
            if (best < 0 || (int64_t)(served[i] + 1) * quota[best] < (int64_t)(served[best] + 1) * quota[i])
                best = i;
        }
        row[n] = best;
        served[best]++;
    }
}

void row_weights_of_shares(const double *shares, int32_t count, int64_t *weight)
{
    double sum = 0.0;
    for (int32_t i = 0; i < count; i++)
        sum += shares[i];
    for (int32_t i = 0; i < count; i++)
        weight[i] = (int64_t)(shares[i] / sum * (double)(ROW_WEIGHT_LIMIT / 2) + 0.5);
    row_scale_weights(weight, count);
}

void row_scale_weights(int64_t *weight, int32_t count)
{
    int shift = 0;
    for (;; shift++) {
        int64_t sum = 0;
        for (int32_t i = 0; i < count && sum <= ROW_WEIGHT_LIMIT; i++)
            sum = (weight[i] >> shift) > ROW_WEIGHT_LIMIT ? INT64_MAX : sum + (weight[i] >> shift);
        if (sum <= ROW_WEIGHT_LIMIT)
            break;
    }
    for (int32_t i = 0; i < count; i++)
        weight[i] >>= shift;
}

/* Gives one more entry to the largest remainder; the quota marks it by going past its floor. */
static void give_next(const int64_t *weight, int32_t count, int32_t length, int64_t sum, int32_t *quota)
{
    int32_t best = -1;
    int64_t best_rest = -1;
    for (int32_t i = 0; i < count; i++) {
        int64_t rest = weight[i] * length - quota[i] * sum;
        if (rest > best_rest) {
            best = i;
            best_rest = rest;
        }
    }
    quota[best]++;
}

int64_t row_apportion(const int64_t *weight, int32_t count, int32_t length, int32_t *quota)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < count; i++)
        sum += weight[i];
    int32_t left = length;
    for (int32_t i = 0; i < count; i++) {
        quota[i] = (int32_t)(weight[i] * length / sum);
        left -= quota[i];
    }
    for (; left > 0; left--)
        give_next(weight, count, length, sum, quota);
    int64_t worst = 0;
    for (int32_t i = 0; i < count; i++) {
        int64_t error = weight[i] * length - quota[i] * sum;
        error = error < 0 ? -error : error;
        worst = error > worst ? error : worst;
    }
    return worst;
}

static bool equal_weights(const int64_t *weight, int32_t count)
{
    for (int32_t i = 1; i < count; i++) {
        if (weight[i] != weight[0])
            return false;
    }
    return true;
}

int32_t row_choose(const int64_t *weight, int32_t count, int32_t limit, int32_t *quota, double *error)
{
    int64_t sum = 0, best_error = 0;
    for (int32_t i = 0; i < count; i++)
        sum += weight[i];
    int32_t first = 1, best = 0;
    if (equal_weights(weight, count) && count <= limit)
        first = limit = count;
    else if (count > ROW_SEARCH_COUNT && limit > ROW_SEARCH_TAIL)
        first = limit - ROW_SEARCH_TAIL + 1;
    for (int32_t length = first; length <= limit && (best == 0 || best_error > 0); length++) {
        int64_t worst = row_apportion(weight, count, length, quota);
        if (best == 0 || fraction_compare(worst, length, best_error, best) < 0) {
            best = length;
            best_error = worst;
        }
    }
    (void)row_apportion(weight, count, best, quota);
    *error = (double)best_error / ((double)best * (double)sum);
    return best;
}
