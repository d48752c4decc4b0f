/* TensorRT-LLM's load balancer file (MoeLoadBalancerConfig): num_slots, layer_updates_per_iter and, per MoE
 * layer, the expert of every slot. Read event by event with libyaml; aliases are refused, so no small file
 * can grow. ep_size, which one of its generators adds, is taken as the number of ranks. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "io/number.h"
#include "io/placement_formats.h"

typedef struct yaml_reader {
    yaml_parser_t parser;
    yaml_event_t event;
    bool has_event;
    io_input *input;
    io_document *document;
    io_error *error;
    io_error failure;  /* of the input, from inside libyaml */
    int64_t num_slots; /* -1: not said */
    int32_t *map;
    size_t rows;
    size_t used; /* numbers in map */
    size_t capacity;
} yaml_reader;

static int read_bytes(void *context, unsigned char *buffer, size_t size, size_t *got)
{
    yaml_reader *reader = context;
    return io_input_read(reader->input, buffer, size, got, &reader->failure) == EPLB_OK;
}

static eplb_status yaml_fail(const yaml_reader *reader, const char *what)
{
    const yaml_mark_t *mark = &reader->event.start_mark;
    return io_fail(reader->error, EPLB_ERROR_INVALID, "%s: line %zu, column %zu: %s", reader->input->name,
                   mark->line + 1, mark->column + 1, what);
}

/* The next event; the one before is gone. */
static eplb_status next_event(yaml_reader *reader)
{
    if (reader->has_event)
        yaml_event_delete(&reader->event);
    reader->has_event = yaml_parser_parse(&reader->parser, &reader->event) != 0;
    if (!reader->has_event && reader->failure.status != EPLB_OK) {
        if (reader->error != NULL)
            *reader->error = reader->failure;
        return reader->failure.status;
    }
    if (!reader->has_event)
        return io_fail(
            reader->error, reader->parser.error == YAML_MEMORY_ERROR ? EPLB_ERROR_MEMORY : EPLB_ERROR_INVALID,
            "%s: line %zu: not YAML: %s", reader->input->name, reader->parser.problem_mark.line + 1,
            reader->parser.problem != NULL ? reader->parser.problem : "unreadable");
    if (reader->event.type == YAML_ALIAS_EVENT)
        return yaml_fail(reader, "an alias; write the value itself");
    return EPLB_OK;
}

static eplb_status want(yaml_reader *reader, yaml_event_type_t type, const char *what)
{
    eplb_status status = next_event(reader);
    if (status == EPLB_OK && reader->event.type != type)
        status = yaml_fail(reader, what);
    return status;
}

/* The scalar at hand as an integer within least .. most. */
static eplb_status take_int(yaml_reader *reader, int64_t least, int64_t most, int64_t *value)
{
    if (reader->event.type != YAML_SCALAR_EVENT)
        return yaml_fail(reader, "an integer is wanted here");
    const char *text = (const char *)reader->event.data.scalar.value;
    size_t length = reader->event.data.scalar.length;
    io_number number;
    if (strlen(text) != length || io_number_parse(text, length, false, &number) != IO_NUMBER_OK ||
        number.floating) {
        char message[96];
        (void)snprintf(message, sizeof message, "'%.40s' is not an integer", text);
        return yaml_fail(reader, message);
    }
    *value = number.integer;
    if (*value < least || *value > most) {
        char message[128];
        (void)snprintf(message, sizeof message, "%" PRId64 " is not in %" PRId64 " .. %" PRId64, *value,
                       least, most);
        return yaml_fail(reader, message);
    }
    return EPLB_OK;
}

static eplb_status want_int(yaml_reader *reader, int64_t least, int64_t most, int64_t *value)
{
    eplb_status status = next_event(reader);
    return status == EPLB_OK ? take_int(reader, least, most, value) : status;
}

static eplb_status append(yaml_reader *reader, int32_t expert)
{
    if (reader->used == reader->capacity) {
        size_t capacity = reader->capacity * 2 + 1024;
        int32_t *map = realloc(reader->map, capacity * sizeof *map);
        if (map == NULL)
            return io_fail_memory(reader->error, reader->input->name, "its slots");
        reader->map = map;
        reader->capacity = capacity;
    }
    reader->map[reader->used++] = expert;
    return EPLB_OK;
}

/* The experts of one layer; the first layer tells how many slots there are. */
static eplb_status read_slots(yaml_reader *reader)
{
    eplb_status status = want(reader, YAML_SEQUENCE_START_EVENT, "a list of experts is wanted for a layer");
    size_t start = reader->used;
    while (status == EPLB_OK) {
        status = next_event(reader);
        if (status != EPLB_OK || reader->event.type == YAML_SEQUENCE_END_EVENT)
            break;
        int64_t expert;
        status = take_int(reader, 0, EPLB_MAX_EXPERTS - 1, &expert);
        if (status == EPLB_OK)
            status = append(reader, (int32_t)expert);
    }
    if (status != EPLB_OK)
        return status;
    size_t slots = reader->used - start;
    if (slots == 0 || slots > EPLB_MAX_SLOTS || (reader->rows > 0 && slots * reader->rows != start)) {
        char message[128];
        (void)snprintf(message, sizeof message,
                       "a layer of %zu slots; every layer has the same number, 1 to %d", slots,
                       EPLB_MAX_SLOTS);
        return yaml_fail(reader, message);
    }
    reader->rows++;
    return EPLB_OK;
}

/* The number of a layer: above the one before. */
static eplb_status take_layer(yaml_reader *reader, int64_t *layer)
{
    eplb_status status = take_int(reader, 0, EPLB_MAX_LAYERS - 1, layer);
    if (status != EPLB_OK || reader->rows == 0)
        return status;
    int32_t before = reader->document->layer_ids[reader->rows - 1];
    if (*layer > before)
        return EPLB_OK;
    char message[96];
    if (*layer == before)
        (void)snprintf(message, sizeof message, "layer %" PRId64 " is there twice", *layer);
    else
        (void)snprintf(message, sizeof message, "layer %" PRId64 " after layer %d; they must ascend", *layer,
                       (int)before);
    return yaml_fail(reader, message);
}

static eplb_status read_assignments(yaml_reader *reader)
{
    io_document *document = reader->document;
    eplb_status status = want(reader, YAML_MAPPING_START_EVENT, "a mapping from layers to lists is wanted");
    if (status == EPLB_OK && reader->rows > 0)
        status = yaml_fail(reader, "initial_global_assignments is there twice");
    while (status == EPLB_OK) {
        status = next_event(reader);
        if (status != EPLB_OK || reader->event.type == YAML_MAPPING_END_EVENT)
            break;
        int64_t layer;
        status = take_layer(reader, &layer);
        int32_t *ids = status == EPLB_OK ? realloc(document->layer_ids, (reader->rows + 1) * sizeof *ids)
                                         : document->layer_ids;
        if (status == EPLB_OK && ids == NULL)
            return io_fail_memory(reader->error, reader->input->name, "its layers");
        document->layer_ids = ids;
        if (status == EPLB_OK) {
            ids[reader->rows] = (int32_t)layer;
            status = read_slots(reader);
        }
    }
    return status;
}

/* One key of the outermost mapping, and its value. */
static eplb_status read_entry(yaml_reader *reader)
{
    if (reader->event.type != YAML_SCALAR_EVENT)
        return yaml_fail(reader, "a key is wanted here");
    const char *key = (const char *)reader->event.data.scalar.value;
    int64_t value = 0;
    eplb_status status;
    if (strcmp(key, "num_slots") == 0)
        return want_int(reader, 1, EPLB_MAX_SLOTS, &reader->num_slots);
    if (strcmp(key, "layer_updates_per_iter") == 0) {
        status = want_int(reader, 0, EPLB_MAX_LAYERS, &value);
        reader->document->layer_updates_per_iter = (int32_t)value;
        return status;
    }
    if (strcmp(key, "ep_size") == 0) {
        status = want_int(reader, 1, EPLB_MAX_RANKS, &value);
        reader->document->num_ranks = (int32_t)value;
        return status;
    }
    if (strcmp(key, "initial_global_assignments") == 0)
        return read_assignments(reader);
    char message[200];
    (void)snprintf(
        message, sizeof message,
        "unknown key '%.40s'; num_slots, layer_updates_per_iter, initial_global_assignments and ep_size are "
        "known",
        key);
    return yaml_fail(reader, message);
}

static eplb_status read_stream(yaml_reader *reader)
{
    eplb_status status = want(reader, YAML_STREAM_START_EVENT, "YAML is wanted");
    if (status == EPLB_OK)
        status = want(reader, YAML_DOCUMENT_START_EVENT, "a document is wanted");
    if (status == EPLB_OK)
        status = want(reader, YAML_MAPPING_START_EVENT,
                      "not a placement: neither .npy, .npz, JSON nor a YAML mapping (TensorRT-LLM)");
    while (status == EPLB_OK) {
        status = next_event(reader);
        if (status != EPLB_OK || reader->event.type == YAML_MAPPING_END_EVENT)
            break;
        status = read_entry(reader);
    }
    if (status == EPLB_OK)
        status = want(reader, YAML_DOCUMENT_END_EVENT, "the document should end here");
    if (status == EPLB_OK)
        status = want(reader, YAML_STREAM_END_EVENT, "a second document");
    return status;
}

eplb_status trtllm_yaml_read(io_input *input, io_document *document, io_error *error)
{
    yaml_reader reader = {.input = input, .document = document, .error = error, .num_slots = -1};
    document->format = IO_FORMAT_TRTLLM;
    if (!yaml_parser_initialize(&reader.parser))
        return io_fail_memory(error, input->name, "a YAML parser");
    yaml_parser_set_input(&reader.parser, read_bytes, &reader);
    eplb_status status = read_stream(&reader);
    if (reader.has_event)
        yaml_event_delete(&reader.event);
    yaml_parser_delete(&reader.parser);
    if (status == EPLB_OK && reader.rows == 0)
        status = io_fail(error, EPLB_ERROR_INVALID, "%s: no initial_global_assignments, so no placement",
                         input->name);
    if (status != EPLB_OK) {
        free(reader.map);
        return status;
    }
    int64_t slots = (int64_t)(reader.used / reader.rows);
    status = document_take_map(document, input->name, reader.map, (int64_t)reader.rows, slots, error);
    if (status == EPLB_OK && reader.num_slots >= 0 && reader.num_slots != slots)
        status = io_fail(error, EPLB_ERROR_INVALID,
                         "%s: num_slots is %" PRId64 ", but layers list %" PRId64 " slots", input->name,
                         reader.num_slots, slots);
    return status;
}

void trtllm_yaml_write(const io_document *document, int32_t first_layer, io_output *output)
{
    io_output_format(output, "num_slots: %d\nlayer_updates_per_iter: %d\ninitial_global_assignments:\n",
                     document->num_slots, document->layer_updates_per_iter);
    const int32_t *next = document->physical_to_logical;
    for (int32_t layer = 0; layer < document->num_layers; layer++) {
        io_output_format(output, "  %d: [",
                         document->layer_ids != NULL ? document->layer_ids[layer] : first_layer + layer);
        for (int32_t slot = 0; slot < document->num_slots; slot++)
            io_output_format(output, "%s%d", slot > 0 ? ", " : "", *next++);
        io_output_text(output, "]\n");
    }
}
