/* Loads: reads [T, L, E], [L, E] or [E] counts from .npy, .npz, .json or .csv into an eplb_load.
 *
 * The kind of file is told by its first bytes, never by its name. Windows are read one by one and folded into
 * a bounded number of blocks, so memory does not grow with the file: while all windows fit, a block is one
 * window; beyond that neighbours are merged, two and two, as often as needed. The sum over all blocks is
 * exact in every case. Formats: docs/formats.md. */
#ifndef IO_LOAD_H
#define IO_LOAD_H

#include <stdbool.h>
#include <stddef.h>

#include <eplb/load.h>

#include "io/error.h"

#define IO_LOAD_DEFAULT_BYTES ((size_t)4 << 20)

typedef struct io_load_options {
    const char *member;  /* array of an .npz; NULL: counts, load, logical_count, weight or the only one */
    int32_t max_windows; /* 1: only the sum over all windows; 0: as many as max_bytes hold */
    size_t max_bytes;    /* bound on the windows kept; 0: IO_LOAD_DEFAULT_BYTES; SIZE_MAX: keep all */
    bool topk;           /* the file holds token routing [N, L, K]: count it */
    int64_t tokens_per_window; /* with topk: tokens of a window; 0: all tokens are one window */
    int32_t num_experts;       /* with topk: E, where the file has no num_experts; 0: unknown */
    int32_t fallback_experts;  /* with topk: E, where neither says; 0: unknown */
} io_load_options;

typedef struct io_load {
    eplb_load *load; /* borrows `counts` */
    void *counts;
    int64_t num_windows;       /* windows in the file */
    int64_t windows_per_block; /* windows of the file in one of `load`; 1 also where the sum was asked for */
    int32_t num_groups;        /* expert groups, when the file says; else 0 */
    char note[256];            /* what the user should know ("400 windows merged into 100 ..."), or "" */
} io_load;

/* Reads a load; `path` "-" is standard input, `options` may be NULL (sum of windows up to the byte bound). On
 * failure *load is empty. Every count is checked: finite, >= 0, sums within int64. */
eplb_status io_load_read(const char *path, const io_load_options *options, io_load *load, io_error *error);
/* Releases what a read took; an empty (zeroed) io_load is fine. */
void io_load_clear(io_load *load);

/* Writes windows one by one; the kind follows the end of the path: .npz (array `counts`), .json, .csv, else
 * .npy. Element: INT64 or FLOAT64; counts of a window are [L, E] in that element. T = 0 drops the first
 * dimension: one window, shape [L, E]. Errors of writing stick until the writer is closed. */
typedef struct io_load_writer io_load_writer;
eplb_status io_load_writer_open(io_load_writer **writer, const char *path, int32_t num_windows,
                                int32_t num_layers, int32_t num_experts, eplb_element element,
                                io_error *error);
void io_load_writer_window(io_load_writer *writer, const void *counts);
/* Completes the file: it exists whole when this returns OK, and not at all otherwise. INTERNAL: other windows
 * than were announced. Frees the writer. */
eplb_status io_load_writer_close(io_load_writer *writer, io_error *error);

#endif
