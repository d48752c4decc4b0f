/* Writes an .npz archive through libzip, into memory: libzip goes back to fill in sizes, which a pipe cannot.
 */
#include "io/npz_writer.h"

#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "io/host_order.h"

#define MAX_MEMBERS 16

typedef struct npz_member {
    char name[80];
    unsigned char *bytes;
    size_t used;
    size_t size;
    size_t item_bytes;
} npz_member;

struct npz_writer {
    char *name;
    int num_members;
    npz_member members[MAX_MEMBERS];
};

eplb_status npz_writer_open(npz_writer **result, const char *name, io_error *error)
{
    *result = NULL;
    npz_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL)
        return io_fail_memory(error, name, "an archive");
    writer->name = strdup(name);
    if (writer->name == NULL) {
        free(writer);
        return io_fail_memory(error, name, "an archive");
    }
    *result = writer;
    return EPLB_OK;
}

eplb_status npz_writer_begin(npz_writer *writer, const char *member, npy_kind kind, int32_t item_bytes,
                             int32_t num_dims, const int64_t *shape, io_error *error)
{
    if (writer->num_members == MAX_MEMBERS || strlen(member) + 5 > sizeof writer->members[0].name)
        return io_fail(error, EPLB_ERROR_INTERNAL, "%s: array '%s' has no place in the archive", writer->name,
                       member);
    npz_member *new = &writer->members[writer->num_members];
    unsigned char header[256];
    size_t header_bytes = npy_header_write(kind, item_bytes, num_dims, shape, header);
    size_t items = 1;
    for (int32_t d = 0; d < num_dims; d++)
        items *= (size_t)shape[d];
    new->item_bytes = (size_t)item_bytes;
    new->size = header_bytes + items *new->item_bytes;
    new->bytes = malloc(new->size);
    if (new->bytes == NULL)
        return io_fail_memory(error, writer->name, "an array");
    memcpy(new->bytes, header, header_bytes);
    new->used = header_bytes;
    memcpy(new->name, member, strlen(member));
    memcpy(new->name + strlen(member), ".npy", 5);
    writer->num_members++;
    return EPLB_OK;
}

eplb_status npz_writer_append(npz_writer *writer, const void *items, size_t count, io_error *error)
{
    npz_member *member = &writer->members[writer->num_members - 1];
    size_t bytes = count * member->item_bytes;
    if (bytes > member->size - member->used)
        return io_fail(error, EPLB_ERROR_INTERNAL, "%s: more numbers than the shape of %s", writer->name,
                       member->name);
    if (bytes > 0)
        memcpy(member->bytes + member->used, items, bytes);
    host_to_little_endian(member->bytes + member->used, count, member->item_bytes);
    member->used += bytes;
    return EPLB_OK;
}

eplb_status npz_writer_array(npz_writer *writer, const char *member, npy_kind kind, int32_t item_bytes,
                             int32_t num_dims, const int64_t *shape, const void *items, io_error *error)
{
    eplb_status status = npz_writer_begin(writer, member, kind, item_bytes, num_dims, shape, error);
    size_t count = 1;
    for (int32_t d = 0; d < num_dims; d++)
        count *= (size_t)shape[d];
    return status == EPLB_OK ? npz_writer_append(writer, items, count, error) : status;
}

eplb_status npz_writer_scalar(npz_writer *writer, const char *member, int64_t value, io_error *error)
{
    return npz_writer_array(writer, member, NPY_SIGNED, 8, 0, NULL, &value, error);
}

static eplb_status zip_failure(const npz_writer *writer, const char *reason, io_error *error)
{
    return io_fail(error, EPLB_ERROR_SYSTEM, "%s: the archive cannot be built: %s", writer->name, reason);
}

/* The members as an archive inside `target`, which the caller keeps. */
static eplb_status build(npz_writer *writer, zip_source_t *target, io_error *error)
{
    zip_error_t reason;
    zip_error_init(&reason);
    zip_source_keep(target); /* the archive takes one reference, the caller has the other */
    zip_t *zip = zip_open_from_source(target, ZIP_TRUNCATE, &reason);
    if (zip == NULL) {
        zip_source_free(target);
        eplb_status status = zip_failure(writer, zip_error_strerror(&reason), error);
        zip_error_fini(&reason);
        return status;
    }
    zip_error_fini(&reason);
    for (int i = 0; i < writer->num_members; i++) {
        npz_member *member = &writer->members[i];
        if (member->used != member->size) {
            zip_discard(zip);
            return io_fail(error, EPLB_ERROR_INTERNAL, "%s: fewer numbers than the shape of %s", writer->name,
                           member->name);
        }
        zip_source_t *source = zip_source_buffer(zip, member->bytes, member->size, 0);
        zip_int64_t index = source != NULL ? zip_file_add(zip, member->name, source, 0) : -1;
        if (index < 0 || zip_set_file_compression(zip, (zip_uint64_t)index, ZIP_CM_STORE, 0) != 0 ||
            zip_file_set_dostime(zip, (zip_uint64_t)index, 0, 0x21, 0) != 0) { /* 1980-01-01 */
            eplb_status status = zip_failure(writer, zip_strerror(zip), error);
            if (index < 0)
                zip_source_free(source);
            zip_discard(zip);
            return status;
        }
    }
    if (zip_close(zip) != 0) {
        eplb_status status = zip_failure(writer, zip_strerror(zip), error);
        zip_discard(zip);
        return status;
    }
    return EPLB_OK;
}

static eplb_status copy_out(npz_writer *writer, zip_source_t *source, io_output *output, io_error *error)
{
    if (zip_source_open(source) != 0)
        return zip_failure(writer, zip_error_strerror(zip_source_error(source)), error);
    unsigned char buffer[16384];
    zip_int64_t got;
    while ((got = zip_source_read(source, buffer, sizeof buffer)) > 0)
        io_output_write(output, buffer, (size_t)got);
    (void)zip_source_close(source);
    return got < 0 ? zip_failure(writer, "its bytes cannot be read back", error) : EPLB_OK;
}

eplb_status npz_writer_close(npz_writer *writer, io_output *output, io_error *error)
{
    zip_source_t *target = zip_source_buffer_create(NULL, 0, 0, NULL);
    eplb_status status =
        target == NULL ? io_fail_memory(error, writer->name, "an archive") : build(writer, target, error);
    if (status == EPLB_OK)
        status = copy_out(writer, target, output, error);
    if (target != NULL)
        zip_source_free(target);
    npz_writer_abandon(writer);
    return status;
}

void npz_writer_abandon(npz_writer *writer)
{
    if (writer == NULL)
        return;
    for (int i = 0; i < writer->num_members; i++)
        free(writer->members[i].bytes);
    free(writer->name);
    free(writer);
}
