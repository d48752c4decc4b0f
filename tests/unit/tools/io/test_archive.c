/* Archives, token routing and the writers of loads: what is written is read back, damage is told. */
#include "unit/tools/io/files.h"

#include <zip.h>

#include "io/load.h"
#include "io/npz_writer.h"
#include "io/topk.h"

static const int64_t windows[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static void write_load(const char *path, int32_t num_windows, eplb_element element, const void *counts)
{
    io_load_writer *writer;
    io_error error = {0};
    if (io_load_writer_open(&writer, path, num_windows, 2, 3, element, &error) != EPLB_OK)
        fail_msg("%s", error.text);
    for (int32_t t = 0; t < (num_windows == 0 ? 1 : num_windows); t++)
        io_load_writer_window(writer, (const int64_t *)counts + (size_t)t * 6);
    if (io_load_writer_close(writer, &error) != EPLB_OK)
        fail_msg("%s", error.text);
}

static void test_loads_round_trip(void **state)
{
    (void)state;
    static const char *const names[] = {"a.npy", "a.npz", "a.json", "a.csv"};
    int64_t wide[12];
    double real[12];
    for (int i = 0; i < 12; i++) {
        wide[i] = (INT64_C(1) << 40) + i;
        real[i] = i + 0.1;
    }
    for (size_t i = 0; i < 4; i++)
        for (int32_t count = 0; count <= 2; count += 2) {
            io_load load;
            io_error error = {0};
            const char *path = file_path(names[i]);
            write_load(path, count, EPLB_ELEMENT_INT64, windows);
            assert_int_equal(io_load_read(path, NULL, &load, &error), EPLB_OK);
            assert_int_equal(eplb_load_num_windows(load.load), count == 0 ? 1 : 2);
            assert_int_equal(eplb_load_at(load.load, 0, 1, 2), 6);
            assert_int_equal(eplb_load_total(load.load, 1), count == 0 ? 15 : 48);
            io_load_clear(&load);
            write_load(path, count, EPLB_ELEMENT_INT64, wide);
            assert_int_equal(io_load_read(path, NULL, &load, &error), EPLB_OK);
            assert_int_equal(eplb_load_at(load.load, 0, 1, 2), wide[5]);
            io_load_clear(&load);
            write_load(path, count, EPLB_ELEMENT_FLOAT64, real);
            assert_int_equal(io_load_read(path, NULL, &load, &error), EPLB_OK);
            assert_true(eplb_load_scale_log2(load.load) != 0);
            io_load_clear(&load);
        }
}

static void test_same_bytes_each_time(void **state)
{
    (void)state;
    write_load(file_path("a.npz"), 2, EPLB_ELEMENT_INT64, windows);
    write_load(file_path("b.npz"), 2, EPLB_ELEMENT_INT64, windows);
    char *a = file_text(file_path("a.npz")), *b = file_text(file_path("b.npz"));
    assert_memory_equal(a, b, 600);
    free(a);
    free(b);
}

static void test_too_few_windows(void **state)
{
    (void)state;
    io_load_writer *writer;
    io_error error;
    assert_int_equal(io_load_writer_open(&writer, file_path("few.npy"), 2, 2, 3, EPLB_ELEMENT_INT64, &error),
                     EPLB_OK);
    io_load_writer_window(writer, windows);
    assert_int_equal(io_load_writer_close(writer, &error), EPLB_ERROR_INTERNAL);
    assert_int_not_equal(access(file_path("few.npy"), F_OK), 0);
}

/* An archive of one member, stored or deflated. */
static const char *archive_with(const char *member, const void *bytes, size_t size, int method)
{
    const char *path = file_path("z.npz");
    int code;
    (void)unlink(path);
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &code);
    assert_non_null(zip);
    zip_source_t *source = zip_source_buffer(zip, bytes, size, 0);
    zip_int64_t index = zip_file_add(zip, member, source, 0);
    assert_true(index >= 0);
    assert_int_equal(zip_set_file_compression(zip, (zip_uint64_t)index, method, 0), 0);
    assert_int_equal(zip_close(zip), 0);
    return path;
}

static size_t array_bytes(unsigned char *out, int64_t rows)
{
    const int64_t shape[2] = {rows, 3};
    size_t header = npy_header_write(NPY_SIGNED, 8, 2, shape, out);
    memcpy(out + header, windows, (size_t)rows * 24);
    return header + (size_t)rows * 24;
}

/* What a shape says and an array does not hold is a defect that closing reports. */
static void test_wrong_counts(void **state)
{
    (void)state;
    const int64_t shape[1] = {3};
    for (size_t count = 2; count <= 4; count++) {
        io_output *output;
        npz_writer writer;
        io_error error;
        assert_int_equal(io_output_open(&output, file_path("counts.npz"), &error), EPLB_OK);
        npz_writer_init(&writer, output);
        npz_writer_begin(&writer, "counts", NPY_SIGNED, 8, 1, shape);
        npz_writer_append(&writer, windows, count);
        npz_writer_finish(&writer);
        assert_int_equal(io_output_close(output, &error), count == 3 ? EPLB_OK : EPLB_ERROR_INTERNAL);
    }
}

static void test_members(void **state)
{
    (void)state;
    unsigned char bytes[512];
    size_t size = array_bytes(bytes, 4);
    io_load load;
    io_error error;
    const int methods[] = {ZIP_CM_STORE, ZIP_CM_DEFLATE};
    for (int i = 0; i < 2; i++) {
        const char *path = archive_with("anything.npy", bytes, size, methods[i]);
        assert_int_equal(io_load_read(path, NULL, &load, &error), EPLB_OK);
        assert_int_equal(eplb_load_at(load.load, 0, 3, 2), 12);
        io_load_clear(&load);
    }
    const char *path = file_path("z.npz");
    const io_load_options other = {.member = "counts"};
    assert_int_equal(io_load_read(path, &other, &load, &error), EPLB_ERROR_INVALID);
    assert_mentions(error.text, "no array named 'counts'");
    assert_mentions(error.text, "anything");
    path = archive_with("a.txt", bytes, size, ZIP_CM_STORE);
    assert_int_equal(io_load_read(path, NULL, &load, &error), EPLB_ERROR_INVALID);
    assert_mentions(error.text, "no .npy array");
    path = archive_with("counts.npy", bytes, size - 4, ZIP_CM_DEFLATE);
    assert_int_equal(io_load_read(path, NULL, &load, &error), EPLB_ERROR_INVALID);
    assert_mentions(error.text, "z.npz[counts]: truncated");
}

static void test_damage(void **state)
{
    (void)state;
    unsigned char bytes[512];
    size_t size = array_bytes(bytes, 4);
    io_load load;
    io_error error;
    const char *path = archive_with("counts.npy", bytes, size, ZIP_CM_STORE);
    char *text = file_text(path);
    FILE *file = fopen(path, "rb");
    (void)fseek(file, 0, SEEK_END);
    size_t length = (size_t)ftell(file);
    (void)fclose(file);
    text[170] = (char)(text[170] ^ 1); /* a bit of the counts: only the checksum can tell */
    path = file_with("damaged.npz", text, length);
    assert_int_equal(io_load_read(path, NULL, &load, &error), EPLB_ERROR_INVALID);
    assert_mentions(error.text, "damaged: CRC");
    path = file_with("short.npz", text, length - 20);
    assert_int_equal(io_load_read(path, NULL, &load, &error), EPLB_ERROR_INVALID);
    assert_mentions(error.text, "not a whole .npz archive");
    free(text);
}

/* Standard input that is a pipe: an archive must be kept, a plain array must not. */
static void test_pipes(void **state)
{
    (void)state;
    static const char *const names[] = {"a.npy", "a.npz", "a.json", "a.csv"};
    for (size_t i = 0; i < 4; i++) {
        const char *path = file_path(names[i]);
        write_load(path, 2, EPLB_ELEMENT_INT64, windows);
        int saved = dup(STDIN_FILENO), input[2];
        assert_int_equal(pipe(input), 0);
        static char all[4096];
        FILE *file = fopen(path, "rb");
        size_t size = fread(all, 1, sizeof all, file);
        (void)fclose(file);
        assert_int_equal(write(input[1], all, size), (ssize_t)size);
        (void)close(input[1]);
        assert_true(dup2(input[0], STDIN_FILENO) >= 0);
        io_load load;
        io_error error = {0};
        if (io_load_read("-", NULL, &load, &error) != EPLB_OK)
            fail_msg("%s: %s", names[i], error.text);
        assert_int_equal(eplb_load_total(load.load, 1), 48);
        io_load_clear(&load);
        (void)close(input[0]);
        assert_true(dup2(saved, STDIN_FILENO) >= 0);
        (void)close(saved);
    }
}

/* Token routing [tokens, layers, 2]; an .npz also has the scalars num_experts and, when > 0, num_groups. */
static const char *file_with_topk(const char *name, const int32_t *ids, int64_t tokens, int64_t layers,
                                  int64_t experts, int64_t groups)
{
    const int64_t shape[3] = {tokens, layers, 2};
    if (strstr(name, ".npz") == NULL)
        return file_with_array(name, NPY_SIGNED, 4, 3, shape, ids, (size_t)(tokens * layers * 2));
    io_output *output;
    npz_writer writer;
    io_error error = {0};
    const char *path = file_path(name);
    assert_int_equal(io_output_open(&output, path, &error), EPLB_OK);
    npz_writer_init(&writer, output);
    npz_writer_array(&writer, "topk", NPY_SIGNED, 4, 3, shape, ids);
    npz_writer_scalar(&writer, "num_experts", experts);
    if (groups > 0)
        npz_writer_scalar(&writer, "num_groups", groups);
    npz_writer_finish(&writer);
    assert_int_equal(io_output_close(output, &error), EPLB_OK);
    return path;
}

static void test_topk(void **state)
{
    (void)state;
    const int32_t ids[12] = {0, 1, 2, 2, 1, 0, 299, 1, 5, 5, 2, 0}; /* 3 tokens, 2 layers, 2 choices */
    static const char *const names[] = {"t.npz", "t.npy"};
    for (int i = 0; i < 2; i++) {
        io_error error = {0};
        const char *path = file_with_topk(names[i], ids, 3, 2, 300, 4);
        io_topk *topk;
        if (io_topk_open(&topk, path, i == 0 ? 0 : 300, &error) != EPLB_OK)
            fail_msg("%s", error.text);
        assert_int_equal(io_topk_num_tokens(topk), 3);
        assert_int_equal(io_topk_num_layers(topk), 2);
        assert_int_equal(io_topk_width(topk), 2);
        assert_int_equal(io_topk_num_experts(topk), 300);
        assert_int_equal(io_topk_num_groups(topk), i == 0 ? 4 : 0);
        int32_t got[12];
        int64_t read;
        assert_int_equal(io_topk_read(topk, 2, got, &read, &error), EPLB_OK);
        assert_int_equal(read, 2);
        assert_int_equal(io_topk_read(topk, 2, got + 8, &read, &error), EPLB_OK);
        assert_int_equal(read, 1);
        assert_memory_equal(got, ids, sizeof ids);
        assert_int_equal(io_topk_read(topk, 2, got, &read, &error), EPLB_OK);
        assert_int_equal(read, 0);
        io_topk_close(topk);
    }
}

static void test_topk_counts(void **state)
{
    (void)state;
    const int32_t ids[12] = {0, 1, 2, 2, 1, 0, -1, 1, 2, 2, 2, 0};
    const io_load_options options = {.topk = true, .tokens_per_window = 2, .num_experts = 3};
    io_load load;
    io_error error = {0};
    const char *path = file_with_topk("t.npy", ids, 3, 2, 3, 0);
    assert_int_equal(io_load_read(path, &options, &load, &error), EPLB_OK);
    assert_int_equal(eplb_load_num_windows(load.load), 2);
    const int64_t expected[2][2][3] = {{{2, 2, 0}, {0, 1, 2}}, {{0, 0, 2}, {1, 0, 1}}};
    for (int32_t t = 0; t < 2; t++)
        for (int32_t l = 0; l < 2; l++)
            for (int32_t e = 0; e < 3; e++)
                assert_int_equal(eplb_load_at(load.load, t, l, e), expected[t][l][e]);
    io_load_clear(&load);
}

static void test_topk_refusals(void **state)
{
    (void)state;
    const int32_t ids[4] = {0, 1, 2, 3};
    io_topk *topk;
    io_error error = {0};
    const char *path = file_with_topk("t.npy", ids, 2, 1, 4, 0);
    assert_int_equal(io_topk_open(&topk, path, 0, &error), EPLB_ERROR_INVALID);
    assert_mentions(error.text, "--experts");
    assert_int_equal(io_topk_open(&topk, path, 3, &error), EPLB_OK);
    int32_t got[4];
    int64_t read;
    assert_int_equal(io_topk_read(topk, 2, got, &read, &error), EPLB_ERROR_INVALID);
    assert_mentions(error.text, "token 1, layer 0, choice 1: expert 3");
    io_topk_close(topk);
    path = file_with_topk("t.npz", ids, 2, 1, 4, 0);
    assert_int_equal(io_topk_open(&topk, path, 5, &error), EPLB_ERROR_INVALID);
    assert_mentions(error.text, "the file says 4");
    io_load load;
    assert_int_equal(io_load_read(path, NULL, &load, &error), EPLB_ERROR_INVALID);
    assert_mentions(error.text, "--topk");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads_round_trip),
        cmocka_unit_test(test_same_bytes_each_time),
        cmocka_unit_test(test_too_few_windows),
        cmocka_unit_test(test_wrong_counts),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_pipes),
        cmocka_unit_test(test_topk),
        cmocka_unit_test(test_topk_counts),
        cmocka_unit_test(test_topk_refusals),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
