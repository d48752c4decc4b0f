/* eplb plan: a file of loads in, a placement out. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "commands.h"
#include "document_check.h"
#include "failure.h"
#include "placement_input.h"
#include "placement_output.h"
#include "plan_run.h"
#include "plan_words.h"
#include "published.h"

#define ROW(...) OPTION_ROW(plan_values, __VA_ARGS__)

static const option_row plan_options[] = {
    ROW("ranks", 0, OPTION_INTEGER, "G", cluster.ranks, 1, EPLB_MAX_RANKS,
        "Ranks of the expert-parallel group. With --current the file's ranks are the default, with their "
        "slots, nodes and speeds"),
    ROW("slots", 0, OPTION_INTEGER, "S", cluster.slots, 1, EPLB_MAX_SLOTS,
        "Slots on all ranks together. Where S does not divide by G, the first ranks get one more; deepseek "
        "and vllm refuse that"),
    ROW("nodes", 0, OPTION_INTEGER, "N", cluster.nodes, 1, EPLB_MAX_RANKS,
        "Nodes; rank g is on node g * N / G. Default 1"),
    ROW("groups", 0, OPTION_INTEGER, "g", groups, 1, EPLB_MAX_EXPERTS,
        "Expert groups of node-limited routing; experts of a group stay on one node. Default: none (1), or "
        "with --current the file's"),
    ROW("policy", 0, OPTION_TEXT, "P", policy, 0, 0, "Who plans; see below. Default: auto"),
    ROW("split", 0, OPTION_CHOICE, "equal|weighted|batch", split, 0, 0,
        "How an expert's tokens are divided among its replicas: equally, by shares that the plan gives, or "
        "anew for every batch. Default: what the policy is for (weighted, batch), else equally"),
    ROW("current", 0, OPTION_FILE, "FILE", current, 0, 0,
        "Start from this placement: the plan keeps what it can and counts the moves. Its ranks and slots "
        "may be more or fewer; with fewer --ranks the last ones leave alive"),
    ROW("max-moves", 0, OPTION_TEXT, "M|total:M", max_moves, 0, 0,
        "At most M experts received per layer, or over all layers with total:"),
    ROW("target", 0, OPTION_NUMBER, "X", target, 1.0, 1e9,
        "Stop improving a layer at this imbalance (with windows, their mean); with --current nothing moves "
        "where it is that good, and no more than that takes elsewhere"),
    ROW("frontier", 0, OPTION_FLAG, NULL, frontier, 0, 0,
        "With --current: show the imbalance that 0, 1, 2, 4, ... moves a layer reach, whatever the target. "
        "With windows, on each of them. In JSON: frontier [{max_moves, received, cross_node, mean, worst}]"),
    ROW("spill", 0, OPTION_INTEGER, "K", spill, 0, EPLB_MAX_SLOTS,
        "With --groups and several nodes: up to K replicas a layer may live outside their group's node. "
        "Default 0"),
    ROW("dead", 0, OPTION_TEXT, "LIST", cluster.dead, 0, 0,
        "Ranks that are dead: their slots stay empty. With --current those that the file calls dead stay so; "
        "none brings them back, none,LIST leaves LIST dead"),
    ROW("rank-slots", 0, OPTION_TEXT, "LIST", cluster.rank_slots, 0, 0,
        "Slots of each rank, such as 9x31,8; implies --ranks and --slots"),
    ROW("rank-speeds", 0, OPTION_TEXT, "LIST", cluster.rank_speeds, 0, 0,
        "Speed of each rank, such as 1x24,0.8x8; only ratios count"),
    ROW("cost", 0, OPTION_TEXT, "tokens|tiles|activated", cost, 0, 0,
        "What a rank's time grows with: tokens (the default), tokens rounded up to a tile, activated "
        "replicas, or a mixture with whole weights such as tokens=1,activated=300"),
    ROW("tile", 0, OPTION_INTEGER, "N", tile, 1, 1 << 20, "With --cost tiles: tokens of a tile. Default 128"),
    ROW("sources", 0, OPTION_FILE, "FILE", sources, 0, 0,
        "With several nodes: tokens by source rank, [G,L,E], for the cross-node tokens. Like nodes trade "
        "contents so that few cross, except with --current; --spill watches them, too. Default: tokens start "
        "evenly on all ranks"),
    ROW("threads", 0, OPTION_INTEGER, "N", threads, 1, 1024,
        "Threads; the layers are divided among them and the answer is the same. Default 1"),
    ROW("work-limit", 0, OPTION_INTEGER, "N", work_limit, 1, 1e15,
        "At most N search steps a layer. Default: the policy's"),
    ROW("time-budget", 0, OPTION_NUMBER, "SEC", time_budget, 1e-6, 1e6,
        "Stop searching after this wall-clock time, divided evenly over the layers; what one leaves goes to "
        "the next ones. The answer then depends on the clock"),
    ROW("array", 0, OPTION_TEXT, "NAME", array, 0, 0,
        "Array of an .npz to read; default counts, load or the only one"),
    ROW("topk", 0, OPTION_FLAG, NULL, topk, 0, 0, "LOAD is token routing [N,L,K]: count it"),
    ROW("experts", 0, OPTION_INTEGER, "E", experts, 1, EPLB_MAX_EXPERTS,
        "With --topk: number of experts, where the file does not say"),
    ROW("window", 0, OPTION_INTEGER, "TOKENS", tokens_per_window, 1, 1e15,
        "With --topk: tokens of a window. Default: all are one window"),
    ROW("format", 0, OPTION_CHOICE, "json|npz|sglang|vllm|vllm-ascend|trtllm", format, 0, 0,
        "Format of the placement. Default: by the output's name, .npz, .yaml (trtllm), else json"),
    ROW("first-layer", 0, OPTION_INTEGER, "N", first_layer, 0, EPLB_MAX_LAYERS,
        "With trtllm: the engine's number of the first MoE layer. Default 0"),
    ROW("output", 'o', OPTION_FILE, "FILE", output, 0, 0,
        "Write the placement to FILE, whole or not at all; - is standard output"),
    ROW_JSON(plan_values),
    ROW_END,
};

static void release(plan_run *run)
{
    window_spread_clear(&run->windows[0]);
    window_spread_clear(&run->windows[1]);
    free(run->before);
    eplb_plan_destroy(run->plan);
    eplb_placement_destroy(run->start);
    eplb_placement_destroy(run->current);
    eplb_topology_destroy(run->topology);
    io_document_clear(&run->document);
    io_document_clear(&run->current_file);
    io_load_clear(&run->sources);
    io_load_clear(&run->load);
}

static int read_load(plan_run *run)
{
    const plan_values *values = &run->values;
    io_load_options options = {.member = values->array,
                               .max_windows = is_published(values->policy) ? 1 : 0,
                               .topk = values->topk,
                               .tokens_per_window = values->tokens_per_window,
                               .num_experts = (int32_t)values->experts};
    io_error error;
    if (io_load_read(run->load_path, &options, &run->load, &error) != EPLB_OK)
        return fail_io(run->self, &error);
    if (run->load.note[0] != '\0')
        inform(run->self, "%s", run->load.note);
    if (run->load.num_groups > 1 && run->params.num_groups <= 1 && values->groups == 0 &&
        eplb_topology_num_nodes(run->topology) > 1)
        inform(run->self, "%s has %d expert groups; without --groups %d they may be torn across nodes",
               run->load_path, (int)run->load.num_groups, (int)run->load.num_groups);
    return PARSED;
}

static int read_current(plan_run *run)
{
    io_error error;
    if (run->values.current == NULL)
        return PARSED;
    if (check_inputs(run->self, "LOAD", run->load_path, "--current", run->values.current) != PARSED)
        return EXIT_BAD;
    if (io_document_read(run->values.current, NULL, &run->current_file, &error) != EPLB_OK)
        return fail_io(run->self, &error);
    if (run->current_file.num_ranks == 0)
        run->current_file.num_ranks = (int32_t)run->values.cluster.ranks;
    document_warn_hash(run->self, &run->current_file, run->values.current);
    if (run->values.groups == 0)
        run->params.num_groups = run->current_file.num_groups;
    return PARSED;
}

static int read_sources(plan_run *run)
{
    io_load_options options = {.max_bytes = SIZE_MAX};
    io_error error;
    if (run->values.sources == NULL)
        return PARSED;
    if (io_load_read(run->values.sources, &options, &run->sources, &error) != EPLB_OK)
        return fail_io(run->self, &error);
    const eplb_load *sources = run->sources.load, *load = run->load.load;
    int32_t ranks = eplb_topology_num_ranks(run->topology), layers = eplb_load_num_layers(load);
    int32_t experts = eplb_load_num_experts(load);
    if (eplb_load_num_windows(sources) != ranks || eplb_load_num_layers(sources) != layers ||
        eplb_load_num_experts(sources) != experts)
        return complain(run->self, "%s: tokens by source rank have shape [%d, %d, %d]: expected [%d, %d, %d]",
                        run->values.sources, (int)eplb_load_num_windows(sources),
                        (int)eplb_load_num_layers(sources), (int)eplb_load_num_experts(sources), (int)ranks,
                        (int)layers, (int)experts);
    return PARSED;
}

/* What means something on several nodes alone. */
static int check_nodes(const plan_run *run)
{
    const plan_values *values = &run->values;
    bool one = eplb_topology_num_nodes(run->topology) == 1;
    if (values->spill > 0 && (one || run->params.num_groups <= 1))
        return complain(run->self,
                        "--spill needs --groups and --nodes: without groups bound to nodes no replica "
                        "is outside its node");
    if (values->sources != NULL && one)
        return complain(run->self, "--sources needs --nodes: on one node no token crosses");
    return PARSED;
}

static int read_inputs(plan_run *run)
{
    bool given = run->values.current != NULL;
    int status = read_current(run);
    if (status == PARSED)
        status = cluster_topology(run->self, &run->values.cluster, given ? &run->current_file : NULL,
                                  &run->topology);
    if (status == PARSED)
        status = check_nodes(run);
    if (status == PARSED)
        status = read_load(run);
    if (status == PARSED)
        status = read_sources(run);
    if (status == PARSED && given) {
        placement_adopt_experts(&run->current_file, eplb_load_num_experts(run->load.load));
        io_error error;
        if (io_document_placement(&run->current_file, run->values.current, &run->current, &error) != EPLB_OK)
            return fail_io(run->self, &error);
    }
    return status;
}

/* What a person at a terminal sees of a plan that takes its time. */
typedef struct progress_view {
    double started;
    int percent; /* last shown; -1: nothing yet */
} progress_view;

static bool show_progress(void *context, int64_t done, int64_t total)
{
    progress_view *view = context;
    int percent = total > 0 ? (int)(100.0 * (double)done / (double)total) : 0;
    if (clock_seconds() - view->started > 0.3 && percent != view->percent)
        (void)fprintf(stderr, "\rplanning %3d %%", view->percent = percent);
    return true;
}

static int make_plan(plan_run *run)
{
    progress_view view = {.started = clock_seconds(), .percent = -1};
    eplb_error error;
    run->params.current = run->current;
    run->params.sources = run->sources.load;
    run->params.progress = isatty(STDERR_FILENO) ? show_progress : NULL;
    run->params.progress_context = &view;
    eplb_status made =
        eplb_plan_create(&run->plan, run->load.load, run->topology, &run->params, NULL, &error);
    run->params.progress = NULL; /* `view` ends here */
    if (view.percent >= 0)
        (void)fputs("\r\033[K", stderr);
    return made == EPLB_OK ? PARSED : fail_library(run->self, &error);
}

/* The options that are numbers of the planner, before any file is read. */
static int read_params(plan_run *run)
{
    const plan_values *values = &run->values;
    eplb_plan_params *params = &run->params;
    eplb_plan_params_init(params, sizeof *params);
    params->policy = values->policy;
    params->split = values->split >= 0 ? (eplb_split)values->split : plan_split_of(values->policy);
    params->num_groups = (int32_t)values->groups;
    params->target_imbalance = values->target;
    params->max_spill = (int32_t)values->spill;
    params->num_threads = (int32_t)values->threads;
    params->work_limit = values->work_limit;
    params->time_limit_seconds = values->time_budget;
    if (values->tile > 0)
        params->cost.tile_tokens = (int32_t)values->tile;
    int status =
        values->max_moves != NULL ? plan_parse_max_moves(run->self, values->max_moves, params) : PARSED;
    if (status == PARSED && values->cost != NULL)
        status = plan_parse_cost(run->self, values->cost, &params->cost);
    if (status == PARSED && values->tile > 0 && params->cost.tiles == 0)
        return complain(run->self, "--tile goes with --cost tiles: no tiles are counted");
    return status;
}

static int check_usage(const plan_run *run)
{
    const plan_values *values = &run->values;
    if (plan_find_policy(run->self, values->policy) != PARSED)
        return EXIT_BAD;
    if (!values->topk && (values->experts > 0 || values->tokens_per_window > 0))
        return complain(run->self, "--experts and --window go with --topk");
    if (values->current == NULL && values->max_moves != NULL)
        return complain(run->self, "--max-moves needs --current: moves are counted from a placement");
    if (values->current == NULL && values->frontier)
        return complain(run->self, "--frontier needs --current: moves are counted from a placement");
    if (values->json && values->output != NULL && strcmp(values->output, "-") == 0)
        return complain(run->self, "--json and -o - both write to standard output");
    if (values->json && values->output == NULL && values->format > IO_FORMAT_JSON)
        return complain(run->self, "--json prints our own format; for %s beside it, pass -o FILE",
                        io_format_name(values->format));
    return placement_check_first_layer(run->self, placement_format(values->format, values->output),
                                       values->first_layer);
}

static int plan_command(const command *self, int argc, char **argv)
{
    plan_run run = {.self = self,
                    .values = {.policy = "auto", .split = -1, .format = -1, .threads = 1, .first_layer = -1}};
    char **operands;
    int count;
    int status = options_parse(self, argc, argv, &run.values, &operands, &count);
    if (status != PARSED)
        return status;
    run.load_path = operands[0];
    status = check_usage(&run);
    if (status == PARSED)
        status = read_params(&run);
    if (status == PARSED)
        status = read_inputs(&run);
    if (status == PARSED)
        status = make_plan(&run);
    if (status == PARSED)
        status = plan_run_measure(&run);
    if (status == PARSED) {
        plan_run_warn(&run);
        status = plan_run_answer(&run);
    }
    if (status == PARSED && !plan_run_gains(&run)) {
        (void)complain(self, "no gain: nothing better than the current placement was found");
        status = EXIT_NO;
    }
    release(&run);
    return finish_output(self, status == PARSED ? EXIT_OK : status);
}

static const listing policies = {"Policies", "policy", eplb_policy_name, eplb_policy_summary};

const command command_plan = {
    .name = "plan",
    .summary = "Plan a placement from a file of loads",
    .operands = "LOAD",
    .least_operands = 1,
    .most_operands = 1,
    .text = "Reads loads [L,E] or [T,L,E] and decides how many replicas each expert gets, on which ranks "
            "they live and how its tokens are split among them. Prints the imbalance (largest over mean rank "
            "load, 1 is perfect) before and after, the proved lower bound and the moves.\n\n"
            "Before is the current placement, or without --current the layout that engines start from: slot "
            "p holds expert p mod E.",
    .json =
        "the plan: version, policy, reason, split, num_layers, num_logical_experts, num_slots, num_ranks, "
        "num_nodes, num_groups, physical_to_logical_map [L][S] (-1 is empty), shares [L][S] (weighted "
        "only), metrics {imbalance [L], mean, worst, lower_bound [L]; with several windows also windows, "
        "window_mean [L], window_p95 [L] and, with --current, before {imbalance [L], window_mean [L], "
        "window_p95 [L]}; on several nodes also cross_node_tokens [L]}, moves {slots, received, "
        "cross_node, lost; where experts are lost also lost_experts [L][]} (with --current), frontier "
        "(with --frontier), plan_seconds, hash. It is itself a placement file.",
    .exit_no = "with --current and a policy other than deepseek and vllm: nothing better than the current "
               "placement was found, so nothing moves. The plan is written all the same.",
    .examples = "eplb plan load.npy --ranks 32 --slots 288 -o plan.json\n"
                "eplb plan load.npy --ranks 32 --slots 288 --nodes 4 --groups 8 --policy deepseek --json\n"
                "eplb plan now.npy --current plan.json --max-moves 4 --format sglang -o map.json",
    .options = plan_options,
    .names = &policies,
    .run = plan_command,
};
