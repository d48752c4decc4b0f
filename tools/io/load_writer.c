/* Loads out, window by window. See load.h. */
#include <inttypes.h>
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
    npz_writer archive;
    json_writer json;
    npy_kind number;     /* NPY_SIGNED or NPY_FLOAT, of eight bytes */
    int32_t num_windows; /* 0: one window without a dimension for it */
    int32_t num_layers;
    int32_t num_experts;
    int64_t windows_left;
};

static load_kind kind_of_path(const char *path)
{
    if (path_ends_with(path, ".npz"))
        return KIND_NPZ;
    if (path_ends_with(path, ".json"))
        return KIND_JSON;
    return path_ends_with(path, ".csv") ? KIND_CSV : KIND_NPY;
}

static void begin(io_load_writer *writer)
{
    const int64_t shape[3] = {writer->num_windows, writer->num_layers, writer->num_experts};
    int32_t dims = writer->num_windows == 0 ? 2 : 3;
    unsigned char header[256];
    switch (writer->kind) {
    case KIND_NPY:
        io_output_write(writer->output, header,
                        npy_header_write(writer->number, 8, dims, shape + 3 - dims, header));
        break;
    case KIND_NPZ:
        npz_writer_init(&writer->archive, writer->output);
        npz_writer_begin(&writer->archive, "counts", writer->number, 8, dims, shape + 3 - dims);
        break;
    case KIND_JSON:
        json_begin_document(&writer->json, writer->output);
        if (dims == 3)
            json_begin_array(&writer->json);
        break;
    case KIND_CSV:
        break;
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
    writer->number = element == EPLB_ELEMENT_FLOAT64 ? NPY_FLOAT : NPY_SIGNED;
    writer->num_windows = num_windows;
    writer->num_layers = num_layers;
    writer->num_experts = num_experts;
    writer->windows_left = num_windows == 0 ? 1 : num_windows;
    eplb_status status = io_output_open(&writer->output, path, error);
    if (status != EPLB_OK) {
        free(writer);
        return status;
    }
    begin(writer);
    *result = writer;
    return EPLB_OK;
}

static void npy_rows(io_load_writer *writer, const unsigned char *counts)
{
    size_t count = (size_t)writer->num_layers * (size_t)writer->num_experts;
    for (size_t i = 0; i < count; i++) {
        unsigned char item[8];
        memcpy(item, counts + i * sizeof item, sizeof item);
        host_to_little_endian(item, 1, sizeof item);
        io_output_write(writer->output, item, sizeof item);
    }
}

static void json_rows(io_load_writer *writer, const void *counts)
{
    if (writer->number == NPY_FLOAT)
        json_double_matrix(&writer->json, counts, writer->num_layers, writer->num_experts);
    else
        json_int64_matrix(&writer->json, counts, writer->num_layers, writer->num_experts);
}

/* Windows are separated by an empty line. */
static void csv_rows(io_load_writer *writer, bool first, const void *counts)
{
    size_t experts = (size_t)writer->num_experts;
    if (!first)
        io_output_text(writer->output, "\n");
    for (size_t i = 0; i < (size_t)writer->num_layers * experts; i++) {
        const char *end = (i + 1) % experts == 0 ? "\n" : ",";
        if (writer->number == NPY_FLOAT)
            io_output_format(writer->output, "%.17g%s", ((const double *)counts)[i], end);
        else
            io_output_format(writer->output, "%" PRId64 "%s", ((const int64_t *)counts)[i], end);
    }
}

void io_load_writer_window(io_load_writer *writer, const void *counts)
{
    int64_t windows = writer->num_windows == 0 ? 1 : writer->num_windows;
    bool first = writer->windows_left == windows;
    if (writer->windows_left == 0) {
        io_output_fail(writer->output, "more windows than were announced");
        return;
    }
    writer->windows_left--;
    switch (writer->kind) {
    case KIND_NPY:
        npy_rows(writer, counts);
        break;
    case KIND_NPZ:
        npz_writer_append(&writer->archive, counts, (size_t)writer->num_layers * (size_t)writer->num_experts);
        break;
    case KIND_JSON:
        json_rows(writer, counts);
        break;
    case KIND_CSV:
        csv_rows(writer, first, counts);
        break;
    }
}

eplb_status io_load_writer_close(io_load_writer *writer, io_error *error)
{
    if (writer->windows_left > 0)
        io_output_fail(writer->output, "fewer windows than were announced");
    if (writer->kind == KIND_JSON && writer->num_windows > 0)
        json_end_array(&writer->json);
    if (writer->kind == KIND_JSON)
        json_end_document(&writer->json);
    if (writer->kind == KIND_NPZ)
        npz_writer_finish(&writer->archive);
    eplb_status status = io_output_close(writer->output, error);
    free(writer);
    return status;
}
