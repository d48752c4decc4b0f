/* Loads: tells the kind of a file by its content and streams its windows into a bounded load. See load.h. */
#include "io/load.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/load_readers.h"
#include "io/topk.h"

static eplb_status read_window(io_array *array, io_windows *windows, int64_t layers, int64_t experts,
                               void *counts, io_error *error)
{
    size_t cells = (size_t)(layers * experts);
    bool floating = io_array_header(array)->kind == NPY_FLOAT;
    eplb_status status = floating ? io_array_read_double(array, counts, cells, error)
                                  : io_array_read_int64(array, counts, cells, error);
    if (status != EPLB_OK)
        return status;
    return floating ? windows_add_doubles(windows, layers, experts, counts, error)
                    : windows_add_integers(windows, layers, experts, counts, error);
}

static bool in_range(int64_t value, int64_t most)
{
    return value >= 1 && value <= most;
}

/* Windows, layers and experts of an array, within the bounds of a load. */
static eplb_status load_shape(const io_array *array, int64_t shape[3], io_error *error)
{
    const npy_header *header = io_array_header(array);
    int32_t dims = header->num_dims;
    if (dims < 1 || dims > 3)
        return io_fail(error, EPLB_ERROR_INVALID,
                       "%s: %d dimensions; a load is [E], [L, E] or [T, L, E] (windows, layers, experts)",
                       io_array_name(array), dims);
    for (int32_t d = 0; d < 3; d++)
        shape[d] = d + dims >= 3 ? header->shape[d + dims - 3] : 1;
    if (!in_range(shape[0], EPLB_MAX_WINDOWS) || !in_range(shape[1], EPLB_MAX_LAYERS) ||
        !in_range(shape[2], EPLB_MAX_EXPERTS) || shape[1] * shape[2] > (int64_t)WINDOWS_MAX_CELLS)
        return io_fail(error, EPLB_ERROR_INVALID,
                       "%s: %" PRId64 " windows of %" PRId64 " layers x %" PRId64
                       " experts; each must be at least 1, and at most %d, %d, %d",
                       io_array_name(array), shape[0], shape[1], shape[2], EPLB_MAX_WINDOWS, EPLB_MAX_LAYERS,
                       EPLB_MAX_EXPERTS);
    return EPLB_OK;
}

eplb_status load_read_array(io_array *array, io_windows *windows, io_error *error)
{
    int64_t shape[3];
    eplb_status status = load_shape(array, shape, error);
    if (status != EPLB_OK)
        return status;
    int64_t num_windows = shape[0], layers = shape[1], experts = shape[2];
    void *counts = malloc((size_t)(layers * experts) * sizeof(int64_t));
    if (counts == NULL)
        return io_fail_memory(error, io_array_name(array), "a window");
    for (int64_t window = 0; window < num_windows && status == EPLB_OK; window++)
        status = read_window(array, windows, layers, experts, counts, error);
    free(counts);
    return status == EPLB_OK ? io_array_finish(array, error) : status;
}

/* The array that a load is most likely meant to be, or NULL with the error filled. */
static const char *choose_member(const io_archive *archive, const char *name, io_error *error)
{
    static const char *const known[] = {"counts", "load", "logical_count", "weight"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (io_archive_has(archive, known[i]))
            return known[i];
    const char *first = io_archive_member(archive, 0);
    if (io_archive_has(archive, "topk"))
        (void)io_fail(error, EPLB_ERROR_INVALID,
                      "%s: holds token routing (topk), not a load; --topk counts it", name);
    else if (io_archive_has(archive, "physical_to_logical_map"))
        (void)io_fail(error, EPLB_ERROR_INVALID,
                      "%s: holds a placement (physical_to_logical_map), not a load", name);
    else if (io_archive_member(archive, 1) == NULL)
        return first;
    else {
        char names[400];
        io_archive_list(archive, names, sizeof names);
        (void)io_fail(error, EPLB_ERROR_INVALID,
                      "%s: which array is the load? It holds %s; counts, load, logical_count "
                      "and weight are found by themselves",
                      name, names);
    }
    return NULL;
}

static eplb_status read_archive(io_input *input, const io_load_options *options, io_windows *windows,
                                io_load *load, io_error *error)
{
    io_archive *archive;
    eplb_status status = io_archive_open(&archive, input, error);
    if (status != EPLB_OK)
        return status;
    const char *member =
        options->member != NULL ? options->member : choose_member(archive, input->name, error);
    io_array *array = NULL;
    status = member == NULL ? EPLB_ERROR_INVALID : io_array_open_member(&array, archive, member, error);
    if (status == EPLB_OK)
        status = load_read_array(array, windows, error);
    io_array_close(array);
    int64_t groups = 0;
    if (status == EPLB_OK && io_archive_has(archive, "num_groups"))
        status = io_archive_read_scalar(archive, "num_groups", &groups, error);
    if (status == EPLB_OK && (groups < 0 || groups > EPLB_MAX_EXPERTS))
        status = io_fail(error, EPLB_ERROR_INVALID,
                         "%s[num_groups]: %" PRId64 " is not a number of expert groups", input->name, groups);
    load->num_groups = (int32_t)groups;
    io_archive_close(archive);
    return status;
}

static eplb_status read_content(io_input *input, const io_load_options *options, io_windows *windows,
                                io_load *load, io_error *error)
{
    io_content content = io_input_content(input);
    if (options->member != NULL && content != IO_CONTENT_ZIP)
        return io_fail(error, EPLB_ERROR_INVALID, "%s: not an .npz archive, so it has no array '%s'",
                       input->name, options->member);
    switch (content) {
    case IO_CONTENT_ZIP:
        return read_archive(input, options, windows, load, error);
    case IO_CONTENT_JSON:
        return load_read_json(input, windows, error);
    case IO_CONTENT_TEXT:
        return load_read_csv(input, windows, error);
    default:
        break;
    }
    io_array *array;
    eplb_status status = io_array_open_input(&array, input, error);
    if (status == EPLB_OK)
        status = load_read_array(array, windows, error);
    io_array_close(array);
    return status;
}

static eplb_status read_counts(const char *path, const io_load_options *options, io_load *load,
                               io_error *error)
{
    io_input *input;
    eplb_status status = io_input_open(&input, path, error);
    if (status != EPLB_OK)
        return status;
    io_windows windows;
    windows_init(&windows, input->name, options->max_windows, options->max_bytes);
    status = read_content(input, options, &windows, load, error);
    if (status == EPLB_OK)
        status = windows_finish(&windows, load, error);
    windows_destroy(&windows);
    io_input_close(input);
    return status;
}

/* Counts the next `tokens` tokens into counts[L, E]. */
static eplb_status count_tokens(io_topk *topk, int64_t tokens, int64_t *counts, int32_t *ids, int64_t batch,
                                int64_t *counted, io_error *error)
{
    int32_t layers = io_topk_num_layers(topk), width = io_topk_width(topk),
            experts = io_topk_num_experts(topk);
    memset(counts, 0, (size_t)layers * (size_t)experts * sizeof *counts);
    *counted = 0;
    while (*counted < tokens) {
        int64_t read;
        int64_t want = tokens - *counted < batch ? tokens - *counted : batch;
        eplb_status status = io_topk_read(topk, want, ids, &read, error);
        if (status != EPLB_OK || read == 0)
            return status;
        for (int64_t row = 0; row < read * layers; row++)
            for (int32_t k = 0; k < width; k++) {
                int32_t id = ids[row * width + k];
                if (id >= 0)
                    counts[(row % layers) * experts + id]++;
            }
        *counted += read;
    }
    return EPLB_OK;
}

static eplb_status count_windows(io_topk *topk, const io_load_options *options, io_windows *windows,
                                 io_error *error)
{
    int64_t layers = io_topk_num_layers(topk), experts = io_topk_num_experts(topk);
    int64_t per_token = layers * io_topk_width(topk);
    int64_t batch = per_token < 65536 ? 65536 / per_token : 1;
    int64_t tokens = options->tokens_per_window > 0 ? options->tokens_per_window : io_topk_num_tokens(topk);
    int64_t *counts = malloc((size_t)(layers * experts) * sizeof *counts);
    int32_t *ids = malloc((size_t)(batch * per_token) * sizeof *ids);
    eplb_status status = EPLB_OK;
    if (counts == NULL || ids == NULL)
        status = io_fail_memory(error, windows->name, "a window");
    for (int64_t done = 0; status == EPLB_OK && done < io_topk_num_tokens(topk);) {
        int64_t counted;
        status = count_tokens(topk, tokens, counts, ids, batch, &counted, error);
        if (status == EPLB_OK)
            status = windows_add_integers(windows, layers, experts, counts, error);
        done += counted;
    }
    free(ids);
    free(counts);
    return status;
}

static eplb_status read_topk(const char *path, const io_load_options *options, io_load *load, io_error *error)
{
    io_topk *topk;
    eplb_status status =
        io_topk_open_else(&topk, path, options->num_experts, options->fallback_experts, error);
    if (status != EPLB_OK)
        return status;
    io_windows windows;
    windows_init(&windows, io_topk_name(topk), options->max_windows, options->max_bytes);
    load->num_groups = io_topk_num_groups(topk);
    status = count_windows(topk, options, &windows, error);
    if (status == EPLB_OK)
        status = windows_finish(&windows, load, error);
    windows_destroy(&windows);
    io_topk_close(topk);
    return status;
}

eplb_status io_load_read(const char *path, const io_load_options *options, io_load *load, io_error *error)
{
    static const io_load_options defaults = {0};
    memset(load, 0, sizeof *load);
    if (options == NULL)
        options = &defaults;
    eplb_status status =
        options->topk ? read_topk(path, options, load, error) : read_counts(path, options, load, error);
    if (status != EPLB_OK)
        io_load_clear(load);
    return status;
}

void io_load_clear(io_load *load)
{
    eplb_load_destroy(load->load);
    free(load->counts);
    memset(load, 0, sizeof *load);
}
