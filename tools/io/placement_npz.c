/* Placements as arrays. Ours: physical_to_logical_map [L, S], logical_to_physical_map [L, E, width],
 * logical_count [L, E], shares [L, S] when weighted, and sizes as scalars. vLLM's: its three maps. All int64,
 * as engines keep them. Other arrays in an archive are left alone. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/array.h"
#include "io/npz_writer.h"
#include "io/placement_formats.h"

/* All of an integer array as int32; *values is the caller's. */
static eplb_status read_ints(io_array *array, int32_t **values, io_error *error)
{
    int64_t count = io_array_header(array)->num_items;
    if (count > INT64_C(1) << 31)
        return io_fail(error, EPLB_ERROR_UNSUPPORTED, "%s: %" PRId64 " numbers are too many for a placement",
                       io_array_name(array), count);
    *values = malloc(((size_t)count + 1) * sizeof **values);
    if (*values == NULL)
        return io_fail_memory(error, io_array_name(array), "its numbers");
    eplb_status status = EPLB_OK;
    int64_t block[512];
    for (int64_t done = 0; done < count && status == EPLB_OK;) {
        size_t step = count - done < 512 ? (size_t)(count - done) : 512;
        status = io_array_read_int64(array, block, step, error);
        for (size_t i = 0; i < step && status == EPLB_OK; i++) {
            if (block[i] < INT32_MIN || block[i] > INT32_MAX)
                status = io_fail(error, EPLB_ERROR_INVALID,
                                 "%s: element %" PRId64 ": %" PRId64 " does not fit in 32 bits",
                                 io_array_name(array), done + (int64_t)i, block[i]);
            (*values)[done + (int64_t)i] = (int32_t)block[i];
        }
        done += (int64_t)step;
    }
    return status == EPLB_OK ? io_array_finish(array, error) : status;
}

/* The slots: [L, S], or [S] for one layer. */
static eplb_status take_slots(io_array *array, io_document *document, io_error *error)
{
    const npy_header *header = io_array_header(array);
    if (header->num_dims != 1 && header->num_dims != 2)
        return io_fail(error, EPLB_ERROR_INVALID, "%s: %d dimensions; a placement is [L, S] or [S]",
                       io_array_name(array), header->num_dims);
    int32_t *map = NULL;
    eplb_status status = read_ints(array, &map, error);
    if (status != EPLB_OK) {
        free(map);
        return status;
    }
    int64_t layers = header->num_dims == 2 ? header->shape[0] : 1;
    return document_take_map(document, io_array_name(array), map, layers, header->shape[header->num_dims - 1],
                             error);
}

eplb_status placement_npy_read(io_input *input, io_document *document, io_error *error)
{
    document->format = IO_FORMAT_NPZ;
    io_array *array;
    eplb_status status = io_array_open_input(&array, input, error);
    if (status == EPLB_OK)
        status = take_slots(array, document, error);
    io_array_close(array);
    return status;
}

/* A member as integers of the wanted shape (-1: any size, filled in); a missing one leaves *values NULL. */
static eplb_status optional_ints(const io_archive *archive, const char *member, int32_t dims, int64_t *shape,
                                 int32_t **values, io_error *error)
{
    *values = NULL;
    if (!io_archive_has(archive, member))
        return EPLB_OK;
    io_array *array;
    eplb_status status = io_array_open_member(&array, archive, member, error);
    if (status != EPLB_OK)
        return status;
    const npy_header *header = io_array_header(array);
    bool fits = header->num_dims == dims;
    for (int32_t d = 0; d < dims && fits; d++) {
        fits = shape[d] < 0 || shape[d] == header->shape[d];
        shape[d] = header->shape[d];
    }
    if (!fits)
        status = io_fail(error, EPLB_ERROR_INVALID, "%s: its shape does not fit the other arrays",
                         io_array_name(array));
    else
        status = read_ints(array, values, error);
    io_array_close(array);
    return status;
}

static eplb_status optional_shares(const io_archive *archive, io_document *document, io_error *error)
{
    if (!io_archive_has(archive, "shares"))
        return EPLB_OK;
    io_array *array;
    eplb_status status = io_array_open_member(&array, archive, "shares", error);
    if (status != EPLB_OK)
        return status;
    const npy_header *header = io_array_header(array);
    size_t count = (size_t)document->num_layers * (size_t)document->num_slots;
    if (header->num_dims != 2 || header->shape[0] != document->num_layers ||
        header->shape[1] != document->num_slots)
        status = io_fail(error, EPLB_ERROR_INVALID, "%s: its shape is not that of physical_to_logical_map",
                         io_array_name(array));
    document->shares = status == EPLB_OK ? malloc(count * sizeof(double)) : NULL;
    if (status == EPLB_OK && document->shares == NULL)
        status = io_fail_memory(error, io_array_name(array), "its numbers");
    if (status == EPLB_OK)
        status = io_array_read_double(array, document->shares, count, error);
    if (status == EPLB_OK)
        status = io_array_finish(array, error);
    document->split = EPLB_SPLIT_WEIGHTED;
    io_array_close(array);
    return status;
}

static eplb_status optional_size(const io_archive *archive, const char *member, int32_t most, int32_t *value,
                                 io_error *error)
{
    int64_t wide = 0;
    if (!io_archive_has(archive, member))
        return EPLB_OK;
    eplb_status status = io_archive_read_scalar(archive, member, &wide, error);
    if (status == EPLB_OK && (wide < 1 || wide > most))
        status = io_fail(error, EPLB_ERROR_INVALID, "%s: %" PRId64 " is not in 1 .. %d", member, wide, most);
    *value = (int32_t)wide;
    return status;
}

/* Inverse maps, when they are there, fix E and must agree with the slots. */
static eplb_status check_maps(const io_archive *archive, const char *name, io_document *document,
                              io_error *error)
{
    const char *counts =
        io_archive_has(archive, "logical_replica_count") ? "logical_replica_count" : "logical_count";
    int64_t shape[3] = {document->num_layers, document->num_experts > 0 ? document->num_experts : -1, -1};
    int32_t *count = NULL, *slots = NULL;
    eplb_status status = optional_ints(archive, counts, 2, shape, &count, error);
    if (status == EPLB_OK)
        status = optional_ints(archive, "logical_to_physical_map", 3, shape, &slots, error);
    if (status == EPLB_OK && (count != NULL || slots != NULL)) {
        if (shape[1] < 1 || shape[1] > EPLB_MAX_EXPERTS) {
            status = io_fail(error, EPLB_ERROR_INVALID, "%s: %" PRId64 " experts; 1 to %d are possible", name,
                             shape[1], EPLB_MAX_EXPERTS);
        } else {
            document->num_experts = (int32_t)shape[1];
            status = document_check_inverse(document, name, count, slots, shape[2], error);
        }
    }
    free(count);
    free(slots);
    return status;
}

/* Zeros and ones. */
static eplb_status take_alive(const int32_t *alive, int64_t ranks, io_document *document, io_error *error)
{
    document->rank_alive = malloc((size_t)ranks + 1);
    if (document->rank_alive == NULL)
        return io_fail_memory(error, "rank_alive", "its numbers");
    for (int64_t rank = 0; rank < ranks; rank++) {
        if (alive[rank] != 0 && alive[rank] != 1)
            return io_fail(error, EPLB_ERROR_INVALID, "rank_alive[%" PRId64 "]: %d is neither 0 nor 1", rank,
                           alive[rank]);
        document->rank_alive[rank] = (uint8_t)alive[rank];
    }
    return EPLB_OK;
}

static eplb_status read_ranks(const io_archive *archive, io_document *document, io_error *error)
{
    const struct {
        const char *member;
        int32_t **values;
    } rows[] = {{"rank_slots", &document->rank_slots},
                {"rank_nodes", &document->rank_node},
                {"rank_speeds", &document->rank_speed}};
    int64_t ranks[1] = {document->num_ranks > 0 ? document->num_ranks : -1};
    eplb_status status = EPLB_OK;
    for (size_t i = 0; i < 3 && status == EPLB_OK; i++)
        status = optional_ints(archive, rows[i].member, 1, ranks, rows[i].values, error);
    int32_t *alive = NULL;
    if (status == EPLB_OK)
        status = optional_ints(archive, "rank_alive", 1, ranks, &alive, error);
    if (status == EPLB_OK && alive != NULL)
        status = take_alive(alive, ranks[0], document, error);
    free(alive);
    if (status == EPLB_OK && ranks[0] > EPLB_MAX_RANKS)
        status = io_fail(error, EPLB_ERROR_INVALID, "%" PRId64 " ranks; at most %d are possible", ranks[0],
                         EPLB_MAX_RANKS);
    if (status == EPLB_OK && ranks[0] > 0)
        document->num_ranks = (int32_t)ranks[0];
    return status;
}

static eplb_status read_sizes(const io_archive *archive, io_document *document, io_error *error)
{
    eplb_status status = optional_size(archive, "num_ranks", EPLB_MAX_RANKS, &document->num_ranks, error);
    if (status == EPLB_OK)
        status = optional_size(archive, "num_nodes", EPLB_MAX_RANKS, &document->num_nodes, error);
    if (status == EPLB_OK)
        status = optional_size(archive, "num_groups", EPLB_MAX_EXPERTS, &document->num_groups, error);
    if (status == EPLB_OK)
        status =
            optional_size(archive, "num_logical_experts", EPLB_MAX_EXPERTS, &document->num_experts, error);
    return status;
}

eplb_status placement_npz_read(io_input *input, io_document *document, io_error *error)
{
    io_archive *archive;
    eplb_status status = io_archive_open(&archive, input, error);
    if (status != EPLB_OK)
        return status;
    document->format = io_archive_has(archive, "logical_replica_count") ? IO_FORMAT_VLLM : IO_FORMAT_NPZ;
    io_array *array = NULL;
    status = io_array_open_member(&array, archive, "physical_to_logical_map", error);
    if (status == EPLB_OK)
        status = take_slots(array, document, error);
    io_array_close(array);
    if (status == EPLB_OK)
        status = read_sizes(archive, document, error);
    if (status == EPLB_OK)
        status = read_ranks(archive, document, error);
    if (status == EPLB_OK)
        status = check_maps(archive, input->name, document, error);
    if (status == EPLB_OK)
        status = optional_shares(archive, document, error);
    io_archive_close(archive);
    return status;
}

/* int32 values as an int64 array. */
static void put_ints(npz_writer *writer, const char *member, int32_t dims, const int64_t *shape,
                     const int32_t *values)
{
    npz_writer_begin(writer, member, NPY_SIGNED, 8, dims, shape);
    int64_t count = 1, block[512];
    for (int32_t d = 0; d < dims; d++)
        count *= shape[d];
    for (int64_t done = 0; done < count;) {
        size_t step = count - done < 512 ? (size_t)(count - done) : 512;
        for (size_t i = 0; i < step; i++)
            block[i] = values[done + (int64_t)i];
        npz_writer_append(writer, block, step);
        done += (int64_t)step;
    }
}

static eplb_status put_maps(npz_writer *writer, const io_document *document, bool vllm, io_error *error)
{
    int32_t *count, *slots;
    int64_t width;
    eplb_status status = document_inverse(document, "the archive", &count, &slots, &width, error);
    if (status != EPLB_OK)
        return status;
    const int64_t map_shape[2] = {document->num_layers, document->num_slots};
    const int64_t shape[3] = {document->num_layers, document->num_experts, width};
    put_ints(writer, "physical_to_logical_map", 2, map_shape, document->physical_to_logical);
    put_ints(writer, "logical_to_physical_map", 3, shape, slots);
    put_ints(writer, vllm ? "logical_replica_count" : "logical_count", 2, shape, count);
    free(count);
    free(slots);
    return EPLB_OK;
}

static void put_ranks(npz_writer *writer, const io_document *document)
{
    const struct {
        const char *member;
        const int32_t *values;
    } rows[] = {{"rank_slots", document->rank_slots},
                {"rank_nodes", document->rank_node},
                {"rank_speeds", document->rank_speed}};
    const int64_t ranks[1] = {document->num_ranks};
    for (size_t i = 0; i < 3; i++)
        if (rows[i].values != NULL)
            put_ints(writer, rows[i].member, 1, ranks, rows[i].values);
    if (document->rank_alive != NULL)
        npz_writer_array(writer, "rank_alive", NPY_UNSIGNED, 1, 1, ranks, document->rank_alive);
}

/* What only our archive has. */
static void put_sizes(npz_writer *writer, const io_document *document)
{
    const int64_t shape[2] = {document->num_layers, document->num_slots};
    const struct {
        const char *member;
        int32_t value;
    } sizes[] = {{"num_ranks", document->num_ranks},
                 {"num_nodes", document->num_nodes},
                 {"num_groups", document->num_groups},
                 {"num_logical_experts", document->num_experts}};
    if (document->shares != NULL)
        npz_writer_array(writer, "shares", NPY_FLOAT, 8, 2, shape, document->shares);
    for (size_t i = 0; i < 4; i++)
        if (sizes[i].value > 0)
            npz_writer_scalar(writer, sizes[i].member, sizes[i].value);
    put_ranks(writer, document);
}

eplb_status placement_npz_write(const io_document *document, bool vllm, io_output *output, io_error *error)
{
    npz_writer writer;
    npz_writer_init(&writer, output);
    eplb_status status = put_maps(&writer, document, vllm, error);
    if (status != EPLB_OK)
        return status;
    if (!vllm)
        put_sizes(&writer, document);
    npz_writer_finish(&writer);
    return EPLB_OK;
}
