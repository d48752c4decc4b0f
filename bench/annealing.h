/* Simulated annealing over replica counts and places for the equal split: the yardstick of the search. */
#ifndef BENCH_ANNEALING_H
#define BENCH_ANNEALING_H

#include <stdint.h>

typedef struct annealing_case {
    const int64_t *load; /* [experts] */
    int32_t experts;
    int32_t ranks;
    int32_t slots_per_rank;
} annealing_case;

/* Improves expert[ranks * slots_per_rank], which holds no expert twice on a rank, by `steps` random swaps and
 * changes of counts; leaves the best placement seen. Returns its max / mean, or -1 when memory is out. */
double anneal(const annealing_case *problem, int64_t steps, int32_t *expert);

#endif
