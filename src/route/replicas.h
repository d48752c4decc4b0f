/* The live replicas of one layer, checked once for all that route by them. */
#ifndef ROUTE_REPLICAS_H
#define ROUTE_REPLICAS_H

#include <stdint.h>

#include <eplb/placement.h>

/* Lists live replicas of every expert, ascending: slots first[e] .. first[e+1]-1 in slot [S] (first [E +
 * 1]). */
void replicas_list(const eplb_placement *placement, int32_t layer, int32_t *first, int32_t *slot);

/* The shares of one expert's live replicas, share[count] from the layer's row [S] (NULL: equal). INVALID with
 * layer, expert and slot if one is negative or not finite or none is positive. */
eplb_status replicas_shares(const double *shares, int32_t layer, int32_t expert, const int32_t *slot,
                            int32_t count, double *share, eplb_error *error);

/* INVALID with layer and expert if an expert has no live replica. */
eplb_status replicas_check(const int32_t *first, int32_t num_experts, int32_t layer, eplb_error *error);

#endif
