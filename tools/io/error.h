/* Errors of readers and writers: one status and one sentence that names file, place, value and rule.
 *
 * Every function of io/ returns an eplb_status and takes an io_error as its last argument (NULL is fine). The
 * command prints `text` after "eplb: " and leaves with exit code 2, or with 3 for EPLB_ERROR_INTERNAL.
 * INVALID and OVERFLOW: the bytes are wrong. UNSUPPORTED: a legal file that is not read or a placement that a
 * format cannot hold. SYSTEM: the operating system refused (missing file, folder, full disk, closed pipe).
 * MEMORY: none left. */
#ifndef IO_ERROR_H
#define IO_ERROR_H

#include <eplb/status.h>

typedef struct io_error {
    eplb_status status;
    char text[1024];
} io_error;

/* Writes status and text to *error unless it is NULL; returns status. */
eplb_status io_fail(io_error *error, eplb_status status, const char *format, ...)
    __attribute__((__format__(__printf__, 3, 4)));
/* EPLB_ERROR_MEMORY: what did not fit. */
eplb_status io_fail_memory(io_error *error, const char *name, const char *what);
/* EPLB_ERROR_SYSTEM with the text of errno. */
eplb_status io_fail_errno(io_error *error, const char *name, const char *what, int errno_value);
/* Passes on an error of the library, with the name of the file before it. */
eplb_status io_fail_library(io_error *error, const char *name, const eplb_error *cause);

#endif
