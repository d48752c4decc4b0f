/* eplb resplit: the exact split of one batch's counts over a given placement. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <eplb/route.h>

#include "clock.h"
#include "commands.h"
#include "document_check.h"
#include "failure.h"
#include "io/load.h"
#include "io/placement.h"
#include "json_answer.h"
#include "placement_input.h"

typedef struct resplit_values {
    const char *placement, *dead, *array;
    int64_t ranks, nodes, experts;
    bool json, topk, by_source;
} resplit_values;

#define ROW(...) OPTION_ROW(resplit_values, __VA_ARGS__)

static const option_row resplit_options[] = {
    ROW("placement", 'p', OPTION_FILE, "FILE", placement, 0, 0, "The placement; its shares play no part"),
    ROW("topk", 0, OPTION_FLAG, NULL, topk, 0, 0,
        "LOAD is token routing [N,L,K]: count it, all tokens as one batch"),
    ROW("experts", 0, OPTION_INTEGER, "E", experts, 1, EPLB_MAX_EXPERTS,
        "With --topk: experts, where LOAD does not say. Default: those of the placement"),
    ROW("by-source", 0, OPTION_FLAG, NULL, by_source, 0, 0,
        "LOAD is [G,L,E], tokens by the rank where they start: among the best splits take one that keeps "
        "most of them near"),
    ROW("array", 0, OPTION_TEXT, "NAME", array, 0, 0, "Array of an .npz to read"),
    ROW("ranks", 0, OPTION_INTEGER, "G", ranks, 1, EPLB_MAX_RANKS, "Ranks, where the placement does not say"),
    ROW("nodes", 0, OPTION_INTEGER, "N", nodes, 1, EPLB_MAX_RANKS, "Nodes, where the placement does not say"),
    ROW("dead", 0, OPTION_TEXT, "LIST", dead, 0, 0, "Ranks that are dead: they serve nothing"),
    ROW_JSON(resplit_values),
    ROW_END,
};

typedef struct resplit_run {
    const command *self;
    resplit_values values;
    const char *path;
    io_load file;
    io_document document;
    eplb_topology *topology;
    eplb_placement *placement;
    int64_t *counts;             /* [E]; with --by-source [G, E] */
    int64_t *quota;              /* [L, S] */
    uint8_t *tight;              /* [L, E] */
    eplb_resplit_result *result; /* [L] */
    double seconds;              /* of all solves */
} resplit_run;

static void release(resplit_run *run)
{
    free(run->counts);
    free(run->quota);
    free(run->tight);
    free(run->result);
    eplb_placement_destroy(run->placement);
    eplb_topology_destroy(run->topology);
    io_document_clear(&run->document);
    io_load_clear(&run->file);
}

static int read_files(resplit_run *run)
{
    const resplit_values *values = &run->values;
    io_document_options options = {(int32_t)values->ranks, (int32_t)values->nodes, 0};
    io_error error;
    if (values->placement == NULL)
        return complain(run->self, "--placement is missing; see eplb %s --help", run->self->name);
    if (check_inputs(run->self, "LOAD", run->path, "--placement", values->placement) != PARSED)
        return EXIT_BAD;
    if (values->by_source && values->topk)
        return complain(run->self,
                        "--by-source and --topk do not go together: tokens do not say where they start");
    if (values->experts > 0 && !values->topk)
        return complain(run->self, "--experts goes with --topk");
    if (io_document_read(values->placement, &options, &run->document, &error) != EPLB_OK)
        return fail_io(run->self, &error);
    io_load_options load_options = {.member = values->array,
                                    .max_windows = values->by_source ? 0 : 1,
                                    .max_bytes = values->by_source ? SIZE_MAX : 0,
                                    .topk = values->topk,
                                    .num_experts = (int32_t)values->experts,
                                    .fallback_experts = run->document.num_experts};
    if (io_load_read(run->path, &load_options, &run->file, &error) != EPLB_OK)
        return fail_io(run->self, &error);
    if (eplb_load_scale_log2(run->file.load) != 0)
        return complain(run->self, "%s has fractions; a batch is split in whole tokens", run->path);
    document_warn_hash(run->self, &run->document, values->placement);
    int status = placement_match(run->self, &run->document, values->placement, run->path,
                                 eplb_load_num_layers(run->file.load), eplb_load_num_experts(run->file.load));
    if (status != PARSED)
        return status;
    return placement_topology(run->self, &run->document, values->placement, values->dead, &run->topology);
}

/* Counts of one layer, by source where that is asked for. */
static void read_counts(const resplit_run *run, int32_t layer)
{
    int32_t experts = run->document.num_experts;
    if (!run->values.by_source) {
        eplb_load_sum(run->file.load, layer, run->counts);
        return;
    }
    for (int32_t g = 0; g < eplb_topology_num_ranks(run->topology); g++) {
        for (int32_t e = 0; e < experts; e++)
            run->counts[(size_t)g * (size_t)experts + (size_t)e] = eplb_load_at(run->file.load, g, layer, e);
    }
}

static int split_layer(resplit_run *run, int32_t layer)
{
    size_t slots = (size_t)run->document.num_slots, experts = (size_t)run->document.num_experts;
    eplb_resplit *resplit;
    eplb_error error;
    if (eplb_resplit_create(&resplit, run->placement, layer, NULL, &error) != EPLB_OK)
        return fail_library(run->self, &error);
    read_counts(run, layer);
    int64_t *quota = run->quota + (size_t)layer * slots;
    double start = clock_seconds();
    eplb_status status =
        run->values.by_source
            ? eplb_resplit_solve_local(resplit, run->counts, quota, &run->result[layer], &error)
            : eplb_resplit_solve(resplit, run->counts, false, quota, &run->result[layer], &error);
    run->seconds += clock_seconds() - start;
    eplb_resplit_tight_experts(resplit, run->tight + (size_t)layer * experts);
    eplb_resplit_destroy(resplit);
    return status == EPLB_OK ? PARSED : fail_library(run->self, &error);
}

static int split_all(resplit_run *run)
{
    eplb_error error;
    size_t layers = (size_t)run->document.num_layers, experts = (size_t)run->document.num_experts;
    if (eplb_placement_create(&run->placement, run->topology, run->document.num_layers,
                              run->document.num_experts, run->document.physical_to_logical, NULL,
                              &error) != EPLB_OK)
        return fail_library(run->self, &error);
    size_t sources = run->values.by_source ? (size_t)eplb_topology_num_ranks(run->topology) : 1;
    if (run->values.by_source && (size_t)eplb_load_num_windows(run->file.load) != sources)
        return complain(
            run->self, "%s has %d windows, but --by-source needs one for each of the %zu ranks of %s",
            run->path, (int)eplb_load_num_windows(run->file.load), sources, run->values.placement);
    run->counts = calloc(sources * experts, sizeof *run->counts);
    run->quota = malloc(layers * (size_t)run->document.num_slots * sizeof *run->quota);
    run->tight = malloc(layers * experts);
    run->result = malloc(layers * sizeof *run->result);
    if (run->counts == NULL || run->quota == NULL || run->tight == NULL || run->result == NULL)
        return fail_memory(run->self);
    int status = PARSED;
    for (size_t l = 0; l < layers && status == PARSED; l++)
        status = split_layer(run, (int32_t)l);
    return status;
}

/* Of the largest load, in its unit: tokens of a rank of that speed. */
static double bound(const eplb_resplit_result *result)
{
    return (double)result->bound_load / (double)result->bound_speed * (double)result->max_speed;
}

/* Largest load / speed over tokens / speed of all live ranks; 1 without tokens. */
static double imbalance(const resplit_run *run, int32_t layer)
{
    const eplb_resplit_result *result = &run->result[layer];
    bool same = true; /* each rank then counts as 1, as in the result */
    int64_t speed = 0, live = 0, first = 0;
    for (int32_t g = 0; g < eplb_topology_num_ranks(run->topology); g++) {
        if (!eplb_topology_rank_alive(run->topology)[g])
            continue;
        int64_t here = eplb_topology_rank_speed(run->topology)[g];
        first = live++ == 0 ? here : first;
        same = same && here == first;
        speed += here;
    }
    double mean = (double)eplb_load_total(run->file.load, layer) / (double)(same ? live : speed);
    return mean > 0.0 ? (double)result->max_load / (double)result->max_speed / mean : 1.0;
}

static void write_integers(const resplit_run *run, json_writer *json, const char *key, size_t offset)
{
    json_key(json, key);
    json_begin_inline_array(json);
    for (int32_t l = 0; l < run->document.num_layers; l++) {
        int64_t value;
        memcpy(&value, (const char *)&run->result[l] + offset, sizeof value);
        json_int(json, value);
    }
    json_end_array(json);
}

static void write_tight(const resplit_run *run, json_writer *json)
{
    int32_t experts = run->document.num_experts;
    json_begin_array(json);
    for (int32_t l = 0; l < run->document.num_layers; l++) {
        json_begin_inline_array(json);
        for (int32_t e = 0; e < experts; e++) {
            if (run->tight[(size_t)l * (size_t)experts + (size_t)e])
                json_int(json, e);
        }
        json_end_array(json);
    }
    json_end_array(json);
}

static int print_json(const resplit_run *run)
{
    int32_t layers = run->document.num_layers;
    json_answer answer;
    json_writer *json = json_answer_begin(&answer, run->self);
    if (json == NULL)
        return EXIT_INTERNAL;
    json_key(json, "quota");
    json_int64_matrix(json, run->quota, layers, run->document.num_slots);
    write_integers(run, json, "max_load", offsetof(eplb_resplit_result, max_load));
    json_key(json, "bound");
    json_begin_inline_array(json);
    for (int32_t l = 0; l < layers; l++)
        json_double(json, bound(&run->result[l]));
    json_end_array(json);
    json_key(json, "tight_experts");
    write_tight(run, json);
    if (run->values.by_source) {
        write_integers(run, json, "cross_rank", offsetof(eplb_resplit_result, cross_rank));
        write_integers(run, json, "cross_node", offsetof(eplb_resplit_result, cross_node));
    }
    json_key_double(json, "seconds_per_layer", run->seconds / (double)layers);
    return json_answer_end(&answer);
}

static void print_table(const resplit_run *run)
{
    int32_t layers = run->document.num_layers, experts = run->document.num_experts;
    (void)printf("%6s %14s %16s %10s %10s", "layer", "largest load", "proved bound", "imbalance", "tight");
    if (run->values.by_source)
        (void)printf(" %12s %12s", "leave rank", "leave node");
    (void)printf("\n");
    for (int32_t l = 0; l < layers; l++) {
        int32_t tight = 0;
        for (int32_t e = 0; e < experts; e++)
            tight += run->tight[(size_t)l * (size_t)experts + (size_t)e];
        (void)printf("%6d %14" PRId64 " %16.3f %10.4f %10d", (int)l, run->result[l].max_load,
                     bound(&run->result[l]), imbalance(run, l), (int)tight);
        if (run->values.by_source)
            (void)printf(" %12" PRId64 " %12" PRId64, run->result[l].cross_rank, run->result[l].cross_node);
        (void)printf("\n");
    }
    (void)printf("%.2f microseconds a layer\n", 1e6 * run->seconds / (double)layers);
}

static int resplit_command(const command *self, int argc, char **argv)
{
    resplit_run run = {.self = self};
    char **operands;
    int count, status = options_parse(self, argc, argv, &run.values, &operands, &count);
    if (status != PARSED)
        return status;
    run.path = operands[0];
    status = read_files(&run);
    if (status == PARSED)
        status = split_all(&run);
    if (status == PARSED && run.values.json)
        status = print_json(&run);
    else if (status == PARSED)
        print_table(&run);
    release(&run);
    return finish_output(self, status == PARSED ? EXIT_OK : status);
}

const command command_resplit = {
    .name = "resplit",
    .summary = "Split one batch's counts exactly over a given placement",
    .operands = "LOAD",
    .least_operands = 1,
    .most_operands = 1,
    .text =
        "Takes the counts of a batch (windows are summed) and a placement, and gives every replica a whole "
        "number of its expert's tokens so that the largest rank load is the least there is. The bound "
        "proves it: the tight experts have no replica outside the ranks that they fill. Equal speeds: the "
        "largest load is the bound, rounded up. With rank speeds in the placement that differ, the largest "
        "of load over speed is the least there is; the largest load is the tokens of the rank where it is "
        "reached, the bound what such a rank must take, in tokens too, and the imbalance compares load "
        "over speed. The time is that of the solves alone: counting tokens and making tables come on top "
        "(docs/routing.md).",
    .json =
        "quota [L][S], max_load [L], bound [L] (same unit), tight_experts [L][], with --by-source cross_rank "
        "[L] and cross_node [L] (tokens that leave their rank and their node), seconds_per_layer.",
    .examples = "eplb resplit batch.npy --placement plan.json\neplb resplit batch.npy --placement plan.json "
                "--dead 3 --json\neplb resplit tokens.npz --topk --placement plan.json\n"
                "eplb resplit sources.npy --by-source --placement plan.json",
    .options = resplit_options,
    .run = resplit_command,
};
