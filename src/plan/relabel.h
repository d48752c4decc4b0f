/* Choosing rank labels for most overlap with what the ranks hold now. */
#ifndef PLAN_RELABEL_H
#define PLAN_RELABEL_H

#include "plan/layout.h"

/* Permutes the contents of ranks in expert[S] so that the fewest experts are received, and of these the
 * fewest from other nodes. Ranks trade places only with ranks of the same number of slots and the same speed.
 * Where rank_area [G] is given, the node of each rank, all ranks of a node trade places with those of a like
 * node, then ranks within nodes. home [G, words] (expert_bits.h): what each rank holds
 * now. Errors: MEMORY. O(G^3 + G^2 k) up to 256 ranks, up to 4,096 a good choice in O(G^2 k), above that
 * none. */
eplb_status relabel_ranks(const layer_problem *problem, const int32_t *rank_area, const uint64_t *home,
                          int32_t words, int32_t *expert, arena *scratch, eplb_error *error);

#endif
