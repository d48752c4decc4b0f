/* A number in text: an integer kept exactly, or a double. */
#ifndef IO_NUMBER_H
#define IO_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct io_number {
    bool floating;
    int64_t integer;
    double real;
} io_number;

typedef enum io_number_result { IO_NUMBER_OK, IO_NUMBER_SYNTAX, IO_NUMBER_RANGE } io_number_result;

/* Parses all of text[length] (terminated by a zero byte): JSON's number syntax, and with `loose` also a
 * leading '+', leading zeros, a bare point as in "1." or ".5" and nan, inf (in any case), so that the caller
 * can refuse them by name. RANGE: an integer outside int64, or a float that overflows to infinity. */
io_number_result io_number_parse(const char *text, size_t length, bool loose, io_number *number);

#endif
