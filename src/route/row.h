/* Rows: the order in which an expert's tokens go to its replicas. */
#ifndef ROUTE_ROW_H
#define ROUTE_ROW_H

#include <stdbool.h>
#include <stdint.h>

/* Weights are scaled so that their sum is at most this. */
#define ROW_WEIGHT_LIMIT ((int64_t)1 << 31)

/* Whole weights in proportion to shares [count] (>= 0, finite, not all 0). */
void row_weights_of_shares(const double *shares, int32_t count, int64_t *weight);
/* Halves weights [count] >= 0 until their sum is within the limit; a sum that does not fit int64 is fine. */
void row_scale_weights(int64_t *weight, int32_t count);

/* Divides `length` entries in proportion to the weights by the largest remainders (Hamilton; ties to the
 * lowest index), which makes the largest error least. Returns that error as the numerator over length * sum
 * of weights. */
int64_t row_apportion(const int64_t *weight, int32_t count, int32_t length, int32_t *quota);

/* The length of 1 .. limit whose apportionment has the least error (the shortest of equals), its quotas, and
 * the largest |quota / length - share|. With more than ROW_SEARCH_COUNT replicas only the longest few lengths
 * are tried. */
int32_t row_choose(const int64_t *weight, int32_t count, int32_t limit, int32_t *quota, double *error);

#endif
