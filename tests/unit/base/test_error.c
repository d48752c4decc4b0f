/* Errors: every field is set, text is cut and ended, and no error asked for is fine. */
#include "testing.h"

#include <string.h>

#include "base/error.h"

static void every_field_is_set(void **state)
{
    (void)state;
    eplb_error error;
    memset(&error, 0x5a, sizeof error);
    error_place place = {.layer = 3, .expert = 7, .rank = -1, .slot = 12, .value = -9};
    eplb_status status = error_set(&error, EPLB_ERROR_INVALID, place, "load %d is %s", -9, "negative");
    assert_int_equal(status, EPLB_ERROR_INVALID);
    assert_int_equal(error.status, EPLB_ERROR_INVALID);
    assert_int_equal(error.layer, 3);
    assert_int_equal(error.expert, 7);
    assert_int_equal(error.rank, -1);
    assert_int_equal(error.slot, 12);
    assert_int_equal(error.value, -9);
    assert_string_equal(error.text, "load -9 is negative");
}

static void long_text_is_cut(void **state)
{
    (void)state;
    eplb_error error;
    memset(&error, 0x5a, sizeof error);
    char name[1000];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    error_text(&error, EPLB_ERROR_UNSUPPORTED, "%s", name);
    assert_int_equal(strlen(error.text), sizeof error.text - 1);
    assert_int_equal(error.layer, -1);
}

static void no_error_asked_for(void **state)
{
    (void)state;
    assert_int_equal(error_text(NULL, EPLB_ERROR_OVERFLOW, "%d", 1), EPLB_ERROR_OVERFLOW);
    assert_int_equal(error_set(NULL, EPLB_ERROR_INVALID, NO_PLACE, "%d", 1), EPLB_ERROR_INVALID);
    assert_int_equal(error_memory(NULL, 10, "a map"), EPLB_ERROR_MEMORY);
}

static void out_of_memory_says_how_much(void **state)
{
    (void)state;
    eplb_error error;
    assert_int_equal(error_memory(&error, 4096, "the shares"), EPLB_ERROR_MEMORY);
    assert_non_null(strstr(error.text, "4096"));
    assert_non_null(strstr(error.text, "the shares"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_set),
        cmocka_unit_test(long_text_is_cut),
        cmocka_unit_test(no_error_asked_for),
        cmocka_unit_test(out_of_memory_says_how_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
