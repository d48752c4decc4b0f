/* The frontier of a plan: what imbalance is reached with how many moves from the current placement. */
#ifndef TOOLS_FRONTIER_H
#define TOOLS_FRONTIER_H

#include <eplb/plan.h>

#include "command.h"
#include "io/placement.h"

/* Plans with 0, 1, 2, 4, ... experts received per layer at most, up to what `params` allow and as long as it
 * helps; keeps the points that are better than all with fewer moves in document->frontier. Returns PARSED or
 * an exit status. */
int frontier_trace(const command *self, const eplb_load *load, const eplb_topology *topology,
                   const eplb_plan_params *params, io_document *document);

#endif
