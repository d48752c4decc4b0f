/* Batches and placements for the benches of the route room. */
#ifndef BENCH_BATCH_CASE_H
#define BENCH_BATCH_CASE_H

#include <stdbool.h>

#include <eplb/eplb.h>

#include "base/random.h"

/* A one-layer placement by DeepSeek's planner for the history weights[num_experts]; NULL after telling
 * why. */
eplb_placement *batch_case_placement(const double *weights, int32_t num_experts, int32_t num_slots,
                                     int32_t num_ranks, int32_t num_nodes);
/* counts[n] of a batch of about `total` tokens: the history times lognormal(sigma), with sampling noise. */
void batch_case_draw(random_state *random, const double *weights, int32_t n, double sigma, double total,
                     int64_t *counts);

/* Token routing of a recorded trace, all of it: ids [tokens, layers, width]. */
typedef struct batch_trace {
    int64_t num_tokens;
    int32_t num_layers;
    int32_t num_experts;
    int32_t width;
    int32_t *ids;
} batch_trace;

/* False after telling why on stderr. */
bool batch_trace_read(const char *path, batch_trace *trace);
void batch_trace_clear(batch_trace *trace);
/* Counts [layers, experts] of tokens first .. first + count - 1. */
void batch_trace_count(const batch_trace *trace, int64_t first, int64_t count, int64_t *counts);

#endif
