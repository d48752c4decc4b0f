/* `eplb bench decode`: how many replicas a rank must read in a decode step.
 *
 * Rows `<ranks>.<slots per rank>.b<tokens>`: mean over random batches of the largest number of activated
 * replicas of a rank, for equal split (every replica of an active expert that gets a token), for one replica
 * per expert chosen exactly, and the bound ceil(active / ranks); placements are DeepSeek's on the whole
 * trace. Batches are random tokens of --trace, or top-6 draws over 64 lognormal experts. Row `time.*`:
 * microseconds of one assignment, all 256 experts active. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch_case.h"
#include "benches.h"
#include "synthetic.h"

enum { MOST_EXPERTS = 1024, MOST_RANKS = 512, BATCHES = 200, QUICK_BATCHES = 5, NO_TRACE_LAYERS = 8 };

/* Top-6 of 64 experts, drawn in proportion to lognormal weights without putting back. */
static bool draw_trace(batch_trace *trace)
{
    random_state random = random_seed(3);
    *trace = (batch_trace){.num_tokens = 8192, .num_layers = NO_TRACE_LAYERS, .num_experts = 64, .width = 6};
    trace->ids = calloc((size_t)trace->num_tokens * NO_TRACE_LAYERS * 6, sizeof *trace->ids);
    double weights[NO_TRACE_LAYERS][64];
    if (trace->ids == NULL)
        return false;
    for (int l = 0; l < NO_TRACE_LAYERS; l++)
        synthetic_lognormal(&random, 0.7, 64, weights[l]);
    for (int64_t i = 0; i < trace->num_tokens * NO_TRACE_LAYERS; i++) {
        double left[64];
        memcpy(left, weights[i % NO_TRACE_LAYERS], sizeof left);
        for (int k = 0; k < 6; k++) {
            double sum = 0.0;
            for (int e = 0; e < 64; e++)
                sum += left[e];
            double u = random_unit(&random) * sum;
            int chosen = 0;
            for (u -= left[0]; u >= 0.0 && chosen < 63; u -= left[chosen])
                chosen++;
            left[chosen] = 0.0;
            trace->ids[i * 6 + k] = chosen;
        }
    }
    return true;
}

typedef struct decode_sums {
    double active, equal, chosen, bound;
    int count;
} decode_sums;

/* Largest number of activated replicas of a rank when an expert's tokens go to its replicas in turn, from a
 * random one. */
static double activated_equal(const eplb_placement *placement, const int64_t *counts, random_state *random)
{
    const eplb_topology *topology = eplb_placement_topology(placement);
    int32_t activated[MOST_RANKS] = {0}, most = 0;
    const int32_t *first = eplb_placement_replica_first(placement),
                  *slots = eplb_placement_replica_slots(placement);
    for (int32_t e = 0; e < eplb_placement_num_experts(placement); e++) {
        int32_t replicas = first[e + 1] - first[e];
        uint32_t start = random_below(random, (uint32_t)replicas);
        for (int32_t n = 0; n < replicas && n < counts[e]; n++) {
            int32_t slot = slots[first[e] + (int32_t)((start + (uint32_t)n) % (uint32_t)replicas)];
            int32_t here = ++activated[eplb_topology_slot_rank(topology)[slot]];
            most = here > most ? here : most;
        }
    }
    return most;
}

static void add_batch(const eplb_placement *placement, eplb_resplit *resplit, const int64_t *counts,
                      random_state *random, decode_sums *sums)
{
    int32_t slot[MOST_EXPERTS], most = 0, active = 0;
    int32_t ranks = eplb_topology_num_ranks(eplb_placement_topology(placement));
    (void)eplb_resplit_activate(resplit, counts, slot, &most, NULL);
    for (int32_t e = 0; e < eplb_placement_num_experts(placement); e++)
        active += counts[e] > 0;
    sums->active += active;
    sums->equal += activated_equal(placement, counts, random);
    sums->chosen += most;
    sums->bound += (active + ranks - 1) / ranks;
    sums->count++;
}

/* Random tokens of one layer. */
static void draw_batch(const batch_trace *trace, int32_t layer, int tokens, random_state *random,
                       int64_t *counts)
{
    memset(counts, 0, (size_t)trace->num_experts * sizeof *counts);
    for (int t = 0; t < tokens; t++) {
        int64_t token = random_below(random, (uint32_t)trace->num_tokens);
        const int32_t *ids = trace->ids + (token * trace->num_layers + layer) * trace->width;
        for (int32_t k = 0; k < trace->width; k++) {
            if (ids[k] >= 0)
                counts[ids[k]]++;
        }
    }
}

static int decode_case(bench_report *report, const batch_trace *trace, const int64_t *totals, int32_t ranks,
                       int tokens, int batches)
{
    decode_sums sums = {0};
    random_state random = random_seed(17);
    int32_t slots = (trace->num_experts / ranks + 1) * ranks;
    for (int32_t l = 0; l < trace->num_layers; l++) {
        double weights[MOST_EXPERTS];
        int64_t counts[MOST_EXPERTS];
        for (int32_t e = 0; e < trace->num_experts; e++)
            weights[e] = (double)totals[(size_t)l * (size_t)trace->num_experts + (size_t)e];
        eplb_placement *placement = batch_case_placement(weights, trace->num_experts, slots, ranks, 1);
        eplb_resplit *resplit = NULL;
        if (placement == NULL || eplb_resplit_create(&resplit, placement, 0, NULL, NULL) != EPLB_OK) {
            eplb_placement_destroy(placement);
            return 3;
        }
        for (int b = 0; b < batches; b++) {
            draw_batch(trace, l, tokens, &random, counts);
            add_batch(placement, resplit, counts, &random, &sums);
        }
        eplb_resplit_destroy(resplit);
        eplb_placement_destroy(placement);
    }
    char name[64];
    (void)snprintf(name, sizeof name, "g%d.k%d.b%d", (int)ranks, (int)(slots / ranks), tokens);
    bench_row(report, name);
    bench_number(report, "active", sums.active / sums.count);
    bench_number(report, "equal", sums.equal / sums.count);
    bench_number(report, "chosen", sums.chosen / sums.count);
    bench_number(report, "bound", sums.bound / sums.count);
    return 0;
}

static int time_case(bench_report *report, int32_t ranks, int32_t slots, int repetitions)
{
    enum { EXPERTS = 256 };
    double weights[EXPERTS], seconds[1024];
    int64_t counts[EXPERTS];
    int32_t slot[EXPERTS], most = 0;
    random_state random = random_seed(19);
    int count = repetitions < 1024 ? repetitions : 1024;
    for (int i = 0; i < count; i++) {
        synthetic_lognormal(&random, 1.0, EXPERTS, weights);
        eplb_placement *placement = batch_case_placement(weights, EXPERTS, slots, ranks, 1);
        eplb_resplit *resplit = NULL;
        if (placement == NULL || eplb_resplit_create(&resplit, placement, 0, NULL, NULL) != EPLB_OK) {
            eplb_placement_destroy(placement);
            return 3;
        }
        for (int e = 0; e < EXPERTS; e++)
            counts[e] = 1 + random_below(&random, 32);
        double start = bench_seconds();
        for (int n = 0; n < 10; n++)
            (void)eplb_resplit_activate(resplit, counts, slot, &most, NULL);
        seconds[i] = (bench_seconds() - start) / 10.0;
        eplb_resplit_destroy(resplit);
        eplb_placement_destroy(placement);
    }
    char name[64];
    (void)snprintf(name, sizeof name, "time.e%d.s%d.g%d", EXPERTS, (int)slots, (int)ranks);
    bench_row(report, name);
    bench_number(report, "us", 1e6 * bench_median(seconds, count));
    return 0;
}

int bench_decode(bench_report *report, const bench_options *options)
{
    static const int tokens[] = {8, 16, 32};
    batch_trace trace;
    int batches = options->quick ? QUICK_BATCHES : BATCHES, status = 0;
    if (options->trace_path != NULL ? !batch_trace_read(options->trace_path, &trace) : !draw_trace(&trace))
        return 2;
    int64_t *totals = calloc((size_t)trace.num_layers * (size_t)trace.num_experts, sizeof *totals);
    if (totals != NULL) {
        batch_trace_count(&trace, 0, trace.num_tokens, totals);
        for (int32_t ranks = 8; ranks <= 16; ranks *= 2) {
            for (size_t t = 0; t < sizeof tokens / sizeof tokens[0] && status == 0; t++)
                status = decode_case(report, &trace, totals, ranks, tokens[t], batches);
        }
    }
    free(totals);
    batch_trace_clear(&trace);
    if (status == 0)
        status = time_case(report, 64, 320, options->quick ? 3 : 100);
    if (status == 0)
        status = time_case(report, 64, 512, options->quick ? 3 : 100);
    return status;
}
