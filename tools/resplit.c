/* eplb resplit: the exact split of one batch's counts over a given placement. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <eplb/route.h>

#include "cluster.h"
#include "commands.h"
#include "document_check.h"
#include "failure.h"
#include "io/json_writer.h"
#include "io/load.h"
#include "io/placement.h"
#include "list.h"

typedef struct resplit_values {
    const char *placement, *dead, *array;
    int64_t ranks, nodes;
    bool json;
} resplit_values;

#define ROW(name, letter, kind, value, field, least, most, help)                                             \
    {                                                                                                        \
        name, letter, kind, value, offsetof(resplit_values, field), least, most, help                        \
    }

static const option_row resplit_options[] = {
    ROW("placement", 'p', OPTION_FILE, "FILE", placement, 0, 0, "The placement; its shares play no part"),
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
    int64_t *counts;             /* [E] */
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
    io_load_options load_options = {.member = values->array, .max_windows = 1};
    io_document_options options = {(int32_t)values->ranks, (int32_t)values->nodes, 0};
    io_error error;
    if (values->placement == NULL)
        return complain(run->self, "--placement is missing; see eplb %s --help", run->self->name);
    if (strcmp(values->placement, "-") == 0 && strcmp(run->path, "-") == 0)
        return complain(run->self, "LOAD and --placement are both standard input");
    if (io_load_read(run->path, &load_options, &run->file, &error) != EPLB_OK ||
        io_document_read(values->placement, &options, &run->document, &error) != EPLB_OK)
        return fail_io(run->self, &error);
    if (eplb_load_scale_log2(run->file.load) != 0)
        return complain(run->self, "%s has fractions; a batch is split in whole tokens", run->path);
    cluster_adopt_experts(&run->document, eplb_load_num_experts(run->file.load));
    document_warn_hash(run->self, &run->document, values->placement);
    if (run->document.num_layers != eplb_load_num_layers(run->file.load) ||
        run->document.num_experts != eplb_load_num_experts(run->file.load))
        return complain(run->self, "%s is for %d layers of %d experts, but %s has %d layers of %d experts",
                        values->placement, (int)run->document.num_layers, (int)run->document.num_experts,
                        run->path, (int)eplb_load_num_layers(run->file.load),
                        (int)eplb_load_num_experts(run->file.load));
    return PARSED;
}

static int make_topology(resplit_run *run)
{
    io_error io;
    eplb_error error;
    if (io_document_topology(&run->document, run->values.placement, &run->topology, &io) != EPLB_OK)
        return fail_io(run->self, &io);
    if (run->values.dead == NULL)
        return PARSED;
    int32_t *dead = NULL, count = 0;
    char message[160];
    eplb_topology *topology = NULL;
    list_rule rule = {0, eplb_topology_num_ranks(run->topology) - 1, EPLB_MAX_RANKS, false};
    if (!list_parse(run->values.dead, rule, &dead, &count, message, sizeof message))
        return complain(run->self, "--dead is '%s': %s", run->values.dead, message);
    eplb_status status = eplb_topology_with_dead(&topology, run->topology, dead, count, NULL, &error);
    free(dead);
    if (status != EPLB_OK)
        return fail_library(run->self, &error);
    eplb_topology_destroy(run->topology);
    run->topology = topology;
    return PARSED;
}

static double seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int split_layer(resplit_run *run, int32_t layer)
{
    size_t slots = (size_t)run->document.num_slots, experts = (size_t)run->document.num_experts;
    eplb_resplit *resplit;
    eplb_error error;
    if (eplb_resplit_create(&resplit, run->placement, layer, NULL, &error) != EPLB_OK)
        return fail_library(run->self, &error);
    eplb_load_sum(run->file.load, layer, run->counts);
    double start = seconds_now();
    eplb_status status = eplb_resplit_solve(resplit, run->counts, false, run->quota + (size_t)layer * slots,
                                            &run->result[layer], &error);
    run->seconds += seconds_now() - start;
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
    run->counts = malloc(experts * sizeof *run->counts);
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

static double bound(const eplb_resplit_result *result)
{
    return (double)result->bound_load / (double)result->bound_speed;
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
    io_output *output;
    json_writer json;
    io_error error;
    if (io_output_open(&output, NULL, &error) != EPLB_OK)
        return fail_io(run->self, &error);
    json_begin_document(&json, output);
    json_begin_object(&json);
    json_key(&json, "quota");
    json_int64_matrix(&json, run->quota, layers, run->document.num_slots);
    json_key(&json, "max_load");
    json_begin_inline_array(&json);
    for (int32_t l = 0; l < layers; l++)
        json_int(&json, run->result[l].max_load);
    json_end_array(&json);
    json_key(&json, "bound");
    json_begin_inline_array(&json);
    for (int32_t l = 0; l < layers; l++)
        json_double(&json, bound(&run->result[l]));
    json_end_array(&json);
    json_key(&json, "tight_experts");
    write_tight(run, &json);
    json_key_double(&json, "seconds_per_layer", run->seconds / (double)layers);
    json_end_object(&json);
    json_end_document(&json);
    return io_output_close(output, &error) == EPLB_OK ? PARSED : fail_io(run->self, &error);
}

static void print_table(const resplit_run *run)
{
    int32_t layers = run->document.num_layers, experts = run->document.num_experts;
    (void)printf("%6s %14s %16s %10s %10s\n", "layer", "largest load", "proved bound", "imbalance", "tight");
    for (int32_t l = 0; l < layers; l++) {
        double mean =
            (double)eplb_load_total(run->file.load, l) / (double)eplb_topology_num_live_ranks(run->topology);
        int32_t tight = 0;
        for (int32_t e = 0; e < experts; e++)
            tight += run->tight[(size_t)l * (size_t)experts + (size_t)e];
        (void)printf("%6d %14" PRId64 " %16.3f %10.4f %10d\n", (int)l, run->result[l].max_load,
                     bound(&run->result[l]), mean > 0.0 ? (double)run->result[l].max_load / mean : 1.0,
                     (int)tight);
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
        status = make_topology(&run);
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
    .text = "Takes the counts of a batch (windows are summed) and a placement, and gives every replica a "
            "whole number of "
            "its expert's tokens so that the largest rank load is the least there is. The bound proves it: "
            "the tight "
            "experts have no replica outside the ranks that they fill. Equal speeds: the largest load is the "
            "bound, rounded "
            "up. With rank speeds in the placement, load means load over speed, and the largest load is that "
            "of the "
            "slowest rank.",
    .json = "quota [L][S], max_load [L], bound [L], tight_experts [L][], seconds_per_layer.",
    .examples = "eplb resplit batch.npy --placement plan.json\neplb resplit batch.npy --placement plan.json "
                "--dead 3 --json",
    .options = resplit_options,
    .run = resplit_command,
};
