/* `bench realtime`: replicas for one batch, 256 experts on 64 ranks with 2 spare slots each, masters fixed.
 *
 * Loads as in UltraEP's table (arXiv 2606.04101): ranks skewed to max/mean 1.5, 2 and 3, 8,192 tokens a rank,
 * 8 choices each. `pass` is what any planner has to do at least: read the layer's loads and slots once,
 * adding loads to ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <eplb/eplb.h>

#include "benches.h"
#include "synthetic.h"

enum {
    EXPERTS = 256,
    RANKS = 64,
    SPARE = 2,
    SLOTS = EXPERTS + RANKS * SPARE,
    BATCHES = 64,
    QUICK_BATCHES = 4,
    ROUNDS = 200
};

#define TOKENS (8192.0 * RANKS * 8.0)
#define TARGET 1.005

typedef struct batches {
    int32_t tokens[BATCHES][EXPERTS];
    int32_t slot_expert[SLOTS]; /* masters, then what the last plan put in the spare slots */
    int32_t slot_rank[SLOTS];
    int count;
} batches;

static void draw(batches *drawn, double ratio, int count)
{
    int64_t counts[EXPERTS];
    random_state random = random_seed(17);
    drawn->count = count;
    for (int b = 0; b < count; b++) {
        synthetic_rank_skew(&random, RANKS, EXPERTS / RANKS, ratio, TOKENS, counts);
        for (int32_t e = 0; e < EXPERTS; e++)
            drawn->tokens[b][e] = (int32_t)counts[e];
    }
    for (int32_t s = 0; s < SLOTS; s++) {
        drawn->slot_expert[s] = s % EXPERTS;
        drawn->slot_rank[s] = s < EXPERTS ? s * RANKS / EXPERTS : (s - EXPERTS) / SPARE;
    }
}

/* Nanoseconds of one pass: the load of every rank if every slot served its expert. */
static double time_pass(const batches *drawn)
{
    double best = 1.0;
    volatile int64_t sink = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double start = bench_seconds();
        for (int b = 0; b < drawn->count; b++) {
            int64_t rank[RANKS] = {0};
            for (int32_t s = 0; s < SLOTS; s++)
                rank[drawn->slot_rank[s]] += drawn->tokens[b][drawn->slot_expert[s]];
            sink = sink + rank[b % RANKS];
        }
        double seconds = (bench_seconds() - start) / drawn->count;
        best = seconds < best ? seconds : best;
    }
    return 1e9 * best;
}

/* Nanoseconds of one plan, the least mean over the batches of many rounds. */
static double time_plans(eplb_realtime *planner, const batches *drawn, eplb_realtime_plan *plan)
{
    double best = 1.0;
    for (int round = 0; round < ROUNDS; round++) {
        double start = bench_seconds();
        for (int b = 0; b < drawn->count; b++) {
            if (eplb_realtime_plan_batch(planner, drawn->tokens[b], TARGET, plan, NULL) != EPLB_OK)
                return -1.0;
        }
        double seconds = (bench_seconds() - start) / drawn->count;
        best = seconds < best ? seconds : best;
    }
    return 1e9 * best;
}

/* Largest rank over the mean, recomputed from the plan. */
static double measure(const int32_t *tokens, const eplb_realtime_plan *plan)
{
    int64_t rank[RANKS] = {0}, total = 0, largest = 0;
    for (int32_t e = 0; e < EXPERTS; e++) {
        rank[e * RANKS / EXPERTS] += plan->home_tokens[e];
        total += tokens[e];
    }
    for (int32_t s = 0; s < RANKS * SPARE; s++)
        rank[s / SPARE] += plan->replica_tokens[s];
    for (int32_t g = 0; g < RANKS; g++)
        largest = rank[g] > largest ? rank[g] : largest;
    return (double)largest * RANKS / (double)total;
}

static bool run_ratio(bench_report *report, eplb_realtime *planner, double ratio, int count)
{
    static batches drawn;
    static int32_t expert[RANKS * SPARE], served[RANKS * SPARE], kept[EXPERTS];
    eplb_realtime_plan plan = {.replica_expert = expert, .replica_tokens = served, .home_tokens = kept};
    char name[64];
    double worst = 1.0, replicas = 0.0;
    draw(&drawn, ratio, count);
    for (int b = 0; b < count; b++) {
        if (eplb_realtime_plan_batch(planner, drawn.tokens[b], TARGET, &plan, NULL) != EPLB_OK)
            return false;
        double reached = measure(drawn.tokens[b], &plan);
        worst = reached > worst ? reached : worst;
        replicas += (double)plan.num_replicas / count;
    }
    double plan_ns = time_plans(planner, &drawn, &plan), pass_ns = time_pass(&drawn);
    (void)snprintf(name, sizeof name, "ratio%.1f", ratio);
    bench_row(report, name);
    bench_number(report, "worst_imbalance", worst);
    bench_number(report, "replicas", replicas);
    bench_number(report, "plan_us", 1e-3 * plan_ns);
    bench_number(report, "pass_us", 1e-3 * pass_ns);
    bench_number(report, "passes", plan_ns / pass_ns);
    return plan_ns > 0.0;
}

int bench_realtime(bench_report *report, const bench_options *options)
{
    static const double ratios[] = {1.5, 2.0, 3.0};
    eplb_error error;
    eplb_realtime *planner = NULL;
    eplb_realtime_params params;
    eplb_realtime_params_init(&params, sizeof params);
    params.num_experts = EXPERTS;
    params.num_ranks = RANKS;
    params.spare_slots_per_rank = SPARE;
    if (eplb_realtime_create(&planner, &params, NULL, &error) != EPLB_OK) {
        bench_complain("%s", error.text);
        return 3;
    }
    bool good = true;
    for (size_t i = 0; good && i < sizeof ratios / sizeof *ratios; i++)
        good = run_ratio(report, planner, ratios[i], options->quick ? QUICK_BATCHES : BATCHES);
    eplb_realtime_destroy(planner);
    return good ? 0 : 3;
}
