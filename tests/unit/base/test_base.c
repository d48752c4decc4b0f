/* Base: checked and wide arithmetic, arena, random stream, hash and error texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"

static void test_checked(void **state)
{
    (void)state;
    int64_t result;
    assert_true(checked_add(INT64_MAX - 1, 1, &result));
    assert_true(result == INT64_MAX);
    assert_false(checked_add(INT64_MAX, 1, &result));
    assert_true(checked_multiply(INT64_C(3037000499), INT64_C(3037000499), &result));
    assert_false(checked_multiply(INT64_C(3037000500), INT64_C(3037000500), &result));
    assert_true(checked_multiply(0, INT64_MAX, &result));
}

static void test_fractions(void **state)
{
    (void)state;
    assert_int_equal(fraction_compare(1, 3, 2, 6), 0);
    assert_int_equal(fraction_compare(1, 3, 1, 2), -1);
    assert_int_equal(fraction_compare(INT64_MAX, INT64_MAX - 1, INT64_MAX - 1, INT64_MAX - 2), -1);
    assert_int_equal(fraction_compare(INT64_MAX, 1, INT64_MAX - 1, 1), 1);
    wide product = wide_multiply(UINT64_MAX, UINT64_MAX);
    assert_true(product.high == UINT64_MAX - 1 && product.low == 1);
}

static void test_arena(void **state)
{
    (void)state;
    arena scratch;
    arena_init(&scratch, NULL);
    unsigned char *small = arena_take_zero(&scratch, 10, 3);
    assert_non_null(small);
    arena_mark mark = arena_position(&scratch);
    unsigned char *large = arena_take(&scratch, 1 << 20, 4);
    assert_non_null(large);
    assert_int_equal((uintptr_t)large % 64, 0);
    memset(large, 1, (size_t)4 << 20);
    arena_rewind(&scratch, mark);
    assert_ptr_equal(arena_take(&scratch, 1 << 20, 4), large); /* the chunk is kept */
    assert_int_equal(small[29], 0);
    assert_null(arena_take(&scratch, SIZE_MAX / 2, 16));
    arena_destroy(&scratch);
}

static void test_random(void **state)
{
    (void)state;
    random_state random = random_seed(1234567);
    assert_true(random_next(&random) == UINT64_C(6457827717110365317)); /* published test vector */
    assert_true(random_next(&random) == UINT64_C(3203168211198807973));
    for (int i = 0; i < 1000; i++) {
        assert_true(random_below(&random, 7) < 7);
        double u = random_unit(&random);
        assert_true(u >= 0.0 && u < 1.0);
    }
}

static void test_hash(void **state)
{
    (void)state;
    uint64_t one = hash_finish(hash_add(hash_add(HASH_START, 1), 2));
    assert_true(one == hash_finish(hash_add(hash_add(HASH_START, 1), 2)));
    assert_true(one != hash_finish(hash_add(hash_add(HASH_START, 2), 1)));
}

static void test_errors(void **state)
{
    (void)state;
    eplb_error error;
    error_place place = {1, 2, 3, 4, -5};
    assert_int_equal(error_set(&error, EPLB_ERROR_INVALID, place, "%s", "wrong"), EPLB_ERROR_INVALID);
    assert_int_equal(error.layer, 1);
    assert_int_equal(error.value, -5);
    assert_string_equal(error.text, "wrong");
    char text[400];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    (void)error_text(&error, EPLB_ERROR_INTERNAL, "%s", text);
    assert_int_equal(strlen(error.text), sizeof error.text - 1);
    assert_int_equal(error_memory(NULL, 5, "a thing"), EPLB_ERROR_MEMORY);
    for (int status = EPLB_OK; status <= EPLB_ERROR_INTERNAL; status++)
        assert_string_not_equal(eplb_status_name((eplb_status)status), "unknown");
    assert_string_equal(eplb_status_name((eplb_status)99), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checked), cmocka_unit_test(test_fractions), cmocka_unit_test(test_arena),
        cmocka_unit_test(test_random),  cmocka_unit_test(test_hash),      cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
