/* Metrics: how even a placement makes the ranks, recomputed from loads and shares alone.
 *
 * imbalance = max over live ranks of (load_g / speed_g) / (total load / total live speed); 1.0 is perfect and
 * a layer without load counts as 1.0. With equal speeds this is max / mean. Doubles are computed by IEEE
 * basic operations in a fixed order: the same bits everywhere. All functions are pure and thread-safe. */
#ifndef EPLB_METRICS_H
#define EPLB_METRICS_H

#include <eplb/load.h>
#include <eplb/placement.h>
#include <eplb/status.h>

EPLB_BEGIN_DECLS

/* Load of each rank, rank_load[G], for one layer. `window` is 0 .. T-1, or -1 for the sum of all. `shares`
 * [S] is that layer's row of shares (a slot's fraction of its expert's tokens), or NULL for equal split over
 * the live replicas. Tokens of an expert without a live replica are served by nobody. O(S + E). Errors:
 * INVALID (sizes differ), MEMORY. */
EPLB_API eplb_status eplb_rank_load(const eplb_load *load, int32_t layer, int32_t window,
                                    const eplb_placement *placement, const double *shares, double *rank_load,
                                    const eplb_allocator *allocator, eplb_error *error);

/* Imbalance of given rank loads, rank_load[G], under the topology's health and speeds. O(G). */
EPLB_API double eplb_imbalance(const eplb_topology *topology, const double *rank_load);

/* Imbalance of every layer on the summed load, imbalance[L]; `shares` is [L, S] or NULL. O(L (S + E)). */
EPLB_API eplb_status eplb_imbalance_per_layer(const eplb_load *load, const eplb_placement *placement,
                                              const double *shares, double *imbalance,
                                              const eplb_allocator *allocator, eplb_error *error);

/* Tokens of each layer that must leave the node they start on, crossing[L], on the summed load. Tokens of an
 * expert start on live ranks as `sources` tells (windows are source ranks, [G, L, E]; only proportions count)
 * or, where it is NULL or has none of the expert's tokens, evenly; a node's replicas serve first what starts
 * on their node, as much as their shares allow. `shares` is [L, S] or NULL for equal split. O(L (S + E (N +
 * G))) with sources, O(L (S + E N)) without. Errors: INVALID (sizes differ), MEMORY. */
EPLB_API eplb_status eplb_cross_node_tokens(const eplb_load *load, const eplb_placement *placement,
                                            const double *shares, const eplb_load *sources, double *crossing,
                                            const eplb_allocator *allocator, eplb_error *error);

EPLB_END_DECLS

#endif
