/* The blocks are int32 until a sum outgrows that, then int64; a number that is not an integer turns
 * everything into doubles. */
#include "io/window_blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void window_blocks_init(window_blocks *blocks, int32_t max_blocks, size_t max_bytes)
{
    *blocks = (window_blocks){.max_blocks = max_blocks, .max_bytes = max_bytes, .span = 1};
}

void window_blocks_destroy(window_blocks *blocks)
{
    free(blocks->items);
    blocks->items = NULL;
}

/* --- storage ----------------------------------------------------------------------------------------- */

static size_t item_bytes(block_storage storage)
{
    return storage == BLOCK_INT32 ? sizeof(int32_t) : 8;
}

static void *resize(window_blocks *blocks, int64_t count, block_storage storage)
{
    size_t bytes = blocks->num_cells * item_bytes(storage);
    if ((size_t)count > SIZE_MAX / bytes)
        return NULL;
    return realloc(blocks->items, bytes * (size_t)count);
}

/* Blocks that the bounds allow. Doubles count twice: the load keeps integers of its own. */
static int64_t allowed_blocks(const window_blocks *blocks)
{
    size_t each = blocks->num_cells * item_bytes(blocks->storage) * (blocks->storage == BLOCK_DOUBLE ? 2 : 1);
    size_t allowed = blocks->max_bytes / each;
    if (allowed > EPLB_MAX_WINDOWS)
        allowed = EPLB_MAX_WINDOWS;
    if (blocks->max_blocks > 0 && allowed > (size_t)blocks->max_blocks)
        allowed = (size_t)blocks->max_blocks;
    return allowed > 0 ? (int64_t)allowed : 1;
}

/* Room for one more block, doubling up to what the bounds allow. */
static eplb_status grow(window_blocks *blocks)
{
    int64_t allowed = allowed_blocks(blocks);
    int64_t capacity = blocks->capacity * 2 < allowed ? blocks->capacity * 2 : allowed;
    if (capacity <= blocks->count)
        capacity = blocks->count + 1;
    void *items = resize(blocks, capacity, blocks->storage);
    if (items == NULL)
        return EPLB_ERROR_MEMORY;
    blocks->items = items;
    blocks->capacity = capacity;
    return EPLB_OK;
}

/* int32 or int64 to a wider storage, in place from the last item to the first. */
static eplb_status widen(window_blocks *blocks, block_storage storage)
{
    int64_t capacity = blocks->count > 0 ? blocks->count : 1;
    unsigned char *bytes = resize(blocks, capacity, storage);
    if (bytes == NULL)
        return EPLB_ERROR_MEMORY;
    for (size_t i = blocks->num_cells * (size_t)blocks->count; i-- > 0;) {
        int32_t narrow;
        int64_t whole;
        if (blocks->storage == BLOCK_INT32) {
            memcpy(&narrow, bytes + i * sizeof narrow, sizeof narrow);
            whole = narrow;
        } else {
            memcpy(&whole, bytes + i * sizeof whole, sizeof whole);
        }
        double real = (double)whole;
        if (storage == BLOCK_INT64)
            memcpy(bytes + i * sizeof whole, &whole, sizeof whole);
        else
            memcpy(bytes + i * sizeof real, &real, sizeof real);
    }
    blocks->items = bytes;
    blocks->storage = storage;
    blocks->capacity = capacity;
    return EPLB_OK;
}

/* --- sums -------------------------------------------------------------------------------------------- */

/* into[i] += from[i]; OVERFLOW at the first that does not fit, *cell tells which (nothing is undone). */
static eplb_status add_int64(int64_t *into, const int64_t *from, size_t count, size_t *cell)
{
    for (size_t i = 0; i < count; i++) {
        if (into[i] > INT64_MAX - from[i]) {
            *cell = i;
            return EPLB_ERROR_OVERFLOW;
        }
        into[i] += from[i];
    }
    return EPLB_OK;
}

static eplb_status add_double(double *into, const double *from, size_t count, size_t *cell)
{
    for (size_t i = 0; i < count; i++) {
        into[i] += from[i];
        if (isinf(into[i])) {
            *cell = i;
            return EPLB_ERROR_OVERFLOW;
        }
    }
    return EPLB_OK;
}

/* Adds block `from` to block `into`. int32 blocks must fit. */
static eplb_status add_block(window_blocks *blocks, int64_t into, int64_t from, size_t *cell)
{
    size_t count = blocks->num_cells, to = (size_t)into * count, of = (size_t)from * count;
    if (blocks->storage == BLOCK_INT64)
        return add_int64((int64_t *)blocks->items + to, (int64_t *)blocks->items + of, count, cell);
    if (blocks->storage == BLOCK_DOUBLE)
        return add_double((double *)blocks->items + to, (double *)blocks->items + of, count, cell);
    int32_t *items = blocks->items;
    for (size_t i = 0; i < count; i++)
        items[to + i] += items[of + i];
    return EPLB_OK;
}

static bool pairs_fit_int32(const window_blocks *blocks)
{
    size_t count = blocks->num_cells;
    for (int64_t pair = 0; 2 * pair + 1 < blocks->count; pair++) {
        const int32_t *first = (const int32_t *)blocks->items + (size_t)(2 * pair) * count;
        for (size_t i = 0; i < count; i++) {
            if (first[i] > INT32_MAX - first[count + i])
                return false;
        }
    }
    return true;
}

/* Merges blocks 2i and 2i + 1 into block i. */
static eplb_status merge_pairs(window_blocks *blocks, size_t *cell)
{
    if (blocks->storage == BLOCK_INT32 && !pairs_fit_int32(blocks)) {
        eplb_status status = widen(blocks, BLOCK_INT64);
        if (status != EPLB_OK)
            return status;
    }
    size_t bytes = blocks->num_cells * item_bytes(blocks->storage);
    unsigned char *items = blocks->items;
    int64_t merged = (blocks->count + 1) / 2;
    for (int64_t block = 0; block < merged; block++) {
        if (2 * block + 1 < blocks->count) {
            eplb_status status = add_block(blocks, 2 * block, 2 * block + 1, cell);
            if (status != EPLB_OK)
                return status;
        }
        if (block > 0)
            memcpy(items + (size_t)block * bytes, items + (size_t)(2 * block) * bytes, bytes);
    }
    blocks->count = merged;
    blocks->span *= 2;
    return EPLB_OK;
}

/* --- the window that comes in ------------------------------------------------------------------------ */

static void copy_cells(window_blocks *blocks, int64_t block, const window_cell *cells, bool floating)
{
    size_t start = (size_t)block * blocks->num_cells;
    for (size_t i = 0; i < blocks->num_cells; i++) {
        if (blocks->storage == BLOCK_INT32)
            ((int32_t *)blocks->items)[start + i] = (int32_t)cells[i].integer;
        else if (blocks->storage == BLOCK_INT64)
            ((int64_t *)blocks->items)[start + i] = cells[i].integer;
        else
            ((double *)blocks->items)[start + i] = floating ? cells[i].real : (double)cells[i].integer;
    }
    blocks->count = block + 1;
}

/* Whether the window can be added to an int32 block without leaving int32. */
static bool cells_fit_int32(const window_blocks *blocks, int64_t block, const window_cell *cells)
{
    const int32_t *into = (const int32_t *)blocks->items + (size_t)block * blocks->num_cells;
    for (size_t i = 0; i < blocks->num_cells; i++) {
        if (cells[i].integer > INT32_MAX - into[i])
            return false;
    }
    return true;
}

static eplb_status add_cells(window_blocks *blocks, int64_t block, const window_cell *cells, bool floating,
                             size_t *cell)
{
    size_t start = (size_t)block * blocks->num_cells, ignored;
    eplb_status status = EPLB_OK;
    for (size_t i = 0; status == EPLB_OK && i < blocks->num_cells; i++) {
        double value = floating ? cells[i].real : (double)cells[i].integer;
        *cell = i;
        if (blocks->storage == BLOCK_INT32)
            ((int32_t *)blocks->items)[start + i] += (int32_t)cells[i].integer;
        else if (blocks->storage == BLOCK_INT64)
            status = add_int64((int64_t *)blocks->items + start + i, &cells[i].integer, 1, &ignored);
        else
            status = add_double((double *)blocks->items + start + i, &value, 1, &ignored);
    }
    return status;
}

/* The narrowest storage that holds the window. */
static block_storage needed_storage(const window_cell *cells, size_t count, bool floating)
{
    if (floating)
        return BLOCK_DOUBLE;
    for (size_t i = 0; i < count; i++) {
        if (cells[i].integer > INT32_MAX)
            return BLOCK_INT64;
    }
    return BLOCK_INT32;
}

/* The block of a window, with room for it: merges until it is within the bounds. */
static eplb_status make_room(window_blocks *blocks, int64_t window, int64_t *block, size_t *cell)
{
    eplb_status status = EPLB_OK;
    while ((*block = window / blocks->span) >= allowed_blocks(blocks)) {
        status = merge_pairs(blocks, cell);
        if (status != EPLB_OK)
            return status;
    }
    return *block >= blocks->capacity ? grow(blocks) : EPLB_OK;
}

eplb_status window_blocks_add(window_blocks *blocks, int64_t window, const window_cell *cells,
                              size_t num_cells, bool floating, size_t *cell)
{
    block_storage storage = needed_storage(cells, num_cells, floating);
    int64_t block;
    eplb_status status = EPLB_OK;
    blocks->num_cells = num_cells;
    if (storage > blocks->storage)
        status = widen(blocks, storage);
    if (status == EPLB_OK)
        status = make_room(blocks, window, &block, cell);
    if (status != EPLB_OK)
        return status;
    if (block == blocks->count) {
        copy_cells(blocks, block, cells, floating);
        return EPLB_OK;
    }
    if (blocks->storage == BLOCK_INT32 && !cells_fit_int32(blocks, block, cells)) {
        status = widen(blocks, BLOCK_INT64);
        if (status == EPLB_OK) /* int64 may allow fewer blocks: place the window again */
            status = make_room(blocks, window, &block, cell);
    }
    return status == EPLB_OK ? add_cells(blocks, block, cells, floating, cell) : status;
}
