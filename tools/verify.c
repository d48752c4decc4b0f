/* eplb verify: does a placement file keep every invariant? Says what is wrong and where. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <eplb/metrics.h>
#include <eplb/plan.h>

#include "commands.h"
#include "document_check.h"
#include "failure.h"
#include "io/load.h"
#include "io/placement.h"
#include "json_answer.h"
#include "placement_input.h"
#include "report/summary.h"
#include "report/table.h"
#include "visible_text.h"

enum { SHOWN = 20, WHERE = 120 };

typedef struct verify_values {
    int64_t ranks, nodes, experts;
    const char *load, *dead;
    bool json;
} verify_values;

#define ROW(...) OPTION_ROW(verify_values, __VA_ARGS__)

static const option_row verify_options[] = {
    ROW("load", 0, OPTION_FILE, "LOAD", load, 0, 0,
        "Check that the placement is for this load, and print the imbalance"),
    ROW("ranks", 0, OPTION_INTEGER, "G", ranks, 1, EPLB_MAX_RANKS, "Ranks, where the file does not say"),
    ROW("nodes", 0, OPTION_INTEGER, "N", nodes, 1, EPLB_MAX_RANKS, "Nodes, where the file does not say"),
    ROW("experts", 0, OPTION_INTEGER, "E", experts, 1, EPLB_MAX_EXPERTS,
        "Experts, where the file does not say. Default: the load's, else the largest id + 1"),
    ROW("dead", 0, OPTION_TEXT, "LIST", dead, 0, 0,
        "Ranks that are dead: every expert needs a replica elsewhere"),
    ROW_JSON(verify_values),
    ROW_END,
};

typedef struct finding {
    int32_t layer; /* -1: the whole file */
    const char *what;
    char where[WHERE];
} finding;

typedef struct verify_run {
    const command *self;
    verify_values values;
    const char *path;
    io_document file;
    io_load load;
    eplb_topology *topology;
    finding *findings;
    size_t count, room;
    document_notes notes;
    bool no_memory;
} verify_run;

static void release(verify_run *run)
{
    free(run->findings);
    eplb_topology_destroy(run->topology);
    io_document_clear(&run->file);
    io_load_clear(&run->load);
}

static void __attribute__((__format__(__printf__, 4, 5)))
add_finding(verify_run *run, int32_t layer, const char *what, const char *format, ...)
{
    if (run->count == run->room) {
        size_t room = run->room == 0 ? 64 : 2 * run->room;
        finding *more = realloc(run->findings, room * sizeof *more);
        if (more == NULL) {
            run->no_memory = true;
            return;
        }
        run->findings = more;
        run->room = room;
    }
    finding *one = &run->findings[run->count++];
    va_list arguments;
    va_start(arguments, format);
    *one = (finding){.layer = layer, .what = what};
    (void)vsnprintf(one->where, sizeof one->where, format, arguments);
    va_end(arguments);
}

static void check_load_sizes(verify_run *run)
{
    int32_t layers = eplb_load_num_layers(run->load.load), experts = eplb_load_num_experts(run->load.load);
    if (layers != run->file.num_layers)
        add_finding(run, -1, "size", "%d layers; the load has %d", (int)run->file.num_layers, (int)layers);
    if (experts != run->file.num_experts)
        add_finding(run, -1, "size", "%d experts; the load has %d", (int)run->file.num_experts, (int)experts);
}

static int read_files(verify_run *run)
{
    const verify_values *values = &run->values;
    io_load_options load_options = {.max_windows = 1};
    io_error error;
    if (check_inputs(run->self, "PLACEMENT", run->path, "--load", values->load) != PARSED)
        return EXIT_BAD;
    if (values->load != NULL && io_load_read(values->load, &load_options, &run->load, &error) != EPLB_OK)
        return fail_io(run->self, &error);
    io_document_options options = {(int32_t)values->ranks, (int32_t)values->nodes, (int32_t)values->experts};
    if (io_document_read(run->path, &options, &run->file, &error) != EPLB_OK)
        return fail_io(run->self, &error);
    if (values->load != NULL)
        placement_adopt_experts(&run->file, eplb_load_num_experts(run->load.load));
    if (run->file.num_ranks == 0)
        return complain(run->self, "%s does not say how many ranks there are; pass --ranks G", run->path);
    return placement_topology(run->self, &run->file, run->path, values->dead, &run->topology);
}

static void take_finding(void *context, int32_t layer, const char *what, const char *where)
{
    add_finding(context, layer, what, "%s", where);
}

static int check(verify_run *run)
{
    int status = document_check(run->self, &run->file, run->topology, take_finding, run, &run->notes);
    if (status == PARSED && run->load.load != NULL)
        check_load_sizes(run);
    return status == PARSED && run->no_memory ? fail_memory(run->self) : status;
}

static int print_json(const verify_run *run)
{
    json_answer answer;
    json_writer *json = json_answer_begin(&answer, run->self);
    if (json == NULL)
        return EXIT_INTERNAL;
    json_key_bool(json, "valid", run->count == 0);
    json_key(json, "problems");
    json_begin_array(json);
    for (size_t i = 0; i < run->count; i++) {
        json_begin_object(json);
        json_key_int(json, "layer", run->findings[i].layer);
        json_key_string(json, "what", run->findings[i].what);
        json_key_string(json, "where", run->findings[i].where);
        json_end_object(json);
    }
    json_end_array(json);
    return json_answer_end(&answer);
}

static void print_findings(const verify_run *run)
{
    static const char *const heads[] = {"layer", "<what", "<where", NULL};
    table *rows = table_create(heads);
    for (size_t i = 0; i < run->count && i < SHOWN; i++) {
        if (run->findings[i].layer < 0)
            table_cell(rows, "-");
        else
            table_cell(rows, "%d", (int)run->findings[i].layer);
        table_cell(rows, "%s", run->findings[i].what);
        table_cell(rows, "%s", run->findings[i].where);
    }
    (void)table_print(stdout, rows, 2);
    table_destroy(rows);
    if (run->count > SHOWN)
        (void)printf("  and %zu more (--json lists all)\n", run->count - SHOWN);
}

static int print_imbalance(const verify_run *run)
{
    const io_document *file = &run->file;
    eplb_placement *placement = NULL;
    eplb_error error;
    int status = PARSED;
    double *imbalance = malloc((size_t)file->num_layers * sizeof *imbalance);
    if (imbalance == NULL)
        return fail_memory(run->self);
    if (eplb_placement_create(&placement, run->topology, file->num_layers, file->num_experts,
                              file->physical_to_logical, NULL, &error) != EPLB_OK ||
        eplb_imbalance_per_layer(run->load.load, placement, file->shares, imbalance, NULL, &error) !=
            EPLB_OK) {
        status = fail_library(run->self, &error);
    } else {
        summary s = summarize(imbalance, file->num_layers);
        char name[1024];
        (void)printf("imbalance on %s: mean %.4f, worst %.4f in layer %d\n",
                     visible_text(run->values.load, name, sizeof name), s.mean, s.worst, (int)s.worst_index);
    }
    eplb_placement_destroy(placement);
    free(imbalance);
    return status;
}

static int print_tables(const verify_run *run)
{
    const io_document *file = &run->file;
    char name[1024];
    (void)printf("%s: %s, ", visible_text(run->path, name, sizeof name), io_format_name((int)file->format));
    print_count(stdout, file->num_layers, "layer");
    (void)fputs(", ", stdout);
    print_count(stdout, file->num_experts, "expert");
    (void)fputs(", ", stdout);
    print_count(stdout, file->num_slots, "slot");
    (void)fputs(" on ", stdout);
    print_count(stdout, file->num_ranks, "rank");
    (void)fputs(": ", stdout);
    if (run->count > 0) {
        print_count(stdout, (int64_t)run->count, "problem");
        (void)fputc('\n', stdout);
        print_findings(run);
        return PARSED;
    }
    (void)puts("valid");
    return run->load.load != NULL ? print_imbalance(run) : PARSED;
}

static int verify_command(const command *self, int argc, char **argv)
{
    verify_run run = {.self = self};
    char **operands;
    int count;
    int status = options_parse(self, argc, argv, &run.values, &operands, &count);
    if (status != PARSED)
        return status;
    run.path = operands[0];
    status = read_files(&run);
    if (status == PARSED)
        status = check(&run);
    if (status == PARSED)
        document_warn_notes(self, &run.notes);
    if (status == PARSED)
        status = run.values.json ? print_json(&run) : print_tables(&run);
    if (status == PARSED)
        status = run.count == 0 ? EXIT_OK : EXIT_NO;
    release(&run);
    return finish_output(self, status);
}

const command command_verify = {
    .name = "verify",
    .summary = "Check every invariant of a placement file",
    .operands = "PLACEMENT",
    .least_operands = 1,
    .most_operands = 1,
    .text = "Reads a placement in any format and checks it: every id exists, every expert has a replica on a "
            "live rank, slots of dead ranks are empty, no rank holds an expert twice while there are ranks "
            "without it (in a plan of deepseek or vllm that is a warning: the published planner does it), "
            "shares lie in [0, 1] and add up to 1, groups divide the experts, metrics agree with each other, "
            "no bound is above what is reached, the file's hash is that of its content, and the sizes are "
            "those of the load.\n\n"
            "A file that cannot be read as a placement at all is bad input, exit 2.",
    .json = "valid, problems [{layer, what, where}]; layer is -1 where the whole file is meant.",
    .exit_no = "the placement breaks at least one rule.",
    .examples = "eplb verify plan.json\neplb verify map.json --ranks 32 --load load.npy --json",
    .options = verify_options,
    .run = verify_command,
};
