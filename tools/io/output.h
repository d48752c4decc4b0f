/* Output: a file that is whole or absent, or a stream in which every write is checked.
 *
 * A path that names a regular file, or nothing yet, is written to a temporary file beside it and renamed; a
 * symbolic link is followed. Standard output ("-" or NULL), devices and pipes are written directly. Errors
 * stick: writers need not check each call, close reports the first one. */
#ifndef IO_OUTPUT_H
#define IO_OUTPUT_H

#include <stddef.h>

#include "io/error.h"

typedef struct io_output io_output;

/* From now on SIGHUP, SIGINT, SIGQUIT and SIGTERM take away an unfinished file before they end the process;
 * SIGPIPE and SIGXFSZ are ignored, so that a closed pipe and a limit of the size are errors, not signals. */
void io_output_catch_signals(void);

eplb_status io_output_open(io_output **output, const char *path, io_error *error);
void io_output_write(io_output *output, const void *bytes, size_t count);
void io_output_text(io_output *output, const char *text);
void io_output_format(io_output *output, const char *format, ...)
    __attribute__((__format__(__printf__, 2, 3)));
/* A defect of the writer, which close reports as INTERNAL. */
void io_output_fail(io_output *output, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));
/* Flushes, and puts the file in its place. The first error of any call is reported; then no file is left.
 * Frees. */
eplb_status io_output_close(io_output *output, io_error *error);
/* Gives up: a file is not created (what went to a stream is gone). NULL is fine. */
void io_output_abandon(io_output *output);
/* Path, or "standard output". */
const char *io_output_name(const io_output *output);

#endif
