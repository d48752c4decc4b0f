/* Filling an eplb_error: one place that formats, so that every message is cut safely and every field is
 * set. */
#include "base/error.h"

#include <stdio.h>

static void fill(eplb_error *error, eplb_status status, error_place place, const char *format,
                 va_list arguments)
{
    if (error == NULL)
        return;
    error->status = status;
    error->layer = place.layer;
    error->expert = place.expert;
    error->rank = place.rank;
    error->slot = place.slot;
    error->value = place.value;
    (void)vsnprintf(error->text, sizeof error->text, format, arguments);
}

eplb_status error_set(eplb_error *error, eplb_status status, error_place place, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fill(error, status, place, format, arguments);
    va_end(arguments);
    return status;
}

eplb_status error_text(eplb_error *error, eplb_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fill(error, status, NO_PLACE, format, arguments);
    va_end(arguments);
    return status;
}

eplb_status error_memory(eplb_error *error, size_t bytes, const char *what)
{
    return error_text(error, EPLB_ERROR_MEMORY, "out of memory: %zu bytes for %s", bytes, what);
}
