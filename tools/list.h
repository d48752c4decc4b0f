/* Lists on the command line: "0,3,8-11" is 0 3 8 9 10 11, "9x3,8" is 9 9 9 8. */
#ifndef TOOLS_LIST_H
#define TOOLS_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a list may contain. */
typedef struct list_rule {
    int64_t least, most; /* of each value */
    int32_t most_values;
    bool decimals; /* "1.5", no ranges: values are returned as whole numbers in the same proportion, at most
                      `most` */
} list_rule;

/* Parses `text` into a new array *values of *count >= 1 numbers, to be freed by the caller. On failure
 * returns false, leaves *values NULL and says why in message[size]. */
bool list_parse(const char *text, list_rule rule, int32_t **values, int32_t *count, char *message,
                size_t size);

#endif
