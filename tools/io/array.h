/* Arrays: streams the numbers of a .npy file, or of one array of an .npz archive, in C order.
 *
 * Reads as much as asked for at a time; memory is two small buffers, except for Fortran-order arrays of two
 * or more dimensions, which are held whole (at most ARRAY_MAX_WHOLE_BYTES). An archive that cannot be sought
 * in (a pipe) is first copied to an unlinked temporary file. */
#ifndef IO_ARRAY_H
#define IO_ARRAY_H

#include "io/input.h"
#include "io/npy.h"

#define ARRAY_MAX_WHOLE_BYTES ((int64_t)1 << 30)
#define ARRAY_MAX_SPOOL_BYTES ((int64_t)8 << 30)

typedef struct io_archive io_archive;
typedef struct io_array io_array;

/* Opens the archive behind an input that holds a zip; takes nothing of the input, which must stay open. */
eplb_status io_archive_open(io_archive **archive, io_input *input, io_error *error);
void io_archive_close(io_archive *archive);
/* Names of the arrays without ".npy", NULL past the end. */
const char *io_archive_member(const io_archive *archive, int64_t index);
bool io_archive_has(const io_archive *archive, const char *member);
/* All names in one line, for messages. */
void io_archive_list(const io_archive *archive, char *text, size_t size);

/* An array read from an input at its .npy magic, or from a member of an archive; the source must stay
 * open. */
eplb_status io_array_open_input(io_array **array, io_input *input, io_error *error);
eplb_status io_array_open_member(io_array **array, const io_archive *archive, const char *member,
                                 io_error *error);
void io_array_close(io_array *array);

const npy_header *io_array_header(const io_array *array);
/* "file" or "file[member]". */
const char *io_array_name(const io_array *array);

/* The next `count` numbers. Past the end of the array, or of the file: INVALID. int64: integer arrays only,
 * and OVERFLOW for unsigned numbers above its range. Doubles: any array. */
eplb_status io_array_read_int64(io_array *array, int64_t *out, size_t count, io_error *error);
eplb_status io_array_read_double(io_array *array, double *out, size_t count, io_error *error);
/* After the last number: nothing may follow, and the checksum of an archive must hold. */
eplb_status io_array_finish(io_array *array, io_error *error);

/* One number of a member that holds exactly one (0 dimensions, or 1 element). */
eplb_status io_archive_read_scalar(const io_archive *archive, const char *member, int64_t *value,
                                   io_error *error);

#endif
