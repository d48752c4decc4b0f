/* Memory: overflow-checked blocks from the injected allocator, and a chunked bump arena.
 *
 * The arena never returns chunks before it is destroyed, so planning layer after layer allocates only once;
 * take costs O(1). */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#define ARENA_ALIGNMENT ((size_t)64)
#ifndef ARENA_CHUNK_BYTES /* tests set a small one, so that every request reaches the allocator */
#define ARENA_CHUNK_BYTES ((size_t)64 * 1024)
#endif

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

void arena_init(arena *scratch, const eplb_allocator *allocator)
{
    *scratch = (struct arena){memory_allocator(allocator), NULL, NULL, 0};
}

void arena_destroy(arena *scratch)
{
    arena_chunk *chunk = scratch->first;
    while (chunk != NULL) {
        arena_chunk *next = chunk->next;
        scratch->allocator.release(scratch->allocator.context, chunk);
        chunk = next;
    }
    scratch->first = scratch->current = NULL;
    scratch->used = 0;
}

/* Makes a chunk that holds at least `bytes` the current one: the next kept chunk if it is large enough, else
 * a new one linked in behind the current. */
static bool advance(arena *scratch, size_t bytes)
{
    arena_chunk *next = scratch->current != NULL ? scratch->current->next : scratch->first;
    if (next == NULL || next->capacity < bytes) {
        size_t capacity = bytes > ARENA_CHUNK_BYTES ? bytes : ARENA_CHUNK_BYTES;
        size_t total = sizeof(arena_chunk) + ARENA_ALIGNMENT + capacity;
        arena_chunk *chunk = scratch->allocator.allocate(scratch->allocator.context, total);
        if (chunk == NULL)
            return false;
        uintptr_t start = (uintptr_t)(chunk + 1);
        chunk->bytes =
            (unsigned char *)(chunk + 1) + (ARENA_ALIGNMENT - start % ARENA_ALIGNMENT) % ARENA_ALIGNMENT;
        chunk->capacity = capacity;
        chunk->next = next;
        if (scratch->current != NULL)
            scratch->current->next = chunk;
        else
            scratch->first = chunk;
        next = chunk;
    }
    scratch->current = next;
    scratch->used = 0;
    return true;
}

void *arena_take(arena *scratch, size_t count, size_t size)
{
    size_t bytes;
    if (!product(count, size, &bytes))
        return NULL;
    bytes = (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
    if (scratch->current == NULL || scratch->current->capacity - scratch->used < bytes) {
        if (!advance(scratch, bytes))
            return NULL;
    }
    void *block = scratch->current->bytes + scratch->used;
    scratch->used += bytes;
    return block;
}

void *arena_take_zero(arena *scratch, size_t count, size_t size)
{
    void *block = arena_take(scratch, count, size);
    if (block != NULL)
        memset(block, 0, count * size);
    return block;
}

arena_mark arena_position(const arena *scratch)
{
    return (arena_mark){scratch->current, scratch->used};
}

void arena_rewind(arena *scratch, arena_mark mark)
{
    scratch->current = mark.chunk;
    scratch->used = mark.used;
}
