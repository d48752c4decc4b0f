/* Which of several like nodes gets which contents, by where tokens start. */
#ifndef PLAN_MATCH_NODES_H
#define PLAN_MATCH_NODES_H

#include "plan/layer.h"

/* Lets like nodes trade their contents where fewer tokens then cross nodes. Nothing else changes: neither
 * loads of ranks nor which experts share a node. Nothing is done without sources, and with a current
 * placement: there a trade would be many moves. Errors: MEMORY. O(E (N^2 + G) + N^3 + S), and O(N E) memory.
 */
eplb_status match_nodes(const layer_problem *problem, layer_answer *answer, arena *scratch,
                        eplb_error *error);

#endif
