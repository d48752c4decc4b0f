/* JSON out: writes a document piece by piece, so that a large one needs no tree in memory.
 *
 * Objects and arrays of objects are indented by two spaces; arrays of numbers stay on one line. Doubles have
 * the fewest digits that read back as the same number, always with a point or an exponent; int64 is exact.
 * NaN and infinity, which JSON lacks, are written as null. Errors stick in the output. Nesting is at most 32
 * deep. */
#ifndef IO_JSON_WRITER_H
#define IO_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "io/output.h"

typedef struct json_writer {
    io_output *output;
    int depth;
    bool after_value[32];  /* a comma is due before the next value of this level */
    bool inline_level[32]; /* an array on one line */
    bool after_key;
} json_writer;

/* Starts a document on an open output; json_end_document writes the last newline, the caller closes the
 * output. */
void json_begin_document(json_writer *writer, io_output *output);
void json_end_document(json_writer *writer);

void json_begin_object(json_writer *writer);
void json_end_object(json_writer *writer);
void json_begin_array(json_writer *writer);        /* one value per line */
void json_begin_inline_array(json_writer *writer); /* all values on one line */
void json_end_array(json_writer *writer);
void json_key(json_writer *writer, const char *key);
void json_text(json_writer *writer, const char *value); /* UTF-8 */
void json_int(json_writer *writer, int64_t value);
void json_double(json_writer *writer, double value);
void json_bool(json_writer *writer, bool value);

/* Key and value in one call. */
void json_key_string(json_writer *writer, const char *key, const char *value);
void json_key_int(json_writer *writer, const char *key, int64_t value);
void json_key_double(json_writer *writer, const char *key, double value);
void json_key_bool(json_writer *writer, const char *key, bool value);
/* Whole rows, and [rows][columns] with one row per line. */
void json_int32_row(json_writer *writer, const int32_t *values, int64_t count);
void json_int64_row(json_writer *writer, const int64_t *values, int64_t count);
void json_double_row(json_writer *writer, const double *values, int64_t count);
void json_int32_matrix(json_writer *writer, const int32_t *values, int64_t rows, int64_t columns);
void json_int64_matrix(json_writer *writer, const int64_t *values, int64_t rows, int64_t columns);
void json_double_matrix(json_writer *writer, const double *values, int64_t rows, int64_t columns);

#endif
