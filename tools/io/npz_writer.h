/* Writes an .npz archive: stored members in the order given, no dates, so the same arrays give the same
 * bytes. The archive is built in memory and goes out when it is closed. */
#ifndef IO_NPZ_WRITER_H
#define IO_NPZ_WRITER_H

#include "io/npy.h"
#include "io/output.h"

typedef struct npz_writer npz_writer;

eplb_status npz_writer_open(npz_writer **writer, const char *name, io_error *error);
/* Adds an array whose little-endian items are appended in pieces by npz_writer_append; their total must be
 * what the shape says. Host order is written as it is on little-endian hosts and swapped on others. */
eplb_status npz_writer_begin(npz_writer *writer, const char *member, npy_kind kind, int32_t item_bytes,
                             int32_t num_dims, const int64_t *shape, io_error *error);
eplb_status npz_writer_append(npz_writer *writer, const void *items, size_t count, io_error *error);
/* Begin and append in one call. */
eplb_status npz_writer_array(npz_writer *writer, const char *member, npy_kind kind, int32_t item_bytes,
                             int32_t num_dims, const int64_t *shape, const void *items, io_error *error);
eplb_status npz_writer_scalar(npz_writer *writer, const char *member, int64_t value, io_error *error);
/* Sends the archive to the output (which stays open) and frees the writer. */
eplb_status npz_writer_close(npz_writer *writer, io_output *output, io_error *error);
void npz_writer_abandon(npz_writer *writer);

#endif
