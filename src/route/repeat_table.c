/* Repeat tables: unequal shares for engines that can only split equally.
 *
 * Such an engine picks table[e][x mod count[e]]; listing a slot several times gives it a larger part. The
 * number of entries that rounds the shares best is chosen per expert, and the entries stand in chairman
 * order, so that an x that counts up is served evenly too. O(L E width replicas). */
#include <eplb/route.h>

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "route/replicas.h"
#include "route/row.h"

typedef struct repeat_scratch {
    eplb_allocator allocator;
    int32_t *first;  /* [E + 1] */
    int32_t *slot;   /* [S] */
    double *share;   /* [S] */
    int64_t *weight; /* [S] */
    int32_t *quota;  /* [S] */
    int32_t *served; /* [S] */
    int32_t *row;    /* [width] */
} repeat_scratch;

static bool take_scratch(repeat_scratch *scratch, size_t experts, size_t slots, size_t width,
                         const eplb_allocator *allocator)
{
    scratch->allocator = memory_allocator(allocator);
    scratch->first = memory_take(&scratch->allocator, experts + 1, sizeof *scratch->first);
    scratch->slot = memory_take(&scratch->allocator, slots, sizeof *scratch->slot);
    scratch->share = memory_take(&scratch->allocator, slots, sizeof *scratch->share);
    scratch->weight = memory_take(&scratch->allocator, slots, sizeof *scratch->weight);
    scratch->quota = memory_take(&scratch->allocator, slots, sizeof *scratch->quota);
    scratch->served = memory_take(&scratch->allocator, slots, sizeof *scratch->served);
    scratch->row = memory_take(&scratch->allocator, width, sizeof *scratch->row);
    return scratch->first != NULL && scratch->slot != NULL && scratch->share != NULL &&
           scratch->weight != NULL && scratch->quota != NULL && scratch->served != NULL &&
           scratch->row != NULL;
}

static void give_scratch(repeat_scratch *scratch)
{
    memory_give(&scratch->allocator, scratch->first);
    memory_give(&scratch->allocator, scratch->slot);
    memory_give(&scratch->allocator, scratch->share);
    memory_give(&scratch->allocator, scratch->weight);
    memory_give(&scratch->allocator, scratch->quota);
    memory_give(&scratch->allocator, scratch->served);
    memory_give(&scratch->allocator, scratch->row);
}

/* Where a row is written: one of the two tables is NULL. */
typedef struct repeat_output {
    int32_t *table32;
    int32_t *count32;
    int64_t *table64;
    int64_t *count64;
} repeat_output;

static void write_row(const repeat_output *output, size_t expert, size_t width, const int32_t *row,
                      int32_t length)
{
    for (size_t n = 0; n < width; n++) {
        int32_t slot = n < (size_t)length ? row[n] : -1;
        if (output->table32 != NULL)
            output->table32[expert * width + n] = slot;
        else
            output->table64[expert * width + n] = slot;
    }
    if (output->count32 != NULL)
        output->count32[expert] = length;
    else
        output->count64[expert] = length;
}

static eplb_status repeat_layer(const eplb_placement *placement, int32_t layer, const double *shares,
                                int32_t width, repeat_scratch *scratch, const repeat_output *output,
                                double *worst, eplb_error *error)
{
    int32_t experts = eplb_placement_num_experts(placement);
    replicas_list(placement, layer, scratch->first, scratch->slot);
    eplb_status status = replicas_check(scratch->first, experts, layer, error);
    for (int32_t e = 0; e < experts && status == EPLB_OK; e++) {
        const int32_t *slot = scratch->slot + scratch->first[e];
        int32_t count = scratch->first[e + 1] - scratch->first[e];
        status = replicas_shares(shares, layer, e, slot, count, scratch->share, error);
        if (status != EPLB_OK)
            break;
        double here;
        row_weights_of_shares(scratch->share, count, scratch->weight);
        int32_t length = row_choose(scratch->weight, count, width, scratch->quota, &here);
        eplb_route_row(scratch->quota, count, scratch->row, scratch->served);
        for (int32_t n = 0; n < length; n++)
            scratch->row[n] = slot[scratch->row[n]];
        write_row(output, (size_t)layer * (size_t)experts + (size_t)e, (size_t)width, scratch->row, length);
        *worst = here > *worst ? here : *worst;
    }
    return status;
}

static eplb_status repeat_all(const eplb_placement *placement, const double *shares, int32_t width,
                              const repeat_output *output, double *worst_error,
                              const eplb_allocator *allocator, eplb_error *error)
{
    if (width < 1 || width > EPLB_MAX_ROW)
        return error_text(error, EPLB_ERROR_INVALID, "rows of %d entries: expected 1 to %d", width,
                          EPLB_MAX_ROW);
    size_t slots = (size_t)eplb_placement_num_slots(placement);
    repeat_scratch scratch;
    eplb_status status = EPLB_OK;
    double worst = 0.0;
    if (!take_scratch(&scratch, (size_t)eplb_placement_num_experts(placement), slots, (size_t)width,
                      allocator))
        status = error_memory(error, slots * sizeof(int64_t), "a repeat table");
    for (int32_t l = 0; l < eplb_placement_num_layers(placement) && status == EPLB_OK; l++)
        status = repeat_layer(placement, l, shares != NULL ? shares + (size_t)l * slots : NULL, width,
                              &scratch, output, &worst, error);
    give_scratch(&scratch);
    if (status == EPLB_OK && worst_error != NULL)
        *worst_error = worst;
    return status;
}

eplb_status eplb_repeat_table_int32(const eplb_placement *placement, const double *shares, int32_t width,
                                    int32_t *table, int32_t *count, double *worst_error,
                                    const eplb_allocator *allocator, eplb_error *error)
{
    repeat_output output = {.table32 = table, .count32 = count};
    return repeat_all(placement, shares, width, &output, worst_error, allocator, error);
}

eplb_status eplb_repeat_table_int64(const eplb_placement *placement, const double *shares, int32_t width,
                                    int64_t *table, int64_t *count, double *worst_error,
                                    const eplb_allocator *allocator, eplb_error *error)
{
    repeat_output output = {.table64 = table, .count64 = count};
    return repeat_all(placement, shares, width, &output, worst_error, allocator, error);
}
