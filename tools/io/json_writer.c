/* JSON out: commas and indentation follow from one flag per level. See json_writer.h. */
#include "io/json_writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 31

void json_begin_document(json_writer *writer, io_output *output)
{
    memset(writer, 0, sizeof *writer);
    writer->output = output;
}

void json_end_document(json_writer *writer)
{
    io_output_text(writer->output, "\n");
}

static void new_line(json_writer *writer)
{
    io_output_text(writer->output, "\n");
    for (int level = 0; level < writer->depth; level++)
        io_output_text(writer->output, "  ");
}

/* What must stand before a value or a key at this place. */
static void separate(json_writer *writer)
{
    if (writer->after_key) {
        writer->after_key = false;
        return;
    }
    bool one_line = writer->inline_level[writer->depth];
    if (writer->after_value[writer->depth])
        io_output_text(writer->output, one_line ? ", " : ",");
    if (writer->depth > 0 && !one_line)
        new_line(writer);
    writer->after_value[writer->depth] = true;
}

static void begin_level(json_writer *writer, const char *bracket, bool one_line)
{
    separate(writer);
    io_output_text(writer->output, bracket);
    if (writer->depth < MAX_DEPTH)
        writer->depth++;
    writer->after_value[writer->depth] = false;
    writer->inline_level[writer->depth] = one_line;
}

static void end_level(json_writer *writer, const char *bracket)
{
    bool lines = writer->after_value[writer->depth] && !writer->inline_level[writer->depth];
    if (writer->depth > 0)
        writer->depth--;
    if (lines)
        new_line(writer);
    io_output_text(writer->output, bracket);
}

void json_begin_object(json_writer *writer)
{
    begin_level(writer, "{", false);
}

void json_end_object(json_writer *writer)
{
    end_level(writer, "}");
}

void json_begin_array(json_writer *writer)
{
    begin_level(writer, "[", false);
}

void json_begin_inline_array(json_writer *writer)
{
    begin_level(writer, "[", true);
}

void json_end_array(json_writer *writer)
{
    end_level(writer, "]");
}

static void write_quoted(io_output *output, const char *value)
{
    io_output_text(output, "\"");
    for (const unsigned char *c = (const unsigned char *)value; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            io_output_format(output, "\\%c", *c);
        else if (*c == '\n')
            io_output_text(output, "\\n");
        else if (*c < 0x20 || *c == 0x7f)
            io_output_format(output, "\\u%04x", *c);
        else
            io_output_write(output, c, 1);
    }
    io_output_text(output, "\"");
}

void json_key(json_writer *writer, const char *key)
{
    separate(writer);
    write_quoted(writer->output, key);
    io_output_text(writer->output, ": ");
    writer->after_key = true;
}

void json_text(json_writer *writer, const char *value)
{
    separate(writer);
    write_quoted(writer->output, value);
}

/* Digits by hand: plans of a thousand ranks are mostly integers, and printf would take longer than planning
 * them. */
static void write_int(io_output *output, int64_t value)
{
    char digits[24];
    size_t at = sizeof digits;
    uint64_t rest = value < 0 ? UINT64_C(0) - (uint64_t)value : (uint64_t)value;
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0)
        digits[--at] = '-';
    io_output_write(output, digits + at, sizeof digits - at);
}

/* The shortest of 15, 16 or 17 digits that reads back as the same double. */
static void write_double(io_output *output, double value)
{
    if (!isfinite(value)) {
        io_output_text(output, "null");
        return;
    }
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    io_output_text(output, text);
    if (strpbrk(text, ".e") == NULL)
        io_output_text(output, ".0");
}

void json_int(json_writer *writer, int64_t value)
{
    separate(writer);
    write_int(writer->output, value);
}

void json_double(json_writer *writer, double value)
{
    separate(writer);
    write_double(writer->output, value);
}

void json_bool(json_writer *writer, bool value)
{
    separate(writer);
    io_output_text(writer->output, value ? "true" : "false");
}

void json_key_string(json_writer *writer, const char *key, const char *value)
{
    json_key(writer, key);
    json_text(writer, value);
}

void json_key_int(json_writer *writer, const char *key, int64_t value)
{
    json_key(writer, key);
    json_int(writer, value);
}

void json_key_double(json_writer *writer, const char *key, double value)
{
    json_key(writer, key);
    json_double(writer, value);
}

void json_key_bool(json_writer *writer, const char *key, bool value)
{
    json_key(writer, key);
    json_bool(writer, value);
}

void json_int32_row(json_writer *writer, const int32_t *values, int64_t count)
{
    json_begin_inline_array(writer);
    for (int64_t i = 0; i < count; i++)
        json_int(writer, values[i]);
    json_end_array(writer);
}

void json_int64_row(json_writer *writer, const int64_t *values, int64_t count)
{
    json_begin_inline_array(writer);
    for (int64_t i = 0; i < count; i++)
        json_int(writer, values[i]);
    json_end_array(writer);
}

void json_double_row(json_writer *writer, const double *values, int64_t count)
{
    json_begin_inline_array(writer);
    for (int64_t i = 0; i < count; i++)
        json_double(writer, values[i]);
    json_end_array(writer);
}

void json_int32_matrix(json_writer *writer, const int32_t *values, int64_t rows, int64_t columns)
{
    json_begin_array(writer);
    for (int64_t row = 0; row < rows; row++)
        json_int32_row(writer, values + row * columns, columns);
    json_end_array(writer);
}

void json_int64_matrix(json_writer *writer, const int64_t *values, int64_t rows, int64_t columns)
{
    json_begin_array(writer);
    for (int64_t row = 0; row < rows; row++)
        json_int64_row(writer, values + row * columns, columns);
    json_end_array(writer);
}

void json_double_matrix(json_writer *writer, const double *values, int64_t rows, int64_t columns)
{
    json_begin_array(writer);
    for (int64_t row = 0; row < rows; row++)
        json_double_row(writer, values + row * columns, columns);
    json_end_array(writer);
}
