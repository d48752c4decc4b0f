/* JSON in, token by token: a push-down automaton with one bit per level. O(bytes), no allocation. */
#include "io/json_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void json_reader_init(json_reader *reader, io_input *input)
{
    memset(reader, 0, sizeof *reader);
    reader->input = input;
    reader->line = 1;
    reader->state = JSON_WANT_VALUE;
    io_input_skip_mark(input);
}

eplb_status json_fail(const json_reader *reader, io_error *error, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    int64_t column = io_input_offset(reader->input) - reader->line_start;
    return io_fail(error, EPLB_ERROR_INVALID, "%s: line %lld, column %lld: %s", reader->input->name,
                   (long long)reader->line, (long long)column, text);
}

static int skip_space(json_reader *reader)
{
    for (;;) {
        int c = io_input_look(reader->input);
        if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
            return c;
        reader->input->at++;
        if (c == '\n') {
            reader->line++;
            reader->line_start = io_input_offset(reader->input);
        }
    }
}

static eplb_status early_end(const json_reader *reader, io_error *error)
{
    eplb_status status = io_input_status(reader->input, error);
    if (status != EPLB_OK)
        return status;
    return json_fail(reader, error, "the document ends too early (truncated?)");
}

static bool is_hex(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static eplb_status read_escape(json_reader *reader, io_error *error)
{
    int c = io_input_next(reader->input);
    if (c < 0)
        return early_end(reader, error);
    if (c == 'u') {
        for (int i = 0; i < 4; i++)
            if (!is_hex(io_input_next(reader->input)))
                return json_fail(reader, error, "\\u needs four hexadecimal digits");
        return EPLB_OK;
    }
    if (c == '\0' || strchr("\"\\/bfnrt", c) == NULL)
        return json_fail(reader, error, "an escape that JSON does not have");
    return EPLB_OK;
}

/* After the opening quote. */
static eplb_status read_string(json_reader *reader, io_error *error)
{
    size_t used = 0;
    for (;;) {
        int c = io_input_next(reader->input);
        if (c < 0)
            return early_end(reader, error);
        if (c == '"')
            break;
        if (c < 0x20)
            return json_fail(reader, error, "a control character inside a string");
        if (c == '\\') {
            eplb_status status = read_escape(reader, error);
            if (status != EPLB_OK)
                return status;
            c = '?';
        }
        if (used + 1 < sizeof reader->text)
            reader->text[used++] = (char)c;
    }
    reader->text[used] = '\0';
    return EPLB_OK;
}

static bool ends_word(int c)
{
    return c < 0 || strchr(" \t\r\n,:[]{}\"", c) != NULL;
}

/* A number or a literal: everything up to the next delimiter. */
static eplb_status read_word(json_reader *reader, json_token *token, io_error *error)
{
    size_t used = 0;
    while (!ends_word(io_input_look(reader->input))) {
        int c = io_input_next(reader->input);
        if (used + 1 == sizeof reader->text || c == '\0')
            return json_fail(reader, error, "not a JSON value");
        reader->text[used++] = (char)c;
    }
    reader->text[used] = '\0';
    *token = TOKEN_LITERAL;
    if (strcmp(reader->text, "true") == 0 || strcmp(reader->text, "false") == 0 ||
        strcmp(reader->text, "null") == 0)
        return EPLB_OK;
    *token = TOKEN_NUMBER;
    switch (io_number_parse(reader->text, used, false, &reader->number)) {
    case IO_NUMBER_OK:
        return EPLB_OK;
    case IO_NUMBER_RANGE:
        (void)json_fail(reader, error, "the number %.60s does not fit in 64 bits", reader->text);
        if (error != NULL)
            error->status = EPLB_ERROR_OVERFLOW;
        return EPLB_ERROR_OVERFLOW;
    default:
        return json_fail(reader, error, "'%.60s' is not a JSON value", reader->text);
    }
}

/* The state after a value, or after a closed array or object, on the present level. */
static void after_value(json_reader *reader)
{
    reader->state = reader->depth == 0 ? JSON_WANT_END : JSON_WANT_COMMA;
}

static eplb_status open_level(json_reader *reader, bool object, io_error *error)
{
    if (reader->depth == JSON_MAX_DEPTH)
        return json_fail(reader, error, "nested more than %d deep", JSON_MAX_DEPTH);
    reader->is_object[++reader->depth] = object;
    reader->state = JSON_WANT_FIRST;
    return EPLB_OK;
}

static eplb_status read_key(json_reader *reader, json_token *token, io_error *error)
{
    if (io_input_look(reader->input) != '"')
        return json_fail(reader, error, "a key in quotes was expected");
    reader->input->at++;
    eplb_status status = read_string(reader, error);
    if (status != EPLB_OK)
        return status;
    int c = skip_space(reader);
    if (c < 0)
        return early_end(reader, error);
    if (c != ':')
        return json_fail(reader, error, "':' was expected after a key");
    reader->input->at++;
    reader->state = JSON_WANT_VALUE;
    *token = TOKEN_KEY;
    return EPLB_OK;
}

static eplb_status read_value(json_reader *reader, int c, json_token *token, io_error *error)
{
    eplb_status status;
    switch (c) {
    case '{':
    case '[':
        reader->input->at++;
        *token = c == '{' ? TOKEN_BEGIN_OBJECT : TOKEN_BEGIN_ARRAY;
        return open_level(reader, c == '{', error);
    case '"':
        reader->input->at++;
        *token = TOKEN_STRING;
        status = read_string(reader, error);
        break;
    default:
        status = read_word(reader, token, error);
        break;
    }
    after_value(reader);
    return status;
}

/* At the end of the document: nothing but white space. */
static eplb_status read_end(const json_reader *reader, int c, json_token *token, io_error *error)
{
    *token = TOKEN_END;
    if (c >= 0)
        return json_fail(reader, error, "something follows the document");
    return io_input_status(reader->input, error);
}

eplb_status json_next(json_reader *reader, json_token *token, io_error *error)
{
    int c = skip_space(reader);
    if (reader->state == JSON_WANT_END)
        return read_end(reader, c, token, error);
    if (c < 0)
        return early_end(reader, error);
    bool object = reader->is_object[reader->depth];
    if (reader->state == JSON_WANT_COMMA || reader->state == JSON_WANT_FIRST) {
        if (c == (object ? '}' : ']')) {
            reader->input->at++;
            reader->depth--;
            *token = object ? TOKEN_END_OBJECT : TOKEN_END_ARRAY;
            after_value(reader);
            return EPLB_OK;
        }
        if (reader->state == JSON_WANT_COMMA) {
            if (c != ',')
                return json_fail(reader, error, "',' or '%c' was expected", object ? '}' : ']');
            reader->input->at++;
            c = skip_space(reader);
            if (c < 0)
                return early_end(reader, error);
        }
        reader->state = object ? JSON_WANT_KEY : JSON_WANT_VALUE;
    }
    if (reader->state == JSON_WANT_KEY)
        return read_key(reader, token, error);
    return read_value(reader, c, token, error);
}

eplb_status json_skip(json_reader *reader, json_token first, io_error *error)
{
    if (first != TOKEN_BEGIN_OBJECT && first != TOKEN_BEGIN_ARRAY)
        return EPLB_OK;
    int outside = reader->depth - 1;
    while (reader->depth > outside) {
        json_token token;
        eplb_status status = json_next(reader, &token, error);
        if (status != EPLB_OK)
            return status;
    }
    return EPLB_OK;
}
