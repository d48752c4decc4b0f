/* JSON in, token by token: for loads, which as a tree would take fifty bytes for each number.
 *
 * Strict (RFC 8259) up to the meaning of strings: escapes are checked, not decoded, since only plain keys
 * matter. Depth is bounded by JSON_MAX_DEPTH. Errors name line and column. Documents that are needed whole go
 * through jansson (json_fields.h). */
#ifndef IO_JSON_READER_H
#define IO_JSON_READER_H

#include "io/input.h"
#include "io/number.h"

#define JSON_MAX_DEPTH 64

typedef enum json_token {
    TOKEN_BEGIN_OBJECT,
    TOKEN_END_OBJECT,
    TOKEN_BEGIN_ARRAY,
    TOKEN_END_ARRAY,
    TOKEN_KEY,
    TOKEN_STRING,
    TOKEN_NUMBER,
    TOKEN_LITERAL, /* true, false, null */
    TOKEN_END
} json_token;

typedef struct json_reader {
    io_input *input;
    int64_t line;
    int64_t line_start; /* offset of the first byte of the line */
    int depth;
    bool is_object[JSON_MAX_DEPTH + 1];
    enum { JSON_WANT_VALUE, JSON_WANT_FIRST, JSON_WANT_KEY, JSON_WANT_COMMA, JSON_WANT_END } state;
    char text[512]; /* of a key (cut when longer, no other key is meant then), number or literal */
    io_number number;
} json_reader;

/* Starts at the present place of the input. */
void json_reader_init(json_reader *reader, io_input *input);
/* The next token. */
eplb_status json_next(json_reader *reader, json_token *token, io_error *error);
/* Skips the value whose first token was taken. */
eplb_status json_skip(json_reader *reader, json_token first, io_error *error);
/* An error of what the document means, at the present place. */
eplb_status json_fail(const json_reader *reader, io_error *error, const char *format, ...)
    __attribute__((__format__(__printf__, 3, 4)));

#endif
