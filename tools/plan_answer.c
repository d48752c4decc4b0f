/* What `eplb plan` says of a plan: its document, and for people what was before and after. */
#include <stdlib.h>
#include <string.h>

#include <eplb/metrics.h>

#include "failure.h"
#include "frontier.h"
#include "lost_list.h"
#include "placement_output.h"
#include "plan_run.h"
#include "published.h"
#include "report/plan_report.h"

/* Whether the ranks have the slots they have in the current placement. */
static bool keeps_shape(const plan_run *run)
{
    const eplb_topology *was = eplb_placement_topology(run->current);
    int32_t ranks = eplb_topology_num_ranks(run->topology);
    return eplb_topology_num_ranks(was) == ranks &&
           memcmp(eplb_topology_first_slot(was), eplb_topology_first_slot(run->topology),
                  ((size_t)ranks + 1) * sizeof(int32_t)) == 0;
}

/* What the plan is compared with: the current placement without what died since then, or as it is where ranks
 * or slots come or go; or else the layout that engines start from. */
static eplb_status choose_before(plan_run *run, const eplb_placement **before, eplb_error *error)
{
    const eplb_load *load = run->load.load;
    int32_t layers = eplb_load_num_layers(load), experts = eplb_load_num_experts(load);
    *before = run->current;
    if (run->current != NULL && !keeps_shape(run))
        return EPLB_OK;
    eplb_status status =
        run->current == NULL
            ? eplb_placement_create_initial(&run->start, run->topology, layers, experts, NULL, error)
            : eplb_placement_create(&run->start, run->topology, layers, experts,
                                    eplb_placement_physical_to_logical(run->current), NULL, error);
    *before = run->start;
    return status;
}

/* That of each window on its own, before and after. Where batches are split anew, so are the windows. */
static int measure_windows(plan_run *run, const eplb_placement *before, const double *shares)
{
    const eplb_load *load = run->load.load;
    eplb_split split = eplb_plan_split(run->plan);
    const double *after = split == EPLB_SPLIT_WEIGHTED ? eplb_plan_shares(run->plan) : NULL;
    eplb_error error;
    if (eplb_load_num_windows(load) == 1)
        return PARSED;
    if (window_spread_measure(load, before, split, shares, &run->windows[0], &error) != EPLB_OK ||
        window_spread_measure(load, eplb_plan_placement(run->plan), split, after, &run->windows[1], &error) !=
            EPLB_OK)
        return fail_library(run->self, &error);
    return PARSED;
}

int plan_run_measure(plan_run *run)
{
    const eplb_load *load = run->load.load;
    const eplb_placement *before;
    const double *shares = run->current_file.shares;
    eplb_error error;
    int32_t layers = eplb_load_num_layers(load);
    run->before = malloc((size_t)layers * sizeof *run->before);
    if (run->before == NULL)
        return fail_memory(run->self);
    if (choose_before(run, &before, &error) != EPLB_OK)
        return fail_library(run->self, &error);
    eplb_status status = eplb_plan_split(run->plan) == EPLB_SPLIT_BATCH
                             ? window_spread_of_sum(load, before, run->before, &error)
                             : eplb_imbalance_per_layer(load, before, shares, run->before, NULL, &error);
    if (status != EPLB_OK)
        return fail_library(run->self, &error);
    return measure_windows(run, before, shares);
}

static void warn_zero_load(const plan_run *run)
{
    int32_t layers = eplb_load_num_layers(run->load.load), empty = 0, first = 0;
    for (int32_t l = layers - 1; l >= 0; l--)
        if (eplb_load_total(run->load.load, l) == 0) {
            empty++;
            first = l;
        }
    if (empty > 0 && is_published(run->values.policy))
        warn(run->self,
             "%d of %d layers have no load (the first is layer %d): %s gives every spare slot of such a "
             "layer to expert 0, as the original does",
             (int)empty, (int)layers, (int)first, run->values.policy);
}

/* A current placement, too few moves or groups that do not suit the nodes can leave more replicas outside
 * their group's node than were allowed. */
static void warn_spilled(const plan_run *run)
{
    int64_t spilled = eplb_plan_spilled(run->plan);
    int64_t allowed = run->values.spill * eplb_load_num_layers(run->load.load);
    if (spilled > allowed && !is_published(run->values.policy))
        warn(run->self,
             "%lld replica%s outside their group's node, where --spill allows %lld: groups do not fit on "
             "the nodes or are fewer, or the current placement has them there and moves are limited",
             (long long)spilled, spilled == 1 ? " lives" : "s live", (long long)allowed);
}

void plan_run_warn(const plan_run *run)
{
    warn_zero_load(run);
    warn_spilled(run);
}

bool plan_run_gains(const plan_run *run)
{
    if (run->current == NULL || is_published(run->values.policy) || eplb_plan_moves(run->plan).slots > 0 ||
        !keeps_shape(run) || eplb_placement_is_valid(run->start, NULL) != EPLB_OK)
        return true;
    const double *after = eplb_plan_imbalance(run->plan);
    for (int32_t l = 0; l < eplb_load_num_layers(run->load.load); l++)
        if (after[l] < run->before[l] * (1.0 - 1e-12))
            return true;
    return false;
}

static double total_tokens(const eplb_load *load)
{
    double total = 0.0;
    for (int32_t l = 0; l < eplb_load_num_layers(load); l++)
        total += (double)eplb_load_total(load, l);
    return total;
}

static void print_report(const plan_run *run)
{
    plan_figures figures = {.num_windows = run->load.num_windows,
                            .num_blocks = eplb_load_num_windows(run->load.load),
                            .windows = run->windows,
                            .before = run->before,
                            .cross_node_tokens = run->document.cross_node_tokens,
                            .total_tokens = total_tokens(run->load.load),
                            .from_current = run->current != NULL,
                            .lost_first = run->document.lost_first,
                            .lost_experts = run->document.lost_experts};
    plan_report(stdout, run->plan, &figures);
    if (run->values.frontier)
        frontier_report(stdout, run->document.frontier, run->document.num_frontier);
}

/* The document's part on windows. */
static int describe_windows(plan_run *run)
{
    io_window_figures figures = {.num_windows = eplb_load_num_windows(run->load.load),
                                 .mean = run->windows[1].layer_mean,
                                 .percentile95 = run->windows[1].layer_percentile95};
    io_error error;
    if (figures.num_windows == 1)
        return PARSED;
    if (run->current != NULL) {
        figures.before_imbalance = run->before;
        figures.before_mean = run->windows[0].layer_mean;
        figures.before_percentile95 = run->windows[0].layer_percentile95;
    }
    return io_document_take_windows(&run->document, &figures, &error) == EPLB_OK ? PARSED
                                                                                 : fail_io(run->self, &error);
}

/* The document's part on nodes. */
static int describe_nodes(plan_run *run)
{
    if (eplb_topology_num_nodes(run->topology) == 1)
        return PARSED;
    eplb_error error;
    const eplb_placement *placement = eplb_plan_placement(run->plan);
    run->document.cross_node_tokens =
        calloc((size_t)eplb_placement_num_layers(placement), sizeof *run->document.cross_node_tokens);
    if (run->document.cross_node_tokens == NULL)
        return fail_memory(run->self);
    eplb_status status =
        eplb_cross_node_tokens(run->load.load, placement, eplb_plan_shares(run->plan), run->sources.load,
                               run->document.cross_node_tokens, NULL, &error);
    return status == EPLB_OK ? PARSED : fail_library(run->self, &error);
}

/* All that is written of the plan. */
static int make_document(plan_run *run)
{
    io_error error;
    if (io_document_from_plan(run->plan, run->current != NULL, &run->document, &error) != EPLB_OK)
        return fail_io(run->self, &error);
    int status = run->document.moves.lost > 0
                     ? lost_list(run->self, run->current, eplb_plan_placement(run->plan), &run->document)
                     : PARSED;
    if (status == PARSED)
        status = describe_windows(run);
    if (status == PARSED)
        status = describe_nodes(run);
    if (status == PARSED && run->values.frontier)
        status = frontier_trace(run->self, run->load.load, run->topology, &run->params, &run->document);
    return status;
}

int plan_run_answer(plan_run *run)
{
    const plan_values *values = &run->values;
    bool to_stdout = values->output != NULL && strcmp(values->output, "-") == 0;
    /* a format alone: print it */
    bool plain = values->format >= 0 && values->output == NULL && !values->json;
    int status = make_document(run);
    if (status == PARSED && (values->output != NULL || plain))
        status = placement_write(run->self, &run->document, placement_format(values->format, values->output),
                                 values->output, values->first_layer);
    if (status == PARSED && values->json)
        status = placement_write(run->self, &run->document, IO_FORMAT_JSON, NULL, -1);
    if (status == PARSED && !values->json && !to_stdout && !plain)
        print_report(run);
    return status;
}
