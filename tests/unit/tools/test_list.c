/* Lists on the command line: ranges, repeats, decimals, and every way to write one wrongly. */
#include "list.h"

#include <stdlib.h>
#include <string.h>

#include "testing.h"

static const list_rule ranks = {0, 11, 16, false};
static const list_rule speeds = {1, 1000, 16, true};

static void expect(const char *text, list_rule rule, const int32_t *wanted, int32_t wanted_count)
{
    int32_t *values, count;
    char message[160] = "";
    assert_true(list_parse(text, rule, &values, &count, message, sizeof message));
    assert_int_equal(count, wanted_count);
    assert_memory_equal(values, wanted, (size_t)count * sizeof *wanted);
    free(values);
}

static void expect_refused(const char *text, list_rule rule, const char *part)
{
    int32_t *values, count;
    char message[160] = "";
    assert_false(list_parse(text, rule, &values, &count, message, sizeof message));
    assert_null(values);
    assert_int_equal(count, 0);
    assert_non_null(strstr(message, part));
}

static void test_ranges_and_repeats(void **state)
{
    (void)state;
    expect("5", ranks, (const int32_t[]){5}, 1);
    expect("0,3,8-11", ranks, (const int32_t[]){0, 3, 8, 9, 10, 11}, 6);
    expect("9x3,8", ranks, (const int32_t[]){9, 9, 9, 8}, 4);
    expect("7-7,0", ranks, (const int32_t[]){7, 0}, 2);
}

static void test_decimals_keep_their_proportion(void **state)
{
    (void)state;
    expect("1,0.5", speeds, (const int32_t[]){2, 1}, 2);
    expect("0.1,0.2,0.3", speeds, (const int32_t[]){1, 2, 3}, 3);
    expect("1.5x2,2", speeds, (const int32_t[]){3, 3, 4}, 3);
    expect("4,8", speeds, (const int32_t[]){4, 8}, 2);
    expect("1.00", speeds, (const int32_t[]){1}, 1);
    /* 3000 : 1500 does not fit below 1000 as it stands; the proportion does */
    expect("3000,1500", speeds, (const int32_t[]){2, 1}, 2);
    /* 12347 : 6173 has no smaller whole numbers: the nearest with 1000 as the largest */
    expect("12347,6173", speeds, (const int32_t[]){1000, 500}, 2);
}

static void test_refused(void **state)
{
    (void)state;
    expect_refused("", ranks, "expected numbers");
    expect_refused(",", ranks, "expected numbers");
    expect_refused("1,", ranks, "expected numbers");
    expect_refused("1;2", ranks, "expected numbers");
    expect_refused(" 1", ranks, "expected numbers");
    expect_refused("-1", ranks, "expected numbers");
    expect_refused("1.5", ranks, "expected numbers");
    expect_refused("3-1", ranks, "greater");
    expect_refused("3x0", ranks, "at least 1");
    expect_refused("1x17", ranks, "too long");
    expect_refused("0-99999999999", ranks, "too long");
    expect_refused("12", ranks, "entry 0 is 12; expected a whole number from 0 to 11");
    expect_refused("99999999999999999999999", ranks, "expected numbers");
    expect_refused("0,1", speeds, "entry 0 is too small");
    expect_refused("0.00001,1000", speeds, "entry 0 is too small");
    expect_refused("0.5-2", speeds, "range");
    expect_refused("1-2", speeds, "without exponents or ranges");
    expect_refused("1e3", speeds, "without exponents or ranges");
    expect_refused("1.2.3", speeds, "expected plain numbers");
    expect_refused("0.0000000001", speeds, "expected plain numbers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges_and_repeats),
        cmocka_unit_test(test_decimals_keep_their_proportion),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
