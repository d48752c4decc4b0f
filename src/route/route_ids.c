/* Routing a batch of ids through a table: eplb_select_next, for many ids at once.
 *
 * A large batch follows links between the places of the rows instead of comparing counters with lengths,
 * which takes half the time. O(ids), with links O(ids + E). */
#include <eplb/route.h>

#include <string.h>

/* Counters to places in the rows, and back. False (nothing changed) if an expert has no row. */
static bool enter_rows(const eplb_route_table *table, int32_t *position)
{
    for (int32_t e = 0; e < table->num_experts; e++) {
        if (table->row_first[e + 1] == table->row_first[e])
            return false;
    }
    for (int32_t e = 0; e < table->num_experts; e++) {
        int32_t begin = table->row_first[e], length = table->row_first[e + 1] - begin;
        position[e] = begin + ((uint32_t)position[e] < (uint32_t)length ? position[e] : 0);
    }
    return true;
}

static void leave_rows(const eplb_route_table *table, int32_t *position)
{
    for (int32_t e = 0; e < table->num_experts; e++)
        position[e] -= table->row_first[e];
}

/* One choice by links between places; position holds places. */
static inline int32_t follow(const eplb_route_table *table, int32_t *position, int32_t expert)
{
    if (!eplb_route_knows(table, expert))
        return -1;
    int32_t at = position[expert];
    position[expert] = table->next[at];
    return table->rows[at];
}

/* One choice of a known expert. */
static inline uint32_t step(const eplb_route_table *table, int32_t *position, uint32_t expert)
{
    uint32_t at = (uint32_t)position[expert];
    position[expert] = table->next[at];
    return (uint32_t)table->rows[at];
}

/* Four at a time: the time goes into comparisons, loads and stores, so four ids are compared at once and
 * slots are stored in pairs. */
static void follow_all(const eplb_route_table *table, int32_t *position, const int32_t *ids, int64_t count,
                       int32_t *slots)
{
    uint32_t experts = (uint32_t)table->num_experts;
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        uint32_t id[4], four[4];
        memcpy(id, ids + i, sizeof id);
        if (id[0] < experts && id[1] < experts && id[2] < experts && id[3] < experts) {
            four[0] = step(table, position, id[0]);
            four[1] = step(table, position, id[1]);
            four[2] = step(table, position, id[2]);
            four[3] = step(table, position, id[3]);
            memcpy(slots + i, four, sizeof four);
            continue;
        }
        for (int k = 0; k < 4; k++)
            slots[i + k] = follow(table, position, ids[i + k]);
    }
    for (; i < count; i++)
        slots[i] = follow(table, position, ids[i]);
}

void eplb_route_ids(const int32_t *block, int32_t *position, const int32_t *ids, int64_t count,
                    int32_t *slots)
{
    eplb_route_table table = eplb_route_table_at(block);
    /* A large batch follows the links between places: half the time of comparing counters with lengths. */
    if (count < 2 * (int64_t)table.num_experts || !enter_rows(&table, position)) {
        for (int64_t i = 0; i < count; i++)
            slots[i] = eplb_select_next(&table, position, ids[i]);
        return;
    }
    follow_all(&table, position, ids, count, slots);
    leave_rows(&table, position);
}

void eplb_route_start(const int32_t *block, int32_t rank, int32_t *position)
{
    eplb_route_table table = eplb_route_table_at(block);
    /* Neighbouring ranks start at neighbouring places: their first tokens read a piece of the row in
     * order. */
    for (int32_t e = 0; e < table.num_experts; e++) {
        int32_t length = table.row_first[e + 1] - table.row_first[e];
        position[e] = length > 0 ? rank % length : 0;
    }
}
