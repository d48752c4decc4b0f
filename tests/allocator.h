/* An allocator for tests: counts what is taken and given back, and fails the n-th request.
 *
 * Torture loop, after curl: run the same call with request 0, 1, 2, ... failing until it succeeds; each
 * failure must report EPLB_ERROR_MEMORY and leave nothing behind.
 *
 *     for (int64_t fail_at = 0; ...; fail_at++) {
 *         test_allocator memory = test_allocator_make(fail_at);
 *         eplb_allocator allocator = test_allocator_use(&memory);
 *         status = eplb_x_create(&x, ..., &allocator, &error);
 *         ...
 *         assert_int_equal(memory.num_live, 0);
 *     }
 */
#ifndef TESTS_ALLOCATOR_H
#define TESTS_ALLOCATOR_H

#include <stdint.h>
#include <stdlib.h>

#include <eplb/status.h>

#define TEST_ALLOCATOR_NEVER INT64_MAX

typedef struct test_allocator {
    int64_t fail_at;  /* number of the request that fails; TEST_ALLOCATOR_NEVER: none */
    int64_t num_made; /* requests so far, failed ones included */
    int64_t num_live; /* blocks not given back */
} test_allocator;

static inline void *test_allocator_allocate(void *context, size_t bytes)
{
    test_allocator *memory = context;
    if (memory->num_made++ == memory->fail_at)
        return NULL;
    void *block = malloc(bytes);
    if (block != NULL)
        memory->num_live++;
    return block;
}

static inline void test_allocator_release(void *context, void *block)
{
    test_allocator *memory = context;
    memory->num_live--;
    free(block);
}

static inline test_allocator test_allocator_make(int64_t fail_at)
{
    return (test_allocator){.fail_at = fail_at};
}

/* For calls on one thread; `memory` must outlive everything made with it. */
static inline eplb_allocator test_allocator_use(test_allocator *memory)
{
    return (eplb_allocator){test_allocator_allocate, test_allocator_release, memory};
}

#endif
