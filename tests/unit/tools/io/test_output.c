/* Output: whole or absent, links kept, every failed write told. */
#include "unit/tools/io/files.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>

/* A whole file in one call. */
static void write_text(const char *path, const char *text)
{
    io_output *output;
    io_error error;
    assert_int_equal(io_output_open(&output, path, &error), EPLB_OK);
    io_output_text(output, text);
    assert_int_equal(io_output_close(output, &error), EPLB_OK);
}

static void test_absent_until_closed(void **state)
{
    (void)state;
    io_output *output;
    io_error error;
    const char *path = file_path("out");
    assert_int_equal(io_output_open(&output, path, &error), EPLB_OK);
    io_output_text(output, "hello ");
    io_output_format(output, "%d", 7);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(io_output_close(output, &error), EPLB_OK);
    assert_file_text(path, "hello 7");
    assert_int_equal(files_count(), 1);
}

static void test_abandoned_leaves_the_old_file(void **state)
{
    (void)state;
    io_output *output;
    io_error error;
    const char *path = file_with_text("out", "old");
    assert_int_equal(io_output_open(&output, path, &error), EPLB_OK);
    for (int i = 0; i < 100000; i++)
        io_output_text(output, "new ");
    io_output_abandon(output);
    assert_file_text(path, "old");
    assert_int_equal(files_count(), 1);
}

static void test_long_writes(void **state)
{
    (void)state;
    io_output *output;
    io_error error;
    static char large[200000];
    memset(large, 'x', sizeof large - 1);
    const char *path = file_path("out");
    assert_int_equal(io_output_open(&output, path, &error), EPLB_OK);
    io_output_text(output, "[");
    io_output_text(output, large);
    io_output_format(output, "%s]", large); /* longer than one line */
    assert_int_equal(io_output_close(output, &error), EPLB_OK);
    char *text = file_text(path);
    assert_int_equal(strlen(text), 2 * (sizeof large - 1) + 2);
    assert_int_equal(text[strlen(text) - 1], ']');
    free(text);
}

static void test_mode_and_link_are_kept(void **state)
{
    (void)state;
    const char *target = file_with_text("out", "old"), *link = file_path("link");
    assert_int_equal(chmod(target, 0640), 0);
    assert_int_equal(symlink(target, link), 0);
    write_text(link, "new");
    struct stat status;
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(stat(target, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
    assert_file_text(target, "new");
    (void)unlink(link);
}

static void test_link_to_nothing_is_followed(void **state)
{
    (void)state;
    io_output *output;
    io_error error;
    const char *target = file_path("later"), *link = file_path("link"), *ring = file_path("ring");
    assert_int_equal(symlink("later", link), 0); /* beside the link, not in the working directory */
    assert_int_equal(symlink("ring", ring), 0);
    write_text(link, "new");
    struct stat status;
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_file_text(target, "new");
    assert_int_equal(io_output_open(&output, ring, &error), EPLB_ERROR_SYSTEM);
    assert_mentions(error.text, "Too many levels of symbolic links");
    assert_int_equal(lstat(ring, &status), 0);
    (void)unlink(link);
    (void)unlink(ring);
}

static void test_longest_name(void **state)
{
    (void)state;
    io_output *output;
    io_error error;
    char name[NAME_MAX + 2];
    memset(name, 'n', sizeof name - 1);
    name[NAME_MAX] = '\0';
    const char *path = file_path(name);
    write_text(path, "new");
    assert_file_text(path, "new");
    name[NAME_MAX] = 'n';
    name[NAME_MAX + 1] = '\0';
    assert_int_equal(io_output_open(&output, file_path(name), &error), EPLB_ERROR_SYSTEM);
    assert_mentions(error.text, "File name too long");
}

static eplb_status write_to(const char *path, size_t bytes, io_error *error)
{
    io_output *output;
    eplb_status status = io_output_open(&output, path, error);
    if (status != EPLB_OK)
        return status;
    for (size_t i = 0; i < bytes; i++)
        io_output_write(output, "x", 1);
    return io_output_close(output, error);
}

static void test_full_disk(void **state)
{
    (void)state;
    io_error error;
    assert_int_equal(write_to("/dev/full", 1, &error), EPLB_ERROR_SYSTEM);
    assert_mentions(error.text, "/dev/full");
    assert_mentions(error.text, "No space left");
    assert_int_equal(write_to("/dev/full", 1 << 20, &error), EPLB_ERROR_SYSTEM);
    assert_int_equal(write_to("/dev/null", 1 << 20, &error), EPLB_OK);
}

static void test_closed_pipe(void **state)
{
    (void)state;
    int ends[2];
    char path[64];
    io_error error;
    io_output *output;
    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(ends), 0);
    (void)snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
    assert_int_equal(io_output_open(&output, path, &error), EPLB_OK);
    (void)close(ends[0]);
    io_output_text(output, "x");
    assert_int_equal(io_output_close(output, &error), EPLB_ERROR_SYSTEM);
    assert_mentions(error.text, "Broken pipe");
    (void)close(ends[1]);
}

static void test_bad_paths(void **state)
{
    (void)state;
    io_error error;
    assert_int_equal(write_to("", 1, &error), EPLB_ERROR_INVALID);
    assert_int_equal(write_to(files_folder, 1, &error), EPLB_ERROR_SYSTEM);
    assert_mentions(error.text, "is a folder");
    assert_int_equal(write_to(file_path("none/out"), 1, &error), EPLB_ERROR_SYSTEM);
    assert_mentions(error.text, "No such file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_absent_until_closed), cmocka_unit_test(test_abandoned_leaves_the_old_file),
        cmocka_unit_test(test_long_writes),         cmocka_unit_test(test_mode_and_link_are_kept),
        cmocka_unit_test(test_full_disk),           cmocka_unit_test(test_closed_pipe),
        cmocka_unit_test(test_bad_paths),           cmocka_unit_test(test_link_to_nothing_is_followed),
        cmocka_unit_test(test_longest_name),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
