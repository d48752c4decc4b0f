/* Filling an eplb_error and returning its status in one expression. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdarg.h>

#include <eplb/status.h>

/* A place inside the input; fields that do not apply are -1. */
typedef struct error_place {
    int32_t layer;
    int32_t expert;
    int32_t rank;
    int32_t slot;
    int64_t value;
} error_place;

#define NO_PLACE ((error_place){-1, -1, -1, -1, -1})

#if defined(__GNUC__) || defined(__clang__)
#define ERROR_FORMAT(text_index, first_index) __attribute__((__format__(__printf__, text_index, first_index)))
#else
#define ERROR_FORMAT(text_index, first_index)
#endif

/* Writes status, place and text to *error unless it is NULL; returns status. */
eplb_status error_set(eplb_error *error, eplb_status status, error_place place, const char *format, ...)
    ERROR_FORMAT(4, 5);
/* The same without a place. */
eplb_status error_text(eplb_error *error, eplb_status status, const char *format, ...) ERROR_FORMAT(3, 4);
/* EPLB_ERROR_MEMORY with the number of bytes and what they were for. */
eplb_status error_memory(eplb_error *error, size_t bytes, const char *what);

#endif
