/* JSON out: layout, numbers that read back as the same bits, and documents that jansson takes. */
#include "unit/tools/io/files.h"

#include <jansson.h>
#include <math.h>

#include "io/json_writer.h"

static io_output *output;
static json_writer json;

static void begin(void)
{
    io_error error;
    assert_int_equal(io_output_open(&output, file_path("json"), &error), EPLB_OK);
    json_begin_document(&json, output);
}

static char *end(void)
{
    io_error error;
    json_end_document(&json);
    assert_int_equal(io_output_close(output, &error), EPLB_OK);
    return file_text(file_path("json"));
}

static void test_layout(void **state)
{
    (void)state;
    const int32_t matrix[4] = {1, -2, 3, 4};
    begin();
    json_begin_object(&json);
    json_key_string(&json, "name", "a \"b\" \\ \n \x01 \xc3\xa9");
    json_key_bool(&json, "yes", true);
    json_key_double(&json, "none", (double)NAN);
    json_key(&json, "rows");
    json_int32_matrix(&json, matrix, 2, 2);
    json_key(&json, "empty");
    json_begin_array(&json);
    json_end_array(&json);
    json_key(&json, "object");
    json_begin_object(&json);
    json_end_object(&json);
    json_key_double(&json, "two", 2.0);
    json_end_object(&json);
    char *text = end();
    assert_string_equal(text,
                        "{\n  \"name\": \"a \\\"b\\\" \\\\ \\n \\u0001 \xc3\xa9\",\n  \"yes\": true,\n"
                        "  \"none\": null,\n  \"rows\": [\n    [1, -2],\n    [3, 4]\n  ],\n  \"empty\": [],\n"
                        "  \"object\": {},\n  \"two\": 2.0\n}\n");
    free(text);
}

static void test_numbers_round_trip(void **state)
{
    (void)state;
    const double doubles[] = {
        0.1, 1.0 / 3.0, 5e-324, 1.7976931348623157e308, 2.0, 1e22, 123456789012345680.0, -0.5, 1e-5};
    const int64_t integers[] = {0, -1, INT64_MAX, INT64_MIN, 1000000000000000000};
    begin();
    json_begin_object(&json);
    json_key(&json, "doubles");
    json_double_row(&json, doubles, 9);
    json_key(&json, "integers");
    json_int64_row(&json, integers, 5);
    json_key_double(&json, "nan", (double)NAN);
    json_end_object(&json);
    char *text = end();
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    for (size_t i = 0; i < 9; i++) {
        const json_t *item = json_array_get(json_object_get(root, "doubles"), i);
        assert_true(json_is_real(item)); /* never an integer: one type per field */
        assert_true(json_real_value(item) == doubles[i]);
    }
    for (size_t i = 0; i < 5; i++)
        assert_true(json_integer_value(json_array_get(json_object_get(root, "integers"), i)) == integers[i]);
    assert_true(json_is_null(json_object_get(root, "nan")));
    json_decref(root);
    free(text);
}

static void test_shortest_digits(void **state)
{
    (void)state;
    const double doubles[] = {0.1, 1.0096875, 1e300};
    begin();
    json_double_row(&json, doubles, 3);
    char *text = end();
    assert_string_equal(text, "[0.1, 1.0096875, 1e+300]\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_numbers_round_trip),
        cmocka_unit_test(test_shortest_digits),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
