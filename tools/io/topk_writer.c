/* Token routing out: [N, L, K] in the narrowest unsigned integers that hold every id. See topk.h. */
#include <stdlib.h>

#include "io/npz_writer.h"
#include "io/path.h"
#include "io/topk.h"

static void narrow(const int32_t *ids, size_t count, int32_t bytes, unsigned char *out)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes == 1)
            out[i] = (unsigned char)ids[i];
        else
            ((uint16_t *)(void *)out)[i] = (uint16_t)ids[i];
    }
}

static eplb_status write_archive(npz_writer *archive, const int64_t shape[3], npy_kind kind, int32_t bytes,
                                 const void *items, const int64_t scalars[3], io_error *error)
{
    static const char *const names[3] = {"num_experts", "sequence_length", "num_groups"};
    eplb_status status = npz_writer_array(archive, "topk", kind, bytes, 3, shape, items, error);
    for (int i = 0; i < 3 && status == EPLB_OK; i++)
        if (scalars[i] > 0)
            status = npz_writer_scalar(archive, names[i], scalars[i], error);
    return status;
}

static eplb_status write_items(io_output *output, const char *path, const int64_t shape[3], npy_kind kind,
                               int32_t bytes, const void *items, const int64_t scalars[3], io_error *error)
{
    npz_writer *writer;
    eplb_status status = npz_writer_open(&writer, io_output_name(output), error);
    if (status != EPLB_OK)
        return status;
    status = write_archive(writer, shape, kind, bytes, items, scalars, error);
    if (status != EPLB_OK) {
        npz_writer_abandon(writer);
        return status;
    }
    if (path_ends_with(path, ".npz"))
        return npz_writer_close(writer, output, error);
    npz_writer_send_only_array(writer, output);
    return EPLB_OK;
}

eplb_status io_topk_write(const char *path, const int32_t *ids, int64_t num_tokens, int32_t num_layers,
                          int32_t width, int32_t num_experts, int32_t num_groups, int64_t sequence_length,
                          io_error *error)
{
    const int64_t shape[3] = {num_tokens, num_layers, width};
    const int64_t scalars[3] = {num_experts, sequence_length, num_groups};
    size_t count = (size_t)num_tokens * (size_t)num_layers * (size_t)width;
    bool padded = false;
    for (size_t i = 0; i < count; i++)
        padded = padded || ids[i] < 0;
    int32_t bytes = padded ? 4 : num_experts <= 256 ? 1 : num_experts <= 65536 ? 2 : 4;
    void *items = bytes < 4 ? malloc(count * (size_t)bytes + 1) : NULL;
    if (bytes < 4 && items == NULL)
        return io_fail_memory(error, path != NULL ? path : "standard output", "the ids");
    if (bytes < 4)
        narrow(ids, count, bytes, items);
    io_output *output = NULL;
    eplb_status status = io_output_open(&output, path, error);
    if (status == EPLB_OK)
        status = write_items(output, path, shape, bytes < 4 ? NPY_UNSIGNED : NPY_SIGNED, bytes,
                             items != NULL ? items : ids, scalars, error);
    free(items);
    if (status != EPLB_OK) {
        io_output_abandon(output);
        return status;
    }
    return io_output_close(output, error);
}
