/* A recorded trace for benches, as counts in windows. */
#ifndef BENCH_TRACE_LOAD_H
#define BENCH_TRACE_LOAD_H

#include <eplb/eplb.h>

#include "bench.h"

#define TRACE_LOAD_SHIPPED "examples/traffic.npz" /* a clone has it, an installed command does not */

typedef struct trace_load {
    int32_t windows;
    int32_t layers;
    int32_t experts;
    int64_t *counts; /* [windows, layers, experts] */
} trace_load;

/* Reads options->trace_path, or the shipped example when there is none: counts [T, L, E] or token routing,
 * cut into windows of tokens_per_window (0: one window). False after telling why on stderr. */
bool trace_load_read(trace_load *trace, const bench_options *options, int64_t tokens_per_window);
/* Sum over windows, [layers, experts], to be freed; NULL when memory is out. */
int64_t *trace_load_sum(const trace_load *trace);
void trace_load_clear(trace_load *trace);

#endif
