/* Token routing: an integer array read batch by batch, every id checked. See topk.h. */
#include "io/topk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/array.h"

struct io_topk {
    io_input *input;
    io_archive *archive;
    io_array *array;
    int64_t num_tokens;
    int64_t position;
    int32_t num_layers;
    int32_t width;
    int32_t num_experts;
    int32_t num_groups;
    int64_t buffer[4096];
};

/* A scalar of the archive, if it is there, within 1 .. most. */
static eplb_status optional_scalar(const io_topk *topk, const char *member, int64_t most, int64_t *value,
                                   io_error *error)
{
    if (!io_archive_has(topk->archive, member))
        return EPLB_OK;
    eplb_status status = io_archive_read_scalar(topk->archive, member, value, error);
    if (status == EPLB_OK && (*value < 1 || *value > most))
        status = io_fail(error, EPLB_ERROR_INVALID, "%s[%s]: %" PRId64 " is not in 1 .. %" PRId64,
                         topk->input->name, member, *value, most);
    return status;
}

static eplb_status open_archive(io_topk *topk, io_error *error)
{
    eplb_status status = io_archive_open(&topk->archive, topk->input, error);
    int64_t experts = 0, groups = 0;
    if (status == EPLB_OK)
        status = optional_scalar(topk, "num_experts", EPLB_MAX_EXPERTS, &experts, error);
    if (status == EPLB_OK)
        status = optional_scalar(topk, "num_groups", EPLB_MAX_EXPERTS, &groups, error);
    if (status == EPLB_OK)
        status = io_array_open_member(&topk->array, topk->archive, "topk", error);
    topk->num_experts = (int32_t)experts;
    topk->num_groups = (int32_t)groups;
    return status;
}

static eplb_status take_shape(io_topk *topk, io_error *error)
{
    const npy_header *header = io_array_header(topk->array);
    const char *name = io_array_name(topk->array);
    if (header->kind == NPY_FLOAT)
        return io_fail(error, EPLB_ERROR_INVALID,
                       "%s: floating-point numbers; token routing is integer expert ids", name);
    if (header->num_dims != 2 && header->num_dims != 3)
        return io_fail(error, EPLB_ERROR_INVALID,
                       "%s: %d dimensions; token routing is [N, L, K] (tokens, layers, choices) or [N, K]",
                       name, header->num_dims);
    int64_t layers = header->num_dims == 3 ? header->shape[1] : 1;
    int64_t width = header->shape[header->num_dims - 1];
    topk->num_tokens = header->shape[0];
    if (topk->num_tokens < 1 || layers < 1 || layers > EPLB_MAX_LAYERS || width < 1 ||
        width > EPLB_MAX_EXPERTS || layers * width > (int64_t)1 << 26)
        return io_fail(error, EPLB_ERROR_INVALID,
                       "%s: %" PRId64 " tokens, %" PRId64 " layers, %" PRId64
                       " choices; each must be at least 1, the last two at most %d and %d",
                       name, topk->num_tokens, layers, width, EPLB_MAX_LAYERS, EPLB_MAX_EXPERTS);
    topk->num_layers = (int32_t)layers;
    topk->width = (int32_t)width;
    return EPLB_OK;
}

static eplb_status take_experts(io_topk *topk, int32_t num_experts, int32_t fallback, io_error *error)
{
    const char *name = topk->input->name;
    if (num_experts < 0 || num_experts > EPLB_MAX_EXPERTS)
        return io_fail(error, EPLB_ERROR_INVALID, "%s: %d experts; 1 to %d are possible", name, num_experts,
                       EPLB_MAX_EXPERTS);
    if (num_experts > 0 && topk->num_experts > 0 && num_experts != topk->num_experts)
        return io_fail(error, EPLB_ERROR_INVALID, "%s[num_experts]: the file says %d, the command %d", name,
                       topk->num_experts, num_experts);
    if (num_experts > 0)
        topk->num_experts = num_experts;
    if (topk->num_experts == 0)
        topk->num_experts = fallback;
    if (topk->num_experts == 0)
        return io_fail(error, EPLB_ERROR_INVALID,
                       "%s: how many experts are there? The file has no num_experts; pass --experts", name);
    if ((int64_t)topk->num_layers * topk->num_experts > (int64_t)1 << 26)
        return io_fail(error, EPLB_ERROR_INVALID, "%s: %d layers x %d experts are more than can be counted",
                       name, topk->num_layers, topk->num_experts);
    return EPLB_OK;
}

eplb_status io_topk_open(io_topk **result, const char *path, int32_t num_experts, io_error *error)
{
    return io_topk_open_else(result, path, num_experts, 0, error);
}

eplb_status io_topk_open_else(io_topk **result, const char *path, int32_t num_experts, int32_t fallback,
                              io_error *error)
{
    *result = NULL;
    io_topk *topk = malloc(sizeof *topk);
    if (topk == NULL)
        return io_fail_memory(error, path, "a buffer");
    memset(topk, 0, offsetof(io_topk, buffer));
    eplb_status status = io_input_open(&topk->input, path, error);
    if (status == EPLB_OK) {
        io_content content = io_input_content(topk->input);
        if (content == IO_CONTENT_ZIP)
            status = open_archive(topk, error);
        else if (content == IO_CONTENT_NPY)
            status = io_array_open_input(&topk->array, topk->input, error);
        else
            status = io_fail(error, EPLB_ERROR_UNSUPPORTED,
                             "%s: token routing is read from .npy and .npz only", topk->input->name);
    }
    if (status == EPLB_OK)
        status = take_shape(topk, error);
    if (status == EPLB_OK)
        status = take_experts(topk, num_experts, fallback, error);
    if (status != EPLB_OK) {
        io_topk_close(topk);
        return status;
    }
    *result = topk;
    return EPLB_OK;
}

void io_topk_close(io_topk *topk)
{
    if (topk == NULL)
        return;
    io_array_close(topk->array);
    io_archive_close(topk->archive);
    io_input_close(topk->input);
    free(topk);
}

int64_t io_topk_num_tokens(const io_topk *topk)
{
    return topk->num_tokens;
}

int32_t io_topk_num_layers(const io_topk *topk)
{
    return topk->num_layers;
}

int32_t io_topk_width(const io_topk *topk)
{
    return topk->width;
}

int32_t io_topk_num_experts(const io_topk *topk)
{
    return topk->num_experts;
}

int32_t io_topk_num_groups(const io_topk *topk)
{
    return topk->num_groups;
}

const char *io_topk_name(const io_topk *topk)
{
    return io_array_name(topk->array);
}

static eplb_status refuse_id(const io_topk *topk, int64_t choice, int64_t id, io_error *error)
{
    int64_t row = choice / topk->width;
    return io_fail(error, EPLB_ERROR_INVALID,
                   "%s: token %" PRId64 ", layer %" PRId64 ", choice %" PRId64 ": expert %" PRId64
                   " is not in 0 .. %d (-1 is padding)",
                   io_array_name(topk->array), topk->position + row / topk->num_layers,
                   row % topk->num_layers, choice % topk->width, id, topk->num_experts - 1);
}

eplb_status io_topk_read(io_topk *topk, int64_t max_tokens, int32_t *ids, int64_t *num_read, io_error *error)
{
    int64_t left = topk->num_tokens - topk->position;
    int64_t tokens = max_tokens < left ? max_tokens : left;
    int64_t total = tokens * topk->num_layers * topk->width;
    *num_read = 0;
    for (int64_t done = 0; done < total;) {
        int64_t most = (int64_t)(sizeof topk->buffer / sizeof topk->buffer[0]);
        int64_t count = total - done < most ? total - done : most;
        eplb_status status = io_array_read_int64(topk->array, topk->buffer, (size_t)count, error);
        if (status != EPLB_OK)
            return status;
        for (int64_t i = 0; i < count; i++) {
            if (topk->buffer[i] < -1 || topk->buffer[i] >= topk->num_experts)
                return refuse_id(topk, done + i, topk->buffer[i], error);
            ids[done + i] = (int32_t)topk->buffer[i];
        }
        done += count;
    }
    topk->position += tokens;
    if (tokens > 0 && topk->position == topk->num_tokens) {
        eplb_status status = io_array_finish(topk->array, error);
        if (status != EPLB_OK)
            return status;
    }
    *num_read = tokens;
    return EPLB_OK;
}
