/* Loads in CSV: a row is a layer, its fields are the experts. Fields end at a comma, a semicolon or a tab;
 * lines that start with # are comments; a first line whose first field is a name is a header. Windows are
 * separated by empty lines, or told by index columns: a header that starts with `layer`, or with `window` and
 * `layer`. Streams line by line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/load_readers.h"

#define MAX_LINE_BYTES ((size_t)64 << 20)

typedef struct csv_reader {
    io_input *input;
    io_windows *windows;
    char *line;
    size_t length;
    size_t capacity;
    int64_t number;        /* of the line, from 1 */
    int64_t header_fields; /* 0: no header */
    int index_columns;     /* 0, 1 (layer) or 2 (window, layer) */
    bool first;            /* no row or header yet */
    char separator;        /* of the file's fields; 0: none seen yet */
    int64_t window;        /* of the row before */
    int64_t first_layer;   /* number of a window's first layer */
} csv_reader;

static eplb_status csv_fail(const csv_reader *csv, int64_t field, io_error *error, const char *text,
                            const char *what)
{
    return io_fail(error, EPLB_ERROR_INVALID, "%s: line %lld, field %lld: '%.60s' %s", csv->input->name,
                   (long long)csv->number, (long long)field + 1, text, what);
}

/* The next line without its end; *more is false after the last one. */
static eplb_status read_line(csv_reader *csv, bool *more, io_error *error)
{
    csv->length = 0;
    csv->number++;
    int c = io_input_next(csv->input);
    *more = c >= 0;
    for (; c >= 0 && c != '\n'; c = io_input_next(csv->input)) {
        if (csv->length + 1 >= csv->capacity) {
            size_t capacity = csv->capacity * 2 + 4096;
            char *line = capacity <= MAX_LINE_BYTES ? realloc(csv->line, capacity) : NULL;
            if (line == NULL)
                return io_fail(error, EPLB_ERROR_UNSUPPORTED, "%s: line %lld is longer than can be held",
                               csv->input->name, (long long)csv->number);
            csv->line = line;
            csv->capacity = capacity;
        }
        if (c < 0x20 && c != '\t' && c != '\r')
            return io_fail(error, EPLB_ERROR_INVALID,
                           "%s: line %lld: byte 0x%02x: neither .npy, .npz, JSON nor CSV text",
                           csv->input->name, (long long)csv->number, (unsigned)c);
        csv->line[csv->length++] = (char)c;
    }
    while (csv->length > 0 && strchr(" \t\r", csv->line[csv->length - 1]) != NULL)
        csv->length--;
    if (csv->line != NULL)
        csv->line[csv->length] = '\0';
    return io_input_status(csv->input, error);
}

static const char *separator_name(char separator)
{
    return separator == ',' ? "a comma" : separator == ';' ? "a semicolon" : "a tab";
}

/* Cuts the next field out of *rest, without surrounding blanks and quotes; NULL after the last. */
static char *next_field(char **rest)
{
    char *field = *rest;
    if (field == NULL)
        return NULL;
    char *end = field + strcspn(field, ",;\t");
    *rest = *end != '\0' ? end + 1 : NULL;
    *end = '\0';
    while (*field == ' ')
        field++;
    while (end > field && (end[-1] == ' ' || end[-1] == '\r'))
        *--end = '\0';
    if (end - field >= 2 && *field == '"' && end[-1] == '"') {
        field++;
        end[-1] = '\0';
    }
    return field;
}

static eplb_status parse_field(const csv_reader *csv, const char *field, int64_t index, io_number *number,
                               io_error *error)
{
    switch (io_number_parse(field, strlen(field), true, number)) {
    case IO_NUMBER_OK:
        return EPLB_OK;
    case IO_NUMBER_RANGE:
        (void)csv_fail(csv, index, error, field, "does not fit in 64 bits");
        if (error != NULL)
            error->status = EPLB_ERROR_OVERFLOW;
        return EPLB_ERROR_OVERFLOW;
    default:
        return csv_fail(csv, index, error, field, "is not a number");
    }
}

/* What a number may start with, or a quote that is not closed: then a wrong count, not a name. */
static bool starts_as_number(const char *field)
{
    return strchr("0123456789+-.\"'", *field) != NULL;
}

/* A header is told by its first field: a name, or empty as in a table with an index column. A later field
 * that is no number is then a wrong count, not a header that hides the row. */
static eplb_status is_header(const csv_reader *csv, bool *header, io_error *error)
{
    char *copy = strdup(csv->line);
    if (copy == NULL)
        return io_fail_memory(error, csv->input->name, "a line");
    char *rest = copy;
    const char *first = next_field(&rest);
    io_number number;
    if (*first == '\0')
        *header = rest != NULL;
    else
        *header = io_number_parse(first, strlen(first), true, &number) == IO_NUMBER_SYNTAX &&
                  !starts_as_number(first);
    free(copy);
    return EPLB_OK;
}

static void take_header(csv_reader *csv)
{
    char *rest = csv->line;
    for (char *field = next_field(&rest); field != NULL; field = next_field(&rest)) {
        if (csv->header_fields == 0 && (*field == '\0' || strcmp(field, "layer") == 0))
            csv->index_columns = 1;
        if (csv->header_fields == 0 && strcmp(field, "window") == 0)
            csv->index_columns = -1; /* and then a layer */
        if (csv->header_fields == 1 && csv->index_columns < 0 && strcmp(field, "layer") == 0)
            csv->index_columns = 2;
        csv->header_fields++;
    }
    if (csv->index_columns < 0)
        csv->index_columns = 0;
}

/* Index columns of a row: starts a new window where they say so, and checks that nothing is missing or
 * repeated. */
static eplb_status take_index(csv_reader *csv, const int64_t *index, io_error *error)
{
    io_windows *windows = csv->windows;
    int64_t layer = index[csv->index_columns - 1];
    bool new_window =
        windows->row > 0 && (csv->index_columns == 2 ? index[0] != csv->window : layer == csv->first_layer);
    if (new_window) {
        if (csv->index_columns == 2 && index[0] != csv->window + 1)
            return io_fail(error, EPLB_ERROR_INVALID,
                           "%s: line %lld: window %lld follows window %lld; they must follow one another",
                           csv->input->name, (long long)csv->number, (long long)index[0],
                           (long long)csv->window);
        eplb_status status = windows_end_window(windows, error);
        if (status != EPLB_OK)
            return status;
    }
    if (windows->row == 0 && windows->num_windows == 0)
        csv->first_layer = layer;
    csv->window = index[0];
    if (layer != csv->first_layer + windows->row)
        return io_fail(error, EPLB_ERROR_INVALID, "%s: line %lld: layer %lld where layer %lld was expected",
                       csv->input->name, (long long)csv->number, (long long)layer,
                       (long long)(csv->first_layer + windows->row));
    return EPLB_OK;
}

static eplb_status index_field(csv_reader *csv, const char *field, int64_t position, int64_t *index,
                               io_error *error)
{
    io_number number;
    eplb_status status = parse_field(csv, field, position, &number, error);
    if (status != EPLB_OK)
        return status;
    if (number.floating || number.integer < 0 || number.integer > INT32_MAX)
        return csv_fail(csv, position, error, field, "is not the number of a window or layer");
    index[position] = number.integer;
    return position + 1 == csv->index_columns ? take_index(csv, index, error) : EPLB_OK;
}

static eplb_status take_row(csv_reader *csv, io_error *error)
{
    int64_t index[2] = {0, 0};
    int64_t position = 0;
    char *rest = csv->line;
    for (char *field = next_field(&rest); field != NULL; field = next_field(&rest), position++) {
        io_number number;
        eplb_status status = position < csv->index_columns
                                 ? index_field(csv, field, position, index, error)
                                 : parse_field(csv, field, position, &number, error);
        if (status == EPLB_OK && position >= csv->index_columns)
            status = windows_value(csv->windows, &number, error);
        if (status != EPLB_OK)
            return status;
    }
    if (csv->header_fields > 0 && position != csv->header_fields)
        return io_fail(error, EPLB_ERROR_INVALID, "%s: line %lld has %lld fields, the header %lld",
                       csv->input->name, (long long)csv->number, (long long)position,
                       (long long)csv->header_fields);
    return windows_end_row(csv->windows, error);
}

/* One kind of separator in a file: where two meet, one is a decimal comma or a slip, and either reading would
 * be a guess. */
static eplb_status check_separator(csv_reader *csv, io_error *error)
{
    for (const char *at = csv->line; (at = strpbrk(at, ",;\t")) != NULL; at++) {
        if (csv->separator != 0 && *at != csv->separator)
            return io_fail(error, EPLB_ERROR_INVALID,
                           "%s: line %lld: fields end at %s and at %s; one of them is wanted, and a point as "
                           "decimal mark",
                           csv->input->name, (long long)csv->number, separator_name(csv->separator),
                           separator_name(*at));
        csv->separator = *at;
    }
    return EPLB_OK;
}

static eplb_status take_line(csv_reader *csv, io_error *error)
{
    if (csv->length == 0)
        return csv->windows->row > 0 ? windows_end_window(csv->windows, error) : EPLB_OK;
    if (csv->line[0] == '#')
        return EPLB_OK;
    eplb_status status = check_separator(csv, error);
    if (status != EPLB_OK)
        return status;
    if (csv->first) {
        csv->first = false;
        bool header = false;
        status = is_header(csv, &header, error);
        if (status != EPLB_OK || header) {
            if (status == EPLB_OK)
                take_header(csv);
            return status;
        }
    }
    return take_row(csv, error);
}

eplb_status load_read_csv(io_input *input, io_windows *windows, io_error *error)
{
    csv_reader csv = {.input = input, .windows = windows, .first = true};
    io_input_skip_mark(input);
    bool more = true;
    eplb_status status = EPLB_OK;
    while (status == EPLB_OK && more) {
        status = read_line(&csv, &more, error);
        if (status == EPLB_OK && more)
            status = take_line(&csv, error);
    }
    if (status == EPLB_OK && windows->row > 0)
        status = windows_end_window(windows, error);
    if (status == EPLB_OK && windows->num_windows == 0)
        status = io_fail(error, EPLB_ERROR_INVALID,
                         "%s: no row of numbers; neither .npy, .npz, JSON nor a CSV of loads", input->name);
    free(csv.line);
    return status;
}
