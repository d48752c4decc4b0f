/* Experts in ascending order of load, ties by ascending index. */
#ifndef PLAN_SORT_LOADS_H
#define PLAN_SORT_LOADS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

/* order[n] = the experts subset[0..n-1] (NULL: 0..n-1), ascending by load[expert] >= 0; equal loads keep the
 * order of `subset`. False when memory is out. O(n * bytes of the largest load). */
bool sort_loads(const int64_t *load, const int32_t *subset, int32_t n, int32_t *order, arena *scratch);

#endif
