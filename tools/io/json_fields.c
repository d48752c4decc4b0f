/* Fields of a JSON document. jansson says where the syntax is wrong, these functions where the meaning is. */
#include "io/json_fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct load_state {
    io_input *input;
    int64_t taken;
    bool too_large;
    io_error failure;
} load_state;

static size_t load_bytes(void *buffer, size_t size, void *context)
{
    load_state *state = context;
    size_t got = 0;
    state->failure.status = EPLB_OK;
    if (io_input_read(state->input, buffer, size, &got, &state->failure) != EPLB_OK)
        return (size_t)-1;
    state->taken += (int64_t)got;
    state->too_large = state->taken > JSON_MAX_DOCUMENT_BYTES;
    return state->too_large ? (size_t)-1 : got;
}

eplb_status json_document_load(io_input *input, json_t **root, io_error *error)
{
    load_state state = {.input = input};
    json_error_t reason;
    io_input_skip_mark(input);
    *root = json_load_callback(load_bytes, &state, JSON_REJECT_DUPLICATES, &reason);
    if (*root != NULL)
        return EPLB_OK;
    if (state.failure.status != EPLB_OK) {
        if (error != NULL)
            *error = state.failure;
        return state.failure.status;
    }
    if (state.too_large)
        return io_fail(error, EPLB_ERROR_UNSUPPORTED, "%s: a document of more than %" PRId64 " bytes",
                       input->name, JSON_MAX_DOCUMENT_BYTES);
    if (json_error_code(&reason) == json_error_out_of_memory)
        return io_fail_memory(error, input->name, "the document");
    return io_fail(error, EPLB_ERROR_INVALID, "%s: line %d, column %d: %s", input->name, reason.line,
                   reason.column, reason.text);
}

static const char *type_name(const json_t *value)
{
    static const char *const names[] = {"an object", "a list", "a text", "an integer",
                                        "a number",  "true",   "false",  "null"};
    return value == NULL ? "nothing" : names[json_typeof(value)];
}

static bool is_known(const char *key, const char *const *keys)
{
    for (; *keys != NULL; keys++)
        if (strcmp(key, *keys) == 0)
            return true;
    return false;
}

eplb_status json_fields_init(json_fields *fields, const char *name, const char *where, const json_t *value,
                             const char *const *keys, io_error *error)
{
    *fields = (json_fields){name, where, value, error};
    int length = (int)strlen(where) - (where[0] != '\0' ? 1 : 0);
    if (!json_is_object(value))
        return io_fail(error, EPLB_ERROR_INVALID, "%s: %.*s: %s where an object is wanted", name,
                       length > 0 ? length : 8, length > 0 ? where : "document", type_name(value));
    /* jansson's iterators take a mutable object and do not change it. */
    json_t *object = (json_t *)(uintptr_t)value;
    for (void *i = json_object_iter(object); i != NULL; i = json_object_iter_next(object, i))
        if (!is_known(json_object_iter_key(i), keys))
            return io_fail(error, EPLB_ERROR_INVALID, "%s: unknown key '%s%.80s'", name, where,
                           json_object_iter_key(i));
    return EPLB_OK;
}

bool json_has(const json_fields *fields, const char *key)
{
    return json_object_get(fields->object, key) != NULL;
}

static eplb_status missing(const json_fields *fields, const char *key)
{
    return io_fail(fields->error, EPLB_ERROR_INVALID, "%s: the key '%s%s' is missing", fields->name,
                   fields->where, key);
}

static eplb_status wrong_type(const json_fields *fields, const char *key, const json_t *value,
                              const char *wanted)
{
    return io_fail(fields->error, EPLB_ERROR_INVALID, "%s: %s%s: %s where %s is wanted", fields->name,
                   fields->where, key, type_name(value), wanted);
}

eplb_status json_get_int(const json_fields *fields, const char *key, bool optional, int64_t least,
                         int64_t most, int64_t *value)
{
    const json_t *field = json_object_get(fields->object, key);
    if (field == NULL)
        return optional ? EPLB_OK : missing(fields, key);
    if (!json_is_integer(field))
        return wrong_type(fields, key, field, "an integer");
    *value = (int64_t)json_integer_value(field);
    if (*value < least || *value > most)
        return io_fail(fields->error, EPLB_ERROR_INVALID,
                       "%s: %s%s: %" PRId64 " is not in %" PRId64 " .. %" PRId64, fields->name, fields->where,
                       key, *value, least, most);
    return EPLB_OK;
}

eplb_status json_get_int32(const json_fields *fields, const char *key, bool optional, int32_t least,
                           int32_t most, int32_t *value)
{
    int64_t wide = *value;
    eplb_status status = json_get_int(fields, key, optional, least, most, &wide);
    if (status == EPLB_OK)
        *value = (int32_t)wide;
    return status;
}

eplb_status json_get_double(const json_fields *fields, const char *key, double *value)
{
    const json_t *field = json_object_get(fields->object, key);
    if (field == NULL)
        return EPLB_OK;
    if (!json_is_number(field))
        return wrong_type(fields, key, field, "a number");
    *value = json_number_value(field);
    return EPLB_OK;
}

eplb_status json_get_text(const json_fields *fields, const char *key, char **value)
{
    *value = NULL;
    const json_t *field = json_object_get(fields->object, key);
    if (field == NULL)
        return EPLB_OK;
    if (!json_is_string(field))
        return wrong_type(fields, key, field, "a text");
    *value = strdup(json_string_value(field));
    return *value != NULL ? EPLB_OK : io_fail_memory(fields->error, fields->name, key);
}

static eplb_status check_length(const json_fields *fields, const char *label, const json_t *list,
                                int64_t count)
{
    if (!json_is_array(list))
        return wrong_type(fields, label, list, "a list");
    if (count >= 0 && (int64_t)json_array_size(list) != count)
        return io_fail(fields->error, EPLB_ERROR_INVALID,
                       "%s: %s%s has %zu entries where %" PRId64 " are wanted", fields->name, fields->where,
                       label, json_array_size(list), count);
    return EPLB_OK;
}

eplb_status json_take_ints(const json_fields *fields, const char *label, const json_t *list, int64_t count,
                           int32_t *values)
{
    eplb_status status = check_length(fields, label, list, count);
    if (status != EPLB_OK)
        return status;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_is_integer(item))
            return io_fail(fields->error, EPLB_ERROR_INVALID, "%s: %s%s[%zu]: %s where an integer is wanted",
                           fields->name, fields->where, label, i, type_name(item));
        int64_t value = (int64_t)json_integer_value(item);
        if (value < INT32_MIN || value > INT32_MAX)
            return io_fail(fields->error, EPLB_ERROR_INVALID,
                           "%s: %s%s[%zu]: %" PRId64 " does not fit in 32 bits", fields->name, fields->where,
                           label, i, value);
        values[i] = (int32_t)value;
    }
    return EPLB_OK;
}

static eplb_status take_doubles(const json_fields *fields, const char *label, const json_t *list,
                                int64_t count, double *values)
{
    eplb_status status = check_length(fields, label, list, count);
    if (status != EPLB_OK)
        return status;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_is_number(item))
            return io_fail(fields->error, EPLB_ERROR_INVALID, "%s: %s%s[%zu]: %s where a number is wanted",
                           fields->name, fields->where, label, i, type_name(item));
        values[i] = json_number_value(item);
    }
    return EPLB_OK;
}

eplb_status json_get_int_row(const json_fields *fields, const char *key, int64_t count, int32_t **values,
                             int64_t *found)
{
    *values = NULL;
    const json_t *list = json_object_get(fields->object, key);
    if (list == NULL)
        return EPLB_OK;
    eplb_status status = check_length(fields, key, list, count);
    if (status != EPLB_OK)
        return status;
    *values = malloc((json_array_size(list) + 1) * sizeof **values);
    if (*values == NULL)
        return io_fail_memory(fields->error, fields->name, key);
    if (found != NULL)
        *found = (int64_t)json_array_size(list);
    return json_take_ints(fields, key, list, -1, *values);
}

eplb_status json_get_double_row(const json_fields *fields, const char *key, int64_t count, double **values)
{
    *values = NULL;
    const json_t *list = json_object_get(fields->object, key);
    if (list == NULL)
        return EPLB_OK;
    *values = malloc(((size_t)count + 1) * sizeof **values);
    if (*values == NULL)
        return io_fail_memory(fields->error, fields->name, key);
    return take_doubles(fields, key, list, count, *values);
}

/* Checks that a list of lists is a matrix and fills in its unknown sizes; *list NULL: the key is missing. */
static eplb_status matrix_shape(const json_fields *fields, const char *key, int64_t *rows, int64_t *columns,
                                const json_t **list)
{
    *list = json_object_get(fields->object, key);
    if (*list == NULL)
        return EPLB_OK;
    eplb_status status = check_length(fields, key, *list, *rows);
    if (status != EPLB_OK)
        return status;
    *rows = (int64_t)json_array_size(*list);
    const json_t *first = json_array_get(*list, 0);
    if (*rows == 0)
        return io_fail(fields->error, EPLB_ERROR_INVALID, "%s: %s%s is empty; one row per layer is wanted",
                       fields->name, fields->where, key);
    if (!json_is_array(first))
        return wrong_type(fields, key, first, "a list of lists");
    if (*columns < 0)
        *columns = (int64_t)json_array_size(first);
    if (*columns == 0)
        return io_fail(fields->error, EPLB_ERROR_INVALID, "%s: %s%s[0] is empty", fields->name, fields->where,
                       key);
    /* The rows are checked before memory is taken for them: a short first row must not promise a large
     * matrix. */
    char label[96];
    for (int64_t row = 0; row < *rows; row++) {
        (void)snprintf(label, sizeof label, "%s[%" PRId64 "]", key, row);
        status = check_length(fields, label, json_array_get(*list, (size_t)row), *columns);
        if (status != EPLB_OK)
            return status;
    }
    return EPLB_OK;
}

eplb_status json_get_int_matrix(const json_fields *fields, const char *key, int64_t *rows, int64_t *columns,
                                int32_t **values)
{
    *values = NULL;
    const json_t *list;
    eplb_status status = matrix_shape(fields, key, rows, columns, &list);
    if (status != EPLB_OK || list == NULL)
        return status;
    *values = malloc((size_t)(*rows * *columns) * sizeof **values);
    if (*values == NULL)
        return io_fail_memory(fields->error, fields->name, key);
    char label[96];
    for (int64_t row = 0; row < *rows && status == EPLB_OK; row++) {
        (void)snprintf(label, sizeof label, "%s[%" PRId64 "]", key, row);
        status = json_take_ints(fields, label, json_array_get(list, (size_t)row), *columns,
                                *values + row * *columns);
    }
    return status;
}

eplb_status json_get_double_matrix(const json_fields *fields, const char *key, int64_t rows, int64_t columns,
                                   double **values)
{
    *values = NULL;
    const json_t *list;
    eplb_status status = matrix_shape(fields, key, &rows, &columns, &list);
    if (status != EPLB_OK || list == NULL)
        return status;
    *values = malloc((size_t)(rows * columns) * sizeof **values);
    if (*values == NULL)
        return io_fail_memory(fields->error, fields->name, key);
    char label[96];
    for (int64_t row = 0; row < rows && status == EPLB_OK; row++) {
        (void)snprintf(label, sizeof label, "%s[%" PRId64 "]", key, row);
        status =
            take_doubles(fields, label, json_array_get(list, (size_t)row), columns, *values + row * columns);
    }
    return status;
}
