/* A placement file that a command works with beside a load or token routing: whether the two fit each other,
 * and the ranks with those that the command line calls dead. */
#ifndef TOOLS_PLACEMENT_INPUT_H
#define TOOLS_PLACEMENT_INPUT_H

#include <eplb/topology.h>

#include "command.h"
#include "io/placement.h"

/* Formats that do not say how many experts there are are read as if the largest id were the last. Where more
 * are known of, this corrects it, so that an expert without a slot is missed. */
void placement_adopt_experts(io_document *document, int32_t num_experts);

/* Adopts the experts; refuses a document at `path` that is for other layers or experts than the file `other`.
 * PARSED or an exit status. */
int placement_match(const command *self, io_document *document, const char *path, const char *other,
                    int32_t num_layers, int32_t num_experts);

/* The document's topology; a list of --dead takes the place of the dead ranks in the file, NULL leaves them.
 * PARSED or an exit status. */
int placement_topology(const command *self, const io_document *document, const char *path, const char *dead,
                       eplb_topology **topology);

#endif
