/* What the end of an output's path asks for. */
#ifndef IO_PATH_H
#define IO_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* True if the path (NULL: standard output) has that ending and something before it. */
static inline bool path_ends_with(const char *path, const char *ending)
{
    size_t length = path != NULL ? strlen(path) : 0;
    size_t tail = strlen(ending);
    return length > tail && strcmp(path + length - tail, ending) == 0;
}

#endif
