/* Fields of a JSON document that is read whole (jansson): types, ranges and names checked, errors name the
 * field.
 *
 * For documents of plans and placements, which are small; loads go through json_reader.h. */
#ifndef IO_JSON_FIELDS_H
#define IO_JSON_FIELDS_H

#include <jansson.h>

#include "io/input.h"

#define JSON_MAX_DOCUMENT_BYTES ((int64_t)256 << 20)

/* Parses the whole input; duplicate keys are refused. The caller releases *root with json_decref. */
eplb_status json_document_load(io_input *input, json_t **root, io_error *error);

/* An object and where it stands. */
typedef struct json_fields {
    const char *name;  /* of the file */
    const char *where; /* "" or a prefix such as "metrics." */
    const json_t *object;
    io_error *error;
} json_fields;

/* INVALID unless `value` is an object all of whose keys are among `keys` (NULL ends them). */
eplb_status json_fields_init(json_fields *fields, const char *name, const char *where, const json_t *value,
                             const char *const *keys, io_error *error);
bool json_has(const json_fields *fields, const char *key);
/* An integer within least .. most; a missing key is an error unless `optional`, which leaves *value alone. */
eplb_status json_get_int(const json_fields *fields, const char *key, bool optional, int64_t least,
                         int64_t most, int64_t *value);
/* The same into an int32_t. */
eplb_status json_get_int32(const json_fields *fields, const char *key, bool optional, int32_t least,
                           int32_t most, int32_t *value);
/* A number; whole ones may be written without a point. Missing: *value stays. */
eplb_status json_get_double(const json_fields *fields, const char *key, double *value);
/* A copy that the caller frees; missing: NULL. */
eplb_status json_get_text(const json_fields *fields, const char *key, char **value);
/* A list of `count` integers (-1: any number, *found tells), each within int32; missing: NULL. */
eplb_status json_get_int_row(const json_fields *fields, const char *key, int64_t count, int32_t **values,
                             int64_t *found);
eplb_status json_get_double_row(const json_fields *fields, const char *key, int64_t count, double **values);
/* A list of lists, all of the same length; rows or columns -1: any, *rows and *columns tell. Missing:
 * NULL. */
eplb_status json_get_int_matrix(const json_fields *fields, const char *key, int64_t *rows, int64_t *columns,
                                int32_t **values);
eplb_status json_get_double_matrix(const json_fields *fields, const char *key, int64_t rows, int64_t columns,
                                   double **values);
/* Appends the integers of one list to values[at ...]; `label` names it in errors. */
eplb_status json_take_ints(const json_fields *fields, const char *label, const json_t *list, int64_t count,
                           int32_t *values);

#endif
