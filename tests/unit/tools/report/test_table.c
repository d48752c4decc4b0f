/* Tables, to the character. */
#include "report/table.h"

#include "testing.h"

#include "capture.h"

static void test_table(void **state)
{
    static const char *const heads[] = {"layer", "<what", "gap", NULL};
    char text[512] = "";
    (void)state;
    table *rows = table_create(heads);
    table_cell(rows, "%d", 7);
    table_cell(rows, "a longer word");
    table_cell(rows, "%.2f", 1.5);
    table_cell(rows, "%d", 1234567);
    table_cell(rows, "b");
    table_cell(rows, "%.2f", 10.25);
    CAPTURE(text, sizeof text, assert_true(table_print(out, rows, 1)));
    assert_string_equal(text, "   layer  what             gap\n"
                              "       7  a longer word   1.50\n"
                              " 1234567  b              10.25\n");
    table_destroy(rows);
    table_destroy(NULL);
}

static void test_table_ends_left_column_without_blanks(void **state)
{
    static const char *const heads[] = {"n", "<text", NULL};
    char text[128] = "";
    (void)state;
    table *rows = table_create(heads);
    table_cell(rows, "1");
    table_cell(rows, "x");
    CAPTURE(text, sizeof text, assert_true(table_print(out, rows, 0)));
    assert_string_equal(text, "n  text\n1  x\n");
    table_destroy(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_table_ends_left_column_without_blanks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
