/* Files for the tests of readers and writers: bytes in a private folder, and the arrays that numpy would
 * write. */
#ifndef TESTS_FILES_H
#define TESTS_FILES_H

#include "testing.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/npy.h"
#include "io/output.h"

static char files_folder[64];

static inline int files_setup(void **state)
{
    (void)state;
    (void)snprintf(files_folder, sizeof files_folder, "/tmp/eplb-files.XXXXXX");
    return mkdtemp(files_folder) != NULL ? 0 : -1;
}

static inline int files_teardown(void **state)
{
    (void)state;
    DIR *folder = opendir(files_folder);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char path[400];
        (void)snprintf(path, sizeof path, "%s/%s", files_folder, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlink(path);
    }
    if (folder != NULL)
        (void)closedir(folder);
    return rmdir(files_folder);
}

/* Path of a file in the private folder; up to four live at a time. */
static inline const char *file_path(const char *name)
{
    static char paths[4][400];
    static int next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", files_folder, name);
    return path;
}

static inline const char *file_with(const char *name, const void *bytes, size_t count)
{
    const char *path = file_path(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
    return path;
}

static inline const char *file_with_text(const char *name, const char *text)
{
    return file_with(name, text, strlen(text));
}

/* A .npy file of little-endian items. */
static inline const char *file_with_array(const char *name, npy_kind kind, int32_t item_bytes,
                                          int32_t num_dims, const int64_t *shape, const void *items,
                                          size_t count)
{
    static unsigned char bytes[1 << 16];
    size_t header = npy_header_write(kind, item_bytes, num_dims, shape, bytes);
    size_t size = count * (size_t)item_bytes;
    assert_true(header + size <= sizeof bytes);
    memcpy(bytes + header, items, size);
    return file_with(name, bytes, header + size);
}

/* The whole file as text; the caller frees it. */
static inline char *file_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, file) < (1 << 20) - 1);
    (void)fclose(file);
    return text;
}

static inline void assert_file_text(const char *path, const char *expected)
{
    char *text = file_text(path);
    assert_string_equal(text, expected);
    free(text);
}

/* Entries of the private folder. */
static inline int files_count(void)
{
    int count = 0;
    DIR *folder = opendir(files_folder);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    (void)closedir(folder);
    return count;
}

static inline void assert_mentions(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("'%s' does not mention '%s'", text, part);
}

#endif
