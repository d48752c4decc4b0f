/* A plain restatement of DeepSeek's planner, to measure ours against: qsort and binary heaps, nothing
 * clever. */
#ifndef BENCH_HEAP_PLANNER_H
#define BENCH_HEAP_PLANNER_H

#include <stdint.h>

/* Global mode for each row of load[layers, experts]; slots divide by ranks. expert[layers, slots] gets the
 * answer. Returns 0, or -1 when memory is out. */
int heap_planner(const int64_t *load, int32_t layers, int32_t experts, int32_t slots, int32_t ranks,
                 int32_t *expert);

#endif
