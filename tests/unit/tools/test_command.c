/* Option tables: every kind of value, every way to get it wrong, and what is left of argv. */
#include "command.h"

#include <string.h>

#include "testing.h"

typedef struct values {
    bool flag;
    int64_t whole;
    double real;
    int choice;
    const char *text;
} values;

static const option_row rows[] = {
    {"flag", 'f', OPTION_FLAG, NULL, offsetof(values, flag), 0, 0, "A flag"},
    {"whole", 0, OPTION_INTEGER, "N", offsetof(values, whole), 1, 10, "A number"},
    {"real", 0, OPTION_NUMBER, "X", offsetof(values, real), 0.5, 2.0, "A number"},
    {"choice", 0, OPTION_CHOICE, "red|green|blue", offsetof(values, choice), 0, 0, "A word"},
    {"output", 'o', OPTION_FILE, "FILE", offsetof(values, text), 0, 0, "A file"},
    ROW_END,
};
static const command sample = {.name = "sample",
                               .summary = "Sample",
                               .operands = "IN",
                               .least_operands = 1,
                               .most_operands = 2,
                               .text = "Text.",
                               .options = rows};

/* Parses a command line given word by word, ended by NULL; getopt reorders argv, so the words are copied. */
static int parse(values *out, int *count, char ***operands, const char *const *given)
{
    static char words[16][64];
    static char *argv[17];
    int argc = 0;
    for (; given[argc] != NULL; argc++) {
        (void)snprintf(words[argc], sizeof words[argc], "%s", given[argc]);
        argv[argc] = words[argc];
    }
    argv[argc] = NULL;
    *out = (values){.choice = -1};
    return options_parse(&sample, argc, argv, out, operands, count);
}

static void test_values(void **state)
{
    values out;
    char **operands;
    int count;
    (void)state;
    const char *const argv[] = {"sample", "--whole=7", "in", "--real",   "1.5",   "-f",
                                "-o",     "out",       "-",  "--choice", "green", NULL};
    assert_int_equal(parse(&out, &count, &operands, argv), PARSED);
    assert_int_equal(out.whole, 7);
    assert_true(out.real == 1.5);
    assert_true(out.flag);
    assert_int_equal(out.choice, 1);
    assert_string_equal(out.text, "out");
    assert_int_equal(count, 2);
    assert_string_equal(operands[0], "in");
    assert_string_equal(operands[1], "-");
}

static void test_absent_options_keep_their_preset(void **state)
{
    values out;
    char **operands;
    int count;
    (void)state;
    const char *const argv[] = {"sample", "--", "--whole", NULL};
    assert_int_equal(parse(&out, &count, &operands, argv), PARSED);
    assert_int_equal(out.choice, -1);
    assert_int_equal(out.whole, 0);
    assert_string_equal(operands[0], "--whole");
}

static void expect_refused(const char *first, const char *second)
{
    values out;
    char **operands;
    int count;
    const char *const argv[] = {"sample", "in", first, second, NULL};
    assert_int_equal(parse(&out, &count, &operands, argv), EXIT_BAD);
}

static void test_refused(void **state)
{
    (void)state;
    expect_refused("--whole", "0");
    expect_refused("--whole", "11");
    expect_refused("--whole", "3x");
    expect_refused("--whole", "");
    expect_refused("--whole=99999999999999999999", NULL);
    expect_refused("--real", "nan");
    expect_refused("--real", "2.5");
    expect_refused("--choice", "gree");
    expect_refused("--choice", "red|green");
    expect_refused("--output", "");
    expect_refused("--whole", NULL);
    expect_refused("--flag=1", NULL);
    expect_refused("--fla", NULL); /* no abbreviations */
    expect_refused("--who", "3");
    expect_refused("--who=3", NULL);
    expect_refused("--real=1.5", "--real=1.5"); /* one would be lost */
    expect_refused("--nothing", NULL);
    expect_refused("-x", NULL);
    expect_refused("second", "third");
}

static void test_operand_missing(void **state)
{
    values out;
    char **operands;
    int count;
    (void)state;
    const char *const argv[] = {"sample", "--flag", NULL};
    assert_int_equal(parse(&out, &count, &operands, argv), EXIT_BAD);
}

static void test_nearest_name(void **state)
{
    static const char *const names[] = {"plan", "inspect", "verify"};
    (void)state;
    assert_string_equal(nearest_name("pln", names, 3), "plan");
    assert_string_equal(nearest_name("inspekt", names, 3), "inspect");
    assert_string_equal(nearest_name("verfiy", names, 3), "verify");
    assert_null(nearest_name("zzz", names, 3));
    assert_null(nearest_name("", names, 3));
}

static void test_choice_word(void **state)
{
    char word[16];
    (void)state;
    assert_string_equal(choice_word(&rows[3], 0, word, sizeof word), "red");
    assert_string_equal(choice_word(&rows[3], 2, word, sizeof word), "blue");
    assert_null(choice_word(&rows[3], 3, word, sizeof word));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),       cmocka_unit_test(test_absent_options_keep_their_preset),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_operand_missing),
        cmocka_unit_test(test_nearest_name), cmocka_unit_test(test_choice_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
