/* Errors of readers and writers: filling an io_error. See error.h. */
#include "io/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

eplb_status io_fail(io_error *error, eplb_status status, const char *format, ...)
{
    if (error == NULL)
        return status;
    error->status = status;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return status;
}

eplb_status io_fail_memory(io_error *error, const char *name, const char *what)
{
    return io_fail(error, EPLB_ERROR_MEMORY, "%s: no memory for %s", name, what);
}

eplb_status io_fail_errno(io_error *error, const char *name, const char *what, int errno_value)
{
    return io_fail(error, EPLB_ERROR_SYSTEM, "%s: cannot %s: %s", name, what, strerror(errno_value));
}

eplb_status io_fail_library(io_error *error, const char *name, const eplb_error *cause)
{
    return io_fail(error, cause->status, "%s: %s", name, cause->text);
}
