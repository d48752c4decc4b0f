/* Reading a trace for a bench: the file says itself whether it holds counts or token routing. */
#include "trace_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/load.h"

/* Counts as they are, else token routing; where the file does not say how many experts there are, the least
 * power of two that holds every id. */
static bool read_any(const char *path, int64_t tokens_per_window, io_load *read)
{
    io_load_options counts = {.max_bytes = SIZE_MAX};
    io_error error, first;
    if (strcmp(path, TRACE_LOAD_SHIPPED) == 0 && access(path, R_OK) != 0) {
        bench_complain(TRACE_LOAD_SHIPPED " is not here: pass --trace FILE, or run where it is");
        return false;
    }
    if (io_load_read(path, &counts, read, &first) == EPLB_OK)
        return true;
    for (int32_t experts = 0; experts <= 1024; experts = experts == 0 ? 8 : 2 * experts) {
        io_load_options tokens = {.max_bytes = SIZE_MAX,
                                  .topk = true,
                                  .tokens_per_window = tokens_per_window,
                                  .num_experts = experts};
        if (io_load_read(path, &tokens, read, &error) == EPLB_OK)
            return true;
    }
    bench_complain("%s", first.text);
    if (strcmp(error.text, first.text) != 0)
        bench_complain("%s", error.text);
    return false;
}

bool trace_load_read(trace_load *trace, const bench_options *options, int64_t tokens_per_window)
{
    io_load read;
    memset(trace, 0, sizeof *trace);
    if (!read_any(options->trace_path != NULL ? options->trace_path : TRACE_LOAD_SHIPPED, tokens_per_window,
                  &read))
        return false;
    trace->windows = eplb_load_num_windows(read.load);
    trace->layers = eplb_load_num_layers(read.load);
    trace->experts = eplb_load_num_experts(read.load);
    size_t row = (size_t)trace->layers * (size_t)trace->experts;
    trace->counts = malloc((size_t)trace->windows * row * sizeof *trace->counts);
    for (int32_t t = 0; trace->counts != NULL && t < trace->windows; t++) {
        for (int32_t l = 0; l < trace->layers; l++) {
            for (int32_t e = 0; e < trace->experts; e++)
                trace->counts[(size_t)t * row + (size_t)l * (size_t)trace->experts + (size_t)e] =
                    eplb_load_at(read.load, t, l, e);
        }
    }
    io_load_clear(&read);
    if (trace->counts == NULL)
        bench_complain("out of memory for the trace");
    return trace->counts != NULL;
}

int64_t *trace_load_sum(const trace_load *trace)
{
    size_t row = (size_t)trace->layers * (size_t)trace->experts;
    int64_t *sum = calloc(row, sizeof *sum);
    for (size_t i = 0; sum != NULL && i < (size_t)trace->windows * row; i++)
        sum[i % row] += trace->counts[i];
    return sum;
}

void trace_load_clear(trace_load *trace)
{
    free(trace->counts);
    trace->counts = NULL;
}
