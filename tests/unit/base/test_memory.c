/* Blocks and arenas: sizes that do not fit, failures, alignment, reuse after a rewind, nothing left
 * behind. */
#include "testing.h"

#include <string.h>

#include "allocator.h"
#include "base/memory.h"
#include "base/random.h"

static void blocks_are_zeroed_and_counted(void **state)
{
    (void)state;
    test_allocator memory = test_allocator_make(TEST_ALLOCATOR_NEVER);
    eplb_allocator allocator = test_allocator_use(&memory);
    unsigned char *block = memory_take(&allocator, 100, 3);
    assert_non_null(block);
    for (int i = 0; i < 300; i++)
        assert_int_equal(block[i], 0);
    void *empty = memory_take(&allocator, 0, 8);
    assert_non_null(empty);
    assert_int_equal(memory.num_live, 2);
    memory_give(&allocator, block);
    memory_give(&allocator, empty);
    memory_give(&allocator, NULL);
    assert_int_equal(memory.num_live, 0);
}

static void sizes_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    test_allocator memory = test_allocator_make(TEST_ALLOCATOR_NEVER);
    eplb_allocator allocator = test_allocator_use(&memory);
    assert_null(memory_take(&allocator, SIZE_MAX, 2));
    assert_null(memory_take(&allocator, SIZE_MAX / 2 + 1, 2));
    arena scratch;
    arena_init(&scratch, &allocator);
    assert_null(arena_take(&scratch, SIZE_MAX / 8, 16));
    assert_null(arena_take_zero(&scratch, SIZE_MAX, SIZE_MAX));
    assert_int_equal(memory.num_made, 0);
    arena_destroy(&scratch);
}

static void no_allocator_means_malloc(void **state)
{
    (void)state;
    eplb_allocator allocator = memory_allocator(NULL);
    void *block = memory_take(&allocator, 1, 1);
    assert_non_null(block);
    memory_give(&allocator, block);
    eplb_allocator unset = {NULL, NULL, NULL};
    assert_ptr_equal(memory_allocator(&unset).allocate, allocator.allocate);
}

static void arena_blocks_are_aligned_and_apart(void **state)
{
    (void)state;
    enum { NUM_BLOCKS = 200 };
    unsigned char *blocks[NUM_BLOCKS];
    size_t sizes[NUM_BLOCKS];
    test_allocator memory = test_allocator_make(TEST_ALLOCATOR_NEVER);
    eplb_allocator allocator = test_allocator_use(&memory);
    arena scratch;
    arena_init(&scratch, &allocator);
    random_state random = random_seed(3);
    for (int i = 0; i < NUM_BLOCKS; i++) {
        sizes[i] = random_below(&random, 10) == 0 ? 100000 : random_below(&random, 300);
        blocks[i] = arena_take(&scratch, sizes[i], 1);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 64, 0);
        memset(blocks[i], i, sizes[i]);
    }
    for (int i = 0; i < NUM_BLOCKS; i++)
        for (size_t j = 0; j < sizes[i]; j++)
            assert_int_equal(blocks[i][j], (unsigned char)i);
    arena_destroy(&scratch);
    assert_int_equal(memory.num_live, 0);
}

/* Takes the same mix of small and large blocks as the layer before. */
static void take_a_layer(arena *scratch)
{
    const size_t sizes[] = {10, 70000, 5000, 1, 200000, 64, 65536};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        assert_non_null(arena_take_zero(scratch, sizes[i], 1));
}

static void a_second_layer_allocates_nothing(void **state)
{
    (void)state;
    test_allocator memory = test_allocator_make(TEST_ALLOCATOR_NEVER);
    eplb_allocator allocator = test_allocator_use(&memory);
    arena scratch;
    arena_init(&scratch, &allocator);
    int *kept = arena_take(&scratch, 1, sizeof *kept);
    *kept = 42;
    arena_mark mark = arena_position(&scratch);
    take_a_layer(&scratch);
    int64_t num_made = memory.num_made;
    for (int layer = 1; layer < 5; layer++) {
        arena_rewind(&scratch, mark);
        take_a_layer(&scratch);
    }
    assert_int_equal(memory.num_made, num_made);
    assert_int_equal(*kept, 42);
    arena_destroy(&scratch);
    assert_int_equal(memory.num_live, 0);
}

static void a_rewind_to_the_start_reuses_everything(void **state)
{
    (void)state;
    test_allocator memory = test_allocator_make(TEST_ALLOCATOR_NEVER);
    eplb_allocator allocator = test_allocator_use(&memory);
    arena scratch;
    arena_init(&scratch, &allocator);
    arena_mark start = arena_position(&scratch);
    void *first = arena_take(&scratch, 8, 8);
    arena_rewind(&scratch, start);
    assert_ptr_equal(arena_take(&scratch, 8, 8), first);
    assert_int_equal(memory.num_made, 1);
    arena_destroy(&scratch);
    assert_int_equal(memory.num_live, 0);
}

static void an_arena_survives_a_failure(void **state)
{
    (void)state;
    test_allocator memory = test_allocator_make(1);
    eplb_allocator allocator = test_allocator_use(&memory);
    arena scratch;
    arena_init(&scratch, &allocator);
    assert_non_null(arena_take(&scratch, 100, 1));
    assert_null(arena_take(&scratch, 1000000, 1));
    assert_non_null(arena_take(&scratch, 100, 1)); /* still room in the first chunk */
    assert_non_null(arena_take(&scratch, 1000000, 1));
    arena_destroy(&scratch);
    assert_int_equal(memory.num_live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_zeroed_and_counted),
        cmocka_unit_test(sizes_that_do_not_fit_are_refused),
        cmocka_unit_test(no_allocator_means_malloc),
        cmocka_unit_test(arena_blocks_are_aligned_and_apart),
        cmocka_unit_test(a_second_layer_allocates_nothing),
        cmocka_unit_test(a_rewind_to_the_start_reuses_everything),
        cmocka_unit_test(an_arena_survives_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
