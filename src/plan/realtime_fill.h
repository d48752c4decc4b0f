/* Filling the rooms of low ranks with the exports of high ones, for the real-time planner. */
#ifndef PLAN_REALTIME_FILL_H
#define PLAN_REALTIME_FILL_H

#include <stdbool.h>
#include <stdint.h>

#include <eplb/realtime.h>

enum { REALTIME_INDEX_BITS = 16, REALTIME_INDEX_MASK = (1 << REALTIME_INDEX_BITS) - 1 };

/* Amounts of experts or ranks: one number each, so that comparing numbers compares amounts and, of equal
 * ones, prefers the lowest index. No sum of tokens reaches E * 2^31 <= 2^47. */
typedef struct realtime_amounts {
    uint64_t *key;
    int32_t size;
} realtime_amounts;

static inline uint64_t realtime_pack(int64_t amount, int32_t index)
{
    return (uint64_t)amount << REALTIME_INDEX_BITS | (uint64_t)(REALTIME_INDEX_MASK - index);
}

/* Exports by expert, rooms by rank, both in any order; `used` [G] is scratch. Slots of rank g are g * spare
 * ... Adds replicas to the plan and takes their tokens from the masters. True if all exports found room. The
 * lists are used up. O((exports + rooms) log of them). */
typedef struct realtime_filling {
    realtime_amounts exports;
    realtime_amounts rooms;
    int32_t spare;
    int32_t *used;
    eplb_realtime_plan *plan;
} realtime_filling;

/* Largest export to largest room, again and again: few replicas, but a spare slot may be wasted on a room
 * that it cannot fill. */
bool realtime_fill_few(realtime_filling *work);
/* Small exports whole and one large export for the rest of each room: hardly ever wastes a slot. */
bool realtime_fill_tight(realtime_filling *work);

#endif
