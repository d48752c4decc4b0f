/* Windows on their own. The percentile is by nearest rank. */
#include "window_spread.h"

#include <stdlib.h>

#include <eplb/metrics.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarize_sorted(const double *values, size_t count, window_spread *spread)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    spread->mean = sum / (double)count;
    spread->percentile95 = values[(95 * count + 99) / 100 - 1];
    spread->worst = values[count - 1];
}

bool window_spread_measure(const eplb_load *load, const eplb_placement *placement, const double *shares,
                           window_spread *spread)
{
    const eplb_topology *topology = eplb_placement_topology(placement);
    int32_t windows = eplb_load_num_windows(load), layers = eplb_load_num_layers(load);
    size_t slots = (size_t)eplb_topology_num_slots(topology), count = 0;
    double *values = malloc((size_t)windows * (size_t)layers * sizeof *values);
    double *rank_load = malloc((size_t)eplb_topology_num_ranks(topology) * sizeof *rank_load);
    bool good = values != NULL && rank_load != NULL;
    for (int32_t t = 0; good && t < windows; t++)
        for (int32_t l = 0; good && l < layers; l++) {
            const double *row = shares == NULL ? NULL : shares + (size_t)l * slots;
            good = eplb_rank_load(load, l, t, placement, row, rank_load, NULL, NULL) == EPLB_OK;
            values[count++] = eplb_imbalance(topology, rank_load);
        }
    if (good) {
        qsort(values, count, sizeof *values, compare);
        summarize_sorted(values, count, spread);
    }
    free(rank_load);
    free(values);
    return good;
}
