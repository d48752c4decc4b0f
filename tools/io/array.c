/* Arrays: bytes from a file or an archive, turned into int64 or double block by block. O(elements). See
 * array.h. */
#include "io/array.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/archive.h"
#include "io/host_order.h"

#define BLOCK_ITEMS ((size_t)4096)

struct io_array {
    char *name;
    npy_header header;
    int64_t position; /* elements taken */
    io_input *input;  /* one of these two is the source */
    zip_file_t *member;
    int64_t source_bytes; /* bytes of the source from the magic on; -1: unknown */
    unsigned char *whole; /* all bytes of a Fortran-order array, or NULL */
    unsigned char raw[BLOCK_ITEMS * 8];
};

static eplb_status source_read(io_array *array, void *bytes, size_t count, size_t *got, io_error *error)
{
    if (array->input != NULL)
        return io_input_read(array->input, bytes, count, got, error);
    *got = 0;
    while (*got < count) {
        zip_int64_t step = zip_fread(array->member, (unsigned char *)bytes + *got, count - *got);
        if (step < 0)
            return io_fail(error, EPLB_ERROR_INVALID, "%s: the archive is damaged: %s", array->name,
                           zip_file_strerror(array->member));
        if (step == 0)
            break;
        *got += (size_t)step;
    }
    return EPLB_OK;
}

static void shape_text(const npy_header *header, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "[");
    for (int32_t d = 0; d < header->num_dims; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, d > 0 ? ", " : "", header->shape[d]);
    (void)snprintf(text + used, size - used, "]");
}

static eplb_status wrong_length(const io_array *array, int64_t bytes, io_error *error)
{
    char shape[128];
    shape_text(&array->header, shape, sizeof shape);
    int64_t wanted = array->header.num_items * array->header.item_bytes;
    return io_fail(error, EPLB_ERROR_INVALID,
                   "%s: %s: shape %s of %d-byte elements takes %" PRId64 " bytes, the file has %s%" PRId64,
                   array->name, bytes < wanted ? "truncated" : "bytes follow the array", shape,
                   array->header.item_bytes, wanted,
                   bytes > wanted && array->source_bytes < 0 ? "at least " : "", bytes);
}

/* Reads the magic, the header and, for Fortran order, everything. */
static eplb_status read_header(io_array *array, io_error *error)
{
    unsigned char preamble[NPY_PREAMBLE_BYTES];
    size_t got, size, length;
    eplb_status status = source_read(array, preamble, 10, &got, error);
    if (status == EPLB_OK && got == 10 && preamble[6] != 1) {
        size_t more;
        status = source_read(array, preamble + 10, 2, &more, error);
        got += more;
    }
    if (status == EPLB_OK)
        status = npy_header_length(preamble, got, array->name, &size, &length, error);
    if (status != EPLB_OK)
        return status;
    char *text = malloc(length + 1);
    if (text == NULL)
        return io_fail_memory(error, array->name, "its header");
    status = source_read(array, text, length, &got, error);
    if (status == EPLB_OK && got < length)
        status = io_fail(error, EPLB_ERROR_INVALID, "%s: byte %zu: the file ends inside the .npy header",
                         array->name, size + got);
    if (status == EPLB_OK)
        status = npy_header_parse(text, length, array->name, &array->header, error);
    free(text);
    if (status != EPLB_OK)
        return status;
    int64_t bytes = array->source_bytes - (int64_t)(size + length);
    if (array->source_bytes >= 0 && bytes != array->header.num_items * array->header.item_bytes)
        return wrong_length(array, bytes, error);
    return EPLB_OK;
}

static eplb_status hold_whole(io_array *array, io_error *error)
{
    int64_t bytes = array->header.num_items * array->header.item_bytes;
    if (!array->header.fortran_order || array->header.num_dims < 2 || bytes == 0)
        return EPLB_OK;
    if (bytes > ARRAY_MAX_WHOLE_BYTES)
        return io_fail(error, EPLB_ERROR_UNSUPPORTED,
                       "%s: a Fortran-order array of %" PRId64 " bytes; above %" PRId64
                       " save it in C order (numpy.ascontiguousarray)",
                       array->name, bytes, ARRAY_MAX_WHOLE_BYTES);
    array->whole = malloc((size_t)bytes);
    if (array->whole == NULL)
        return io_fail_memory(error, array->name, "a Fortran-order array");
    size_t got;
    eplb_status status = source_read(array, array->whole, (size_t)bytes, &got, error);
    if (status == EPLB_OK && (int64_t)got < bytes)
        status = wrong_length(array, (int64_t)got, error);
    return status;
}

/* Takes ownership of `array`, which has its source. */
static eplb_status finish_open(io_array **result, io_array *array, io_error *error)
{
    eplb_status status = read_header(array, error);
    if (status == EPLB_OK)
        status = hold_whole(array, error);
    if (status != EPLB_OK) {
        io_array_close(array);
        return status;
    }
    *result = array;
    return EPLB_OK;
}

static io_array *array_new(const char *name, const char *member)
{
    io_array *array = malloc(sizeof *array);
    if (array == NULL)
        return NULL;
    memset(array, 0, offsetof(io_array, raw));
    size_t size = strlen(name) + (member != NULL ? strlen(member) + 2 : 0) + 1;
    array->name = malloc(size);
    if (array->name == NULL) {
        free(array);
        return NULL;
    }
    (void)snprintf(array->name, size, member != NULL ? "%s[%s]" : "%s", name, member);
    return array;
}

eplb_status io_array_open_input(io_array **result, io_input *input, io_error *error)
{
    *result = NULL;
    io_array *array = array_new(input->name, NULL);
    if (array == NULL)
        return io_fail_memory(error, input->name, "a buffer");
    array->input = input;
    array->source_bytes = input->size >= 0 ? input->size - io_input_offset(input) : -1;
    return finish_open(result, array, error);
}

eplb_status io_array_open_member(io_array **result, const io_archive *archive, const char *member,
                                 io_error *error)
{
    *result = NULL;
    int64_t bytes;
    zip_file_t *file = archive_open_file(archive, member, &bytes, error);
    if (file == NULL)
        return EPLB_ERROR_INVALID;
    io_array *array = array_new(archive_name(archive), member);
    if (array == NULL) {
        (void)zip_fclose(file);
        return io_fail_memory(error, archive_name(archive), "a buffer");
    }
    array->member = file;
    array->source_bytes = bytes;
    return finish_open(result, array, error);
}

void io_array_close(io_array *array)
{
    if (array == NULL)
        return;
    if (array->member != NULL)
        (void)zip_fclose(array->member);
    free(array->whole);
    free(array->name);
    free(array);
}

const npy_header *io_array_header(const io_array *array)
{
    return &array->header;
}

const char *io_array_name(const io_array *array)
{
    return array->name;
}

/* Position of a C-order element in the Fortran-order bytes. */
static int64_t fortran_position(const npy_header *header, int64_t position)
{
    int64_t index[NPY_MAX_DIMS];
    for (int32_t d = header->num_dims - 1; d >= 0; d--) {
        index[d] = position % header->shape[d];
        position /= header->shape[d];
    }
    int64_t result = 0;
    for (int32_t d = header->num_dims - 1; d >= 0; d--)
        result = result * header->shape[d] + index[d];
    return result;
}

/* The next `count` (<= BLOCK_ITEMS) elements into raw, in the byte order of the host. */
static eplb_status next_block(io_array *array, size_t count, io_error *error)
{
    const npy_header *header = &array->header;
    size_t size = (size_t)header->item_bytes;
    if ((int64_t)count > header->num_items - array->position)
        return io_fail(error, EPLB_ERROR_INVALID, "%s: the array ends after %" PRId64 " elements",
                       array->name, header->num_items);
    if (array->whole != NULL) {
        for (size_t i = 0; i < count; i++) {
            int64_t from = fortran_position(header, array->position + (int64_t)i);
            memcpy(array->raw + i * size, array->whole + (size_t)from * size, size);
        }
    } else {
        size_t got;
        eplb_status status = source_read(array, array->raw, count * size, &got, error);
        if (status != EPLB_OK)
            return status;
        if (got < count * size)
            return wrong_length(array, array->position * header->item_bytes + (int64_t)got, error);
    }
    if (header->big_endian != host_is_big_endian())
        swap_items(array->raw, count, size);
    array->position += (int64_t)count;
    return EPLB_OK;
}

#define CONVERT(type)                                                                                        \
    for (size_t i = 0; i < count; i++) {                                                                     \
        type item;                                                                                           \
        memcpy(&item, raw + i * sizeof item, sizeof item);                                                   \
        out[i] = (int64_t)item;                                                                              \
    }

/* Integers of one type; a uint64 above the range of int64 becomes negative. */
static void integers(const npy_header *header, const unsigned char *raw, size_t count, int64_t *out)
{
    bool is_signed = header->kind == NPY_SIGNED;
    switch (header->item_bytes) {
    case 1:
        if (is_signed)
            CONVERT(int8_t)
        else
            CONVERT(uint8_t)
        break;
    case 2:
        if (is_signed)
            CONVERT(int16_t)
        else
            CONVERT(uint16_t)
        break;
    case 4:
        if (is_signed)
            CONVERT(int32_t)
        else
            CONVERT(uint32_t)
        break;
    default:
        if (is_signed)
            CONVERT(int64_t)
        else
            CONVERT(uint64_t)
        break;
    }
}

static eplb_status check_unsigned(const io_array *array, const int64_t *out, size_t count, io_error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (out[i] >= 0)
            continue;
        npy_header place = {.num_dims = array->header.num_dims};
        int64_t position = array->position - (int64_t)count + (int64_t)i;
        for (int32_t d = place.num_dims - 1; d >= 0; d--) {
            place.shape[d] = position % array->header.shape[d];
            position /= array->header.shape[d];
        }
        char text[128];
        shape_text(&place, text, sizeof text);
        return io_fail(error, EPLB_ERROR_OVERFLOW,
                       "%s: element %s: %" PRIu64 " is above the largest count, %" PRId64, array->name, text,
                       (uint64_t)out[i], INT64_MAX);
    }
    return EPLB_OK;
}

eplb_status io_array_read_int64(io_array *array, int64_t *out, size_t count, io_error *error)
{
    if (array->header.kind == NPY_FLOAT)
        return io_fail(error, EPLB_ERROR_UNSUPPORTED, "%s: holds floating-point numbers; integers are wanted",
                       array->name);
    while (count > 0) {
        size_t block = count < BLOCK_ITEMS ? count : BLOCK_ITEMS;
        eplb_status status = next_block(array, block, error);
        if (status != EPLB_OK)
            return status;
        integers(&array->header, array->raw, block, out);
        if (array->header.kind == NPY_UNSIGNED && array->header.item_bytes == 8) {
            status = check_unsigned(array, out, block, error);
            if (status != EPLB_OK)
                return status;
        }
        out += block;
        count -= block;
    }
    return EPLB_OK;
}

/* IEEE 754 binary16, exactly. */
static double half_to_double(uint16_t half)
{
    int exponent = (half >> 10) & 31;
    int fraction = half & 1023;
    double value;
    if (exponent == 31)
        value = fraction != 0 ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = ldexp((double)fraction, -24);
    else
        value = ldexp((double)(fraction + 1024), exponent - 25);
    return (half & 0x8000) != 0 ? -value : value;
}

static void floats(const npy_header *header, const unsigned char *raw, size_t count, double *out)
{
    for (size_t i = 0; i < count; i++) {
        if (header->item_bytes == 8) {
            memcpy(&out[i], raw + i * 8, 8);
        } else if (header->item_bytes == 4) {
            float single;
            memcpy(&single, raw + i * 4, 4);
            out[i] = (double)single;
        } else {
            uint16_t half;
            memcpy(&half, raw + i * 2, 2);
            out[i] = half_to_double(half);
        }
    }
}

eplb_status io_array_read_double(io_array *array, double *out, size_t count, io_error *error)
{
    int64_t whole[256];
    while (count > 0) {
        bool floating = array->header.kind == NPY_FLOAT;
        size_t most = floating ? BLOCK_ITEMS : sizeof whole / sizeof whole[0];
        size_t block = count < most ? count : most;
        eplb_status status =
            floating ? next_block(array, block, error) : io_array_read_int64(array, whole, block, error);
        if (status != EPLB_OK)
            return status;
        if (floating)
            floats(&array->header, array->raw, block, out);
        for (size_t i = 0; i < block && !floating; i++)
            out[i] = (double)whole[i];
        out += block;
        count -= block;
    }
    return EPLB_OK;
}

eplb_status io_array_finish(io_array *array, io_error *error)
{
    unsigned char extra[1];
    size_t got;
    eplb_status status = source_read(array, extra, 1, &got, error);
    if (status == EPLB_OK && got > 0)
        status = wrong_length(array, array->header.num_items * array->header.item_bytes + 1, error);
    return status;
}
