/* The JSON of three engines.
 *
 * SGLang (--init-expert-location): the one key physical_to_logical_map; an extra key makes its start fail.
 * vLLM: it has no placement file of its own, so the three maps of its state under their names there.
 * vllm-ascend (expert_map_path): its engine reads by position and ignores the numbers beside, so they must
 * agree with it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/json_fields.h"
#include "io/json_writer.h"
#include "io/placement_formats.h"

static eplb_status read_map(const json_fields *fields, io_document *document)
{
    int64_t layers = -1, slots = -1;
    int32_t *map;
    eplb_status status = json_get_int_matrix(fields, "physical_to_logical_map", &layers, &slots, &map);
    if (status != EPLB_OK || map == NULL) {
        free(map);
        return status != EPLB_OK ? status
                                 : io_fail(fields->error, EPLB_ERROR_INVALID,
                                           "%s: the key 'physical_to_logical_map' is missing", fields->name);
    }
    return document_take_map(document, fields->name, map, layers, slots, fields->error);
}

eplb_status sglang_json_read(const json_t *root, const char *name, io_document *document, io_error *error)
{
    static const char *const keys[] = {"physical_to_logical_map", NULL};
    document->format = IO_FORMAT_SGLANG;
    json_fields fields;
    eplb_status status = json_fields_init(&fields, name, "", root, keys, error);
    return status == EPLB_OK ? read_map(&fields, document) : status;
}

void sglang_json_write(const io_document *document, io_output *output)
{
    json_writer json;
    json_begin_document(&json, output);
    json_begin_object(&json);
    json_key(&json, "physical_to_logical_map");
    json_int32_matrix(&json, document->physical_to_logical, document->num_layers, document->num_slots);
    json_end_object(&json);
    json_end_document(&json);
}

/* logical_to_physical_map [L][E][width]: each layer is a matrix. */
static eplb_status check_dense(const json_fields *fields, const io_document *document)
{
    const json_t *layers = json_object_get(fields->object, "logical_to_physical_map");
    if (layers == NULL)
        return EPLB_OK;
    if (!json_is_array(layers) || json_array_size(layers) != (size_t)document->num_layers)
        return io_fail(fields->error, EPLB_ERROR_INVALID,
                       "%s: logical_to_physical_map must be a list of %d layers", fields->name,
                       document->num_layers);
    const json_t *first = json_array_get(json_array_get(layers, 0), 0);
    size_t width = json_array_size(first), experts = (size_t)document->num_experts;
    if (width == 0 || width > (size_t)document->num_slots + 1024)
        return io_fail(fields->error, EPLB_ERROR_INVALID, "%s: logical_to_physical_map[0][0] has %zu entries",
                       fields->name, width);
    eplb_status status = EPLB_OK;
    int32_t *slots = malloc(experts * width * sizeof *slots);
    io_document one = *document;
    one.num_layers = 1;
    if (slots == NULL)
        status = io_fail_memory(fields->error, fields->name, "logical_to_physical_map");
    for (size_t layer = 0; layer < (size_t)document->num_layers && status == EPLB_OK; layer++) {
        const json_t *rows = json_array_get(layers, layer);
        if (json_array_size(rows) != experts)
            status = io_fail(fields->error, EPLB_ERROR_INVALID,
                             "%s: logical_to_physical_map[%zu] has %zu experts where %zu are wanted",
                             fields->name, layer, json_array_size(rows), experts);
        char label[80];
        for (size_t expert = 0; expert < experts && status == EPLB_OK; expert++) {
            (void)snprintf(label, sizeof label, "logical_to_physical_map[%zu][%zu]", layer, expert);
            status = json_take_ints(fields, label, json_array_get(rows, expert), (int64_t)width,
                                    slots + expert * width);
        }
        one.physical_to_logical = document->physical_to_logical + layer * (size_t)document->num_slots;
        if (status == EPLB_OK)
            status = document_check_inverse(&one, fields->name, NULL, slots, (int64_t)width, fields->error);
    }
    free(slots);
    return status;
}

eplb_status vllm_json_read(const json_t *root, const char *name, io_document *document, io_error *error)
{
    static const char *const keys[] = {"physical_to_logical_map", "logical_to_physical_map",
                                       "logical_replica_count", NULL};
    document->format = IO_FORMAT_VLLM;
    json_fields fields;
    eplb_status status = json_fields_init(&fields, name, "", root, keys, error);
    if (status == EPLB_OK)
        status = read_map(&fields, document);
    if (status != EPLB_OK)
        return status;
    int64_t layers = document->num_layers, experts = -1;
    int32_t *count;
    status = json_get_int_matrix(&fields, "logical_replica_count", &layers, &experts, &count);
    if (status == EPLB_OK && (count == NULL || experts > EPLB_MAX_EXPERTS))
        status = io_fail(error, EPLB_ERROR_INVALID,
                         "%s: logical_replica_count must be [L][E] with E up to %d", name, EPLB_MAX_EXPERTS);
    if (status == EPLB_OK) {
        document->num_experts = (int32_t)experts;
        status = document_check_inverse(document, name, count, NULL, 0, error);
    }
    free(count);
    return status == EPLB_OK ? check_dense(&fields, document) : status;
}

eplb_status vllm_json_write(const io_document *document, io_output *output, io_error *error)
{
    int32_t *count, *slots;
    int64_t width;
    eplb_status status = document_inverse(document, io_output_name(output), &count, &slots, &width, error);
    if (status != EPLB_OK)
        return status;
    json_writer json;
    json_begin_document(&json, output);
    json_begin_object(&json);
    json_key(&json, "physical_to_logical_map");
    json_int32_matrix(&json, document->physical_to_logical, document->num_layers, document->num_slots);
    json_key(&json, "logical_to_physical_map");
    json_begin_array(&json);
    for (int64_t layer = 0; layer < document->num_layers; layer++)
        json_int32_matrix(&json, slots + layer * document->num_experts * width, document->num_experts, width);
    json_end_array(&json);
    json_key(&json, "logical_replica_count");
    json_int32_matrix(&json, count, document->num_layers, document->num_experts);
    json_end_object(&json);
    json_end_document(&json);
    free(count);
    free(slots);
    return EPLB_OK;
}

/* One entry of device_list: its slots are appended to the layer's row. */
static eplb_status read_device(const json_fields *layer, size_t index, const json_t *device,
                               int32_t slots_per_rank, int32_t *row)
{
    static const char *const keys[] = {"device_id", "device_expert", NULL};
    char where[80];
    (void)snprintf(where, sizeof where, "%sdevice_list[%zu].", layer->where, index);
    json_fields fields;
    int64_t id = (int64_t)index;
    eplb_status status = json_fields_init(&fields, layer->name, where, device, keys, layer->error);
    if (status == EPLB_OK)
        status = json_get_int(&fields, "device_id", true, (int64_t)index, (int64_t)index, &id);
    if (status == EPLB_OK)
        status = json_take_ints(&fields, "device_expert", json_object_get(device, "device_expert"),
                                slots_per_rank, row + index * (size_t)slots_per_rank);
    return status;
}

/* One entry of layer_list. */
static eplb_status read_layer(const json_fields *root, size_t index, const json_t *layer,
                              const io_document *document)
{
    static const char *const keys[] = {"layer_id", "device_count", "device_list", NULL};
    char where[48];
    (void)snprintf(where, sizeof where, "layer_list[%zu].", index);
    json_fields fields;
    int64_t id = (int64_t)index, devices = document->num_ranks;
    eplb_status status = json_fields_init(&fields, root->name, where, layer, keys, root->error);
    if (status == EPLB_OK)
        status = json_get_int(&fields, "layer_id", true, (int64_t)index, (int64_t)index, &id);
    if (status == EPLB_OK)
        status = json_get_int(&fields, "device_count", true, devices, devices, &devices);
    const json_t *list = json_object_get(layer, "device_list");
    if (status == EPLB_OK && (!json_is_array(list) || json_array_size(list) != (size_t)document->num_ranks))
        status = io_fail(root->error, EPLB_ERROR_INVALID, "%s: %sdevice_list must be a list of %d devices",
                         root->name, where, document->num_ranks);
    int32_t *row = document->physical_to_logical + index * (size_t)document->num_slots;
    for (size_t device = 0; device < (size_t)document->num_ranks && status == EPLB_OK; device++)
        status = read_device(&fields, device, json_array_get(list, device),
                             document->num_slots / document->num_ranks, row);
    return status;
}

/* Sizes from the first device of the first layer; every other one must agree. */
static eplb_status ascend_sizes(const json_fields *root, const json_t *layers, io_document *document)
{
    const json_t *devices = json_object_get(json_array_get(layers, 0), "device_list");
    const json_t *experts = json_object_get(json_array_get(devices, 0), "device_expert");
    size_t num_layers = json_array_size(layers), ranks = json_array_size(devices),
           slots = json_array_size(experts);
    if (num_layers == 0 || ranks == 0 || slots == 0)
        return io_fail(root->error, EPLB_ERROR_INVALID,
                       "%s: layer_list[0].device_list[0].device_expert must be a list of experts",
                       root->name);
    if (ranks > EPLB_MAX_RANKS || slots > EPLB_MAX_SLOTS / ranks || num_layers > EPLB_MAX_LAYERS)
        return io_fail(root->error, EPLB_ERROR_INVALID,
                       "%s: %zu layers of %zu devices with %zu experts are too many", root->name, num_layers,
                       ranks, slots);
    /* Every layer needs at least the text of its slots: reject a large promise before taking the memory. */
    for (size_t layer = 0; layer < num_layers; layer++) {
        const json_t *list = json_object_get(json_array_get(layers, layer), "device_list");
        if (json_array_size(list) != ranks)
            return io_fail(root->error, EPLB_ERROR_INVALID,
                           "%s: layer_list[%zu].device_list must be a list of %zu devices", root->name, layer,
                           ranks);
        for (size_t rank = 0; rank < ranks; rank++) {
            const json_t *list_of = json_object_get(json_array_get(list, rank), "device_expert");
            if (json_array_size(list_of) != slots)
                return io_fail(
                    root->error, EPLB_ERROR_INVALID,
                    "%s: layer_list[%zu].device_list[%zu].device_expert has %zu experts where %zu are "
                    "wanted (the same number on every device)",
                    root->name, layer, rank, json_array_size(list_of), slots);
        }
    }
    int32_t *map = malloc(num_layers * ranks * slots * sizeof *map);
    if (map == NULL)
        return io_fail_memory(root->error, root->name, "its slots");
    document->num_ranks = (int32_t)ranks;
    return document_take_map(document, root->name, map, (int64_t)num_layers, (int64_t)(ranks * slots),
                             root->error);
}

eplb_status ascend_json_read(const json_t *root, const char *name, io_document *document, io_error *error)
{
    static const char *const keys[] = {"moe_layer_count", "layer_list", NULL};
    document->format = IO_FORMAT_ASCEND;
    json_fields fields;
    eplb_status status = json_fields_init(&fields, name, "", root, keys, error);
    const json_t *layers = json_object_get(root, "layer_list");
    if (status == EPLB_OK && !json_is_array(layers))
        status = io_fail(error, EPLB_ERROR_INVALID, "%s: layer_list must be a list of layers", name);
    int64_t count = (int64_t)json_array_size(layers);
    if (status == EPLB_OK)
        status = json_get_int(&fields, "moe_layer_count", false, count, count, &count);
    if (status == EPLB_OK)
        status = ascend_sizes(&fields, layers, document);
    for (size_t layer = 0; status == EPLB_OK && layer < (size_t)document->num_layers; layer++)
        status = read_layer(&fields, layer, json_array_get(layers, layer), document);
    return status;
}

void ascend_json_write(const io_document *document, io_output *output)
{
    int32_t slots = document->num_slots / document->num_ranks;
    const int32_t *next = document->physical_to_logical;
    json_writer json;
    json_begin_document(&json, output);
    json_begin_object(&json);
    json_key_int(&json, "moe_layer_count", document->num_layers);
    json_key(&json, "layer_list");
    json_begin_array(&json);
    for (int32_t layer = 0; layer < document->num_layers; layer++) {
        json_begin_object(&json);
        json_key_int(&json, "layer_id", layer);
        json_key_int(&json, "device_count", document->num_ranks);
        json_key(&json, "device_list");
        json_begin_array(&json);
        for (int32_t rank = 0; rank < document->num_ranks; rank++, next += slots) {
            json_begin_object(&json);
            json_key_int(&json, "device_id", rank);
            json_key(&json, "device_expert");
            json_int32_row(&json, next, slots);
            json_end_object(&json);
        }
        json_end_array(&json);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
    json_end_document(&json);
}
