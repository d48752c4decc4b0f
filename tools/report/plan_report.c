/* A plan as a table for people. */
#include "report/plan_report.h"

#include <inttypes.h>
#include <string.h>

#include "report/summary.h"
#include "report/table.h"

enum { WORST_LAYERS = 3, LOST_LAYERS = 8, LOST_EXPERTS = 16 };

static void print_head(FILE *out, int64_t num_windows, const eplb_plan *plan)
{
    static const char *const splits[] = {"equal", "weighted", "batch"};
    const eplb_placement *placement = eplb_plan_placement(plan);
    const eplb_topology *topology = eplb_placement_topology(placement);
    const struct {
        int64_t count;
        const char *noun, *after;
    } sizes[] = {{num_windows, "window", ", "},
                 {eplb_placement_num_layers(placement), "layer", ", "},
                 {eplb_placement_num_experts(placement), "expert", ", "},
                 {eplb_placement_num_slots(placement), "slot", " on "},
                 {eplb_topology_num_ranks(topology), "rank", ", "},
                 {eplb_topology_num_nodes(topology), "node", ""}};
    for (size_t i = num_windows > 1 ? 0 : 1; i < sizeof sizes / sizeof sizes[0]; i++) {
        print_count(out, sizes[i].count, sizes[i].noun);
        (void)fputs(sizes[i].after, out);
    }
    int32_t dead = eplb_topology_num_ranks(topology) - eplb_topology_num_live_ranks(topology);
    if (dead > 0)
        (void)fprintf(out, ", %d dead", (int)dead);
    (void)fprintf(out, "\npolicy %s, %s split", eplb_plan_policy(plan), splits[eplb_plan_split(plan)]);
    const char *reason = eplb_plan_reason(plan);
    if (reason != NULL && *reason != '\0')
        (void)fprintf(out, "\n%s", reason);
    (void)fputs("\n\n", out);
}

static void summary_row(table *rows, const char *name, const double *values, int32_t layers)
{
    summary s = summarize(values, layers);
    table_cell(rows, "%s", name);
    table_cell(rows, "%.4f", s.mean);
    table_cell(rows, "%.4f", s.worst);
    table_cell(rows, "%d", (int)s.worst_index);
}

static void print_layers(FILE *out, const eplb_plan *plan, const double *before, int32_t layers)
{
    static const char *const heads[] = {"layer", "before", "after", "bound", "gap %", NULL};
    const double *after = eplb_plan_imbalance(plan), *bound = eplb_plan_lower_bound(plan);
    int32_t worst[WORST_LAYERS];
    int32_t count = largest(after, layers, worst, WORST_LAYERS);
    table *rows = table_create(heads);
    for (int32_t i = 0; i < count; i++) {
        int32_t l = worst[i];
        table_cell(rows, "%d", (int)l);
        table_cell(rows, "%.4f", before[l]);
        table_cell(rows, "%.4f", after[l]);
        table_cell(rows, "%.4f", bound[l]);
        table_cell(rows, "%.3f", 100.0 * (after[l] / bound[l] - 1.0));
    }
    (void)fputs("\nworst layers after\n", out);
    (void)table_print(out, rows, 2);
    table_destroy(rows);
}

static void print_windows(FILE *out, const plan_figures *figures, const char *before, bool split_anew)
{
    bool alone = figures->num_blocks == figures->num_windows;
    char title[80];
    (void)snprintf(title, sizeof title, "<imbalance of each %s%s",
                   alone ? "window" : "sum of neighbouring windows", split_anew ? ", split anew" : "");
    const char *const heads[] = {title, "mean", "95 %", "worst", NULL};
    table *rows = table_create(heads);
    for (int i = 0; i < 2; i++) {
        table_cell(rows, "%s", i == 0 ? before : "plan");
        table_cell(rows, "%.4f", figures->windows[i].mean);
        table_cell(rows, "%.4f", figures->windows[i].percentile95);
        table_cell(rows, "%.4f", figures->windows[i].worst);
    }
    (void)table_print(out, rows, 2);
    table_destroy(rows);
    (void)fputc('\n', out);
}

/* "  layer 3: 12, 20, 22 and 4 more" */
static void print_lost_layer(FILE *out, const plan_figures *figures, int32_t layer)
{
    int64_t first = figures->lost_first[layer], count = figures->lost_first[layer + 1] - first;
    (void)fprintf(out, "  layer %d:", (int)layer);
    for (int64_t i = 0; i < count && i < LOST_EXPERTS; i++)
        (void)fprintf(out, "%s %d", i > 0 ? "," : "", (int)figures->lost_experts[first + i]);
    if (count > LOST_EXPERTS)
        (void)fprintf(out, " and %" PRId64 " more", count - LOST_EXPERTS);
    (void)fputc('\n', out);
}

/* The experts that no rank can send, those of the first layers one by one. */
static void print_lost(FILE *out, const plan_figures *figures, int32_t layers)
{
    const int64_t *first = figures->lost_first;
    int64_t told = 0, told_layers = 0, all_layers = 0;
    for (int32_t l = 0; l < layers; l++)
        all_layers += first[l + 1] > first[l];
    (void)fputs("lost: ", out);
    print_count(out, first[layers], "expert");
    (void)fprintf(out, " that no live rank holds, in ");
    print_count(out, all_layers, "layer");
    (void)fputc('\n', out);
    for (int32_t l = 0; l < layers && told_layers < LOST_LAYERS; l++) {
        if (first[l + 1] == first[l])
            continue;
        print_lost_layer(out, figures, l);
        told += first[l + 1] - first[l];
        told_layers++;
    }
    if (told < first[layers])
        (void)fprintf(out, "  and %" PRId64 " in the other layers; --json lists all\n", first[layers] - told);
}

static void print_moves(FILE *out, const eplb_plan *plan, const plan_figures *figures)
{
    eplb_move_count moves = eplb_plan_moves(plan);
    (void)fputs("\nmoves: ", out);
    print_count(out, moves.received, "expert");
    (void)fprintf(out, " received, %" PRId64 " of them from another node", moves.cross_node);
    if (moves.lost > 0)
        (void)fprintf(out, ", %" PRId64 " from storage", moves.lost);
    (void)fprintf(out, "; slots changed: %" PRId64 "\n", moves.slots);
    if (figures->lost_experts != NULL)
        print_lost(out, figures, eplb_placement_num_layers(eplb_plan_placement(plan)));
}

void plan_report(FILE *out, const eplb_plan *plan, const plan_figures *figures)
{
    static const char *const heads[] = {"<imbalance", "mean", "worst", "layer", NULL};
    static const char *const summed[] = {"<the sum of all windows", "mean", "worst", "layer", NULL};
    int32_t layers = eplb_placement_num_layers(eplb_plan_placement(plan));
    const char *name = figures->from_current ? "current" : "start layout";
    table *rows = table_create(figures->num_blocks > 1 ? summed : heads);
    print_head(out, figures->num_windows, plan);
    if (figures->num_blocks > 1)
        print_windows(out, figures, name, eplb_plan_split(plan) == EPLB_SPLIT_BATCH);
    summary_row(rows, name, figures->before, layers);
    summary_row(rows, "plan", eplb_plan_imbalance(plan), layers);
    summary_row(rows, "lower bound", eplb_plan_lower_bound(plan), layers);
    (void)table_print(out, rows, 2);
    table_destroy(rows);
    print_layers(out, plan, figures->before, layers);
    if (figures->from_current)
        print_moves(out, plan, figures);
    if (figures->cross_node_tokens != NULL && figures->total_tokens > 0.0) {
        double crossing = 0.0;
        for (int32_t l = 0; l < layers; l++)
            crossing += figures->cross_node_tokens[l];
        (void)fprintf(out, "\ncross-node tokens: %.2f %% of all\n", 100.0 * crossing / figures->total_tokens);
    }
    if (eplb_plan_spilled(plan) > 0)
        (void)fprintf(out, "\nspilled: %" PRId64 " replica%s outside their group's node\n",
                      eplb_plan_spilled(plan), eplb_plan_spilled(plan) == 1 ? "" : "s");
    (void)fprintf(out, "\nplanned in %.2f ms, hash %016" PRIx64 "\n", 1e3 * eplb_plan_seconds(plan),
                  eplb_plan_hash(plan));
}

void frontier_report(FILE *out, const io_frontier_point *points, int32_t count)
{
    static const char *const heads[] = {
        "moves a layer, at most", "received", "from another node", "mean", "worst", NULL};
    table *rows = table_create(heads);
    for (int32_t i = 0; i < count; i++) {
        table_cell(rows, "%" PRId64, points[i].max_moves);
        table_cell(rows, "%" PRId64, points[i].received);
        table_cell(rows, "%" PRId64, points[i].cross_node);
        table_cell(rows, "%.4f", points[i].mean);
        table_cell(rows, "%.4f", points[i].worst);
    }
    (void)fputs("\nfrontier: imbalance against moves\n", out);
    (void)table_print(out, rows, 2);
    table_destroy(rows);
}
