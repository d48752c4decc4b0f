/* The tables of DeepSeek's module in the shapes and the 64 bits that engines index with: physical_to_logical
 * widened, logical_to_physical dense and padded with -1, where a replica's place in its expert's row is its
 * number (not the order of slots), and the counts widened. One pass over each output, nothing allocated. */
#include <eplb/deepseek.h>

#include "base/error.h"

static eplb_status check_sizes(int32_t num_layers, int32_t num_logical, int32_t num_replicas, int32_t width,
                               eplb_error *error)
{
    const struct {
        const char *what;
        int32_t value, most;
    } sizes[] = {{"number of layers", num_layers, EPLB_MAX_LAYERS},
                 {"number of logical experts", num_logical, EPLB_MAX_EXPERTS},
                 {"number of replicas", num_replicas, EPLB_MAX_SLOTS},
                 {"width", width, EPLB_MAX_SLOTS}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i].value < 1 || sizes[i].value > sizes[i].most)
            return error_set(error, EPLB_ERROR_INVALID, (error_place){-1, -1, -1, -1, sizes[i].value},
                             "%s is %d: expected 1 to %d", sizes[i].what, sizes[i].value, sizes[i].most);
    }
    return EPLB_OK;
}

/* One layer's slots, widened and spread over the dense rows. */
static eplb_status fill_layer(int32_t layer, int32_t num_logical, int32_t num_replicas, int32_t width,
                              const int32_t *expert, const int32_t *number, int64_t *wide, int64_t *dense,
                              eplb_error *error)
{
    for (int64_t i = 0; i < (int64_t)num_logical * width; i++)
        dense[i] = -1;
    for (int32_t slot = 0; slot < num_replicas; slot++) {
        int32_t e = expert[slot], r = number[slot];
        if (e < 0 || e >= num_logical)
            return error_set(error, EPLB_ERROR_INVALID, (error_place){layer, -1, -1, slot, e},
                             "layer %d, slot %d holds expert %d: expected 0 to %d", layer, slot, e,
                             num_logical - 1);
        if (r < 0 || r >= width)
            return error_set(error, EPLB_ERROR_INVALID, (error_place){layer, e, -1, slot, r},
                             "layer %d, slot %d is replica %d of expert %d: expected 0 to %d", layer, slot, r,
                             e, width - 1);
        wide[slot] = e;
        dense[(int64_t)e * width + r] = slot;
    }
    return EPLB_OK;
}

eplb_status eplb_rebalance_tables_int64(int32_t num_layers, int32_t num_logical, int32_t num_replicas,
                                        int32_t width, const int32_t *physical_to_logical,
                                        const int32_t *replica_rank, const int32_t *logical_count,
                                        int64_t *physical_out, int64_t *dense_out, int64_t *count_out,
                                        eplb_error *error)
{
    eplb_status status = check_sizes(num_layers, num_logical, num_replicas, width, error);
    for (int32_t layer = 0; status == EPLB_OK && layer < num_layers; layer++) {
        size_t at = (size_t)layer * (size_t)num_replicas, experts = (size_t)layer * (size_t)num_logical;
        status = fill_layer(layer, num_logical, num_replicas, width, physical_to_logical + at,
                            replica_rank + at, physical_out + at, dense_out + experts * (size_t)width, error);
        for (int32_t e = 0; e < num_logical; e++)
            count_out[experts + (size_t)e] = logical_count[experts + (size_t)e];
    }
    return status;
}
