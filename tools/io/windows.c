/* Windows of a load as they stream in. The blocks are int32 until a sum outgrows that, then int64; a number
 * that is not an integer turns everything into doubles. See windows.h. */
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
    windows->max_windows = max_windows;
    windows->max_bytes = max_bytes != 0 ? max_bytes : IO_LOAD_DEFAULT_BYTES;
    windows->num_experts = -1;
    windows->num_layers = -1;
    windows->span = 1;
}

void windows_destroy(io_windows *windows)
{
    free(windows->cells);
    free(windows->blocks);
    windows->cells = NULL;
    windows->blocks = NULL;
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

static size_t cell_bytes(window_storage storage)
{
    return storage == STORE_INT32 ? sizeof(int32_t) : 8;
}

/* Blocks that the bounds allow. Doubles count twice: the load keeps integers of its own. */
static int64_t allowed_blocks(const io_windows *windows, window_storage storage)
{
    size_t cells = (size_t)(windows->num_layers * windows->num_experts);
    size_t each = cells * cell_bytes(storage) * (storage == STORE_DOUBLE ? 2 : 1);
    size_t allowed = windows->max_bytes / each;
    if (allowed > EPLB_MAX_WINDOWS)
        allowed = EPLB_MAX_WINDOWS;
    if (windows->max_windows > 0 && allowed > (size_t)windows->max_windows)
        allowed = (size_t)windows->max_windows;
    return allowed > 0 ? (int64_t)allowed : 1;
}

static size_t cells_of_window(const io_windows *windows)
{
    return (size_t)(windows->num_layers * windows->num_experts);
}

static void *resize_blocks(io_windows *windows, int64_t blocks, window_storage storage)
{
    size_t bytes = cells_of_window(windows) * cell_bytes(storage);
    if ((size_t)blocks > SIZE_MAX / bytes)
        return NULL;
    return realloc(windows->blocks, bytes * (size_t)blocks);
}

/* int32 or int64 to a wider storage, in place from the last cell to the first. */
static eplb_status widen(io_windows *windows, window_storage storage, io_error *error)
{
    int64_t blocks = windows->num_blocks > 0 ? windows->num_blocks : 1;
    void *grown = resize_blocks(windows, blocks, storage);
    if (grown == NULL)
        return io_fail_memory(error, windows->name, "its windows");
    windows->blocks = grown;
    size_t count = cells_of_window(windows) * (size_t)windows->num_blocks;
    unsigned char *bytes = grown;
    for (size_t i = count; i-- > 0;) {
        int32_t narrow;
        int64_t whole;
        if (windows->storage == STORE_INT32) {
            memcpy(&narrow, bytes + i * sizeof narrow, sizeof narrow);
            whole = narrow;
        } else {
            memcpy(&whole, bytes + i * sizeof whole, sizeof whole);
        }
        double real = (double)whole;
        if (storage == STORE_INT64)
            memcpy(bytes + i * sizeof whole, &whole, sizeof whole);
        else
            memcpy(bytes + i * sizeof real, &real, sizeof real);
    }
    windows->storage = storage;
    windows->capacity = blocks;
    return EPLB_OK;
}

/* into[i] += from[i]; false at the first cell that does not fit, *bad tells which (nothing is undone). */
static bool add_int64(int64_t *into, const int64_t *from, size_t count, size_t *bad)
{
    for (size_t i = 0; i < count; i++) {
        if (into[i] > INT64_MAX - from[i]) {
            *bad = i;
            return false;
        }
        into[i] += from[i];
    }
    return true;
}

static bool add_double(double *into, const double *from, size_t count, size_t *bad)
{
    for (size_t i = 0; i < count; i++) {
        into[i] += from[i];
        if (isinf(into[i])) {
            *bad = i;
            return false;
        }
    }
    return true;
}

static bool fits_int32(const int32_t *a, const int32_t *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((int64_t)a[i] + b[i] > INT32_MAX)
            return false;
    return true;
}

static eplb_status sum_overflow(const io_windows *windows, size_t cell, io_error *error)
{
    return at_cell(windows, cell, EPLB_ERROR_OVERFLOW,
                   "the sum over windows up to here is above the range of a load", error);
}

/* Adds block `from` to block `into`. int32 blocks must fit. */
static eplb_status add_block(io_windows *windows, int64_t into, int64_t from, io_error *error)
{
    size_t count = cells_of_window(windows);
    size_t bad = 0;
    bool fits = true;
    if (windows->storage == STORE_INT32) {
        int32_t *blocks = windows->blocks;
        for (size_t i = 0; i < count; i++)
            blocks[(size_t)into * count + i] += blocks[(size_t)from * count + i];
    } else if (windows->storage == STORE_INT64) {
        int64_t *blocks = windows->blocks;
        fits = add_int64(blocks + (size_t)into * count, blocks + (size_t)from * count, count, &bad);
    } else {
        double *blocks = windows->blocks;
        fits = add_double(blocks + (size_t)into * count, blocks + (size_t)from * count, count, &bad);
    }
    return fits ? EPLB_OK : sum_overflow(windows, bad, error);
}

static bool pairs_fit_int32(const io_windows *windows)
{
    size_t count = cells_of_window(windows);
    const int32_t *blocks = windows->blocks;
    for (int64_t pair = 0; 2 * pair + 1 < windows->num_blocks; pair++) {
        const int32_t *first = blocks + (size_t)(2 * pair) * count;
        if (!fits_int32(first, first + count, count))
            return false;
    }
    return true;
}

/* Merges blocks 2i and 2i + 1 into block i. */
static eplb_status merge_pairs(io_windows *windows, io_error *error)
{
    if (windows->storage == STORE_INT32 && !pairs_fit_int32(windows)) {
        eplb_status status = widen(windows, STORE_INT64, error);
        if (status != EPLB_OK)
            return status;
    }
    size_t bytes = cells_of_window(windows) * cell_bytes(windows->storage);
    unsigned char *blocks = windows->blocks;
    int64_t merged = (windows->num_blocks + 1) / 2;
    for (int64_t block = 0; block < merged; block++) {
        if (2 * block + 1 < windows->num_blocks) {
            eplb_status status = add_block(windows, 2 * block, 2 * block + 1, error);
            if (status != EPLB_OK)
                return status;
        }
        if (block > 0)
            memcpy(blocks + (size_t)block * bytes, blocks + (size_t)(2 * block) * bytes, bytes);
    }
    windows->num_blocks = merged;
    windows->span *= 2;
    return EPLB_OK;
}

/* Room for one more block, doubling up to what the bounds allow. */
static eplb_status grow(io_windows *windows, io_error *error)
{
    int64_t allowed = allowed_blocks(windows, windows->storage);
    int64_t capacity = windows->capacity * 2 < allowed ? windows->capacity * 2 : allowed;
    if (capacity <= windows->num_blocks)
        capacity = windows->num_blocks + 1;
    void *blocks = resize_blocks(windows, capacity, windows->storage);
    if (blocks == NULL)
        return io_fail_memory(error, windows->name, "its windows");
    windows->blocks = blocks;
    windows->capacity = capacity;
    return EPLB_OK;
}

/* The narrowest storage that holds the window that came in. */
static window_storage needed_storage(const io_windows *windows)
{
    if (windows->floating)
        return STORE_DOUBLE;
    for (size_t i = 0; i < windows->num_cells; i++)
        if (windows->cells[i].integer > INT32_MAX)
            return STORE_INT64;
    return STORE_INT32;
}

/* Storage and span such that the present window has a block: merges until its block is within the bounds. */
static eplb_status make_room(io_windows *windows, int64_t *block, io_error *error)
{
    eplb_status status = EPLB_OK;
    window_storage storage = needed_storage(windows);
    if (storage > windows->storage)
        status = widen(windows, storage, error);
    while (status == EPLB_OK) {
        *block = windows->num_windows / windows->span;
        if (*block < allowed_blocks(windows, windows->storage))
            break;
        status = merge_pairs(windows, error);
    }
    if (status == EPLB_OK && *block >= windows->capacity)
        status = grow(windows, error);
    return status;
}

static void copy_cells(io_windows *windows, int64_t block)
{
    size_t count = windows->num_cells;
    size_t start = (size_t)block * count;
    for (size_t i = 0; i < count; i++) {
        window_cell cell = windows->cells[i];
        if (windows->storage == STORE_INT32)
            ((int32_t *)windows->blocks)[start + i] = (int32_t)cell.integer;
        else if (windows->storage == STORE_INT64)
            ((int64_t *)windows->blocks)[start + i] = cell.integer;
        else
            ((double *)windows->blocks)[start + i] = windows->floating ? cell.real : (double)cell.integer;
    }
    windows->num_blocks = block + 1;
}

/* Whether the incoming window can be added to an int32 block without leaving int32. */
static bool cells_fit_int32(const io_windows *windows, int64_t block)
{
    const int32_t *into = (const int32_t *)windows->blocks + (size_t)block * windows->num_cells;
    for (size_t i = 0; i < windows->num_cells; i++)
        if (windows->cells[i].integer > INT32_MAX - into[i])
            return false;
    return true;
}

static eplb_status add_cells(io_windows *windows, int64_t block, io_error *error)
{
    size_t count = windows->num_cells;
    size_t start = (size_t)block * count;
    for (size_t i = 0; i < count; i++) {
        window_cell cell = windows->cells[i];
        size_t bad;
        bool fits = true;
        if (windows->storage == STORE_INT32) {
            ((int32_t *)windows->blocks)[start + i] += (int32_t)cell.integer;
        } else if (windows->storage == STORE_INT64) {
            fits = add_int64((int64_t *)windows->blocks + start + i, &cell.integer, 1, &bad);
        } else {
            double value = windows->floating ? cell.real : (double)cell.integer;
            fits = add_double((double *)windows->blocks + start + i, &value, 1, &bad);
        }
        if (!fits)
            return sum_overflow(windows, i, error);
    }
    return EPLB_OK;
}

static eplb_status fold(io_windows *windows, io_error *error)
{
    if (windows->num_windows == EPLB_MAX_WINDOWS)
        return io_fail(error, EPLB_ERROR_UNSUPPORTED, "%s: more than %d windows", windows->name,
                       EPLB_MAX_WINDOWS);
    int64_t block = 0;
    eplb_status status = make_room(windows, &block, error);
    if (status == EPLB_OK && block < windows->num_blocks) {
        if (windows->storage == STORE_INT32 && !cells_fit_int32(windows, block)) {
            status = widen(windows, STORE_INT64, error);
            /* int64 may allow fewer blocks: place the window again */
            if (status == EPLB_OK)
                status = make_room(windows, &block, error);
        }
        if (status == EPLB_OK)
            status = add_cells(windows, block, error);
    } else if (status == EPLB_OK) {
        copy_cells(windows, block);
    }
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
    eplb_load_params params;
    eplb_load_params_init(&params, sizeof params);
    params.num_windows = (int32_t)windows->num_blocks;
    params.num_layers = (int32_t)windows->num_layers;
    params.num_experts = (int32_t)windows->num_experts;
    params.element = elements[windows->storage];
    params.counts = windows->blocks;
    params.borrow = windows->storage != STORE_DOUBLE;
    free(windows->cells);
    windows->cells = NULL;
    windows->cells_capacity = 0;
    eplb_error cause;
    eplb_status status = eplb_load_create(&load->load, &params, NULL, &cause);
    if (status != EPLB_OK)
        return io_fail_library(error, windows->name, &cause);
    if (params.borrow) {
        load->counts = windows->blocks;
        windows->blocks = NULL;
    }
    load->num_windows = windows->num_windows;
    load->windows_per_block = windows->max_windows == 1 ? 1 : windows->span;
    if (load->windows_per_block > 1)
        (void)snprintf(load->note, sizeof load->note,
                       "%" PRId64 " windows are kept as %" PRId64 " sums of up to %" PRId64
                       " neighbouring windows (their total is exact)",
                       windows->num_windows, windows->num_blocks, windows->span);
    return EPLB_OK;
}
