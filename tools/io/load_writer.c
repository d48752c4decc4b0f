/* Loads out: .npy, JSON and CSV stream window by window; .npz is gathered in memory first. See load.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/host_order.h"
#include "io/json_writer.h"
#include "io/load.h"
#include "io/npz_writer.h"
#include "io/path.h"

typedef enum load_kind { KIND_NPY, KIND_NPZ, KIND_JSON, KIND_CSV } load_kind;

struct io_load_writer {
    load_kind kind;
    io_output *output;
    npz_writer *archive;
    json_writer json;
    eplb_element element;
    int32_t num_windows; /* 0: one window without a dimension for it */
    int32_t num_layers;
    int32_t num_experts;
    int64_t written;
};

static size_t element_bytes(eplb_element element)
{
    return element == EPLB_ELEMENT_INT32 || element == EPLB_ELEMENT_FLOAT32 ? 4 : 8;
}

static npy_kind element_kind(eplb_element element)
{
    return element == EPLB_ELEMENT_FLOAT32 || element == EPLB_ELEMENT_FLOAT64 ? NPY_FLOAT : NPY_SIGNED;
}

static load_kind kind_of_path(const char *path)
{
    if (path_ends_with(path, ".npz"))
        return KIND_NPZ;
    if (path_ends_with(path, ".json"))
        return KIND_JSON;
    return path_ends_with(path, ".csv") ? KIND_CSV : KIND_NPY;
}

static eplb_status begin(io_load_writer *writer, io_error *error)
{
    const int64_t shape[3] = {writer->num_windows, writer->num_layers, writer->num_experts};
    int32_t dims = writer->num_windows == 0 ? 2 : 3;
    int32_t bytes = (int32_t)element_bytes(writer->element);
    unsigned char header[256];
    switch (writer->kind) {
    case KIND_NPZ: {
        eplb_status status = npz_writer_open(&writer->archive, io_output_name(writer->output), error);
        if (status != EPLB_OK)
            return status;
        return npz_writer_begin(writer->archive, "counts", element_kind(writer->element), bytes, dims,
                                shape + 3 - dims, error);
    }
    case KIND_JSON:
        json_begin_document(&writer->json, writer->output);
        if (dims == 3)
            json_begin_array(&writer->json);
        return EPLB_OK;
    case KIND_CSV:
        return EPLB_OK;
    default:
        io_output_write(
            writer->output, header,
            npy_header_write(element_kind(writer->element), bytes, dims, shape + 3 - dims, header));
        return EPLB_OK;
    }
}

eplb_status io_load_writer_open(io_load_writer **result, const char *path, int32_t num_windows,
                                int32_t num_layers, int32_t num_experts, eplb_element element,
                                io_error *error)
{
    *result = NULL;
    io_load_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL)
        return io_fail_memory(error, path != NULL ? path : "standard output", "a writer");
    writer->kind = kind_of_path(path);
    writer->element = element;
    writer->num_windows = num_windows;
    writer->num_layers = num_layers;
    writer->num_experts = num_experts;
    eplb_status status = io_output_open(&writer->output, path, error);
    if (status == EPLB_OK)
        status = begin(writer, error);
    if (status != EPLB_OK) {
        io_load_writer_abandon(writer);
        return status;
    }
    *result = writer;
    return EPLB_OK;
}

static void json_rows(io_load_writer *writer, const void *counts)
{
    int64_t rows = writer->num_layers, columns = writer->num_experts;
    if (writer->element == EPLB_ELEMENT_INT32)
        json_int32_matrix(&writer->json, counts, rows, columns);
    else if (writer->element == EPLB_ELEMENT_INT64)
        json_int64_matrix(&writer->json, counts, rows, columns);
    else
        json_double_matrix(&writer->json, counts, rows, columns);
}

static void csv_rows(io_load_writer *writer, const void *counts)
{
    if (writer->written > 0)
        io_output_text(writer->output, "\n");
    for (size_t i = 0; i < (size_t)writer->num_layers * (size_t)writer->num_experts; i++) {
        const char *end = (i + 1) % (size_t)writer->num_experts == 0 ? "\n" : ",";
        if (writer->element == EPLB_ELEMENT_INT32)
            io_output_format(writer->output, "%" PRId32 "%s", ((const int32_t *)counts)[i], end);
        else if (writer->element == EPLB_ELEMENT_INT64)
            io_output_format(writer->output, "%" PRId64 "%s", ((const int64_t *)counts)[i], end);
        else
            io_output_format(writer->output, "%.17g%s", ((const double *)counts)[i], end);
    }
}

static void npy_rows(io_load_writer *writer, const void *counts)
{
    size_t bytes = element_bytes(writer->element);
    size_t count = (size_t)writer->num_layers * (size_t)writer->num_experts;
    if (!host_is_big_endian()) {
        io_output_write(writer->output, counts, count * bytes);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        unsigned char item[8];
        memcpy(item, (const unsigned char *)counts + i * bytes, bytes);
        swap_items(item, 1, bytes);
        io_output_write(writer->output, item, bytes);
    }
}

eplb_status io_load_writer_window(io_load_writer *writer, const void *counts, io_error *error)
{
    eplb_status status = EPLB_OK;
    if (writer->written == (writer->num_windows == 0 ? 1 : writer->num_windows))
        return io_fail(error, EPLB_ERROR_INTERNAL, "%s: more windows than were announced",
                       io_output_name(writer->output));
    switch (writer->kind) {
    case KIND_NPZ:
        status = npz_writer_append(writer->archive, counts,
                                   (size_t)writer->num_layers * (size_t)writer->num_experts, error);
        break;
    case KIND_JSON:
        json_rows(writer, counts);
        break;
    case KIND_CSV:
        csv_rows(writer, counts);
        break;
    default:
        npy_rows(writer, counts);
        break;
    }
    writer->written++;
    return status;
}

eplb_status io_load_writer_close(io_load_writer *writer, io_error *error)
{
    eplb_status status = EPLB_OK;
    if (writer->written != (writer->num_windows == 0 ? 1 : writer->num_windows))
        status = io_fail(error, EPLB_ERROR_INTERNAL, "%s: fewer windows than were announced",
                         io_output_name(writer->output));
    if (status == EPLB_OK && writer->kind == KIND_JSON) {
        if (writer->num_windows > 0)
            json_end_array(&writer->json);
        json_end_document(&writer->json);
    }
    if (status == EPLB_OK && writer->kind == KIND_NPZ) {
        status = npz_writer_close(writer->archive, writer->output, error);
        writer->archive = NULL;
    }
    if (status == EPLB_OK) {
        status = io_output_close(writer->output, error);
        writer->output = NULL;
    }
    io_load_writer_abandon(writer);
    return status;
}

void io_load_writer_abandon(io_load_writer *writer)
{
    if (writer == NULL)
        return;
    npz_writer_abandon(writer->archive);
    io_output_abandon(writer->output);
    free(writer);
}
