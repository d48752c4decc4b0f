/* Windows on their own: a placement that is even on the sum of a load is not on each of its windows. */
#ifndef TOOLS_WINDOW_SPREAD_H
#define TOOLS_WINDOW_SPREAD_H

#include <eplb/load.h>
#include <eplb/placement.h>
#include <eplb/plan.h>

typedef struct window_spread {
    double mean, percentile95, worst; /* imbalance over windows and layers */
    double *layer_mean;               /* [L] over a layer's windows */
    double *layer_percentile95;       /* [L] */
} window_spread;

/* Judges the placement on every window and layer alone: under shares [L, S] (NULL: equal), or with split
 * batch under the best split of each window, whose largest rank load eplb/route.h proves. On success the
 * caller clears *spread. Errors: MEMORY, OVERFLOW. O(T L (S + E)); the split of a window takes
 * microseconds. */
eplb_status window_spread_measure(const eplb_load *load, const eplb_placement *placement, eplb_split split,
                                  const double *shares, window_spread *spread, eplb_error *error);
void window_spread_clear(window_spread *spread);

/* The sum of all windows as if it were one batch: imbalance [L] of its best split over the placement, which
 * is what a plan for batches reports. */
eplb_status window_spread_of_sum(const eplb_load *load, const eplb_placement *placement, double *imbalance,
                                 eplb_error *error);

#endif
