/* Windows on their own: a placement that is even on the sum of a load is not on each of its windows. */
#ifndef TOOLS_WINDOW_SPREAD_H
#define TOOLS_WINDOW_SPREAD_H

#include <stdbool.h>

#include <eplb/load.h>
#include <eplb/placement.h>

typedef struct window_spread {
    double mean, percentile95, worst; /* imbalance over windows and layers */
} window_spread;

/* Judges the placement on every window and layer alone. shares [L, S] or NULL. False when memory is out.
 * O(T L (S + E)). */
bool window_spread_measure(const eplb_load *load, const eplb_placement *placement, const double *shares,
                           window_spread *spread);

#endif
