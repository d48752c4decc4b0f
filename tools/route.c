/* eplb route: sends recorded tokens through a rule. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <eplb/placement.h>

#include "commands.h"
#include "document_check.h"
#include "failure.h"
#include "io/placement.h"
#include "io/topk.h"
#include "json_answer.h"
#include "placement_input.h"
#include "routing.h"

#define DEFAULT_BATCH   1024
#define SHARE_TOLERANCE 1e-6

typedef struct route_values {
    const char *placement, *dead;
    int rule;
    int64_t batch, ranks, nodes, experts, row_limit;
    bool json;
} route_values;

#define ROW(...) OPTION_ROW(route_values, __VA_ARGS__)

static const option_row route_options[] = {
    ROW("placement", 'p', OPTION_FILE, "FILE", placement, 0, 0,
        "The placement to route by; its shares are the plan"),
    ROW("rule", 'r', OPTION_CHOICE, ROUTING_RULE_WORDS, rule, 0, 0,
        "How a token's expert becomes a slot (docs/routing.md). Default quota"),
    ROW("batch", 'b', OPTION_INTEGER, "N", batch, 1, 16777216,
        "Tokens of a batch, divided among the live ranks in blocks. Default 1024"),
    ROW("ranks", 0, OPTION_INTEGER, "G", ranks, 1, EPLB_MAX_RANKS, "Ranks, where the placement does not say"),
    ROW("nodes", 0, OPTION_INTEGER, "N", nodes, 1, EPLB_MAX_RANKS, "Nodes, where the placement does not say"),
    ROW("experts", 0, OPTION_INTEGER, "E", experts, 1, EPLB_MAX_EXPERTS,
        "Experts, where TOPK does not say. Default: those of the placement"),
    ROW("dead", 0, OPTION_TEXT, "LIST", dead, 0, 0,
        "Ranks that are dead: they send nothing and serve nothing"),
    ROW("row-limit", 0, OPTION_INTEGER, "N", row_limit, 1, 4096,
        "table, invariant, repeat: longest row of an expert; longer rows follow the shares more closely. "
        "Default 256"),
    ROW_JSON(route_values),
    ROW_END,
};

typedef struct route_run {
    const command *self;
    route_values values;
    const char *path;
    io_document document;
    io_topk *topk;
    eplb_topology *topology;
    eplb_placement *placement;
    routing *routing;
    int32_t *ids;
    routing_result result;
} route_run;

static void release(route_run *run)
{
    free(run->ids);
    routing_destroy(run->routing);
    eplb_placement_destroy(run->placement);
    eplb_topology_destroy(run->topology);
    io_topk_close(run->topk);
    io_document_clear(&run->document);
}

static int read_files(route_run *run)
{
    const route_values *values = &run->values;
    io_document_options options = {(int32_t)values->ranks, (int32_t)values->nodes, (int32_t)values->experts};
    io_error error;
    if (values->placement == NULL)
        return complain(run->self, "--placement is missing; see eplb %s --help", run->self->name);
    if (check_inputs(run->self, "TOPK", run->path, "--placement", values->placement) != PARSED)
        return EXIT_BAD;
    if (io_document_read(values->placement, &options, &run->document, &error) != EPLB_OK ||
        io_topk_open_else(&run->topk, run->path, (int32_t)values->experts, run->document.num_experts,
                          &error) != EPLB_OK)
        return fail_io(run->self, &error);
    document_warn_hash(run->self, &run->document, values->placement);
    return PARSED;
}

/* A plan's shares of an expert sum to 1; anything else is no plan, and scaling it would hide that. */
static int check_shares(const route_run *run)
{
    const io_document *document = &run->document;
    size_t slots = (size_t)document->num_slots, experts = (size_t)document->num_experts;
    double *sum = calloc(experts, sizeof *sum);
    int status = sum != NULL ? PARSED : fail_memory(run->self);
    for (int32_t l = 0; document->shares != NULL && status == PARSED && l < document->num_layers; l++) {
        const int32_t *held = document->physical_to_logical + (size_t)l * slots;
        memset(sum, 0, experts * sizeof *sum);
        for (size_t p = 0; p < slots; p++) {
            if (held[p] >= 0 && held[p] < document->num_experts)
                sum[held[p]] += document->shares[(size_t)l * slots + p];
        }
        for (size_t e = 0; e < experts && status == PARSED; e++) {
            if (!(sum[e] > 1.0 - SHARE_TOLERANCE && sum[e] < 1.0 + SHARE_TOLERANCE) && sum[e] != 0.0)
                status = complain(run->self, "%s: layer %d, expert %zu: the shares sum to %g, expected 1",
                                  run->values.placement, (int)l, e, sum[e]);
        }
    }
    free(sum);
    return status;
}

static int check_sizes(route_run *run)
{
    int status = placement_match(run->self, &run->document, run->values.placement, run->path,
                                 io_topk_num_layers(run->topk), io_topk_num_experts(run->topk));
    return status == PARSED ? check_shares(run) : status;
}

static int prepare(route_run *run)
{
    eplb_error error;
    int status = placement_topology(run->self, &run->document, run->values.placement, run->values.dead,
                                    &run->topology);
    if (status != PARSED)
        return status;
    if (eplb_placement_create(&run->placement, run->topology, run->document.num_layers,
                              run->document.num_experts, run->document.physical_to_logical, NULL,
                              &error) != EPLB_OK)
        return fail_library(run->self, &error);
    int64_t batch = run->values.batch, tokens = io_topk_num_tokens(run->topk);
    batch = tokens > 0 && tokens < batch ? tokens : batch;
    routing_params params = {.placement = run->placement,
                             .shares = run->document.shares,
                             .rule = (routing_rule)run->values.rule,
                             .width = io_topk_width(run->topk),
                             .max_tokens = (int32_t)batch,
                             .row_limit = (int32_t)run->values.row_limit};
    if (routing_create(&run->routing, &params, &error) != EPLB_OK)
        return fail_library(run->self, &error);
    size_t pairs = (size_t)batch * (size_t)run->document.num_layers * (size_t)params.width;
    run->ids = malloc((pairs + 1) * sizeof *run->ids);
    return run->ids != NULL ? PARSED : fail_memory(run->self);
}

static int route_all(route_run *run)
{
    int64_t batch = run->values.batch, tokens = io_topk_num_tokens(run->topk), read;
    batch = tokens > 0 && tokens < batch ? tokens : batch;
    for (;;) {
        io_error io;
        eplb_error error;
        if (io_topk_read(run->topk, batch, run->ids, &read, &io) != EPLB_OK)
            return fail_io(run->self, &io);
        if (read == 0)
            break;
        if (routing_batch(run->routing, run->ids, read, &error) != EPLB_OK)
            return fail_library(run->self, &error);
    }
    routing_finish(run->routing, &run->result);
    return PARSED;
}

static double nanoseconds_per_pair(const routing_result *result)
{
    return result->pairs > 0 ? 1e9 * result->seconds / (double)result->pairs : 0.0;
}

static int print_json(const route_run *run, const char *rule)
{
    const routing_result *result = &run->result;
    int64_t layers = run->document.num_layers, ranks = eplb_topology_num_ranks(run->topology);
    json_answer answer;
    json_writer *json = json_answer_begin(&answer, run->self);
    if (json == NULL)
        return EXIT_INTERNAL;
    json_key_string(json, "rule", rule);
    json_key_int(json, "tokens", result->tokens);
    json_key_int(json, "batches", result->batches);
    json_key(json, "planned");
    json_double_matrix(json, result->planned, layers, ranks);
    json_key(json, "delivered");
    json_int64_matrix(json, result->delivered, layers, ranks);
    json_key_double(json, "max_deviation", result->max_deviation);
    json_key(json, "imbalance");
    json_begin_object(json);
    json_key_double(json, "mean", result->imbalance_mean);
    json_key_double(json, "worst", result->imbalance_worst);
    json_end_object(json);
    json_key_int(json, "cross_rank", result->cross_rank);
    json_key_int(json, "cross_node", result->cross_node);
    json_key(json, "activated");
    json_double_row(json, result->activated, layers);
    json_key_double(json, "nanoseconds_per_pair", nanoseconds_per_pair(result));
    return json_answer_end(&answer);
}

static void print_table(const route_run *run, const char *rule)
{
    const routing_result *result = &run->result;
    int32_t layers = run->document.num_layers;
    double activated = 0.0;
    for (int32_t l = 0; l < layers; l++)
        activated += result->activated[l] / (double)layers;
    (void)printf("rule                %12s\n", rule);
    (void)printf("tokens              %12" PRId64 "   in %" PRId64 " batches, %" PRId64
                 " token-expert pairs\n",
                 result->tokens, result->batches, result->pairs);
    (void)printf("imbalance           %12.4f   mean over batches and layers; worst %.4f\n",
                 result->imbalance_mean, result->imbalance_worst);
    (void)printf("deviation           %12.1f   largest difference from the plan, of one slot, in tokens\n",
                 result->max_deviation);
    (void)printf("sent to other ranks %12" PRId64 "   copies of tokens; %" PRId64 " to other nodes\n",
                 result->cross_rank, result->cross_node);
    (void)printf("activated replicas  %12.2f   of the rank with most, mean over batches and layers\n",
                 activated);
    (void)printf("time                %12.2f   nanoseconds per pair\n", nanoseconds_per_pair(result));
}

static int route_command(const command *self, int argc, char **argv)
{
    route_run run = {.self = self, .values = {.batch = DEFAULT_BATCH, .row_limit = 256}};
    char **operands, word[32];
    int count, status = options_parse(self, argc, argv, &run.values, &operands, &count);
    if (status != PARSED)
        return status;
    run.path = operands[0];
    status = read_files(&run);
    if (status == PARSED)
        status = check_sizes(&run);
    if (status == PARSED)
        status = prepare(&run);
    if (status == PARSED)
        status = route_all(&run);
    if (status == PARSED) {
        const char *rule = choice_word(&route_options[1], run.values.rule, word, sizeof word);
        if (run.values.json)
            status = print_json(&run, rule);
        else
            print_table(&run, rule);
    }
    release(&run);
    return finish_output(self, status == PARSED ? EXIT_OK : status);
}

const command command_route = {
    .name = "route",
    .summary = "Send recorded tokens through a routing rule",
    .operands = "TOPK",
    .least_operands = 1,
    .most_operands = 1,
    .text =
        "Reads token routing [N,L,K], divides every batch among the live ranks, lets each rank choose a "
        "replica for each of its tokens' experts, and compares what the ranks were meant to get with what "
        "they got.\n\n"
        "Rules: quota follows the shares of the placement (equal ones where it has none) to within a token "
        "after every token of the batch, as ranks can that know each other's counts; table lets every rank "
        "follow a table on its own, so that differences of the ranks add up; nearest serves what quota "
        "does, but a rank's own tokens and its node's first; invariant depends on the token alone; "
        "activated picks one replica per expert and batch so that ranks read as few experts as possible; "
        "resplit splits every batch exactly; vllm, sglang-static, sglang-dynamic and trtllm choose as "
        "those engines do, and repeat is vllm's rule over a table in which slots are repeated in "
        "proportion to their shares.\n\n"
        "A token counts once per rank (node) that it is sent to. An expert id of -1 is a padded choice and "
        "is skipped.",
    .json = "rule, tokens, batches, planned [L][G] and delivered [L][G] (token-expert pairs), max_deviation, "
            "imbalance {mean, worst}, cross_rank, cross_node, activated [L], nanoseconds_per_pair.",
    .examples = "eplb route tokens.npz --placement plan.json\n"
                "eplb route tokens.npz --placement plan.json --rule resplit --batch 4096 --json\n"
                "eplb route tokens.npz --placement plan.json --rule vllm --dead 3",
    .options = route_options,
    .run = route_command,
};
