/* Parameter structs whose first member is their size: a caller that was compiled against another release is
 * told so instead of being read past its end. */
#ifndef BASE_PARAMS_H
#define BASE_PARAMS_H

#include <string.h>

#include "base/error.h"

/* Copies the defaults of `known` bytes into a caller's struct of `size` bytes, as far as both reach, and sets
 * its size. */
static inline void params_init(void *params, size_t size, const void *defaults, size_t known)
{
    size_t both = size < known ? size : known;
    memcpy(params, defaults, both);
    memcpy(params, &both, sizeof both);
}

/* INVALID unless the struct has the size that this release knows. `name` is that of eplb_NAME_params. */
static inline eplb_status params_check(size_t size, size_t known, const char *name, eplb_error *error)
{
    if (size == known)
        return EPLB_OK;
    return error_text(error, EPLB_ERROR_INVALID,
                      "%s parameters have size %zu, expected %zu: call eplb_%s_params_init", name, size,
                      known, name);
}

#endif
