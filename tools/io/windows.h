/* Windows of a load as they stream in, row by row (a row is a layer): the first row fixes E, the first window
 * fixes L. Memory is bounded (window_blocks.h). */
#ifndef IO_WINDOWS_H
#define IO_WINDOWS_H

#include <stdbool.h>

#include "io/load.h"
#include "io/number.h"
#include "io/window_blocks.h"

#define WINDOWS_MAX_CELLS ((size_t)1 << 26) /* L * E */

typedef struct io_windows {
    const char *name;    /* for messages */
    int64_t num_experts; /* -1 until the first row ends */
    int64_t num_layers;  /* -1 until the first window ends */
    /* the window that comes in */
    window_cell *cells;
    size_t num_cells;
    size_t cells_capacity;
    size_t row_start;
    int64_t row;
    bool floating; /* cells are doubles */
    /* the windows that came */
    int64_t num_windows;
    window_blocks blocks;
} io_windows;

/* `name` must outlive it. max_windows 0: no limit but max_bytes. */
void windows_init(io_windows *windows, const char *name, int32_t max_windows, size_t max_bytes);
void windows_destroy(io_windows *windows);

/* One count of the present row: finite and >= 0, else INVALID naming window, layer, expert and value. */
eplb_status windows_value(io_windows *windows, const io_number *number, io_error *error);
/* Ends the row: its length must be that of the others. */
eplb_status windows_end_row(io_windows *windows, io_error *error);
/* Ends the window: it must have as many rows as the others. */
eplb_status windows_end_window(io_windows *windows, io_error *error);
/* A whole window of num_layers * num_experts counts at once, integers or doubles. */
eplb_status windows_add_integers(io_windows *windows, int64_t num_layers, int64_t num_experts,
                                 const int64_t *counts, io_error *error);
eplb_status windows_add_doubles(io_windows *windows, int64_t num_layers, int64_t num_experts,
                                const double *counts, io_error *error);
/* Makes the load; needs at least one window. */
eplb_status windows_finish(io_windows *windows, io_load *load, io_error *error);

#endif
