/* Writes an .npz archive: a zip whose members are stored (PKWARE's APPNOTE, 4.3). A member's checksum follows
 * its bytes, which no reader minds that goes by the directory at the end, as all do that read .npz. Every
 * size is written in 64 bits (zip64), so that one layout serves arrays of any size. */
#include "io/npz_writer.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "io/host_order.h"

#define IN_ZIP64           0xffffffffu /* stands for a number of 32 bits that the zip64 field has */
#define FIRST_DAY          0x21        /* 1980-01-01, the least date there is */
#define ZIP64_VERSION      45
#define CHECKSUM_FOLLOWS   8
#define DIRECTORY_END_SIZE 56 /* of the zip64 form */

/* Fields of a zip's structures, little-endian one behind the other. */
typedef struct fields {
    unsigned char bytes[160];
    size_t used;
} fields;

static void put(fields *record, int bytes, uint64_t value)
{
    for (int i = 0; i < bytes; i++)
        record->bytes[record->used++] = (unsigned char)(value >> 8 * i);
}

static void put_name(fields *record, const char *name)
{
    memcpy(record->bytes + record->used, name, strlen(name));
    record->used += strlen(name);
}

static void send(npz_writer *writer, const void *bytes, size_t count)
{
    io_output_write(writer->output, bytes, count);
    writer->offset += count;
}

/* Bytes of the last member. */
static void send_content(npz_writer *writer, const void *bytes, size_t count)
{
    npz_member *member = &writer->members[writer->num_members - 1];
    send(writer, bytes, count);
    member->checksum = (uint32_t)crc32_z(member->checksum, bytes, count);
    member->bytes += count;
}

/* What the header before a member and its entry in the directory share: version to date. */
static void put_kind(fields *record)
{
    put(record, 2, ZIP64_VERSION);
    put(record, 2, CHECKSUM_FOLLOWS);
    put(record, 2, 0); /* stored */
    put(record, 2, 0); /* time */
    put(record, 2, FIRST_DAY);
}

static void send_header(npz_writer *writer, const npz_member *member)
{
    fields record = {.used = 0};
    put(&record, 4, 0x04034b50);
    put_kind(&record);
    put(&record, 4, 0); /* checksum */
    put(&record, 4, IN_ZIP64);
    put(&record, 4, IN_ZIP64);
    put(&record, 2, strlen(member->name));
    put(&record, 2, 20); /* bytes of the zip64 field */
    put_name(&record, member->name);
    put(&record, 2, 1);
    put(&record, 2, 16);
    put(&record, 8, 0);
    put(&record, 8, 0);
    send(writer, record.bytes, record.used);
}

/* Checksum and sizes of the last member, behind its bytes. */
static void end_member(npz_writer *writer)
{
    if (writer->num_members == 0)
        return;
    const npz_member *member = &writer->members[writer->num_members - 1];
    if (writer->items_left > 0)
        io_output_fail(writer->output, "fewer numbers than the shape of %s", member->name);
    fields record = {.used = 0};
    put(&record, 4, 0x08074b50);
    put(&record, 4, member->checksum);
    put(&record, 8, member->bytes);
    put(&record, 8, member->bytes);
    send(writer, record.bytes, record.used);
}

static void send_entry(npz_writer *writer, const npz_member *member)
{
    fields record = {.used = 0};
    put(&record, 4, 0x02014b50);
    put(&record, 2, ZIP64_VERSION);
    put_kind(&record);
    put(&record, 4, member->checksum);
    put(&record, 4, IN_ZIP64);
    put(&record, 4, IN_ZIP64);
    put(&record, 2, strlen(member->name));
    put(&record, 2, 28); /* bytes of the zip64 field */
    put(&record, 2, 0);  /* comment */
    put(&record, 2, 0);  /* disk */
    put(&record, 2, 0);  /* attributes */
    put(&record, 4, 0);
    put(&record, 4, IN_ZIP64);
    put_name(&record, member->name);
    put(&record, 2, 1);
    put(&record, 2, 24);
    put(&record, 8, member->bytes);
    put(&record, 8, member->bytes);
    put(&record, 8, member->offset);
    send(writer, record.bytes, record.used);
}

/* The end of the directory that starts at `start`: zip64's form, where that stands, and the short form. */
static void send_directory_end(npz_writer *writer, uint64_t start)
{
    uint64_t count = (uint64_t)writer->num_members, end = writer->offset;
    fields record = {.used = 0};
    put(&record, 4, 0x06064b50);
    put(&record, 8, DIRECTORY_END_SIZE - 12);
    put(&record, 2, ZIP64_VERSION);
    put(&record, 2, ZIP64_VERSION);
    put(&record, 4, 0); /* disk, and the directory's */
    put(&record, 4, 0);
    put(&record, 8, count); /* entries here, and in all */
    put(&record, 8, count);
    put(&record, 8, end - start);
    put(&record, 8, start);
    put(&record, 4, 0x07064b50);
    put(&record, 4, 0);
    put(&record, 8, end);
    put(&record, 4, 1); /* disks */
    put(&record, 4, 0x06054b50);
    put(&record, 2, 0);
    put(&record, 2, 0);
    put(&record, 2, count);
    put(&record, 2, count);
    put(&record, 4, IN_ZIP64);
    put(&record, 4, IN_ZIP64);
    put(&record, 2, 0); /* comment */
    send(writer, record.bytes, record.used);
}

void npz_writer_init(npz_writer *writer, io_output *output)
{
    memset(writer, 0, sizeof *writer);
    writer->output = output;
}

static int64_t count_items(int32_t num_dims, const int64_t *shape)
{
    int64_t items = 1;
    for (int32_t d = 0; d < num_dims; d++)
        items *= shape[d];
    return items;
}

void npz_writer_begin(npz_writer *writer, const char *member, npy_kind kind, int32_t item_bytes,
                      int32_t num_dims, const int64_t *shape)
{
    unsigned char header[256];
    end_member(writer);
    if (writer->num_members == NPZ_MAX_MEMBERS || strlen(member) + sizeof ".npy" > NPZ_NAME_BYTES) {
        io_output_fail(writer->output, "array '%s' has no place in the archive", member);
        return;
    }
    npz_member *new = &writer->members[writer->num_members++];
    new->offset = writer->offset;
    (void)snprintf(new->name, sizeof new->name, "%s.npy", member);
    writer->item_bytes = (size_t)item_bytes;
    writer->items_left = count_items(num_dims, shape);
    send_header(writer, new);
    send_content(writer, header, npy_header_write(kind, item_bytes, num_dims, shape, header));
}

void npz_writer_append(npz_writer *writer, const void *items, size_t count)
{
    const unsigned char *next = items;
    if (writer->items_left < (int64_t)count) {
        io_output_fail(writer->output, "more numbers than the shape of an array says");
        return;
    }
    writer->items_left -= (int64_t)count;
    for (size_t step; count > 0; next += step * writer->item_bytes, count -= step) {
        unsigned char block[4096];
        step = sizeof block / writer->item_bytes < count ? sizeof block / writer->item_bytes : count;
        memcpy(block, next, step * writer->item_bytes);
        host_to_little_endian(block, step, writer->item_bytes);
        send_content(writer, block, step * writer->item_bytes);
    }
}

void npz_writer_array(npz_writer *writer, const char *member, npy_kind kind, int32_t item_bytes,
                      int32_t num_dims, const int64_t *shape, const void *items)
{
    npz_writer_begin(writer, member, kind, item_bytes, num_dims, shape);
    npz_writer_append(writer, items, (size_t)count_items(num_dims, shape));
}

void npz_writer_scalar(npz_writer *writer, const char *member, int64_t value)
{
    npz_writer_array(writer, member, NPY_SIGNED, 8, 0, NULL, &value);
}

void npz_writer_finish(npz_writer *writer)
{
    end_member(writer);
    uint64_t start = writer->offset;
    for (int i = 0; i < writer->num_members; i++)
        send_entry(writer, &writer->members[i]);
    send_directory_end(writer, start);
}
