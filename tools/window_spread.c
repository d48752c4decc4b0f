/* Windows on their own. Percentiles are by nearest rank. */
#include "window_spread.h"

#include <stdlib.h>
#include <string.h>

#include <eplb/metrics.h>
#include <eplb/route.h>

#include "failure.h"

/* One layer at a time. */
typedef struct layer_view {
    const eplb_load *load;
    const eplb_placement *placement;
    const double *shares;  /* of the layer, or NULL */
    eplb_resplit *resplit; /* with split batch, else NULL */
    uint8_t *served;       /* [E] has a live replica; tokens of others are served by nobody */
    int64_t *counts;       /* [E] */
    int64_t *quota;        /* [S] */
    double *rank_load;     /* [G] */
    int32_t layer;
} layer_view;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double mean_of(const double *values, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

static double percentile95_of(const double *sorted, size_t count)
{
    return sorted[(95 * count + 99) / 100 - 1];
}

static int64_t live_speed(const eplb_topology *topology)
{
    int64_t speed = 0;
    for (int32_t g = 0; g < eplb_topology_num_ranks(topology); g++)
        if (eplb_topology_rank_alive(topology)[g])
            speed += eplb_topology_rank_speed(topology)[g];
    return speed;
}

static void mark_served(layer_view *view)
{
    const eplb_topology *topology = eplb_placement_topology(view->placement);
    int32_t slots = eplb_placement_num_slots(view->placement);
    const int32_t *row =
        eplb_placement_physical_to_logical(view->placement) + (size_t)view->layer * (size_t)slots;
    memset(view->served, 0, (size_t)eplb_load_num_experts(view->load));
    for (int32_t p = 0; p < slots; p++)
        if (row[p] >= 0 && eplb_topology_rank_alive(topology)[eplb_topology_slot_rank(topology)[p]])
            view->served[row[p]] = 1;
}

/* The imbalance of the best split of a window: its proved bound, which whole tokens reach but for one. */
static eplb_status split_window(layer_view *view, int32_t window, double *imbalance, eplb_error *error)
{
    const eplb_topology *topology = eplb_placement_topology(view->placement);
    eplb_resplit_result result;
    double total = 0.0;
    for (int32_t e = 0; e < eplb_load_num_experts(view->load); e++) {
        view->counts[e] = view->served[e] ? eplb_load_at(view->load, window, view->layer, e) : 0;
        total += (double)view->counts[e];
    }
    *imbalance = 1.0;
    if (total == 0.0)
        return EPLB_OK;
    eplb_status status =
        eplb_resplit_solve(view->resplit, view->counts, window > 0, view->quota, &result, error);
    if (status == EPLB_OK)
        *imbalance =
            (double)result.bound_load / (double)result.bound_speed / (total / (double)live_speed(topology));
    return status;
}

static eplb_status judge_window(layer_view *view, int32_t window, double *imbalance, eplb_error *error)
{
    if (view->resplit != NULL)
        return split_window(view, window, imbalance, error);
    eplb_status status = eplb_rank_load(view->load, view->layer, window, view->placement, view->shares,
                                        view->rank_load, NULL, error);
    if (status == EPLB_OK)
        *imbalance = eplb_imbalance(eplb_placement_topology(view->placement), view->rank_load);
    return status;
}

/* The windows of one layer, values[T]. */
static eplb_status judge_layer(layer_view *view, eplb_split split, double *values, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    if (split == EPLB_SPLIT_BATCH) {
        mark_served(view);
        status = eplb_resplit_create(&view->resplit, view->placement, view->layer, NULL, error);
    }
    for (int32_t t = 0; status == EPLB_OK && t < eplb_load_num_windows(view->load); t++)
        status = judge_window(view, t, &values[t], error);
    eplb_resplit_destroy(view->resplit);
    view->resplit = NULL;
    return status;
}

static eplb_status judge_layers(layer_view *view, eplb_split split, const double *shares, double *values,
                                window_spread *spread, eplb_error *error)
{
    int32_t layers = eplb_load_num_layers(view->load);
    size_t windows = (size_t)eplb_load_num_windows(view->load);
    size_t slots = (size_t)eplb_placement_num_slots(view->placement);
    for (int32_t l = 0; l < layers; l++) {
        double *row = values + (size_t)l * windows;
        view->layer = l;
        view->shares = shares == NULL ? NULL : shares + (size_t)l * slots;
        eplb_status status = judge_layer(view, split, row, error);
        if (status != EPLB_OK)
            return status;
        qsort(row, windows, sizeof *row, compare);
        spread->layer_mean[l] = mean_of(row, windows);
        spread->layer_percentile95[l] = percentile95_of(row, windows);
    }
    size_t count = (size_t)layers * windows;
    qsort(values, count, sizeof *values, compare);
    spread->mean = mean_of(values, count);
    spread->percentile95 = percentile95_of(values, count);
    spread->worst = values[count - 1];
    return EPLB_OK;
}

eplb_status window_spread_measure(const eplb_load *load, const eplb_placement *placement, eplb_split split,
                                  const double *shares, window_spread *spread, eplb_error *error)
{
    size_t experts = (size_t)eplb_load_num_experts(load);
    size_t layers = (size_t)eplb_load_num_layers(load), windows = (size_t)eplb_load_num_windows(load);
    layer_view view = {.load = load, .placement = placement};
    double *values = malloc(windows * layers * sizeof *values);
    view.served = malloc(experts);
    view.counts = malloc(experts * sizeof *view.counts);
    view.quota = malloc((size_t)eplb_placement_num_slots(placement) * sizeof *view.quota);
    view.rank_load =
        malloc((size_t)eplb_topology_num_ranks(eplb_placement_topology(placement)) * sizeof *view.rank_load);
    *spread = (window_spread){.layer_mean = malloc(layers * sizeof(double)),
                              .layer_percentile95 = malloc(layers * sizeof(double))};
    eplb_status status;
    if (values == NULL || view.served == NULL || view.counts == NULL || view.quota == NULL ||
        view.rank_load == NULL || spread->layer_mean == NULL || spread->layer_percentile95 == NULL)
        status = no_memory(error);
    else
        status = judge_layers(&view, split, shares, values, spread, error);
    if (status != EPLB_OK)
        window_spread_clear(spread);
    free(view.rank_load);
    free(view.quota);
    free(view.counts);
    free(view.served);
    free(values);
    return status;
}

void window_spread_clear(window_spread *spread)
{
    free(spread->layer_mean);
    free(spread->layer_percentile95);
    memset(spread, 0, sizeof *spread);
}

eplb_status window_spread_of_sum(const eplb_load *load, const eplb_placement *placement, double *imbalance,
                                 eplb_error *error)
{
    int32_t layers = eplb_load_num_layers(load), experts = eplb_load_num_experts(load);
    int64_t *sum = calloc((size_t)layers * (size_t)experts, sizeof *sum);
    eplb_load *summed = NULL;
    eplb_load_params params;
    window_spread spread = {0};
    if (sum == NULL)
        return no_memory(error);
    for (int32_t l = 0; l < layers; l++)
        eplb_load_sum(load, l, sum + (size_t)l * (size_t)experts);
    eplb_load_params_init(&params, sizeof params);
    params.num_layers = layers;
    params.num_experts = experts;
    params.counts = sum;
    eplb_status status = eplb_load_create(&summed, &params, NULL, error);
    if (status == EPLB_OK)
        status = window_spread_measure(summed, placement, EPLB_SPLIT_BATCH, NULL, &spread, error);
    for (int32_t l = 0; status == EPLB_OK && l < layers; l++)
        imbalance[l] = spread.layer_mean[l];
    window_spread_clear(&spread);
    eplb_load_destroy(summed);
    free(sum);
    return status;
}
