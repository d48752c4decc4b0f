/* The readers behind io_load_read, one per kind of content: each feeds the windows it finds to an
 * io_windows. */
#ifndef IO_LOAD_READERS_H
#define IO_LOAD_READERS_H

#include "io/array.h"
#include "io/windows.h"

/* [E], [L, E] or [T, L, E]. */
eplb_status load_read_array(io_array *array, io_windows *windows, io_error *error);
/* Nested lists, or an object with one of the keys that engines use. */
eplb_status load_read_json(io_input *input, io_windows *windows, io_error *error);
/* Rows of numbers, one row per layer. */
eplb_status load_read_csv(io_input *input, io_windows *windows, io_error *error);

#endif
