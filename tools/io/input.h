/* Input: buffered bytes of a file or of standard input, with the position that errors name.
 *
 * io_input_next is the one hot call: a byte or -1 at the end of the bytes or on a read error, which
 * io_input_status tells apart. */
#ifndef IO_INPUT_H
#define IO_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/error.h"

#define IO_INPUT_BUFFER_BYTES ((size_t)64 * 1024)

typedef struct io_input {
    const char *name; /* path or "standard input" */
    int descriptor;
    bool owned;
    bool seekable;
    int64_t size; /* bytes of a regular file; -1: unknown */
    int64_t base; /* offset of buffer[0] in the input */
    size_t at;
    size_t filled;
    int read_errno; /* 0: no read failed */
    char *path;     /* owns the name */
    unsigned char buffer[IO_INPUT_BUFFER_BYTES];
} io_input;

/* Opens `path`; "-" is standard input. Folders and missing files are SYSTEM errors, an empty file is
 * INVALID. */
eplb_status io_input_open(io_input **input, const char *path, io_error *error);
void io_input_close(io_input *input);

/* Fills the buffer after all of it was used; false at the end or on error. */
bool io_input_fill(io_input *input);
/* OK, or the read error that made the input end. */
eplb_status io_input_status(const io_input *input, io_error *error);
/* Offset of the next byte. */
int64_t io_input_offset(const io_input *input);
/* The next bytes without taking them, at most `count` (<= buffer); fewer only at the end. Valid at offset 0
 * only. */
size_t io_input_peek(io_input *input, size_t count, const unsigned char **bytes);
/* Takes a UTF-8 byte order mark, which some editors write, if the input starts with one. */
void io_input_skip_mark(io_input *input);
/* Reads until `count` bytes are there or the input ends; *got tells. */
eplb_status io_input_read(io_input *input, void *bytes, size_t count, size_t *got, io_error *error);

static inline int io_input_next(io_input *input)
{
    if (input->at == input->filled && !io_input_fill(input))
        return -1;
    return input->buffer[input->at++];
}

/* The next byte without taking it, or -1. */
static inline int io_input_look(io_input *input)
{
    if (input->at == input->filled && !io_input_fill(input))
        return -1;
    return input->buffer[input->at];
}

/* What a file is, by its first bytes. */
typedef enum io_content {
    IO_CONTENT_NPY,
    IO_CONTENT_ZIP,
    IO_CONTENT_JSON, /* first byte that is not white space is { or [ */
    IO_CONTENT_TEXT
} io_content;
io_content io_input_content(io_input *input);

#endif
