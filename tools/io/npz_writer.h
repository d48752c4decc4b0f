/* Writes an .npz archive as its arrays come: stored members in the order given, no dates, so the same arrays
 * give the same bytes. Nothing is held back, so memory does not grow with the arrays and a pipe will do.
 * Errors stick in the output. */
#ifndef IO_NPZ_WRITER_H
#define IO_NPZ_WRITER_H

#include "io/npy.h"
#include "io/output.h"

enum { NPZ_MAX_MEMBERS = 16, NPZ_NAME_BYTES = 80 };

typedef struct npz_member {
    char name[NPZ_NAME_BYTES]; /* with ".npy" */
    uint64_t offset;           /* of its header in the archive */
    uint64_t bytes;
    uint32_t checksum;
} npz_member;

typedef struct npz_writer {
    io_output *output;
    uint64_t offset; /* bytes sent */
    size_t item_bytes;
    int64_t items_left; /* of the last member, as its shape says */
    int num_members;
    npz_member members[NPZ_MAX_MEMBERS];
} npz_writer;

/* Starts an archive on an open output; npz_writer_finish ends it, the caller closes the output. */
void npz_writer_init(npz_writer *writer, io_output *output);
/* Starts an array whose items are appended in pieces by npz_writer_append; their total must be what the shape
 * says, else the output fails (INTERNAL). Items are in the order of the host and little-endian in the
 * file. */
void npz_writer_begin(npz_writer *writer, const char *member, npy_kind kind, int32_t item_bytes,
                      int32_t num_dims, const int64_t *shape);
void npz_writer_append(npz_writer *writer, const void *items, size_t count);
/* Begin and append in one call. */
void npz_writer_array(npz_writer *writer, const char *member, npy_kind kind, int32_t item_bytes,
                      int32_t num_dims, const int64_t *shape, const void *items);
void npz_writer_scalar(npz_writer *writer, const char *member, int64_t value);
void npz_writer_finish(npz_writer *writer);

#endif
