/* Loads: every format gives the same load, every rule has a file that breaks it, windows are folded without
 * loss. */
#include "unit/tools/io/files.h"

#include "io/load.h"

static const int32_t six[6] = {1, 2, 3, 4, 5, 6};

static eplb_status read_windows(const char *path, io_load *load, io_error *error)
{
    const io_load_options options = {.max_bytes = 1 << 20};
    return io_load_read(path, &options, load, error);
}

static void assert_counts(const char *path, int32_t windows, int32_t layers, int32_t experts,
                          const int64_t *counts)
{
    io_load load;
    io_error error = {0};
    if (read_windows(path, &load, &error) != EPLB_OK)
        fail_msg("%s", error.text);
    assert_int_equal(eplb_load_num_windows(load.load), windows);
    assert_int_equal(eplb_load_num_layers(load.load), layers);
    assert_int_equal(eplb_load_num_experts(load.load), experts);
    for (int32_t t = 0; t < windows; t++)
        for (int32_t l = 0; l < layers; l++)
            for (int32_t e = 0; e < experts; e++)
                assert_int_equal(eplb_load_at(load.load, t, l, e), *counts++);
    io_load_clear(&load);
}

static void assert_refused(const char *path, eplb_status status, const char *part, const char *other)
{
    io_load load;
    io_error error = {0};
    assert_int_equal(read_windows(path, &load, &error), status);
    assert_int_equal(error.status, status);
    assert_null(load.load);
    assert_mentions(error.text, part);
    assert_mentions(error.text, other);
    assert_mentions(error.text, path);
}

static void test_npy_shapes(void **state)
{
    (void)state;
    const int64_t counts[6] = {1, 2, 3, 4, 5, 6};
    const int64_t matrix[2] = {2, 3}, windows[3] = {3, 1, 2}, layer[1] = {6};
    assert_counts(file_with_array("a", NPY_SIGNED, 4, 2, matrix, six, 6), 1, 2, 3, counts);
    assert_counts(file_with_array("a", NPY_SIGNED, 4, 3, windows, six, 6), 3, 1, 2, counts);
    assert_counts(file_with_array("a", NPY_SIGNED, 4, 1, layer, six, 6), 1, 1, 6, counts);
}

static void test_npy_types(void **state)
{
    (void)state;
    const int64_t shape[2] = {1, 2}, counts[2] = {1, 200};
    const uint8_t u8[] = {1, 200};
    const uint16_t u16[] = {1, 200};
    const int16_t i16[] = {1, 200};
    const uint32_t u32[] = {1, 200};
    const int64_t i64[] = {1, 200};
    const uint64_t u64[] = {1, 200};
    const uint16_t f16[] = {0x3c00, 0x5a40};
    const float f32[] = {1, 200};
    const double f64[] = {1, 200};
    assert_counts(file_with_array("a", NPY_UNSIGNED, 1, 2, shape, u8, 2), 1, 1, 2, counts);
    assert_counts(file_with_array("a", NPY_UNSIGNED, 2, 2, shape, u16, 2), 1, 1, 2, counts);
    assert_counts(file_with_array("a", NPY_SIGNED, 2, 2, shape, i16, 2), 1, 1, 2, counts);
    assert_counts(file_with_array("a", NPY_UNSIGNED, 4, 2, shape, u32, 2), 1, 1, 2, counts);
    assert_counts(file_with_array("a", NPY_SIGNED, 8, 2, shape, i64, 2), 1, 1, 2, counts);
    assert_counts(file_with_array("a", NPY_UNSIGNED, 8, 2, shape, u64, 2), 1, 1, 2, counts);
    assert_counts(file_with_array("a", NPY_FLOAT, 2, 2, shape, f16, 2), 1, 1, 2, counts);
    assert_counts(file_with_array("a", NPY_FLOAT, 4, 2, shape, f32, 2), 1, 1, 2, counts);
    assert_counts(file_with_array("a", NPY_FLOAT, 8, 2, shape, f64, 2), 1, 1, 2, counts);
}

/* Replaces the first occurrence of `from` in a good .npy file by `to`, of the same length. */
static const char *patched(const char *from, const char *to)
{
    const int64_t shape[2] = {2, 3};
    const char *path = file_with_array("a", NPY_SIGNED, 4, 2, shape, six, 6);
    FILE *file = fopen(path, "r+b");
    char bytes[256];
    size_t count = fread(bytes, 1, sizeof bytes, file), length = strlen(from);
    assert_int_equal(strlen(to), length);
    for (size_t i = 0; i + length <= count; i++)
        if (memcmp(bytes + i, from, length) == 0) {
            (void)fseek(file, (long)i, SEEK_SET);
            (void)fwrite(to, 1, length, file);
            break;
        }
    (void)fclose(file);
    return path;
}

static void test_npy_order(void **state)
{
    (void)state;
    const int64_t columns[6] = {1, 3, 5, 2, 4, 6};
    assert_counts(patched("False", "True "), 1, 2, 3, columns);
    const int64_t swapped[6] = {1 << 24, 2 << 24, 3 << 24, 4 << 24, 5 << 24, 6 << 24};
    assert_counts(patched("'<i4'", "'>i4'"), 1, 2, 3, swapped);
}

static void test_npy_headers(void **state)
{
    (void)state;
    assert_refused(patched("'<i4'", "'|O4'"), EPLB_ERROR_UNSUPPORTED, "pickle", "'|O4'");
    assert_refused(patched("'<i4'", "'<c4'"), EPLB_ERROR_UNSUPPORTED, "type '<c4'", "integers");
    assert_refused(patched("'<i4'", "'<f1'"), EPLB_ERROR_UNSUPPORTED, "type '<f1'", "floats");
    assert_refused(patched("'<i4'", "[   ]"), EPLB_ERROR_UNSUPPORTED, "structured", "plain");
    assert_refused(patched("NUMPY\001", "NUMPY\011"), EPLB_ERROR_UNSUPPORTED, "version 9.0", "byte 6");
    assert_refused(patched("shape", "shapf"), EPLB_ERROR_INVALID, "'shapf'", "fortran_order");
    assert_refused(patched("False", "Maybe"), EPLB_ERROR_INVALID, "True or False", "byte");
    assert_refused(patched("(2, 3)", "(2; 3)"), EPLB_ERROR_INVALID, "','", "dimension");
    assert_refused(patched("(2, 3)", "(-2,3)"), EPLB_ERROR_INVALID, "dimension", ">= 0");
    assert_refused(patched("(2, 3)", "(9, 3)"), EPLB_ERROR_INVALID, "truncated",
                   "takes 108 bytes, the file has 24");
    assert_refused(patched("(2, 3)", "(1, 3)"), EPLB_ERROR_INVALID, "follow the array", "takes 12 bytes");
    assert_refused(patched("(2, 3)", "(0, 3)"), EPLB_ERROR_INVALID, "takes 0 bytes", "24");
    assert_refused(file_with("a", "\x93NUMPY\x02\x00\xff\xff\xff\x7f{", 13), EPLB_ERROR_INVALID,
                   "2147483647 bytes", "at most 65536");
    assert_refused(file_with("a", "\x93NUMPY\x01\x00\x50\x00{", 11), EPLB_ERROR_INVALID, "ends inside",
                   "byte 11");
}

static void test_npy_enormous(void **state)
{
    (void)state;
    const int64_t product[2] = {INT64_C(1) << 40, INT64_C(1) << 40}, promise[2] = {60000, 60000};
    assert_refused(file_with_array("a", NPY_SIGNED, 8, 2, product, six, 0), EPLB_ERROR_OVERFLOW,
                   "dimension 1", "2^63 bytes");
    assert_refused(file_with_array("a", NPY_SIGNED, 8, 2, promise, six, 0), EPLB_ERROR_INVALID, "truncated",
                   "28800000000");
}

static void test_npy_zero_sizes(void **state)
{
    (void)state;
    const int64_t layers[2] = {0, 3}, experts[2] = {3, 0}, windows[3] = {0, 2, 2}, deep[4] = {1, 1, 2, 3},
                  none[1] = {1};
    assert_refused(file_with_array("a", NPY_SIGNED, 4, 2, layers, six, 0), EPLB_ERROR_INVALID, "0 layers",
                   "at least 1");
    assert_refused(file_with_array("a", NPY_SIGNED, 4, 2, experts, six, 0), EPLB_ERROR_INVALID, "0 experts",
                   "at least 1");
    assert_refused(file_with_array("a", NPY_SIGNED, 4, 3, windows, six, 0), EPLB_ERROR_INVALID, "0 windows",
                   "at least 1");
    assert_refused(file_with_array("a", NPY_SIGNED, 4, 4, deep, six, 6), EPLB_ERROR_INVALID, "4 dimensions",
                   "[T, L, E]");
    assert_refused(file_with_array("a", NPY_SIGNED, 4, 0, none, six, 1), EPLB_ERROR_INVALID, "0 dimensions",
                   "[L, E]");
}

static void test_bad_values(void **state)
{
    (void)state;
    const int64_t shape[3] = {2, 1, 2};
    const int16_t negative[] = {1, 2, 3, -4};
    const float nan_value[] = {1, 2, 3, (float)(0.0 / 1.0)};
    float nan_items[4], infinite[4];
    memcpy(nan_items, nan_value, sizeof nan_items);
    const uint32_t nan_bits = 0x7fc00000u, infinite_bits = 0x7f800000u;
    memcpy(&nan_items[3], &nan_bits, 4);
    memcpy(infinite, nan_value, sizeof infinite);
    memcpy(&infinite[2], &infinite_bits, 4);
    const uint64_t large[] = {1, 2, UINT64_MAX, 4};
    const int64_t sum[] = {INT64_MAX, 0, 1, 0};
    assert_refused(file_with_array("a", NPY_SIGNED, 2, 3, shape, negative, 4), EPLB_ERROR_INVALID,
                   "window 1, layer 0, expert 1", "-4 is negative");
    assert_refused(file_with_array("a", NPY_FLOAT, 4, 3, shape, nan_items, 4), EPLB_ERROR_INVALID,
                   "window 1, layer 0, expert 1", "nan is not finite");
    assert_refused(file_with_array("a", NPY_FLOAT, 4, 3, shape, infinite, 4), EPLB_ERROR_INVALID,
                   "window 1, layer 0, expert 0", "inf is not finite");
    assert_refused(file_with_array("a", NPY_UNSIGNED, 8, 3, shape, large, 4), EPLB_ERROR_OVERFLOW,
                   "element [1, 0, 0]", "18446744073709551615");
    const io_load_options sum_only = {.max_windows = 1};
    io_load load;
    io_error error;
    assert_int_equal(
        io_load_read(file_with_array("a", NPY_SIGNED, 8, 3, shape, sum, 4), &sum_only, &load, &error),
        EPLB_ERROR_OVERFLOW);
    assert_mentions(error.text, "layer 0, expert 0");
}

static void test_json_shapes(void **state)
{
    (void)state;
    const int64_t counts[6] = {1, 2, 3, 4, 5, 6};
    assert_counts(file_with_text("a", " [[1,2,3],[4,5,6]]\n"), 1, 2, 3, counts);
    assert_counts(file_with_text("a", "[[[1,2]],[[3,4]],[[5,6]]]"), 3, 1, 2, counts);
    assert_counts(file_with_text("a", "[1,2,3,4,5,6]"), 1, 1, 6, counts);
    assert_counts(file_with_text("a", "{\"load\": [[1,2,3],[4,5,6]]}"), 1, 2, 3, counts);
    assert_counts(file_with_text(
                      "a", "{\"a\": {\"load\": [9]}, \"logical_count\": [[[1,2,3]],[[4,5,6]]], \"b\": null}"),
                  2, 1, 3, counts);
    assert_counts(file_with_text("a", "{\"load_history\": [{\"t\": [1], \"logical_expert_load\": [[1,2,3]]},"
                                      "{\"logical_expert_load\": [[4,5,6]], \"u\": {}}]}"),
                  2, 1, 3, counts);
    assert_counts(file_with_text("a", "\xef\xbb\xbf[[1,2,3],[4,5,6]]"), 1, 2, 3, counts);
}

static void test_json_refusals(void **state)
{
    (void)state;
    const struct {
        const char *text, *part, *other;
        eplb_status status;
    } cases[] = {
        {"[[1,-2]]", "layer 0, expert 1", "-2 is negative", EPLB_ERROR_INVALID},
        {"[[1,NaN]]", "line 1, column 7", "'NaN'", EPLB_ERROR_INVALID},
        {"[[1,\n9223372036854775808]]", "line 2", "9223372036854775808", EPLB_ERROR_OVERFLOW},
        {"[[1e999]]", "1e999", "64 bits", EPLB_ERROR_OVERFLOW},
        {"[[01]]", "'01'", "not a JSON value", EPLB_ERROR_INVALID},
        {"[[1,2],[3]]", "layer 1 has 1 experts", "2", EPLB_ERROR_INVALID},
        {"[[[1],[2]],[[3]]]", "window 1 has 1 layers", "2", EPLB_ERROR_INVALID},
        {"[[1],2]", "nested 1 deep", "nested 2 deep", EPLB_ERROR_INVALID},
        {"[[[[1]]]]", "nested 4 deep", "[T, L, E]", EPLB_ERROR_INVALID},
        {"[]", "empty list", "line 1", EPLB_ERROR_INVALID},
        {"[[],[1]]", "empty list", "line 1", EPLB_ERROR_INVALID},
        {"[[1],[]]", "layer 1 has 0 experts", "1", EPLB_ERROR_INVALID},
        {"[[1,2", "too early", "column 5", EPLB_ERROR_INVALID},
        {"[[1]] 2", "follows the document", "line 1", EPLB_ERROR_INVALID},
        {"[[1],]", "is not a JSON value", "line 1", EPLB_ERROR_INVALID},
        {"[[\"1\"]]", "only numbers", "line 1", EPLB_ERROR_INVALID},
        {"{\"a\": 1}", "no load", "logical_count", EPLB_ERROR_INVALID},
        {"{\"load\": [1], \"counts\": [1]}", "second load", "'counts'", EPLB_ERROR_INVALID},
        {"{\"load\": 1}", "must be a list", "line 1", EPLB_ERROR_INVALID},
        {"{\"load_history\": [{\"a\": 1}]}", "lacks", "logical_expert_load", EPLB_ERROR_INVALID},
        {"{\"a\\x\": 1}", "escape", "line 1", EPLB_ERROR_INVALID},
        {"{\"a\": \"\n\"}", "control", "line 1", EPLB_ERROR_INVALID},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = file_with_text("a", cases[i].text);
        assert_refused(path, cases[i].status, cases[i].part, cases[i].other);
    }
}

static void test_json_depth(void **state)
{
    (void)state;
    char text[4001];
    memset(text, '[', 4000);
    text[4000] = '\0';
    assert_refused(file_with_text("a", text), EPLB_ERROR_INVALID, "nested more than 64 deep", "line 1");
}

static void test_csv(void **state)
{
    (void)state;
    const int64_t counts[6] = {1, 2, 3, 4, 5, 6}, eight[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    assert_counts(file_with_text("a", "1,2,3\n4,5,6\n"), 1, 2, 3, counts);
    assert_counts(file_with_text("a", "1,2,3\n4,5,6"), 1, 2, 3, counts);
    assert_counts(file_with_text("a", "a,b,c\r\n1, 2,3\r\n4 ,5,6\r\n"), 1, 2, 3, counts);
    assert_counts(file_with_text("a", "1;2;3\n4;5;6\n"), 1, 2, 3, counts);
    assert_counts(file_with_text("a", "1\t2\t3\n4\t5\t6\n"), 1, 2, 3, counts);
    assert_counts(file_with_text("a", "# note\n1,2\n3,4\n\n\n5,6\n7,8\n\n"), 2, 2, 2, eight);
    assert_counts(file_with_text("a", "window,layer,a,b\n0,3,1,2\n0,4,3,4\n1,3,5,6\n1,4,7,8\n"), 2, 2, 2,
                  eight);
    assert_counts(file_with_text("a", "layer,a,b\n0,1,2\n1,3,4\n0,5,6\n1,7,8\n"), 2, 2, 2, eight);
    assert_counts(file_with_text("a", ",0,1\n0,1,2\n1,3,4\n0,5,6\n1,7,8\n"), 2, 2, 2, eight);
    assert_counts(file_with_text("a", "\"layer\",\"a\"\n0,1\n1,2\n"), 1, 2, 1, counts);
}

static void test_csv_refusals(void **state)
{
    (void)state;
    assert_refused(file_with_text("a", "1,2\n3,x\n"), EPLB_ERROR_INVALID, "line 2, field 2",
                   "'x' is not a number");
    assert_refused(file_with_text("a", "1,2\n3\n"), EPLB_ERROR_INVALID, "layer 1 has 1 experts", "2");
    assert_refused(file_with_text("a", "1,,2\n3,4,5\n"), EPLB_ERROR_INVALID, "line 1, field 2",
                   "'' is not a number");
    assert_refused(file_with_text("a", "1,2\n3,,\n"), EPLB_ERROR_INVALID, "line 2, field 2",
                   "'' is not a number");
    assert_refused(file_with_text("a", "1,-2\n"), EPLB_ERROR_INVALID, "expert 1", "-2 is negative");
    assert_refused(file_with_text("a", "1,NaN\n"), EPLB_ERROR_INVALID, "expert 1", "nan is not finite");
    assert_refused(file_with_text("a", "1,9223372036854775808\n"), EPLB_ERROR_OVERFLOW, "line 1, field 2",
                   "64 bits");
    assert_refused(file_with_text("a", "layer,a\n0,1\n2,1\n"), EPLB_ERROR_INVALID, "line 3: layer 2",
                   "layer 1");
    assert_refused(file_with_text("a", "window,layer,a\n0,0,1\n2,0,1\n"), EPLB_ERROR_INVALID, "window 2",
                   "window 0");
    assert_refused(file_with_text("a", "a,b\n1,2,3\n"), EPLB_ERROR_INVALID, "3 fields", "the header 2");
    assert_refused(file_with_text("a", "a,b\n"), EPLB_ERROR_INVALID, "no row", "CSV");
    assert_refused(file_with("a", "1\0002\n", 4), EPLB_ERROR_INVALID, "byte 0x00", "line 1");
}

static void test_no_file(void **state)
{
    (void)state;
    assert_refused(file_with_text("a", ""), EPLB_ERROR_INVALID, "is empty", "");
    assert_refused(file_path("missing"), EPLB_ERROR_SYSTEM, "No such file", "open");
    assert_refused(files_folder, EPLB_ERROR_SYSTEM, "is a folder", "file is wanted");
    io_load load;
    assert_int_equal(io_load_read("/dev/null", NULL, &load, NULL), EPLB_ERROR_INVALID);
}

/* [97, 2, 3] windows of growing counts, one of them beyond int32, folded under every bound: totals never
 * change. */
static void test_windows_are_folded_exactly(void **state)
{
    (void)state;
    enum { WINDOWS = 97, CELLS = 6 };
    static int64_t counts[WINDOWS * CELLS];
    int64_t total = 0;
    for (int64_t i = 0; i < WINDOWS * CELLS; i++) {
        counts[i] = i * i % 1009 + (i == 400 ? INT64_C(1) << 33 : 0) + (i > 500 ? INT32_MAX - 1000 : 0);
        total += counts[i];
    }
    const int64_t shape[3] = {WINDOWS, 2, 3};
    const char *path = file_with_array("a", NPY_SIGNED, 8, 3, shape, counts, WINDOWS * CELLS);
    for (int32_t most = 0; most <= 100; most++) {
        io_load_options options = {.max_windows = most,
                                   .max_bytes = most % 2 == 0 ? 1 << 20 : (size_t)most * 24};
        io_load load;
        io_error error = {0};
        assert_int_equal(io_load_read(path, &options, &load, &error), EPLB_OK);
        assert_int_equal(eplb_load_total(load.load, 0) + eplb_load_total(load.load, 1), total);
        assert_int_equal(load.num_windows, WINDOWS);
        int32_t kept = eplb_load_num_windows(load.load);
        assert_true(kept >= 1 && (most == 0 || kept <= most));
        if (most == 0 || most >= WINDOWS + 1)
            assert_true(kept == WINDOWS || most % 2 == 1);
        assert_true((load.note[0] != '\0') == (kept < WINDOWS && most != 1));
        if (load.windows_per_block > 1) { /* block b is the sum of its windows */
            int64_t sum = 0;
            for (int64_t w = 0; w < load.windows_per_block && w < WINDOWS; w++)
                sum += counts[w * CELLS + 4];
            assert_int_equal(eplb_load_at(load.load, 0, 1, 1), sum);
        }
        io_load_clear(&load);
    }
}

static void test_mixed_numbers(void **state)
{
    (void)state;
    io_load load;
    io_error error = {0};
    const char *path = file_with_text("a", "[[[1, 2]], [[0.5, 3]], [[4, 5]]]");
    assert_int_equal(read_windows(path, &load, &error), EPLB_OK);
    assert_int_equal(eplb_load_num_windows(load.load), 3);
    assert_true(eplb_load_scale_log2(load.load) > 0);
    int64_t unit = eplb_load_at(load.load, 0, 0, 0);
    assert_int_equal(eplb_load_at(load.load, 1, 0, 0) * 2, unit);
    assert_int_equal(eplb_load_at(load.load, 2, 0, 1), unit * 5);
    io_load_clear(&load);
}

static void test_member_of_no_archive(void **state)
{
    (void)state;
    const io_load_options options = {.member = "counts"};
    io_load load;
    io_error error;
    assert_int_equal(io_load_read(file_with_text("a", "[[1]]"), &options, &load, &error), EPLB_ERROR_INVALID);
    assert_mentions(error.text, "not an .npz archive");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_npy_shapes),    cmocka_unit_test(test_npy_types),
        cmocka_unit_test(test_npy_order),     cmocka_unit_test(test_npy_headers),
        cmocka_unit_test(test_npy_enormous),  cmocka_unit_test(test_npy_zero_sizes),
        cmocka_unit_test(test_bad_values),    cmocka_unit_test(test_json_shapes),
        cmocka_unit_test(test_json_refusals), cmocka_unit_test(test_json_depth),
        cmocka_unit_test(test_csv),           cmocka_unit_test(test_csv_refusals),
        cmocka_unit_test(test_no_file),       cmocka_unit_test(test_windows_are_folded_exactly),
        cmocka_unit_test(test_mixed_numbers), cmocka_unit_test(test_member_of_no_archive),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
