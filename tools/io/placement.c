/* Placement files: tells the format by content, checks what the caller knows against what the file says, and
 * makes the library's nouns of a document. See placement.h. */
#include "io/placement.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/json_fields.h"
#include "io/path.h"
#include "io/placement_formats.h"

static const char *const format_names[IO_FORMAT_COUNT] = {"json", "npz",         "sglang",
                                                          "vllm", "vllm-ascend", "trtllm"};

const char *io_format_name(int index)
{
    return index >= 0 && index < IO_FORMAT_COUNT ? format_names[index] : NULL;
}

bool io_format_keeps_shares(io_format format)
{
    return format == IO_FORMAT_JSON || format == IO_FORMAT_NPZ;
}

void io_document_clear(io_document *document)
{
    free(document->physical_to_logical);
    free(document->shares);
    free(document->rank_slots);
    free(document->rank_node);
    free(document->rank_alive);
    free(document->rank_speed);
    free(document->layer_ids);
    free(document->policy);
    free(document->reason);
    free(document->imbalance);
    free(document->lower_bound);
    free(document->cross_node_tokens);
    free(document->windows.mean);
    free(document->windows.percentile95);
    free(document->windows.before_imbalance);
    free(document->windows.before_mean);
    free(document->windows.before_percentile95);
    free(document->lost_first);
    free(document->lost_experts);
    free(document->frontier);
    memset(document, 0, sizeof *document);
}

/* A load is often given where a placement is wanted: say so. */
static eplb_status refuse_unknown(const json_t *root, const char *name, io_error *error)
{
    if (json_is_object(root) &&
        (json_object_get(root, "logical_count") != NULL || json_object_get(root, "load_history") != NULL ||
         json_object_get(root, "load") != NULL))
        return io_fail(error, EPLB_ERROR_INVALID, "%s: holds a load, not a placement", name);
    return io_fail(
        error, EPLB_ERROR_INVALID,
        "%s: not a placement: an object with version (a plan), physical_to_logical_map (SGLang, vLLM) or "
        "layer_list (vllm-ascend) is wanted",
        name);
}

static eplb_status read_json(io_input *input, io_document *document, io_error *error)
{
    json_t *root;
    eplb_status status = json_document_load(input, &root, error);
    if (status != EPLB_OK)
        return status;
    if (json_object_get(root, "version") != NULL || json_object_get(root, "num_slots") != NULL)
        status = plan_json_read(root, input->name, document, error);
    else if (json_object_get(root, "layer_list") != NULL || json_object_get(root, "moe_layer_count") != NULL)
        status = ascend_json_read(root, input->name, document, error);
    else if (json_object_get(root, "logical_replica_count") != NULL)
        status = vllm_json_read(root, input->name, document, error);
    else if (json_object_get(root, "physical_to_logical_map") != NULL)
        status = sglang_json_read(root, input->name, document, error);
    else
        status = refuse_unknown(root, input->name, error);
    json_decref(root);
    return status;
}

static eplb_status read_content(io_input *input, io_document *document, io_error *error)
{
    switch (io_input_content(input)) {
    case IO_CONTENT_NPY:
        return placement_npy_read(input, document, error);
    case IO_CONTENT_ZIP:
        return placement_npz_read(input, document, error);
    case IO_CONTENT_JSON:
        return read_json(input, document, error);
    default:
        return trtllm_yaml_read(input, document, error);
    }
}

/* Merges what the caller knows into what the file says. */
static eplb_status agree(const char *name, const char *what, int32_t known, int32_t *said, io_error *error)
{
    if (known > 0 && *said > 0 && known != *said)
        return io_fail(error, EPLB_ERROR_INVALID, "%s: the file says %d %s, the command %d", name, *said,
                       what, known);
    if (known > 0)
        *said = known;
    return EPLB_OK;
}

/* The number of experts that the ids tell, where nothing else does. */
static eplb_status infer_experts(const char *name, io_document *document, io_error *error)
{
    if (document->num_experts > 0)
        return EPLB_OK;
    int32_t largest = -1;
    size_t count = (size_t)document->num_layers * (size_t)document->num_slots;
    for (size_t i = 0; i < count; i++)
        largest = document->physical_to_logical[i] > largest ? document->physical_to_logical[i] : largest;
    if (largest < 0 || largest >= EPLB_MAX_EXPERTS)
        return io_fail(error, EPLB_ERROR_INVALID, "%s: the largest expert id is %d; 0 to %d are possible",
                       name, largest, EPLB_MAX_EXPERTS - 1);
    document->num_experts = largest + 1;
    return EPLB_OK;
}

static eplb_status complete(const char *name, const io_document_options *options, io_document *document,
                            io_error *error)
{
    static const io_document_options nothing = {0};
    if (options == NULL)
        options = &nothing;
    eplb_status status = agree(name, "ranks", options->num_ranks, &document->num_ranks, error);
    if (status == EPLB_OK)
        status = agree(name, "nodes", options->num_nodes, &document->num_nodes, error);
    if (status == EPLB_OK)
        status = agree(name, "experts", options->num_experts, &document->num_experts, error);
    return status == EPLB_OK ? infer_experts(name, document, error) : status;
}

eplb_status io_document_read(const char *path, const io_document_options *options, io_document *document,
                             io_error *error)
{
    memset(document, 0, sizeof *document);
    document->plan_seconds = -1.0;
    document->mean = document->worst = NAN;
    io_input *input;
    eplb_status status = io_input_open(&input, path, error);
    if (status != EPLB_OK)
        return status;
    status = read_content(input, document, error);
    if (status == EPLB_OK)
        status = complete(input->name, options, document, error);
    if (status != EPLB_OK)
        io_document_clear(document);
    io_input_close(input);
    return status;
}

eplb_status io_document_topology(const io_document *document, const char *path, eplb_topology **topology,
                                 io_error *error)
{
    *topology = NULL;
    if (document->num_ranks < 1)
        return io_fail(error, EPLB_ERROR_INVALID,
                       "%s: this format does not say how many ranks there are; pass --ranks", path);
    if (document->rank_slots == NULL && document->num_slots % document->num_ranks != 0)
        return io_fail(error, EPLB_ERROR_INVALID,
                       "%s: %d slots do not divide by %d ranks, and there are no rank_slots", path,
                       document->num_slots, document->num_ranks);
    eplb_topology_params params;
    eplb_topology_params_init(&params, sizeof params);
    params.num_ranks = document->num_ranks;
    params.num_nodes = document->num_nodes > 0 ? document->num_nodes : 1;
    params.slots_per_rank = document->num_slots / document->num_ranks;
    params.rank_slots = document->rank_slots;
    params.rank_node = document->rank_node;
    params.rank_alive = document->rank_alive;
    params.rank_speed = document->rank_speed;
    eplb_error cause;
    eplb_status status = eplb_topology_create(topology, &params, NULL, &cause);
    if (status != EPLB_OK)
        return io_fail_library(error, path, &cause);
    if (eplb_topology_num_slots(*topology) != document->num_slots) {
        status = io_fail(error, EPLB_ERROR_INVALID, "%s: rank_slots add up to %d slots, the map has %d", path,
                         eplb_topology_num_slots(*topology), document->num_slots);
        eplb_topology_destroy(*topology);
        *topology = NULL;
    }
    return status;
}

eplb_status io_document_placement(const io_document *document, const char *path, eplb_placement **placement,
                                  io_error *error)
{
    *placement = NULL;
    eplb_topology *topology;
    eplb_status status = io_document_topology(document, path, &topology, error);
    if (status != EPLB_OK)
        return status;
    eplb_error cause;
    status = eplb_placement_create(placement, topology, document->num_layers, document->num_experts,
                                   document->physical_to_logical, NULL, &cause);
    if (status != EPLB_OK)
        (void)io_fail_library(error, path, &cause);
    eplb_topology_destroy(topology);
    return status;
}

/* Empty slots of a document whose ranks have equally many slots. */
typedef struct empty_slots {
    int64_t first; /* over all layers; -1: none */
    int64_t count, dead;
    int64_t most; /* in a layer */
} empty_slots;

static empty_slots count_empty(const io_document *document)
{
    int64_t slots = document->num_slots;
    int64_t per_rank = document->num_ranks > 0 ? slots / document->num_ranks : slots;
    empty_slots empty = {-1, 0, 0, 0};
    for (int64_t l = 0; l < document->num_layers; l++) {
        int64_t before = empty.count;
        for (int64_t i = 0; i < slots; i++) {
            if (document->physical_to_logical[l * slots + i] >= 0)
                continue;
            empty.first = empty.first < 0 ? l * slots + i : empty.first;
            empty.count++;
            empty.dead += document->rank_alive != NULL && !document->rank_alive[i / per_rank];
        }
        if (empty.count - before > empty.most)
            empty.most = empty.count - before;
    }
    return empty;
}

/* Empty slots: the first is named, how many a layer has at most, and what helps. As many moves fill them,
 * except on dead ranks, and on ranks that have more slots than there are experts: none holds one twice. */
static eplb_status check_full(const io_document *document, const char *name, io_error *error)
{
    empty_slots empty = count_empty(document);
    int64_t slots = document->num_slots, ranks = document->num_ranks, experts = document->num_experts;
    char advice[128];
    if (empty.count == 0)
        return EPLB_OK;
    if (empty.dead > 0)
        (void)snprintf(advice, sizeof advice, "%lld of these are on dead ranks and stay empty",
                       (long long)empty.dead);
    else if (ranks > 0 && slots / ranks > experts)
        (void)snprintf(advice, sizeof advice, "%lld slots of a rank are more than %lld experts fill",
                       (long long)(slots / ranks), (long long)experts);
    else
        (void)snprintf(advice, sizeof advice,
                       "'eplb plan --current' fills them where --max-moves allows %lld more",
                       (long long)empty.most);
    return io_fail(error, EPLB_ERROR_UNSUPPORTED,
                   "format %s: layer %lld, slot %lld is empty, which it cannot hold (%lld empty slot%s, at "
                   "most %lld in a layer); %s",
                   name, (long long)(empty.first / slots), (long long)(empty.first % slots),
                   (long long)empty.count, empty.count == 1 ? "" : "s", (long long)empty.most, advice);
}

/* Empty slots and unequal ranks, which most engines cannot hold. */
static eplb_status check_holds(const io_document *document, io_format format, io_error *error)
{
    const char *name = format_names[format];
    if (document->rank_slots != NULL ||
        (document->num_ranks > 0 && document->num_slots % document->num_ranks != 0))
        return io_fail(error, EPLB_ERROR_UNSUPPORTED,
                       "format %s: every rank must have the same number of slots", name);
    return format == IO_FORMAT_VLLM ? EPLB_OK : check_full(document, name, error);
}

static eplb_status check_writable(const io_document *document, io_format format, io_error *error)
{
    if ((format == IO_FORMAT_ASCEND || format == IO_FORMAT_JSON) && document->num_ranks < 1)
        return io_fail(error, EPLB_ERROR_INVALID, "format %s: how many ranks are there? Pass --ranks",
                       format_names[format]);
    return format == IO_FORMAT_JSON || format == IO_FORMAT_NPZ ? EPLB_OK
                                                               : check_holds(document, format, error);
}

static eplb_status write_format(const io_document *document, io_format format, const char *path,
                                int32_t first_layer, io_output *output, io_error *error)
{
    switch (format) {
    case IO_FORMAT_NPZ:
        return placement_npz_write(document, false, output, error);
    case IO_FORMAT_SGLANG:
        sglang_json_write(document, output);
        return EPLB_OK;
    case IO_FORMAT_VLLM:
        if (path_ends_with(path, ".npz"))
            return placement_npz_write(document, true, output, error);
        return vllm_json_write(document, output, error);
    case IO_FORMAT_ASCEND:
        ascend_json_write(document, output);
        return EPLB_OK;
    case IO_FORMAT_TRTLLM:
        trtllm_yaml_write(document, first_layer, output);
        return EPLB_OK;
    default:
        plan_json_write(document, output);
        return EPLB_OK;
    }
}

eplb_status io_document_write(const io_document *document, io_format format, const char *path,
                              int32_t first_layer, io_error *error)
{
    eplb_status status = check_writable(document, format, error);
    if (status != EPLB_OK)
        return status;
    io_output *output;
    status = io_output_open(&output, path, error);
    if (status != EPLB_OK)
        return status;
    status = write_format(document, format, path, first_layer, output, error);
    if (status != EPLB_OK) {
        io_output_abandon(output);
        return status;
    }
    return io_output_close(output, error);
}
