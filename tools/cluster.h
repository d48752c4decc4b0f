/* The ranks a command works on: from its options, and from a placement file where the options are silent. */
#ifndef TOOLS_CLUSTER_H
#define TOOLS_CLUSTER_H

#include <eplb/topology.h>

#include "command.h"
#include "io/placement.h"

typedef struct cluster_options {
    int64_t ranks, slots, nodes; /* 0: not given */
    const char *dead, *rank_slots, *rank_speeds;
} cluster_options;

/* Makes the topology. `base` is a placement file that supplies what the options leave out, or NULL. Without
 * slots that divide by the ranks, the first ranks get one more. Returns PARSED and the topology, or an exit
 * status. */
int cluster_topology(const command *self, const cluster_options *options, const io_document *base,
                     eplb_topology **topology);

#endif
