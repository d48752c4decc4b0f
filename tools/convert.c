/* eplb convert: a placement or a load from one format into another. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <eplb/load.h>

#include "commands.h"
#include "document_check.h"
#include "failure.h"
#include "io/load.h"
#include "io/path.h"
#include "io/placement.h"
#include "placement_output.h"

typedef struct convert_values {
    int64_t ranks, nodes, experts, first_layer;
    const char *output, *array;
    int format; /* -1: by the output's name */
    bool load;
} convert_values;

#define ROW(...) OPTION_ROW(convert_values, __VA_ARGS__)

static const option_row convert_options[] = {
    ROW("output", 'o', OPTION_FILE, "FILE", output, 0, 0,
        "Write to FILE, whole or not at all. Default, or -: standard output"),
    ROW("format", 0, OPTION_CHOICE, "json|npz|sglang|vllm|vllm-ascend|trtllm", format, 0, 0,
        "Format of a placement. Default: by the output's name, .npz, .yaml (trtllm), else json"),
    ROW("load", 0, OPTION_FLAG, NULL, load, 0, 0,
        "IN is a load; told by the file unless it is standard input. Loads are written as .npy, .npz, .json "
        "or .csv, by the output's name"),
    ROW("array", 0, OPTION_TEXT, "NAME", array, 0, 0,
        "Array of an .npz load; default counts, load or the only one"),
    ROW("ranks", 0, OPTION_INTEGER, "G", ranks, 1, EPLB_MAX_RANKS, "Ranks, where the file does not say"),
    ROW("nodes", 0, OPTION_INTEGER, "N", nodes, 1, EPLB_MAX_RANKS, "Nodes, where the file does not say"),
    ROW("experts", 0, OPTION_INTEGER, "E", experts, 1, EPLB_MAX_EXPERTS,
        "Experts, where the file does not say. Default: the largest id + 1"),
    ROW("first-layer", 0, OPTION_INTEGER, "N", first_layer, 0, EPLB_MAX_LAYERS,
        "With trtllm: the engine's number of the first MoE layer. Default 0"),
    ROW_END,
};

/* Writes every window, in the numbers of the file: whole if they were, else doubles. */
static int write_load(const command *self, const convert_values *values, const eplb_load *load)
{
    int32_t windows = eplb_load_num_windows(load), layers = eplb_load_num_layers(load);
    int32_t experts = eplb_load_num_experts(load), scale = eplb_load_scale_log2(load);
    size_t cells = (size_t)layers * (size_t)experts;
    io_load_writer *writer;
    io_error error;
    if (values->output == NULL && isatty(STDOUT_FILENO))
        return complain(self, "standard output is a terminal and .npy is binary; pass -o FILE");
    union {
        int64_t *whole;
        double *real;
        void *any;
    } counts = {.any = malloc(cells * sizeof(int64_t))};
    if (counts.any == NULL)
        return fail_memory(self);
    eplb_status status = io_load_writer_open(&writer, values->output != NULL ? values->output : "-",
                                             windows == 1 ? 0 : windows, layers, experts,
                                             scale != 0 ? EPLB_ELEMENT_FLOAT64 : EPLB_ELEMENT_INT64, &error);
    for (int32_t t = 0; status == EPLB_OK && t < windows; t++) {
        for (size_t i = 0; i < cells; i++) {
            int64_t count =
                eplb_load_at(load, t, (int32_t)(i / (size_t)experts), (int32_t)(i % (size_t)experts));
            if (scale != 0)
                counts.real[i] = ldexp((double)count, -scale);
            else
                counts.whole[i] = count;
        }
        io_load_writer_window(writer, counts.any);
    }
    free(counts.any);
    if (status == EPLB_OK)
        status = io_load_writer_close(writer, &error);
    return status == EPLB_OK ? PARSED : fail_io(self, &error);
}

static int convert_load(const command *self, const convert_values *values, const char *path)
{
    io_load_options options = {.member = values->array, .max_bytes = SIZE_MAX};
    io_load load = {.load = NULL};
    io_error error;
    if (values->format >= 0)
        return complain(self, "--format is for placements; a load's format is told by the output's name");
    if (values->ranks > 0 || values->nodes > 0 || values->experts > 0 || values->first_layer >= 0)
        return complain(
            self, "--ranks, --nodes, --experts and --first-layer are for placements; %s is a load", path);
    int status = io_load_read(path, &options, &load, &error) == EPLB_OK ? PARSED : fail_io(self, &error);
    if (status == PARSED)
        status = write_load(self, values, load.load);
    io_load_clear(&load);
    return status;
}

/* Whether the file can be read as a load; placements are refused by that reader, and the other way round. */
static bool reads_as_load(const convert_values *values, const char *path)
{
    io_load_options options = {.member = values->array, .max_windows = 1};
    io_load load = {.load = NULL};
    io_error error;
    bool good = io_load_read(path, &options, &load, &error) == EPLB_OK;
    io_load_clear(&load);
    return good;
}

typedef struct first_finding {
    int32_t layer;
    const char *what; /* NULL: nothing is wrong */
    char where[160];
} first_finding;

static void keep_first(void *context, int32_t layer, const char *what, const char *where)
{
    first_finding *first = context;
    if (first->what != NULL)
        return;
    first->layer = layer;
    first->what = what;
    (void)snprintf(first->where, sizeof first->where, "%s", where);
}

/* Where nobody says how many ranks there are, every slot is looked at as a rank: then ids and replicas are
 * checked, and doubles on a rank cannot be told. */
static int make_topology(const command *self, const io_document *document, const char *path,
                         eplb_topology **topology)
{
    io_document apart = *document;
    io_error error;
    if (apart.num_ranks == 0) {
        if (apart.num_slots > EPLB_MAX_RANKS)
            return complain(self, "%s does not say how many ranks there are; pass --ranks G", path);
        apart.num_ranks = apart.num_slots;
    }
    return io_document_topology(&apart, path, topology, &error) == EPLB_OK ? PARSED : fail_io(self, &error);
}

/* A broken placement is not written for an engine: the first thing wrong is told. A stale hash is replaced by
 * that of the content, with a warning. */
static int check_document(const command *self, io_document *document, const char *path)
{
    eplb_topology *topology = NULL;
    document_notes notes = {0, 0};
    first_finding first = {.what = NULL};
    uint64_t hash;
    int status = make_topology(self, document, path, &topology);
    if (status != PARSED)
        return status;
    document_warn_hash(self, document, path);
    if (!document_hash_agrees(document, topology, &hash))
        document->hash = hash;
    status = document_check(self, document, topology, keep_first, &first, &notes);
    eplb_topology_destroy(topology);
    if (status != PARSED)
        return status;
    if (first.what != NULL && first.layer >= 0)
        return complain(self, "%s: layer %d: %s: %s; eplb verify lists all that is wrong", path,
                        (int)first.layer, first.what, first.where);
    if (first.what != NULL)
        return complain(self, "%s: %s: %s; eplb verify lists all that is wrong", path, first.what,
                        first.where);
    document_warn_notes(self, &notes);
    return PARSED;
}

static int convert_placement(const command *self, const convert_values *values, const char *path,
                             io_document *document)
{
    io_format format = placement_format(values->format, values->output);
    if (values->array != NULL)
        return complain(self, "--array is for loads; %s is a placement", path);
    int status = placement_check_first_layer(self, format, values->first_layer);
    if (status == PARSED)
        status = check_document(self, document, path);
    if (status == PARSED)
        status = placement_write(self, document, format, values->output, values->first_layer);
    return status;
}

static int convert(const command *self, const convert_values *values, const char *path)
{
    io_document_options options = {(int32_t)values->ranks, (int32_t)values->nodes, (int32_t)values->experts};
    io_document document = {.num_layers = 0};
    io_error error;
    if (values->load || path_ends_with(path, ".npy") || path_ends_with(path, ".csv"))
        return convert_load(self, values, path);
    if (io_document_read(path, &options, &document, &error) != EPLB_OK) {
        if (strcmp(path, "-") != 0 && reads_as_load(values, path))
            return convert_load(self, values, path);
        return fail_io(self, &error);
    }
    int status = convert_placement(self, values, path, &document);
    io_document_clear(&document);
    return status;
}

static int convert_command(const command *self, int argc, char **argv)
{
    convert_values values = {.format = -1, .first_layer = -1};
    char **operands;
    int count;
    int status = options_parse(self, argc, argv, &values, &operands, &count);
    if (status == PARSED)
        status = convert(self, &values, operands[0]);
    return status == PARSED ? EXIT_OK : status;
}

const command command_convert = {
    .name = "convert",
    .summary = "Convert placements between engines, and loads between files",
    .operands = "IN",
    .least_operands = 1,
    .most_operands = 1,
    .text = "Reads a placement in any format, told by its content, and writes it in another. What the new "
            "format has no place for is left out, with a warning where it changes how tokens are split. A "
            "placement that eplb verify would not pass is refused. Loads are converted too.",
    .examples = "eplb convert plan.json --format sglang -o map.json\n"
                "eplb convert expert_map.json --nodes 4 -o plan.json\n"
                "eplb convert load.csv -o load.npy",
    .options = convert_options,
    .run = convert_command,
};
