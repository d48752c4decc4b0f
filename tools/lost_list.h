/* Which experts of a current placement no rank can send: who runs the engine loads them from storage. */
#ifndef TOOLS_LOST_LIST_H
#define TOOLS_LOST_LIST_H

#include <eplb/placement.h>

#include "command.h"
#include "io/placement.h"

/* Lists, layer by layer, the experts that no rank held before which lives after or leaves; fills the
 * document's lost_first and lost_experts, both NULL if there are none. Returns PARSED or an exit status.
 * O(L (S + E)). */
int lost_list(const command *self, const eplb_placement *before, const eplb_placement *after,
              io_document *document);

#endif
