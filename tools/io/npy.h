/* The header of a .npy file: element type, order and shape, parsed from and written as numpy's own text. */
#ifndef IO_NPY_H
#define IO_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/error.h"

#define NPY_MAX_DIMS         4
#define NPY_MAX_HEADER_BYTES 65536
#define NPY_PREAMBLE_BYTES   12

typedef enum npy_kind { NPY_SIGNED, NPY_UNSIGNED, NPY_FLOAT } npy_kind;

typedef struct npy_header {
    npy_kind kind;
    int32_t item_bytes; /* 1, 2, 4, 8 */
    bool big_endian;
    bool fortran_order;
    int32_t num_dims;
    int64_t shape[NPY_MAX_DIMS];
    int64_t num_items; /* product of the shape; times item_bytes it fits in int64 */
} npy_header;

/* Length of the header text that follows the preamble, from its first bytes (12 for versions 2 and 3, of
 * which version 1 uses 10: *preamble tells). `name` is for messages. */
eplb_status npy_header_length(const unsigned char *bytes, size_t count, const char *name, size_t *preamble,
                              size_t *length, io_error *error);
/* Parses the header text. Refuses objects, structures, strings, booleans and complex numbers. */
eplb_status npy_header_parse(const char *text, size_t length, const char *name, npy_header *header,
                             io_error *error);
/* The whole header of a little-endian, C-order array, padded to 64 bytes; returns its length (<= 256). */
size_t npy_header_write(npy_kind kind, int32_t item_bytes, int32_t num_dims, const int64_t *shape,
                        unsigned char out[256]);

#endif
