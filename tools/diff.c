/* eplb diff: what it takes to go from one placement to another. */
#include <inttypes.h>
#include <string.h>

#include <eplb/placement.h>

#include "commands.h"
#include "document_check.h"
#include "failure.h"
#include "io/placement.h"
#include "json_answer.h"
#include "transfer.h"

/* One routed expert: three matrices in the precision the model is served in. */
static const struct {
    const char *name;
    int64_t bytes;
    int32_t layers, experts;
} models[] = {
    {"deepseek-v3", 44040192, 58, 256},     {"kimi-k2", 44040192, 60, 384},
    {"qwen3-235b-a22b", 18874368, 94, 128}, {"qwen3-30b-a3b", 9437184, 48, 128},
    {"glm-4.5", 23592960, 89, 160},         {"glm-4.5-air", 17301504, 45, 128},
    {"gpt-oss-120b", 13219200, 36, 128},    {"deepseek-v2-lite", 17301504, 26, 64},
};
enum { NUM_MODELS = sizeof models / sizeof models[0] };

typedef struct diff_values {
    int64_t ranks, nodes, experts, bytes_per_expert;
    double intra, inter;
    int model; /* -1: by the shape, else DeepSeek-V3 */
    bool json;
} diff_values;

#define ROW(...) OPTION_ROW(diff_values, __VA_ARGS__)

static const option_row diff_options[] = {
    ROW("bytes-per-expert", 0, OPTION_INTEGER, "N", bytes_per_expert, 1, 1e15,
        "Bytes of one expert's weights"),
    ROW("model", 0, OPTION_CHOICE,
        "deepseek-v3|kimi-k2|qwen3-235b-a22b|qwen3-30b-a3b|glm-4.5|glm-4.5-air|gpt-oss-120b|deepseek-v2-lite",
        model, 0, 0,
        "Take the bytes of this model's experts. Default: the model with as many layers and experts, else "
        "deepseek-v3"),
    ROW("intra-gbps", 0, OPTION_NUMBER, "GB/s", intra, 1e-6, 1e9,
        "Gigabytes (10^9 bytes) a second that a rank sends or receives inside its node. Default 450"),
    ROW("inter-gbps", 0, OPTION_NUMBER, "GB/s", inter, 1e-6, 1e9, "The same between nodes. Default 50"),
    ROW("ranks", 0, OPTION_INTEGER, "G", ranks, 1, EPLB_MAX_RANKS, "Ranks, where the files do not say"),
    ROW("nodes", 0, OPTION_INTEGER, "N", nodes, 1, EPLB_MAX_RANKS, "Nodes, where the files do not say"),
    ROW("experts", 0, OPTION_INTEGER, "E", experts, 1, EPLB_MAX_EXPERTS,
        "Experts, where the files do not say. Default: the largest id + 1"),
    ROW_JSON(diff_values),
    ROW_END,
};

typedef struct diff_run {
    const command *self;
    diff_values values;
    io_document files[2];
    eplb_placement *placements[2];
    eplb_move_count moves;
    transfer_cost cost;
} diff_run;

/* Reads both files; what one leaves out, the other says. */
static int read_files(diff_run *run, char **paths)
{
    const diff_values *values = &run->values;
    io_document_options options = {(int32_t)values->ranks, (int32_t)values->nodes, (int32_t)values->experts};
    io_error error;
    if (check_inputs(run->self, "OLD", paths[0], "NEW", paths[1]) != PARSED)
        return EXIT_BAD;
    for (int i = 0; i < 2; i++)
        if (io_document_read(paths[i], &options, &run->files[i], &error) != EPLB_OK)
            return fail_io(run->self, &error);
    for (int i = 0; i < 2; i++) {
        io_document *file = &run->files[i];
        const io_document *other = &run->files[1 - i];
        if (file->num_ranks == 0) {
            file->num_ranks = other->num_ranks;
            file->num_nodes = other->num_nodes;
        }
        document_warn_hash(run->self, file, paths[i]);
        if (io_document_placement(file, paths[i], &run->placements[i], &error) != EPLB_OK)
            return fail_io(run->self, &error);
    }
    return PARSED;
}

static int64_t bytes_per_expert(const diff_run *run, const char **model)
{
    *model = NULL;
    if (run->values.bytes_per_expert > 0)
        return run->values.bytes_per_expert;
    int chosen = run->values.model;
    for (int i = 0; chosen < 0 && i < NUM_MODELS; i++)
        if (models[i].layers == run->files[0].num_layers && models[i].experts == run->files[0].num_experts)
            chosen = i;
    chosen = chosen < 0 ? 0 : chosen;
    *model = models[chosen].name;
    return models[chosen].bytes;
}

static int print_json(const diff_run *run, int64_t bytes)
{
    json_answer answer;
    json_writer *json = json_answer_begin(&answer, run->self);
    if (json == NULL)
        return EXIT_INTERNAL;
    json_key_int(json, "slots", run->moves.slots);
    json_key_int(json, "received", run->moves.received);
    json_key_int(json, "cross_node", run->moves.cross_node);
    json_key_int(json, "lost", run->moves.lost);
    json_key_int(json, "bytes", run->moves.received * bytes);
    json_key_int(json, "cross_node_bytes", run->moves.cross_node * bytes);
    json_key_int(json, "rounds", run->cost.rounds);
    json_key_double(json, "seconds", run->cost.seconds);
    return json_answer_end(&answer);
}

static void print_table(const diff_run *run, int64_t bytes, const char *model)
{
    const eplb_move_count *moves = &run->moves;
    (void)printf("slots changed       %12" PRId64 "\n", moves->slots);
    (void)printf("experts received    %12" PRId64 "   at most %" PRId64 " by one rank in one layer\n",
                 moves->received, moves->max_received_per_rank);
    (void)printf("  from another node %12" PRId64 "\n", moves->cross_node);
    if (moves->lost > 0)
        (void)printf("  from storage      %12" PRId64 "   no live rank held them\n", moves->lost);
    (void)printf("bytes               %12.3f GB at %" PRId64 " bytes an expert%s%s\n",
                 1e-9 * (double)moves->received * (double)bytes, bytes, model != NULL ? ", " : "",
                 model != NULL ? model : "");
    (void)printf("  from another node %12.3f GB\n", 1e-9 * (double)moves->cross_node * (double)bytes);
    (void)printf("rounds              %12" PRId64
                 "   layer by layer, one send and one receive a rank and round\n",
                 run->cost.rounds);
    (void)printf("time                %12.3f ms at %g GB/s inside a node, %g GB/s between nodes\n",
                 1e3 * run->cost.seconds, run->values.intra, run->values.inter);
}

static int compare(diff_run *run)
{
    eplb_error error;
    const char *model;
    int64_t bytes = bytes_per_expert(run, &model);
    transfer_links links = {(double)bytes, 1e9 * run->values.intra, 1e9 * run->values.inter};
    if (eplb_placement_count_moves(run->placements[0], run->placements[1], &run->moves, NULL, NULL, &error) !=
        EPLB_OK)
        return fail_library(run->self, &error);
    if (run->moves.received > 0 && bytes > INT64_MAX / run->moves.received)
        return complain(run->self, "%" PRId64 " experts of %" PRId64 " bytes are more than 2^63 bytes",
                        run->moves.received, bytes);
    if (!transfer_plan(run->placements[0], run->placements[1], &links, &run->cost))
        return fail_memory(run->self);
    if (run->values.json)
        return print_json(run, bytes);
    print_table(run, bytes, model);
    return PARSED;
}

static int diff_command(const command *self, int argc, char **argv)
{
    diff_run run = {.self = self, .values = {.intra = 450, .inter = 50, .model = -1}};
    char **operands;
    int count;
    int status = options_parse(self, argc, argv, &run.values, &operands, &count);
    if (status != PARSED)
        return status;
    status = read_files(&run, operands);
    if (status == PARSED)
        status = compare(&run);
    for (int i = 0; i < 2; i++) {
        eplb_placement_destroy(run.placements[i]);
        io_document_clear(&run.files[i]);
    }
    return finish_output(self, status == PARSED ? EXIT_OK : status);
}

const command command_diff = {
    .name = "diff",
    .summary = "Count what it takes to go from one placement to another",
    .operands = "OLD NEW",
    .least_operands = 2,
    .most_operands = 2,
    .text =
        "Counts slots whose expert changes, experts that a rank receives (it did not hold them before), "
        "those of them that only other nodes held and those that no live rank held, with their bytes; then "
        "the rounds and the time the transfers need. Ranks and slots may differ: rank g stays rank g and "
        "holds what any of its slots held; ranks beyond the last of NEW leave and send before they go.\n\n"
        "Layers move one after the other. In a round every rank sends at most one expert and receives at "
        "most one; a layer needs as many rounds as its busiest rank has sends or receives, with the "
        "senders chosen among the holders to make that least, those on the receiver's node first. Time is "
        "that of the busiest rank and direction, summed over layers. An expert that no live rank holds "
        "comes from storage and is timed as from another node.",
    .json = "slots, received, cross_node, lost, bytes, cross_node_bytes, rounds, seconds.",
    .examples =
        "eplb diff old.json new.json\neplb diff old.json new.json --model deepseek-v3 --inter-gbps 50 --json",
    .options = diff_options,
    .run = diff_command,
};
