/* Archives: the members of an .npz through libzip, whose reader needs a file that can be sought in. See
 * array.h. */
#include "io/archive.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct io_archive {
    zip_t *zip;
    char *name;
    char **members; /* without ".npy"; NULL at the end */
};

/* Copies what is left of an input into a file without a name; *descriptor is at its start. */
static eplb_status spool(io_input *input, int *descriptor, io_error *error)
{
    const char *folder = getenv("TMPDIR");
    char path[4096];
    int length =
        snprintf(path, sizeof path, "%s/eplb.XXXXXX", folder != NULL && folder[0] != '\0' ? folder : "/tmp");
    if (length < 0 || (size_t)length >= sizeof path)
        return io_fail(error, EPLB_ERROR_SYSTEM, "%s: the path in TMPDIR is too long", input->name);
    int file = mkstemp(path);
    if (file < 0)
        return io_fail_errno(error, input->name, "keep a copy of it in the folder for temporary files",
                             errno);
    (void)unlink(path);
    int64_t total = 0;
    while (io_input_look(input) >= 0) {
        size_t ready = input->filled - input->at;
        ssize_t written = write(file, input->buffer + input->at, ready);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            int reason = errno;
            (void)close(file);
            return io_fail_errno(error, input->name, "keep a copy of it in the folder for temporary files",
                                 reason);
        }
        input->at += (size_t)written;
        total += written;
        if (total > ARRAY_MAX_SPOOL_BYTES) {
            (void)close(file);
            return io_fail(error, EPLB_ERROR_UNSUPPORTED,
                           "%s: an archive of more than %lld bytes from a pipe; give the path of a file",
                           input->name, (long long)ARRAY_MAX_SPOOL_BYTES);
        }
    }
    *descriptor = file;
    return io_input_status(input, error);
}

static eplb_status open_zip(io_archive *archive, io_input *input, io_error *error)
{
    int descriptor = -1;
    if (input->seekable) {
        descriptor = dup(input->descriptor);
        if (descriptor < 0)
            return io_fail_errno(error, input->name, "open it", errno);
    } else {
        eplb_status status = spool(input, &descriptor, error);
        if (status != EPLB_OK) {
            if (descriptor >= 0)
                (void)close(descriptor);
            return status;
        }
    }
    int code = 0;
    archive->zip = zip_fdopen(descriptor, 0, &code);
    if (archive->zip == NULL) {
        (void)close(descriptor);
        zip_error_t reason;
        zip_error_init_with_code(&reason, code);
        (void)io_fail(error, EPLB_ERROR_INVALID, "%s: not a whole .npz archive: %s", input->name,
                      zip_error_strerror(&reason));
        zip_error_fini(&reason);
        return EPLB_ERROR_INVALID;
    }
    return EPLB_OK;
}

static eplb_status list_members(io_archive *archive, io_error *error)
{
    zip_int64_t count = zip_get_num_entries(archive->zip, 0);
    archive->members = calloc((size_t)count + 1, sizeof *archive->members);
    if (archive->members == NULL)
        return io_fail_memory(error, archive->name, "the names of its arrays");
    size_t used = 0;
    for (zip_int64_t i = 0; i < count; i++) {
        const char *full = zip_get_name(archive->zip, (zip_uint64_t)i, 0);
        size_t length = full != NULL ? strlen(full) : 0;
        if (length < 4 || strcmp(full + length - 4, ".npy") != 0)
            continue;
        if (zip_name_locate(archive->zip, full, 0) != i)
            return io_fail(error, EPLB_ERROR_INVALID, "%s: the archive holds %s twice", archive->name, full);
        archive->members[used] = strndup(full, length - 4);
        if (archive->members[used] == NULL)
            return io_fail_memory(error, archive->name, "the names of its arrays");
        used++;
    }
    if (used == 0)
        return io_fail(error, EPLB_ERROR_INVALID, "%s: the archive holds no .npy array", archive->name);
    return EPLB_OK;
}

eplb_status io_archive_open(io_archive **result, io_input *input, io_error *error)
{
    *result = NULL;
    io_archive *archive = calloc(1, sizeof *archive);
    if (archive == NULL)
        return io_fail_memory(error, input->name, "an archive");
    archive->name = strdup(input->name);
    eplb_status status = archive->name == NULL ? io_fail_memory(error, input->name, "a path") : EPLB_OK;
    if (status == EPLB_OK)
        status = open_zip(archive, input, error);
    if (status == EPLB_OK)
        status = list_members(archive, error);
    if (status != EPLB_OK) {
        io_archive_close(archive);
        return status;
    }
    *result = archive;
    return EPLB_OK;
}

void io_archive_close(io_archive *archive)
{
    if (archive == NULL)
        return;
    if (archive->zip != NULL)
        zip_discard(archive->zip);
    for (char **member = archive->members; member != NULL && *member != NULL; member++)
        free(*member);
    free(archive->members);
    free(archive->name);
    free(archive);
}

const char *io_archive_member(const io_archive *archive, int64_t index)
{
    for (int64_t i = 0; i < index; i++)
        if (archive->members[i] == NULL)
            return NULL;
    return archive->members[index];
}

bool io_archive_has(const io_archive *archive, const char *member)
{
    for (char **name = archive->members; *name != NULL; name++)
        if (strcmp(*name, member) == 0)
            return true;
    return false;
}

void io_archive_list(const io_archive *archive, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (char **name = archive->members; *name != NULL && used < size; name++) {
        int length = snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", *name);
        used += length > 0 ? (size_t)length : 0;
    }
}

zip_file_t *archive_open_file(const io_archive *archive, const char *member, int64_t *bytes, io_error *error)
{
    char full[512];
    int length = snprintf(full, sizeof full, "%s.npy", member);
    zip_stat_t info;
    if (length < 0 || (size_t)length >= sizeof full || zip_stat(archive->zip, full, 0, &info) != 0 ||
        (info.valid & ZIP_STAT_SIZE) == 0) {
        char names[400];
        io_archive_list(archive, names, sizeof names);
        (void)io_fail(error, EPLB_ERROR_INVALID, "%s: no array named '%s'; the archive holds %s",
                      archive->name, member, names);
        return NULL;
    }
    zip_file_t *file = zip_fopen(archive->zip, full, 0);
    if (file == NULL) {
        (void)io_fail(error, EPLB_ERROR_INVALID, "%s[%s]: cannot be read: %s", archive->name, member,
                      zip_strerror(archive->zip));
        return NULL;
    }
    *bytes = info.size > (zip_uint64_t)INT64_MAX ? INT64_MAX : (int64_t)info.size;
    return file;
}

const char *archive_name(const io_archive *archive)
{
    return archive->name;
}

eplb_status io_archive_read_scalar(const io_archive *archive, const char *member, int64_t *value,
                                   io_error *error)
{
    io_array *array;
    eplb_status status = io_array_open_member(&array, archive, member, error);
    if (status != EPLB_OK)
        return status;
    if (io_array_header(array)->num_items != 1)
        status = io_fail(error, EPLB_ERROR_INVALID, "%s: has %lld elements; one number is wanted",
                         io_array_name(array), (long long)io_array_header(array)->num_items);
    if (status == EPLB_OK)
        status = io_array_read_int64(array, value, 1, error);
    if (status == EPLB_OK)
        status = io_array_finish(array, error);
    io_array_close(array);
    return status;
}
