/* eplb inspect: how uneven a load is, on its own or under a placement. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <eplb/metrics.h>

#include "cluster.h"
#include "commands.h"
#include "document_check.h"
#include "failure.h"
#include "io/load.h"
#include "io/placement.h"
#include "json_answer.h"
#include "placement_input.h"
#include "report/heatmap.h"
#include "report/summary.h"
#include "report/table.h"
#include "window_spread.h"

enum { NAMED = 5, HOTTEST_OF_LAYER = 3, WINDOW_BYTES = 1 << 28 };

typedef struct inspect_values {
    cluster_options cluster;
    int64_t experts, width, window;
    double scale;
    const char *placement, *array;
    int color;
    bool json, topk, no_map;
} inspect_values;

#define ROW(...) OPTION_ROW(inspect_values, __VA_ARGS__)

static const option_row inspect_options[] = {
    ROW("placement", 0, OPTION_FILE, "FILE", placement, 0, 0, "Show the rank loads under this placement"),
    ROW("ranks", 0, OPTION_INTEGER, "G", cluster.ranks, 1, EPLB_MAX_RANKS,
        "Without --placement: show the start layout on G ranks, slot p holding expert p mod E. With it: "
        "where the file does not say"),
    ROW("slots", 0, OPTION_INTEGER, "S", cluster.slots, 1, EPLB_MAX_SLOTS,
        "Slots of the start layout. Default: the experts"),
    ROW("nodes", 0, OPTION_INTEGER, "N", cluster.nodes, 1, EPLB_MAX_RANKS, "Nodes of the start layout"),
    ROW("window", 0, OPTION_INTEGER, "T", window, 0, EPLB_MAX_WINDOWS,
        "Only this window; default: the sum of all"),
    ROW("color", 0, OPTION_CHOICE, "auto|always|never", color, 0, 0,
        "Colour of the heat map; auto: on a terminal, unless NO_COLOR is set"),
    ROW("width", 0, OPTION_INTEGER, "N", width, 20, 1000,
        "Columns of the heat map. Default: the terminal's, else 80"),
    ROW("scale", 0, OPTION_NUMBER, "X", scale, 1.0001, 1e6,
        "Relative load at the hot end of the scale, to compare maps. Default: the hottest cell"),
    ROW("no-map", 0, OPTION_FLAG, NULL, no_map, 0, 0, "No heat map"),
    ROW("array", 0, OPTION_TEXT, "NAME", array, 0, 0,
        "Array of an .npz to read; default counts, load or the only one"),
    ROW("topk", 0, OPTION_FLAG, NULL, topk, 0, 0, "LOAD is token routing [N,L,K]: count it"),
    ROW("experts", 0, OPTION_INTEGER, "E", experts, 1, EPLB_MAX_EXPERTS,
        "With --topk: number of experts, where the file does not say"),
    ROW_JSON(inspect_values),
    ROW_END,
};

typedef struct inspect_run {
    const command *self;
    inspect_values values;
    const char *load_path;
    io_load file;
    io_document document;
    eplb_topology *topology;
    eplb_placement *placement; /* NULL: experts alone */
    int32_t window;            /* -1: the sum */
    double *imbalance;         /* [L] */
    int64_t *counts;           /* [L, E] */
    double *rank_load;         /* [L, G] in the file's unit, or NULL */
    double *relative;          /* [L, G] load per speed over the mean, -1 for a dead rank */
} inspect_run;

static void release(inspect_run *run)
{
    free(run->relative);
    free(run->rank_load);
    free(run->counts);
    free(run->imbalance);
    eplb_placement_destroy(run->placement);
    eplb_topology_destroy(run->topology);
    io_document_clear(&run->document);
    io_load_clear(&run->file);
}

static int read_load(inspect_run *run)
{
    const inspect_values *values = &run->values;
    /* the table also judges the ranks on each window, while they fit */
    bool by_window = !values->json && (values->placement != NULL || values->cluster.ranks > 0);
    io_load_options options = {.member = values->array,
                               .max_windows = values->window < 0 && !by_window ? 1 : 0,
                               .max_bytes = values->window < 0 ? WINDOW_BYTES : SIZE_MAX,
                               .topk = values->topk,
                               .num_experts = (int32_t)values->experts};
    io_error error;
    if (values->experts > 0 && !values->topk)
        return complain(run->self, "--experts goes with --topk");
    if (io_load_read(run->load_path, &options, &run->file, &error) != EPLB_OK)
        return fail_io(run->self, &error);
    if (values->window >= run->file.num_windows)
        return complain(run->self, "--window is %lld, but %s has %lld windows, from 0",
                        (long long)values->window, run->load_path, (long long)run->file.num_windows);
    run->window = (int32_t)values->window;
    return PARSED;
}

static int read_placement(inspect_run *run)
{
    const inspect_values *values = &run->values;
    io_document_options options = {(int32_t)values->cluster.ranks, (int32_t)values->cluster.nodes, 0};
    io_error error;
    if (check_inputs(run->self, "LOAD", run->load_path, "--placement", values->placement) != PARSED)
        return EXIT_BAD;
    if (io_document_read(values->placement, &options, &run->document, &error) != EPLB_OK)
        return fail_io(run->self, &error);
    document_warn_hash(run->self, &run->document, values->placement);
    int status = placement_match(run->self, &run->document, values->placement, run->load_path,
                                 eplb_load_num_layers(run->file.load), eplb_load_num_experts(run->file.load));
    if (status != PARSED)
        return status;
    if (io_document_placement(&run->document, values->placement, &run->placement, &error) != EPLB_OK)
        return fail_io(run->self, &error);
    return PARSED;
}

static int make_start_layout(inspect_run *run)
{
    cluster_options cluster = run->values.cluster;
    const eplb_load *load = run->file.load;
    eplb_error error;
    if (cluster.slots == 0)
        cluster.slots = eplb_load_num_experts(load);
    int status = cluster_topology(run->self, &cluster, NULL, &run->topology);
    if (status != PARSED)
        return status;
    if (eplb_placement_create_initial(&run->placement, run->topology, eplb_load_num_layers(load),
                                      eplb_load_num_experts(load), NULL, &error) != EPLB_OK)
        return fail_library(run->self, &error);
    return PARSED;
}

static int take_counts(inspect_run *run)
{
    const eplb_load *load = run->file.load;
    size_t layers = (size_t)eplb_load_num_layers(load), experts = (size_t)eplb_load_num_experts(load);
    run->counts = malloc(layers * experts * sizeof *run->counts);
    run->imbalance = malloc(layers * sizeof *run->imbalance);
    if (run->counts == NULL || run->imbalance == NULL)
        return fail_memory(run->self);
    for (size_t l = 0; l < layers; l++) {
        int64_t *row = run->counts + l * experts;
        if (run->window < 0)
            eplb_load_sum(load, (int32_t)l, row);
        for (size_t e = 0; run->window >= 0 && e < experts; e++)
            row[e] = eplb_load_at(load, run->window, (int32_t)l, (int32_t)e);
    }
    return PARSED;
}

/* Each expert as a rank of its own: what EP = E would see. */
static void measure_experts(inspect_run *run)
{
    size_t layers = (size_t)eplb_load_num_layers(run->file.load),
           experts = (size_t)eplb_load_num_experts(run->file.load);
    for (size_t l = 0; l < layers; l++) {
        double total = 0.0, most = 0.0;
        for (size_t e = 0; e < experts; e++) {
            double count = (double)run->counts[l * experts + e];
            total += count;
            most = count > most ? count : most;
        }
        run->imbalance[l] = total > 0.0 ? most * (double)experts / total : 1.0;
    }
}

/* Load per speed of each live rank over the mean of the layer. */
static void make_relative(const eplb_topology *topology, const double *rank_load, double *relative)
{
    const int32_t *speed = eplb_topology_rank_speed(topology);
    const uint8_t *alive = eplb_topology_rank_alive(topology);
    int32_t ranks = eplb_topology_num_ranks(topology);
    double total = 0.0, speeds = 0.0;
    for (int32_t g = 0; g < ranks; g++) {
        total += alive[g] ? rank_load[g] : 0.0;
        speeds += alive[g] ? speed[g] : 0.0;
    }
    for (int32_t g = 0; g < ranks; g++) {
        double mean = total / speeds;
        relative[g] = !alive[g] ? -1.0 : mean > 0.0 ? rank_load[g] / speed[g] / mean : 0.0;
    }
}

static int measure_ranks(inspect_run *run)
{
    const eplb_topology *topology = eplb_placement_topology(run->placement);
    size_t layers = (size_t)eplb_load_num_layers(run->file.load),
           ranks = (size_t)eplb_topology_num_ranks(topology);
    size_t slots = (size_t)eplb_topology_num_slots(topology);
    eplb_error error;
    run->rank_load = malloc(layers * ranks * sizeof *run->rank_load);
    run->relative = malloc(layers * ranks * sizeof *run->relative);
    if (run->rank_load == NULL || run->relative == NULL)
        return fail_memory(run->self);
    for (size_t l = 0; l < layers; l++) {
        double *row = run->rank_load + l * ranks;
        const double *shares = run->document.shares == NULL ? NULL : run->document.shares + l * slots;
        if (eplb_rank_load(run->file.load, (int32_t)l, run->window, run->placement, shares, row, NULL,
                           &error) != EPLB_OK)
            return fail_library(run->self, &error);
        run->imbalance[l] = eplb_imbalance(topology, row);
        make_relative(topology, row, run->relative + l * ranks);
        for (size_t g = 0; g < ranks; g++) /* back to the file's unit */
            row[g] = ldexp(row[g], -eplb_load_scale_log2(run->file.load));
    }
    return PARSED;
}

static double share_of(const inspect_run *run, int32_t layer, int32_t expert)
{
    int32_t experts = eplb_load_num_experts(run->file.load);
    const int64_t *row = run->counts + (size_t)layer * (size_t)experts;
    double total = 0.0;
    for (int32_t e = 0; e < experts; e++)
        total += (double)row[e];
    return total > 0.0 ? (double)row[expert] / total : 0.0;
}

/* Places of the `most` hottest experts of a layer. */
static int32_t hottest(const inspect_run *run, int32_t layer, int32_t *places, int32_t most)
{
    int32_t experts = eplb_load_num_experts(run->file.load), found = 0;
    const int64_t *row = run->counts + (size_t)layer * (size_t)experts;
    for (; found < most && found < experts; found++) {
        int32_t best = -1;
        for (int32_t e = 0; e < experts; e++) {
            bool taken = false;
            for (int32_t i = 0; i < found; i++)
                taken = taken || places[i] == e;
            if (!taken && (best < 0 || row[e] > row[best]))
                best = e;
        }
        places[found] = best;
    }
    return found;
}

static int print_json(const inspect_run *run)
{
    int32_t layers = eplb_load_num_layers(run->file.load), place = 0;
    summary s = summarize(run->imbalance, layers);
    json_answer answer;
    json_writer *json = json_answer_begin(&answer, run->self);
    if (json == NULL)
        return EXIT_INTERNAL;
    json_key(json, "imbalance");
    json_double_row(json, run->imbalance, layers);
    json_key_double(json, "mean", s.mean);
    json_key_double(json, "worst", s.worst);
    json_key(json, "hottest");
    json_begin_array(json);
    for (int32_t l = 0; l < layers; l++) {
        (void)hottest(run, l, &place, 1);
        json_begin_object(json);
        json_key_int(json, "expert", place);
        json_key_double(json, "share", share_of(run, l, place));
        json_end_object(json);
    }
    json_end_array(json);
    if (run->rank_load != NULL) {
        json_key(json, "rank_load");
        json_double_matrix(json, run->rank_load, layers,
                           eplb_topology_num_ranks(eplb_placement_topology(run->placement)));
    }
    return json_answer_end(&answer);
}

static void print_layers(const inspect_run *run, int32_t layers)
{
    static const char *const heads[] = {"layer", "imbalance",
                                        "<hottest experts (share of the layer's tokens)", NULL};
    int32_t worst[NAMED], places[HOTTEST_OF_LAYER];
    int32_t count = largest(run->imbalance, layers, worst, NAMED);
    table *rows = table_create(heads);
    for (int32_t i = 0; i < count; i++) {
        char text[128] = "";
        size_t used = 0;
        int32_t found = hottest(run, worst[i], places, HOTTEST_OF_LAYER);
        for (int32_t j = 0; j < found && used < sizeof text; j++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%d (%.2f %%)", j > 0 ? ", " : "",
                                     (int)places[j], 100.0 * share_of(run, worst[i], places[j]));
        table_cell(rows, "%d", (int)worst[i]);
        table_cell(rows, "%.4f", run->imbalance[worst[i]]);
        table_cell(rows, "%s", text);
    }
    (void)puts("\nworst layers");
    (void)table_print(stdout, rows, 2);
    table_destroy(rows);
}

static void print_map(const inspect_run *run, int32_t layers, double worst)
{
    int32_t ranks = eplb_topology_num_ranks(eplb_placement_topology(run->placement));
    heatmap map = {.title = "\nload of each rank and layer over the layer's mean",
                   .relative = run->relative,
                   .num_layers = layers,
                   .num_ranks = ranks,
                   .hottest = run->values.scale > 0.0 ? run->values.scale : worst,
                   .color = heatmap_color(stdout, run->values.color),
                   .width = run->values.width > 0 ? (int)run->values.width : heatmap_width(stdout)};
    if (map.hottest < 1.05)
        map.hottest = 1.05; /* a perfect placement is pale, not a storm of rounding */
    heatmap_print(stdout, &map);
}

static int print_windows(const inspect_run *run)
{
    window_spread spread;
    eplb_error error;
    if (run->placement == NULL || run->window >= 0 || run->file.windows_per_block != 1 ||
        eplb_load_num_windows(run->file.load) == 1)
        return PARSED;
    if (window_spread_measure(run->file.load, run->placement, run->document.split, run->document.shares,
                              &spread, &error) != EPLB_OK)
        return fail_library(run->self, &error);
    (void)printf("each window on its own%s: mean %.4f, 95th percentile %.4f, worst %.4f\n",
                 run->document.split == EPLB_SPLIT_BATCH ? ", split anew" : "", spread.mean,
                 spread.percentile95, spread.worst);
    window_spread_clear(&spread);
    return PARSED;
}

static int print_tables(const inspect_run *run)
{
    int32_t layers = eplb_load_num_layers(run->file.load), experts = eplb_load_num_experts(run->file.load);
    summary s = summarize(run->imbalance, layers);
    print_count(stdout, layers, "layer");
    (void)fputs(", ", stdout);
    print_count(stdout, experts, "expert");
    (void)fputs(", ", stdout);
    print_count(stdout, run->file.num_windows, "window");
    if (run->window >= 0)
        (void)printf(", window %d", (int)run->window);
    if (run->placement == NULL)
        (void)printf("; hottest over mean expert");
    else
        (void)printf("; hottest over mean rank of %d, %s",
                     (int)eplb_topology_num_ranks(eplb_placement_topology(run->placement)),
                     run->values.placement != NULL ? run->values.placement : "start layout");
    (void)printf("\nimbalance: mean %.4f, worst %.4f in layer %d\n", s.mean, s.worst, (int)s.worst_index);
    int status = print_windows(run);
    print_layers(run, layers);
    if (run->placement != NULL && !run->values.no_map)
        print_map(run, layers, s.worst);
    return status;
}

static int inspect(inspect_run *run)
{
    int status = read_load(run);
    if (status == PARSED)
        status = take_counts(run);
    if (status == PARSED && run->values.placement != NULL)
        status = read_placement(run);
    else if (status == PARSED && run->values.cluster.ranks > 0)
        status = make_start_layout(run);
    if (status == PARSED && run->placement == NULL)
        measure_experts(run);
    else if (status == PARSED)
        status = measure_ranks(run);
    if (status != PARSED)
        return status;
    return run->values.json ? print_json(run) : print_tables(run);
}

static int inspect_command(const command *self, int argc, char **argv)
{
    inspect_run run = {.self = self, .values = {.window = -1}};
    char **operands;
    int count;
    int status = options_parse(self, argc, argv, &run.values, &operands, &count);
    if (status != PARSED)
        return status;
    run.load_path = operands[0];
    status = inspect(&run);
    release(&run);
    return finish_output(self, status == PARSED ? EXIT_OK : status);
}

const command command_inspect = {
    .name = "inspect",
    .summary = "Show how uneven a load is, with a heat map",
    .operands = "LOAD",
    .least_operands = 1,
    .most_operands = 1,
    .text =
        "Prints the imbalance of each layer (largest over mean), names the worst layers and their hottest "
        "experts, and draws the ranks' loads as a heat map, ranks down and layers across. The imbalance is "
        "that of the sum of all windows; where the file has windows, a line tells it for each on its own "
        "too.\n\n"
        "With --placement the ranks are those of the file; with --ranks alone they hold the layout that "
        "engines start from; with neither every expert counts as a rank of its own and no map is drawn.",
    .json = "imbalance [L], mean, worst, hottest [L] of {expert, share}, and with --placement or --ranks "
            "rank_load [L][G] in the unit of the file.",
    .examples = "eplb inspect load.npy\n"
                "eplb inspect load.npy --ranks 32\n"
                "eplb inspect load.npy --placement plan.json",
    .options = inspect_options,
    .run = inspect_command,
};
