/* What a terminal would obey is written out; letters stay. */
#include "visible_text.h"

#include "testing.h"

static void expect(const char *text, const char *wanted)
{
    char out[64];
    assert_string_equal(visible_text(text, out, sizeof out), wanted);
}

static void test_letters_stay(void **state)
{
    (void)state;
    expect("", "");
    expect("plan.json", "plan.json");
    expect("Gr\xc3\xb6\xc3\x9f"
           "e \xe6\xa8\xa1\xe5\x9e\x8b \xf0\x9f\x98\x80",
           "Gr\xc3\xb6\xc3\x9f"
           "e \xe6\xa8\xa1\xe5\x9e\x8b \xf0\x9f\x98\x80");
}

static void test_controls_are_written_out(void **state)
{
    (void)state;
    expect("\x1b[31mred\x7f", "\\x1b[31mred\\x7f");
    expect("two\nlines\tand\r", "two\\nlines\\tand\\x0d");
    expect("\xc2\x9b"
           "31m",
           "\\xc2\\x9b31m"); /* U+009B, the one-character form of ESC [ */
    expect("\xc2\xa0", "\xc2\xa0");
}

static void test_broken_utf8(void **state)
{
    (void)state;
    expect("\x9b", "\\x9b");
    expect("\xc3", "\\xc3");
    expect("\xe6\xa8", "\\xe6\\xa8");
    expect("\xc0\x9b", "\\xc0\\x9b"); /* overlong */
    expect("\xff"
           "a",
           "\\xffa");
}

static void test_cut_between_characters(void **state)
{
    char out[4];
    (void)state;
    assert_string_equal(visible_text("abcdef", out, sizeof out), "abc");
    assert_string_equal(visible_text("a\xc3\xb6\xc3\xb6", out, sizeof out), "a\xc3\xb6");
    assert_string_equal(visible_text("a\x1b", out, sizeof out), "a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_letters_stay),
        cmocka_unit_test(test_controls_are_written_out),
        cmocka_unit_test(test_broken_utf8),
        cmocka_unit_test(test_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
