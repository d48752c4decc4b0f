/* Status codes, error detail, injected memory and the version: what every other header needs.
 *
 * Every function that can fail returns an eplb_status and takes an optional eplb_error as its last
 * argument. On success the error is left as it was; on failure it says what was wrong and where.
 * Nothing here has global state; every function may be called from any thread. */
#ifndef EPLB_STATUS_H
#define EPLB_STATUS_H

#include <stddef.h>
#include <stdint.h>

#include <eplb/export.h>

EPLB_BEGIN_DECLS

#define EPLB_VERSION_MAJOR 0
#define EPLB_VERSION_MINOR 1
#define EPLB_VERSION_PATCH 0

/* Largest sizes accepted anywhere; they keep every product of two of them inside int64. */
#define EPLB_MAX_LAYERS  65536
#define EPLB_MAX_EXPERTS 65536
#define EPLB_MAX_RANKS   65536
#define EPLB_MAX_SLOTS   1048576
#define EPLB_MAX_WINDOWS 16777216

typedef enum eplb_status {
    EPLB_OK = 0,
    EPLB_ERROR_INVALID = 1,     /* an argument or a value of the input breaks a rule */
    EPLB_ERROR_MEMORY = 2,      /* the allocator returned NULL; nothing was changed */
    EPLB_ERROR_OVERFLOW = 3,    /* a sum or product of loads does not fit in int64 */
    EPLB_ERROR_INFEASIBLE = 4,  /* no placement exists, for example fewer live slots than experts */
    EPLB_ERROR_UNSUPPORTED = 5, /* the chosen policy refuses this legal input; the text says why */
    EPLB_ERROR_CANCELLED = 6,   /* the progress callback asked to stop */
    EPLB_ERROR_SYSTEM = 7,      /* the operating system refused a thread or a lock */
    EPLB_ERROR_INTERNAL = 8,    /* a result failed its own check: a defect of this library */
    EPLB_ERROR_BUSY = 9         /* what was to be replaced is in use; nothing was changed, call again */
} eplb_status;

/* Where and why a call failed. Places that do not apply are -1. The caller owns the struct; it can be
 * used without initialisation, because a failing call fills all of it. */
typedef struct eplb_error {
    eplb_status status;
    int32_t layer;
    int32_t expert;
    int32_t rank;
    int32_t slot;
    int64_t value; /* the offending number, when there is one */
    char text[256];
} eplb_error;

/* Memory. `allocate` returns a block aligned for any C type or NULL; `release` takes what `allocate`
 * returned (never NULL). Both must be safe to call from several threads when more than one is asked
 * for. Objects copy this struct; `context` must outlive them. A NULL allocator means malloc and free. */
typedef struct eplb_allocator {
    void *(*allocate)(void *context, size_t bytes);
    void (*release)(void *context, void *block);
    void *context;
} eplb_allocator;

/* Name of a status, for example "invalid"; "unknown" for a number that is none. Static storage. */
EPLB_API const char *eplb_status_name(eplb_status status);

/* Version of the library that runs, "major.minor.patch". Static storage. */
EPLB_API const char *eplb_version(void);

EPLB_END_DECLS

#endif
