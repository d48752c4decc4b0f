/* Names of statuses are distinct words; numbers that are none have a name too; the version is the
 * header's. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include <eplb/status.h>

static void every_status_has_its_own_name(void **state)
{
    (void)state;
    for (int a = EPLB_OK; a <= EPLB_ERROR_BUSY; a++) {
        assert_string_not_equal(eplb_status_name((eplb_status)a), "unknown");
        for (int b = EPLB_OK; b < a; b++)
            assert_string_not_equal(eplb_status_name((eplb_status)a), eplb_status_name((eplb_status)b));
    }
    assert_string_equal(eplb_status_name(EPLB_OK), "ok");
    assert_string_equal(eplb_status_name(EPLB_ERROR_INVALID), "invalid");
}

static void other_numbers_are_unknown(void **state)
{
    (void)state;
    assert_string_equal(eplb_status_name((eplb_status)(EPLB_ERROR_BUSY + 1)), "unknown");
    assert_string_equal(eplb_status_name((eplb_status)1000), "unknown");
}

static void version_is_the_header_s(void **state)
{
    (void)state;
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", EPLB_VERSION_MAJOR, EPLB_VERSION_MINOR, EPLB_VERSION_PATCH);
    assert_string_equal(eplb_version(), version);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_own_name),
        cmocka_unit_test(other_numbers_are_unknown),
        cmocka_unit_test(version_is_the_header_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
