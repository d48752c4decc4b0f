/* Parameter structs: defaults reach as far as the caller's struct, and another size is refused. */
#include "testing.h"

#include <string.h>

#include "base/params.h"

typedef struct sample_params {
    size_t size;
    int32_t first;
    int32_t second;
} sample_params;

static const sample_params defaults = {sizeof(sample_params), 7, 9};

static void defaults_are_copied(void **state)
{
    (void)state;
    sample_params params;
    params_init(&params, sizeof params, &defaults, sizeof defaults);
    assert_memory_equal(&params, &defaults, sizeof defaults);
    assert_int_equal(params_check(params.size, sizeof params, "sample", NULL), EPLB_OK);
}

static void a_shorter_struct_is_not_written_past_its_end(void **state)
{
    (void)state;
    sample_params params = {0, 0, 5};
    size_t shorter = offsetof(sample_params, second);
    params_init(&params, shorter, &defaults, sizeof defaults);
    assert_int_equal(params.size, shorter);
    assert_int_equal(params.first, 7);
    assert_int_equal(params.second, 5);
}

static void another_size_is_refused(void **state)
{
    (void)state;
    eplb_error error;
    assert_int_equal(params_check(8, 16, "sample", &error), EPLB_ERROR_INVALID);
    assert_string_equal(error.text,
                        "sample parameters have size 8, expected 16: call eplb_sample_params_init");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_copied),
        cmocka_unit_test(a_shorter_struct_is_not_written_past_its_end),
        cmocka_unit_test(another_size_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
