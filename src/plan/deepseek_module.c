/* The public form of DeepSeek's module: balanced_packing, replicate_experts and rebalance_experts on arrays
 * of many rows. Checks every argument and weight, then runs row after row in one arena. */
#include <eplb/deepseek.h>

#include <float.h>

#include "base/error.h"
#include "plan/deepseek.h"
#include "plan/pack.h"
#include "plan/replicate.h"

static eplb_status check_range(const char *what, int32_t value, int32_t least, int32_t most,
                               eplb_error *error)
{
    if (value >= least && value <= most)
        return EPLB_OK;
    return error_set(error, EPLB_ERROR_INVALID, (error_place){-1, -1, -1, -1, value},
                     "%s is %d: expected %d to %d", what, value, least, most);
}

static eplb_status check_divides(const char *what, int32_t value, const char *by, int32_t divisor,
                                 eplb_error *error)
{
    if (value % divisor == 0)
        return EPLB_OK;
    return error_set(error, EPLB_ERROR_INVALID, (error_place){-1, -1, -1, -1, value},
                     "%d %s do not divide by %d %s", value, what, divisor, by);
}

/* Copies one row of weights; a negative zero, which would sort first, becomes a positive one. */
static eplb_status read_row(const float *weight, int32_t row, int32_t n, float *out, eplb_error *error)
{
    const float *from = weight + (size_t)row * (size_t)n;
    for (int32_t i = 0; i < n; i++) {
        if (!(from[i] >= 0.0f && from[i] <= FLT_MAX))
            return error_set(error, EPLB_ERROR_INVALID, (error_place){row, i, -1, -1, -1},
                             "row %d, item %d has weight %g: expected a finite number >= 0", row, i,
                             (double)from[i]);
        out[i] = from[i] + 0.0f;
    }
    return EPLB_OK;
}

eplb_status eplb_balanced_packing(const float *weight, int32_t num_rows, int32_t num_items, int32_t num_packs,
                                  int32_t *pack_index, int32_t *rank_in_pack, const eplb_allocator *allocator,
                                  eplb_error *error)
{
    eplb_status status = check_range("number of rows", num_rows, 1, EPLB_MAX_LAYERS, error);
    if (status == EPLB_OK)
        status = check_range("number of items", num_items, 1, EPLB_MAX_SLOTS, error);
    if (status == EPLB_OK)
        status = check_range("number of packs", num_packs, 1, num_items, error);
    if (status == EPLB_OK)
        status = check_divides("items", num_items, "packs", num_packs, error);
    if (status != EPLB_OK)
        return status;
    arena scratch;
    arena_init(&scratch, allocator);
    size_t n = (size_t)num_items;
    float *row = arena_take(&scratch, n, sizeof *row);
    if (row == NULL)
        status = error_memory(error, n * sizeof *row, "a row of weights");
    for (int32_t r = 0; status == EPLB_OK && r < num_rows; r++) {
        size_t at = (size_t)r * n;
        status = read_row(weight, r, num_items, row, error);
        if (status == EPLB_OK)
            status =
                pack_balanced(row, num_items, num_packs, &scratch, pack_index + at, rank_in_pack + at, error);
    }
    arena_destroy(&scratch);
    return status;
}

eplb_status eplb_replicate_experts(const float *weight, int32_t num_rows, int32_t num_logical,
                                   int32_t num_physical, int32_t *physical_to_logical, int32_t *replica_rank,
                                   int32_t *logical_count, const eplb_allocator *allocator, eplb_error *error)
{
    eplb_status status = check_range("number of rows", num_rows, 1, EPLB_MAX_LAYERS, error);
    if (status == EPLB_OK)
        status = check_range("number of logical experts", num_logical, 1, EPLB_MAX_EXPERTS, error);
    if (status == EPLB_OK)
        status = check_range("number of physical experts", num_physical, num_logical, EPLB_MAX_SLOTS, error);
    if (status != EPLB_OK)
        return status;
    arena scratch;
    arena_init(&scratch, allocator);
    size_t experts = (size_t)num_logical, slots = (size_t)num_physical;
    float *row = arena_take(&scratch, experts, sizeof *row);
    if (row == NULL)
        status = error_memory(error, experts * sizeof *row, "a row of weights");
    for (int32_t r = 0; status == EPLB_OK && r < num_rows; r++) {
        size_t at = (size_t)r * slots;
        status = read_row(weight, r, num_logical, row, error);
        if (status == EPLB_OK)
            status = replicate_experts(row, num_logical, num_physical, &scratch, physical_to_logical + at,
                                       replica_rank + at, logical_count + (size_t)r * experts, error);
    }
    arena_destroy(&scratch);
    return status;
}

static eplb_status check_shape(const deepseek_shape *shape, int32_t num_layers, eplb_error *error)
{
    eplb_status status = check_range("number of layers", num_layers, 1, EPLB_MAX_LAYERS, error);
    if (status == EPLB_OK)
        status = check_range("number of logical experts", shape->num_experts, 1, EPLB_MAX_EXPERTS, error);
    if (status == EPLB_OK)
        status =
            check_range("number of replicas", shape->num_slots, shape->num_experts, EPLB_MAX_SLOTS, error);
    if (status == EPLB_OK)
        status = check_range("number of groups", shape->num_groups, 1, shape->num_experts, error);
    if (status == EPLB_OK)
        status = check_range("number of ranks", shape->num_ranks, 1, shape->num_slots, error);
    if (status == EPLB_OK)
        status = check_range("number of nodes", shape->num_nodes, 1, EPLB_MAX_RANKS, error);
    return status;
}

/* Chooses hierarchical or global as the original does and checks what that needs. */
static eplb_status choose_mode(deepseek_shape *shape, eplb_error *error)
{
    if (shape->num_groups % shape->num_nodes != 0)
        shape->num_groups = shape->num_nodes = 1;
    eplb_status status =
        check_divides("logical experts", shape->num_experts, "groups", shape->num_groups, error);
    if (status == EPLB_OK)
        status = check_divides("ranks", shape->num_ranks, "nodes", shape->num_nodes, error);
    if (status == EPLB_OK)
        status = check_divides("replicas", shape->num_slots, "ranks", shape->num_ranks, error);
    return status;
}

eplb_status eplb_rebalance_experts(const float *weight, int32_t num_layers, int32_t num_logical,
                                   int32_t num_replicas, int32_t num_groups, int32_t num_nodes,
                                   int32_t num_ranks, int32_t *physical_to_logical, int32_t *replica_rank,
                                   int32_t *logical_count, const eplb_allocator *allocator, eplb_error *error)
{
    deepseek_shape shape = {num_logical, num_replicas, num_groups, num_nodes, num_ranks};
    eplb_status status = check_shape(&shape, num_layers, error);
    if (status == EPLB_OK)
        status = choose_mode(&shape, error);
    if (status != EPLB_OK)
        return status;
    arena scratch;
    arena_init(&scratch, allocator);
    size_t experts = (size_t)num_logical, slots = (size_t)num_replicas;
    float *row = arena_take(&scratch, experts, sizeof *row);
    if (row == NULL)
        status = error_memory(error, experts * sizeof *row, "a row of weights");
    for (int32_t l = 0; status == EPLB_OK && l < num_layers; l++) {
        size_t at = (size_t)l * slots;
        status = read_row(weight, l, num_logical, row, error);
        if (status == EPLB_OK)
            status = deepseek_place(row, &shape, &scratch, physical_to_logical + at,
                                    replica_rank != NULL ? replica_rank + at : NULL,
                                    logical_count + (size_t)l * experts, error);
    }
    arena_destroy(&scratch);
    return status;
}
