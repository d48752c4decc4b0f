/* eplb generate: seeded synthetic loads [T,L,E]. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <eplb/status.h>

#include "base/checked.h"
#include "base/random.h"
#include "commands.h"
#include "failure.h"
#include "io/load.h"
#include "synthetic.h"

typedef struct generate_values {
    int64_t layers, experts, windows, seed, tokens, topics, period, ranks;
    double sigma, exponent, drift, concentration, ratio;
    const char *output;
} generate_values;

#define ROW(...) OPTION_ROW(generate_values, __VA_ARGS__)

static const option_row generate_options[] = {
    ROW("layers", 0, OPTION_INTEGER, "L", layers, 1, EPLB_MAX_LAYERS, "Layers. Default 58"),
    ROW("experts", 0, OPTION_INTEGER, "E", experts, 1, EPLB_MAX_EXPERTS, "Experts. Default 256"),
    ROW("windows", 0, OPTION_INTEGER, "T", windows, 1, EPLB_MAX_WINDOWS,
        "Windows. Default 1, which gives [L,E]; bursts, drift and domain-switch: 64"),
    ROW("tokens", 0, OPTION_INTEGER, "N", tokens, 1, 1e15,
        "Token-expert pairs of a layer in a window. Default: 1000 for each expert"),
    ROW("seed", 0, OPTION_INTEGER, "N", seed, 0, 9e15, "Seed: one seed, one load. Default 1"),
    ROW("sigma", 0, OPTION_NUMBER, "X", sigma, 0, 20, "Spread of the logarithm of expert loads. Default 0.5"),
    ROW("exponent", 0, OPTION_NUMBER, "X", exponent, 0, 20, "zipf: load is rank^-X. Default 1"),
    ROW("drift", 0, OPTION_NUMBER, "X", drift, 0, 20,
        "From window to window each logarithm moves by a normal step of this size. Default 0; drift: 0.2"),
    ROW("topics", 0, OPTION_INTEGER, "N", topics, 1, 10000,
        "bursts, domain-switch: kinds of text, each with its own hot experts. Default 8"),
    ROW("concentration", 0, OPTION_NUMBER, "X", concentration, 1e-3, 1e6,
        "bursts: small values make a window one topic, large ones a mixture. Default 0.3"),
    ROW("period", 0, OPTION_INTEGER, "T", period, 1, EPLB_MAX_WINDOWS,
        "domain-switch: windows of a topic. Default 16"),
    ROW("ranks", 0, OPTION_INTEGER, "G", ranks, 1, EPLB_MAX_RANKS,
        "rank-skew: ranks; the experts must divide by them. Default 32"),
    ROW("ratio", 0, OPTION_NUMBER, "X", ratio, 1, 1e6, "rank-skew: largest over mean rank load. Default 2"),
    ROW("output", 'o', OPTION_FILE, "FILE", output, 0, 0,
        "Write to FILE: .npz, .json, .csv, else .npy. Default: .npy on standard output"),
    ROW_END,
};

typedef struct generate_run {
    const command *self;
    generate_values values;
    int64_t *counts;  /* [T, L, E] */
    int64_t *scratch; /* [T, E] one layer's windows */
    double *weights;  /* [topics, E] */
} generate_run;

/* Fills scratch [T, E] with one layer's windows; false when memory is out. */
typedef bool (*layer_generator)(const generate_run *run, random_state *random);

/* Windows of weights that drift from one to the next. */
static bool drifting_windows(const generate_run *run, random_state *random)
{
    int32_t experts = (int32_t)run->values.experts;
    for (int64_t t = 0; t < run->values.windows; t++) {
        if (t > 0 && run->values.drift > 0.0)
            synthetic_drift(random, run->values.drift, experts, run->weights);
        synthetic_counts(run->weights, experts, (double)run->values.tokens, 0, run->scratch + t * experts);
    }
    return true;
}

static bool generate_lognormal(const generate_run *run, random_state *random)
{
    synthetic_lognormal(random, run->values.sigma, (int32_t)run->values.experts, run->weights);
    return drifting_windows(run, random);
}

static bool generate_zipf(const generate_run *run, random_state *random)
{
    synthetic_zipf(random, run->values.exponent, (int32_t)run->values.experts, run->weights);
    return drifting_windows(run, random);
}

static bool generate_uniform(const generate_run *run, random_state *random)
{
    for (int64_t e = 0; e < run->values.experts; e++)
        run->weights[e] = 1.0;
    return drifting_windows(run, random);
}

static bool generate_bursts(const generate_run *run, random_state *random)
{
    return synthetic_topics(random, (int32_t)run->values.windows, (int32_t)run->values.experts,
                            (int32_t)run->values.topics, run->values.concentration,
                            (double)run->values.tokens, run->scratch);
}

/* Every `period` windows the traffic is of another topic, round and round; inside a topic weights may
 * drift. */
static bool generate_switch(const generate_run *run, random_state *random)
{
    const generate_values *values = &run->values;
    int32_t experts = (int32_t)values->experts;
    for (int64_t k = 0; k < values->topics; k++)
        synthetic_lognormal(random, values->sigma, experts, run->weights + k * experts);
    for (int64_t t = 0; t < values->windows; t++) {
        double *topic = run->weights + t / values->period % values->topics * experts;
        if (values->drift > 0.0)
            synthetic_drift(random, values->drift, experts, topic);
        synthetic_counts(topic, experts, (double)values->tokens, 0, run->scratch + t * experts);
    }
    return true;
}

static bool generate_rank_skew(const generate_run *run, random_state *random)
{
    const generate_values *values = &run->values;
    for (int64_t t = 0; t < values->windows; t++)
        if (!synthetic_rank_skew(random, (int32_t)values->ranks, (int32_t)(values->experts / values->ranks),
                                 values->ratio, (double)values->tokens, run->scratch + t * values->experts))
            return false;
    return true;
}

static const struct {
    const char *name;
    layer_generator generate;
    int64_t windows; /* default */
    double drift;    /* default */
    const char *summary;
} kinds[] = {
    {"lognormal", generate_lognormal, 1, 0.0, "expert loads exp(sigma z)"},
    {"zipf", generate_zipf, 1, 0.0, "expert loads rank^-exponent in random order"},
    {"uniform", generate_uniform, 1, 0.0, "every expert the same"},
    {"drift", generate_lognormal, 64, 0.2, "lognormal, every window a step further"},
    {"bursts", generate_bursts, 64, 0.0,
     "topics with their own hot experts, whose mixture changes now and then"},
    {"domain-switch", generate_switch, 64, 0.0, "one topic after another"},
    {"rank-skew", generate_rank_skew, 1, 0.0,
     "a given ratio of the hottest to the mean rank of the start layout"},
};
enum { NUM_KINDS = sizeof kinds / sizeof kinds[0] };

static int find_kind(const command *self, const char *name)
{
    const char *names[NUM_KINDS];
    for (int i = 0; i < NUM_KINDS; i++) {
        names[i] = kinds[i].name;
        if (strcmp(names[i], name) == 0)
            return i;
    }
    const char *near = nearest_name(name, names, NUM_KINDS);
    (void)complain(self,
                   near != NULL ? "there is no kind '%s'; did you mean '%s'?"
                                : "there is no kind '%s'; see eplb generate --help",
                   name, near);
    return -1;
}

static int take_memory(generate_run *run)
{
    const generate_values *values = &run->values;
    int64_t cells, bytes;
    if (!checked_multiply(values->layers * values->experts, values->windows, &cells) ||
        !checked_multiply(cells, (int64_t)sizeof *run->counts, &bytes))
        return complain(run->self, "%lld windows of %lld layers of %lld experts are more than 2^63 bytes",
                        (long long)values->windows, (long long)values->layers, (long long)values->experts);
    run->counts = malloc((size_t)bytes);
    run->scratch = malloc((size_t)(values->windows * values->experts) * sizeof *run->scratch);
    run->weights = malloc((size_t)(values->topics * values->experts) * sizeof *run->weights);
    return run->counts != NULL && run->scratch != NULL && run->weights != NULL ? PARSED
                                                                               : fail_memory(run->self);
}

static int fill(generate_run *run, layer_generator generate)
{
    const generate_values *values = &run->values;
    random_state seeds = random_seed((uint64_t)values->seed);
    int64_t layers = values->layers, experts = values->experts;
    for (int64_t l = 0; l < layers; l++) {
        /* layers do not depend on each other's length */
        random_state random = random_seed(random_next(&seeds));
        if (!generate(run, &random))
            return fail_memory(run->self);
        for (int64_t t = 0; t < values->windows; t++)
            memcpy(run->counts + (t * layers + l) * experts, run->scratch + t * experts,
                   (size_t)experts * sizeof *run->counts);
    }
    return PARSED;
}

static int write_load(const generate_run *run)
{
    const generate_values *values = &run->values;
    io_load_writer *writer;
    io_error error;
    int32_t windows = values->windows == 1 ? 0 : (int32_t)values->windows; /* one window is [L, E] */
    if (values->output == NULL && isatty(STDOUT_FILENO))
        return complain(run->self, "standard output is a terminal and .npy is binary; pass -o FILE");
    if (io_load_writer_open(&writer, values->output != NULL ? values->output : "-", windows,
                            (int32_t)values->layers, (int32_t)values->experts, EPLB_ELEMENT_INT64,
                            &error) != EPLB_OK)
        return fail_io(run->self, &error);
    for (int64_t t = 0; t < values->windows; t++)
        io_load_writer_window(writer, run->counts + t * values->layers * values->experts);
    return io_load_writer_close(writer, &error) == EPLB_OK ? PARSED : fail_io(run->self, &error);
}

static int generate_command(const command *self, int argc, char **argv)
{
    generate_run run = {.self = self,
                        .values = {.layers = 58,
                                   .experts = 256,
                                   .seed = 1,
                                   .sigma = 0.5,
                                   .exponent = 1.0,
                                   .drift = -1.0,
                                   .topics = 8,
                                   .concentration = 0.3,
                                   .period = 16,
                                   .ranks = 32,
                                   .ratio = 2.0}};
    char **operands;
    int count;
    int status = options_parse(self, argc, argv, &run.values, &operands, &count);
    if (status != PARSED)
        return status;
    int kind = find_kind(self, operands[0]);
    if (kind < 0)
        return EXIT_BAD;
    generate_values *values = &run.values;
    values->windows = values->windows > 0 ? values->windows : kinds[kind].windows;
    values->drift = values->drift >= 0.0 ? values->drift : kinds[kind].drift;
    values->tokens = values->tokens > 0 ? values->tokens : 1000 * values->experts;
    if (kinds[kind].generate == generate_rank_skew && values->experts % values->ranks != 0)
        return complain(self, "--experts is %lld; expected a multiple of the %lld ranks",
                        (long long)values->experts, (long long)values->ranks);
    status = take_memory(&run);
    if (status == PARSED)
        status = fill(&run, kinds[kind].generate);
    if (status == PARSED)
        status = write_load(&run);
    free(run.weights);
    free(run.scratch);
    free(run.counts);
    return status == PARSED ? EXIT_OK : status;
}

static const char *kind_name(int32_t index)
{
    return index < NUM_KINDS ? kinds[index].name : NULL;
}

static const char *kind_summary(int32_t index)
{
    return kinds[index].summary;
}

static const listing kind_listing = {"Kinds", NULL, kind_name, kind_summary};

const command command_generate = {
    .name = "generate",
    .summary = "Write a synthetic load, seeded",
    .operands = "KIND",
    .least_operands = 1,
    .most_operands = 1,
    .text = "Draws the loads of a kind, below. Layers are independent. The same options give the same load "
            "on hosts with the same C library.",
    .examples = "eplb generate zipf --layers 58 --experts 256 --seed 7 -o load.npy\n"
                "eplb generate bursts --windows 128 | eplb plan - --ranks 32 --slots 288",
    .options = generate_options,
    .names = &kind_listing,
    .run = generate_command,
};
