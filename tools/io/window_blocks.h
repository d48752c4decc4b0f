/* Any number of windows in bounded memory: as sums of neighbouring ones.
 *
 * While the windows fit in the bound each is a block; when the next one does not fit, neighbouring blocks are
 * merged two and two and from then on a block spans twice as many windows. So the sum over blocks is always
 * the exact sum over windows, and a window is touched O(1) times on average (each merge halves the
 * blocks). */
#ifndef IO_WINDOW_BLOCKS_H
#define IO_WINDOW_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <eplb/status.h>

/* One count of a window that comes in. */
typedef union window_cell {
    int64_t integer;
    double real;
} window_cell;

typedef enum block_storage { BLOCK_INT32, BLOCK_INT64, BLOCK_DOUBLE } block_storage;

typedef struct window_blocks {
    int32_t max_blocks; /* 0: no limit but max_bytes */
    size_t max_bytes;
    size_t num_cells; /* of a window */
    block_storage storage;
    void *items;      /* [count, num_cells] */
    int64_t count;    /* blocks */
    int64_t capacity; /* blocks that there is room for */
    int64_t span;     /* windows of a full block */
} window_blocks;

void window_blocks_init(window_blocks *blocks, int32_t max_blocks, size_t max_bytes);
void window_blocks_destroy(window_blocks *blocks);

/* Takes window number `window`, which come in order from 0: cells [num_cells] >= 0, doubles if `floating`;
 * all windows have as many. Errors: MEMORY; OVERFLOW, *cell is then where a sum leaves the range of a
 * load. */
eplb_status window_blocks_add(window_blocks *blocks, int64_t window, const window_cell *cells,
                              size_t num_cells, bool floating, size_t *cell);

#endif
