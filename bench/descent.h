/* Repair by steepest descent on one number, the yardstick of `bench moves`. */
#ifndef BENCH_DESCENT_H
#define BENCH_DESCENT_H

#include <stdint.h>

enum { DESCENT_MOST_RANKS = 64 };

/* From expert[ranks * k], imbalance[0 .. most_moves]: the least max / mean seen after so many received
 * experts. ranks <= DESCENT_MOST_RANKS. Returns 0, or -1 when memory is out. */
int descent_frontier(const int64_t *load, int32_t experts, int32_t ranks, int32_t k, const int32_t *expert,
                     int32_t most_moves, double *imbalance);

#endif
