/* Windows of a load as they stream in: the checks of every count, and the load in the end. */
#include "io/windows.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void windows_init(io_windows *windows, const char *name, int32_t max_windows, size_t max_bytes)
{
    memset(windows, 0, sizeof *windows);
    windows->name = name;
    window_blocks_init(&windows->blocks, max_windows, max_bytes != 0 ? max_bytes : IO_LOAD_DEFAULT_BYTES);
    windows->num_experts = -1;
    windows->num_layers = -1;
}

void windows_destroy(io_windows *windows)
{
    free(windows->cells);
    windows->cells = NULL;
    window_blocks_destroy(&windows->blocks);
}

static eplb_status at_cell(const io_windows *windows, size_t cell, eplb_status status, const char *what,
                           io_error *error)
{
    int64_t experts = windows->num_experts > 0 ? windows->num_experts : (int64_t)cell + 1;
    return io_fail(error, status, "%s: window %" PRId64 ", layer %" PRId64 ", expert %" PRId64 ": %s",
                   windows->name, windows->num_windows, (int64_t)cell / experts, (int64_t)cell % experts,
                   what);
}

static eplb_status refuse_integer(const io_windows *windows, size_t cell, int64_t value, io_error *error)
{
    char text[96];
    (void)snprintf(text, sizeof text, "%" PRId64 " is negative; a load is >= 0", value);
    return at_cell(windows, cell, EPLB_ERROR_INVALID, text, error);
}

static eplb_status refuse_double(const io_windows *windows, size_t cell, double value, io_error *error)
{
    char text[96];
    (void)snprintf(text, sizeof text, "%g %s; a load is finite and >= 0", value,
                   isfinite(value) ? "is negative" : "is not finite");
    return at_cell(windows, cell, EPLB_ERROR_INVALID, text, error);
}

static bool legal_double(double value)
{
    return isfinite(value) && value >= 0.0;
}

static eplb_status reserve_cells(io_windows *windows, size_t count, io_error *error)
{
    if (count <= windows->cells_capacity)
        return EPLB_OK;
    if (count > WINDOWS_MAX_CELLS)
        return io_fail(error, EPLB_ERROR_UNSUPPORTED,
                       "%s: window %" PRId64 ": more than %zu counts (layers x experts) in one window",
                       windows->name, windows->num_windows, WINDOWS_MAX_CELLS);
    size_t capacity = windows->cells_capacity * 2 > 1024 ? windows->cells_capacity * 2 : 1024;
    if (capacity < count)
        capacity = count;
    window_cell *cells = realloc(windows->cells, capacity * sizeof *cells);
    if (cells == NULL)
        return io_fail_memory(error, windows->name, "a window");
    windows->cells = cells;
    windows->cells_capacity = capacity;
    return EPLB_OK;
}

static void cells_to_double(io_windows *windows)
{
    for (size_t i = 0; i < windows->num_cells && !windows->floating; i++)
        windows->cells[i].real = (double)windows->cells[i].integer;
    windows->floating = true;
}

eplb_status windows_value(io_windows *windows, const io_number *number, io_error *error)
{
    eplb_status status = reserve_cells(windows, windows->num_cells + 1, error);
    if (status != EPLB_OK)
        return status;
    if (number->floating && !legal_double(number->real))
        return refuse_double(windows, windows->num_cells, number->real, error);
    if (!number->floating && number->integer < 0)
        return refuse_integer(windows, windows->num_cells, number->integer, error);
    if (number->floating)
        cells_to_double(windows);
    window_cell *cell = &windows->cells[windows->num_cells++];
    if (windows->floating)
        cell->real = number->floating ? number->real : (double)number->integer;
    else
        cell->integer = number->integer;
    return EPLB_OK;
}

static eplb_status check_size(const io_windows *windows, const char *what, int64_t size, int64_t most,
                              io_error *error)
{
    if (size >= 1 && size <= most)
        return EPLB_OK;
    return io_fail(error, EPLB_ERROR_INVALID,
                   "%s: window %" PRId64 " has %" PRId64 " %s; 1 to %" PRId64 " are possible", windows->name,
                   windows->num_windows, size, what, most);
}

eplb_status windows_end_row(io_windows *windows, io_error *error)
{
    int64_t width = (int64_t)(windows->num_cells - windows->row_start);
    if (windows->num_experts < 0) {
        eplb_status status = check_size(windows, "experts in layer 0", width, EPLB_MAX_EXPERTS, error);
        if (status != EPLB_OK)
            return status;
        windows->num_experts = width;
    }
    if (width != windows->num_experts)
        return io_fail(error, EPLB_ERROR_INVALID,
                       "%s: window %" PRId64 ", layer %" PRId64 " has %" PRId64
                       " experts, the rows before it %" PRId64,
                       windows->name, windows->num_windows, windows->row, width, windows->num_experts);
    windows->row_start = windows->num_cells;
    windows->row++;
    return EPLB_OK;
}

static eplb_status fold(io_windows *windows, io_error *error)
{
    if (windows->num_windows == EPLB_MAX_WINDOWS)
        return io_fail(error, EPLB_ERROR_UNSUPPORTED, "%s: more than %d windows", windows->name,
                       EPLB_MAX_WINDOWS);
    size_t cell = 0;
    eplb_status status = window_blocks_add(&windows->blocks, windows->num_windows, windows->cells,
                                           windows->num_cells, windows->floating, &cell);
    if (status == EPLB_ERROR_MEMORY)
        (void)io_fail_memory(error, windows->name, "its windows");
    else if (status == EPLB_ERROR_OVERFLOW)
        (void)at_cell(windows, cell, EPLB_ERROR_OVERFLOW,
                      "the sum over windows up to here is above the range of a load", error);
    windows->num_windows++;
    windows->num_cells = 0;
    windows->row_start = 0;
    windows->row = 0;
    windows->floating = false;
    return status;
}

eplb_status windows_end_window(io_windows *windows, io_error *error)
{
    if (windows->num_layers < 0) {
        eplb_status status = check_size(windows, "layers", windows->row, EPLB_MAX_LAYERS, error);
        if (status != EPLB_OK)
            return status;
        windows->num_layers = windows->row;
    }
    if (windows->row != windows->num_layers)
        return io_fail(error, EPLB_ERROR_INVALID,
                       "%s: window %" PRId64 " has %" PRId64 " layers, the windows before it %" PRId64,
                       windows->name, windows->num_windows, windows->row, windows->num_layers);
    return fold(windows, error);
}

/* Sizes of windows that come whole; all of one load have the same. */
static eplb_status begin_whole(io_windows *windows, int64_t num_layers, int64_t num_experts, io_error *error)
{
    eplb_status status = check_size(windows, "layers", num_layers, EPLB_MAX_LAYERS, error);
    if (status == EPLB_OK)
        status = check_size(windows, "experts", num_experts, EPLB_MAX_EXPERTS, error);
    if (status != EPLB_OK)
        return status;
    windows->num_layers = num_layers;
    windows->num_experts = num_experts;
    windows->num_cells = 0;
    return reserve_cells(windows, (size_t)(num_layers * num_experts), error);
}

eplb_status windows_add_integers(io_windows *windows, int64_t num_layers, int64_t num_experts,
                                 const int64_t *counts, io_error *error)
{
    eplb_status status = begin_whole(windows, num_layers, num_experts, error);
    if (status != EPLB_OK)
        return status;
    size_t count = (size_t)(num_layers * num_experts);
    for (size_t i = 0; i < count; i++) {
        if (counts[i] < 0)
            return refuse_integer(windows, i, counts[i], error);
        windows->cells[i].integer = counts[i];
    }
    windows->num_cells = count;
    windows->floating = false;
    return fold(windows, error);
}

eplb_status windows_add_doubles(io_windows *windows, int64_t num_layers, int64_t num_experts,
                                const double *counts, io_error *error)
{
    eplb_status status = begin_whole(windows, num_layers, num_experts, error);
    if (status != EPLB_OK)
        return status;
    size_t count = (size_t)(num_layers * num_experts);
    for (size_t i = 0; i < count; i++) {
        if (!legal_double(counts[i]))
            return refuse_double(windows, i, counts[i], error);
        windows->cells[i].real = counts[i];
    }
    windows->num_cells = count;
    windows->floating = true;
    return fold(windows, error);
}

eplb_status windows_finish(io_windows *windows, io_load *load, io_error *error)
{
    if (windows->num_windows == 0)
        return io_fail(error, EPLB_ERROR_INVALID, "%s: holds no window; at least one is needed",
                       windows->name);
    static const eplb_element elements[] = {EPLB_ELEMENT_INT32, EPLB_ELEMENT_INT64, EPLB_ELEMENT_FLOAT64};
    window_blocks *blocks = &windows->blocks;
    eplb_load_params params;
    eplb_load_params_init(&params, sizeof params);
    params.num_windows = (int32_t)blocks->count;
    params.num_layers = (int32_t)windows->num_layers;
    params.num_experts = (int32_t)windows->num_experts;
    params.element = elements[blocks->storage];
    params.counts = blocks->items;
    params.borrow = blocks->storage != BLOCK_DOUBLE;
    free(windows->cells);
    windows->cells = NULL;
    windows->cells_capacity = 0;
    eplb_error cause;
    eplb_status status = eplb_load_create(&load->load, &params, NULL, &cause);
    if (status != EPLB_OK)
        return io_fail_library(error, windows->name, &cause);
    if (params.borrow) {
        load->counts = blocks->items;
        blocks->items = NULL;
    }
    load->num_windows = windows->num_windows;
    load->windows_per_block = blocks->max_blocks == 1 ? 1 : blocks->span;
    if (load->windows_per_block > 1)
        (void)snprintf(load->note, sizeof load->note,
                       "%" PRId64 " windows are kept as %" PRId64 " sums of up to %" PRId64
                       " neighbouring windows (their total is exact)",
                       windows->num_windows, blocks->count, blocks->span);
    return EPLB_OK;
}
