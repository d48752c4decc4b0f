/* Memory: overflow-checked blocks from the injected allocator, and a chunked bump arena.
 * The arena never returns chunks before it is destroyed, so planning layer after layer allocates only once;
 * take costs O(1). */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#define ARENA_ALIGNMENT   ((size_t)64)
#define ARENA_CHUNK_BYTES ((size_t)64 * 1024)

struct arena_chunk {
    arena_chunk *next;
    size_t capacity;
    unsigned char *bytes; /* aligned start inside the block */
};

static void *malloc_allocate(void *context, size_t bytes)
{
    (void)context;
    return malloc(bytes);
}

static void free_release(void *context, void *block)
{
    (void)context;
    free(block);
}

eplb_allocator memory_allocator(const eplb_allocator *allocator)
{
    if (allocator != NULL && allocator->allocate != NULL)
        return *allocator;
    return (eplb_allocator){malloc_allocate, free_release, NULL};
}

static bool product(size_t count, size_t size, size_t *bytes)
{
    if (size != 0 && count > SIZE_MAX / 2 / size)
        return false;
    *bytes = count * size;
    return true;
}

void *memory_take(const eplb_allocator *allocator, size_t count, size_t size)
{
    size_t bytes;
    if (!product(count, size, &bytes))
        return NULL;
    if (bytes == 0)
        bytes = 1;
    void *block = allocator->allocate(allocator->context, bytes);
    if (block != NULL)
        memset(block, 0, bytes);
    return block;
}

void memory_give(const eplb_allocator *allocator, void *block)
{
    if (block != NULL)
        allocator->release(allocator->context, block);
}

void arena_init(arena *arena, const eplb_allocator *allocator)
{
    *arena = (struct arena){memory_allocator(allocator), NULL, NULL, 0};
}

void arena_destroy(arena *arena)
{
    arena_chunk *chunk = arena->first;
    while (chunk != NULL) {
        arena_chunk *next = chunk->next;
        arena->allocator.release(arena->allocator.context, chunk);
        chunk = next;
    }
    arena->first = arena->current = NULL;
    arena->used = 0;
}

/* Makes a chunk that holds at least `bytes` the current one: the next kept chunk if it is large enough, else a new
 * one linked in behind the current. */
static bool advance(arena *arena, size_t bytes)
{
    arena_chunk *next = arena->current != NULL ? arena->current->next : arena->first;
    if (next == NULL || next->capacity < bytes) {
        size_t capacity = bytes > ARENA_CHUNK_BYTES ? bytes : ARENA_CHUNK_BYTES;
        size_t total = sizeof(arena_chunk) + ARENA_ALIGNMENT + capacity;
        arena_chunk *chunk = arena->allocator.allocate(arena->allocator.context, total);
        if (chunk == NULL)
            return false;
        uintptr_t start = (uintptr_t)(chunk + 1);
        chunk->bytes = (unsigned char *)(chunk + 1) + (ARENA_ALIGNMENT - start % ARENA_ALIGNMENT) % ARENA_ALIGNMENT;
        chunk->capacity = capacity;
        chunk->next = next;
        if (arena->current != NULL)
            arena->current->next = chunk;
        else
            arena->first = chunk;
        next = chunk;
    }
    arena->current = next;
    arena->used = 0;
    return true;
}

void *arena_take(arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (!product(count, size, &bytes))
        return NULL;
    bytes = (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
    if (arena->current == NULL || arena->current->capacity - arena->used < bytes) {
        if (!advance(arena, bytes))
            return NULL;
    }
    void *block = arena->current->bytes + arena->used;
    arena->used += bytes;
    return block;
}

void *arena_take_zero(arena *arena, size_t count, size_t size)
{
    void *block = arena_take(arena, count, size);
    if (block != NULL)
        memset(block, 0, count * size);
    return block;
}

arena_mark arena_position(const arena *arena)
{
    return (arena_mark){arena->current, arena->used};
}

void arena_rewind(arena *arena, arena_mark mark)
{
    arena->current = mark.chunk;
    arena->used = mark.used;
}
