/* What it takes to carry the experts of one placement change over the links: rounds and seconds.
 *
 * Layers move one after the other. The received experts of a layer are edges of a bipartite multigraph from a
 * rank that held the expert to the rank that receives it, and with one transfer per rank, direction and round
 * the least number of rounds is the largest degree (Koenig 1916). Sources are chosen to make that least:
 * holders on the receiver's node before others, then by augmenting paths. */
#ifndef TOOLS_TRANSFER_H
#define TOOLS_TRANSFER_H

#include <eplb/placement.h>

typedef struct transfer_links {
    double bytes_per_expert;
    double intra_bytes_per_second; /* one rank, one direction, inside a node */
    double inter_bytes_per_second; /* between nodes */
} transfer_links;

typedef struct transfer_cost {
    int64_t rounds; /* summed over layers */
    double seconds; /* the same: per layer the busiest rank and direction */
} transfer_cost;

/* Costs the way from `before` to `after` (same L and E; ranks that are new receive only, ranks that leave
 * send before they go). An expert that no live rank held comes from storage; it takes its receiver's time as
 * if from another node, and no sender's. Returns false when memory is out. O(L (S + E)) and the augmenting
 * paths. */
bool transfer_plan(const eplb_placement *before, const eplb_placement *after, const transfer_links *links,
                   transfer_cost *cost);

#endif
