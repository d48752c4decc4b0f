/* Memory: the injected allocator behind three calls, and an arena that one planning thread reuses for every
 * layer. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <eplb/status.h>

/* The caller's allocator, or malloc and free for NULL. */
eplb_allocator memory_allocator(const eplb_allocator *allocator);
/* count * size bytes, zeroed; NULL when it does not fit or memory is out. Zero bytes give a valid block. */
void *memory_take(const eplb_allocator *allocator, size_t count, size_t size);
/* Releases a block of memory_take; NULL is fine. */
void memory_give(const eplb_allocator *allocator, void *block);

/* Bump allocator in chunks: take is a pointer addition, rewind frees everything taken since a mark at once
 * and keeps the chunks for the next layer. Not thread-safe: one arena per thread. */
typedef struct arena_chunk arena_chunk;
typedef struct arena {
    eplb_allocator allocator;
    arena_chunk *first;
    arena_chunk *current;
    size_t used; /* bytes used of the current chunk */
} arena;
typedef struct arena_mark {
    arena_chunk *chunk;
    size_t used;
} arena_mark;

void arena_init(arena *scratch, const eplb_allocator *allocator);
void arena_destroy(arena *scratch);
/* count * size bytes, aligned to 64, NOT zeroed; NULL when memory is out. */
void *arena_take(arena *scratch, size_t count, size_t size);
/* The same, zeroed. */
void *arena_take_zero(arena *scratch, size_t count, size_t size);
arena_mark arena_position(const arena *scratch);
void arena_rewind(arena *scratch, arena_mark mark);

#endif
