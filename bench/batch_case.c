/* Batches and placements for the benches of the route room; see batch_case.h. */
#include "batch_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "io/topk.h"
#include "synthetic.h"

enum { MOST_EXPERTS = 1024, MOST_SLOTS = 4096 };

eplb_placement *batch_case_placement(const double *weights, int32_t num_experts, int32_t num_slots,
                                     int32_t num_ranks, int32_t num_nodes)
{
    float load[MOST_EXPERTS];
    int32_t slots[MOST_SLOTS], count[MOST_EXPERTS];
    eplb_topology_params params;
    eplb_topology *topology = NULL;
    eplb_placement *placement = NULL;
    eplb_error error;
    if (num_experts > MOST_EXPERTS || num_slots > MOST_SLOTS)
        return NULL;
    for (int32_t e = 0; e < num_experts; e++)
        load[e] = (float)weights[e];
    eplb_topology_params_init(&params, sizeof params);
    params.num_ranks = num_ranks;
    params.num_nodes = num_nodes;
    params.slots_per_rank = num_slots / num_ranks;
    if (eplb_rebalance_experts(load, 1, num_experts, num_slots, 1, 1, num_ranks, slots, NULL, count, NULL,
                               &error) != EPLB_OK ||
        eplb_topology_create(&topology, &params, NULL, &error) != EPLB_OK ||
        eplb_placement_create(&placement, topology, 1, num_experts, slots, NULL, &error) != EPLB_OK)
        bench_complain("%s", error.text);
    eplb_topology_destroy(topology);
    return placement;
}

void batch_case_draw(random_state *random, const double *weights, int32_t n, double sigma, double total,
                     int64_t *counts)
{
    double now[MOST_EXPERTS], sum = 0.0;
    memcpy(now, weights, (size_t)n * sizeof *now);
    synthetic_drift(random, sigma, n, now);
    for (int32_t i = 0; i < n; i++)
        sum += now[i];
    for (int32_t i = 0; i < n; i++) {
        double mean = now[i] / sum * total, noisy = mean + sqrt(mean) * synthetic_normal(random);
        counts[i] = noisy > 0.0 ? (int64_t)llrint(noisy) : 0;
    }
}

/* Opens a trace; where the file does not say how many experts there are, *told is false and any id may
 * come. */
static io_topk *open_trace(const char *path, bool *told)
{
    io_error error;
    io_topk *topk = NULL;
    *told = io_topk_open(&topk, path, 0, &error) == EPLB_OK;
    if (!*told && io_topk_open(&topk, path, MOST_EXPERTS, &error) != EPLB_OK)
        bench_complain("%s", error.text);
    return topk;
}

static int32_t largest_id(const batch_trace *trace)
{
    int32_t largest = 0;
    for (int64_t i = 0; i < trace->num_tokens * trace->num_layers * trace->width; i++)
        largest = trace->ids[i] > largest ? trace->ids[i] : largest;
    return largest;
}

bool batch_trace_read(const char *path, batch_trace *trace)
{
    io_error error;
    bool told;
    *trace = (batch_trace){0};
    io_topk *topk = open_trace(path, &told);
    if (topk == NULL)
        return false;
    trace->num_tokens = io_topk_num_tokens(topk);
    trace->num_layers = io_topk_num_layers(topk);
    trace->num_experts = io_topk_num_experts(topk);
    trace->width = io_topk_width(topk);
    size_t row = (size_t)trace->num_layers * (size_t)trace->width;
    trace->ids = malloc((size_t)trace->num_tokens * row * sizeof *trace->ids + 1);
    int64_t done = 0, read = 1;
    bool good = trace->ids != NULL;
    while (good && done < trace->num_tokens && read > 0) {
        good = io_topk_read(topk, trace->num_tokens - done, trace->ids + (size_t)done * row, &read, &error) ==
               EPLB_OK;
        done += read;
    }
    if (!good)
        bench_complain("%s", trace->ids != NULL ? error.text : "out of memory");
    else if (!told)
        trace->num_experts = largest_id(trace) + 1;
    io_topk_close(topk);
    if (!good)
        batch_trace_clear(trace);
    return good;
}

void batch_trace_clear(batch_trace *trace)
{
    free(trace->ids);
    trace->ids = NULL;
}

void batch_trace_count(const batch_trace *trace, int64_t first, int64_t count, int64_t *counts)
{
    size_t experts = (size_t)trace->num_experts, layers = (size_t)trace->num_layers,
           width = (size_t)trace->width;
    memset(counts, 0, layers * experts * sizeof *counts);
    for (size_t t = (size_t)first; t < (size_t)(first + count); t++) {
        for (size_t i = 0; i < layers * width; i++) {
            int32_t e = trace->ids[t * layers * width + i];
            if (e >= 0)
                counts[i / width * experts + (size_t)e]++;
        }
    }
}
