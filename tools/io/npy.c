/* The header of a .npy file (numpy's format description, versions 1.0 to 3.0): a Python dictionary with three
 * keys. Parsed by hand and strictly: nothing is evaluated, nothing is guessed. O(length of the header). */
#include "io/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

eplb_status npy_header_length(const unsigned char *bytes, size_t count, const char *name, size_t *preamble,
                              size_t *length, io_error *error)
{
    if (count < 10 || memcmp(bytes, magic, sizeof magic) != 0)
        return io_fail(error, EPLB_ERROR_INVALID,
                       "%s: byte 0: not a .npy array (it must start with \\x93NUMPY and a version)", name);
    int version = bytes[6];
    if (version < 1 || version > 3 || bytes[7] != 0)
        return io_fail(error, EPLB_ERROR_UNSUPPORTED,
                       "%s: byte 6: .npy version %d.%d; 1.0, 2.0 and 3.0 are read", name, version, bytes[7]);
    *preamble = version == 1 ? 10 : 12;
    if (count < *preamble)
        return io_fail(error, EPLB_ERROR_INVALID, "%s: byte %zu: the file ends inside the .npy header", name,
                       count);
    *length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (version > 1)
        *length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (*length > NPY_MAX_HEADER_BYTES)
        return io_fail(error, EPLB_ERROR_INVALID,
                       "%s: byte 8: a .npy header of %zu bytes; at most %d are read", name, *length,
                       NPY_MAX_HEADER_BYTES);
    return EPLB_OK;
}

/* A cursor over the header text. */
typedef struct cursor {
    const char *text;
    size_t at;
    size_t length;
    const char *name;
    io_error *error;
} cursor;

static void skip_space(cursor *c)
{
    while (c->at < c->length && (c->text[c->at] == ' ' || c->text[c->at] == '\n' || c->text[c->at] == '\t'))
        c->at++;
}

/* Skips white space, then takes `expected` if it is next. */
static bool take(cursor *c, char expected)
{
    skip_space(c);
    if (c->at >= c->length || c->text[c->at] != expected)
        return false;
    c->at++;
    return true;
}

static eplb_status malformed(const cursor *c, const char *expectation)
{
    return io_fail(c->error, EPLB_ERROR_INVALID, "%s: byte %zu of the .npy header: %s", c->name, c->at,
                   expectation);
}

/* A quoted Python string without escapes. */
static eplb_status parse_string(cursor *c, char *out, size_t size)
{
    skip_space(c);
    char quote = c->at < c->length ? c->text[c->at] : '\0';
    if (quote != '\'' && quote != '"')
        return malformed(c, "a quoted text was expected");
    c->at++;
    size_t used = 0;
    while (c->at < c->length && c->text[c->at] != quote) {
        if (used + 1 == size || (unsigned char)c->text[c->at] < 0x20 || (unsigned char)c->text[c->at] > 0x7e)
            return malformed(c, "the quoted text is not one of the format's");
        out[used++] = c->text[c->at++];
    }
    if (c->at >= c->length)
        return malformed(c, "the quoted text does not end");
    c->at++;
    out[used] = '\0';
    return EPLB_OK;
}

static bool valid_size(npy_kind kind, int32_t bytes)
{
    if (kind == NPY_FLOAT)
        return bytes == 2 || bytes == 4 || bytes == 8;
    return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

static eplb_status parse_descr(cursor *c, npy_header *header)
{
    skip_space(c);
    if (c->at < c->length && c->text[c->at] == '[')
        return io_fail(c->error, EPLB_ERROR_UNSUPPORTED,
                       "%s: a structured array; an array of plain integers or floats is wanted", c->name);
    char descr[16];
    eplb_status status = parse_string(c, descr, sizeof descr);
    if (status != EPLB_OK)
        return status;
    if (strchr(descr, 'O') != NULL)
        return io_fail(
            c->error, EPLB_ERROR_UNSUPPORTED,
            "%s: type '%s': Python objects (a pickle), which are never loaded; save plain integers or floats",
            c->name, descr);
    bool known = strlen(descr) == 3 && strchr("<>|=", descr[0]) != NULL && descr[2] >= '1' && descr[2] <= '8';
    if (known) {
        header->kind = descr[1] == 'i' ? NPY_SIGNED : descr[1] == 'u' ? NPY_UNSIGNED : NPY_FLOAT;
        header->item_bytes = descr[2] - '0';
        known = strchr("iuf", descr[1]) != NULL && valid_size(header->kind, header->item_bytes);
    }
    if (!known)
        return io_fail(c->error, EPLB_ERROR_UNSUPPORTED,
                       "%s: type '%s'; integers of 1, 2, 4, 8 bytes and floats of 2, 4, 8 bytes are read",
                       c->name, descr);
    header->big_endian = descr[0] == '>';
    return EPLB_OK;
}

static eplb_status parse_bool(cursor *c, bool *value)
{
    skip_space(c);
    size_t left = c->length - c->at;
    if (left >= 4 && memcmp(c->text + c->at, "True", 4) == 0) {
        c->at += 4;
        *value = true;
        return EPLB_OK;
    }
    if (left >= 5 && memcmp(c->text + c->at, "False", 5) == 0) {
        c->at += 5;
        *value = false;
        return EPLB_OK;
    }
    return malformed(c, "True or False was expected");
}

static eplb_status parse_size(cursor *c, int64_t *value)
{
    skip_space(c);
    size_t start = c->at;
    int64_t size = 0;
    while (c->at < c->length && c->text[c->at] >= '0' && c->text[c->at] <= '9') {
        int digit = c->text[c->at] - '0';
        if (size > (INT64_MAX - digit) / 10)
            return malformed(c, "a dimension does not fit in 64 bits");
        size = size * 10 + digit;
        c->at++;
    }
    if (c->at == start)
        return malformed(c, "a dimension (a number >= 0) was expected");
    (void)take(c, 'L'); /* Python 2 wrote long integers so */
    *value = size;
    return EPLB_OK;
}

static eplb_status parse_shape(cursor *c, npy_header *header)
{
    if (!take(c, '('))
        return malformed(c, "the shape must be a tuple");
    header->num_dims = 0;
    while (!take(c, ')')) {
        if (header->num_dims == NPY_MAX_DIMS)
            return io_fail(c->error, EPLB_ERROR_UNSUPPORTED, "%s: more than %d dimensions", c->name,
                           NPY_MAX_DIMS);
        eplb_status status = parse_size(c, &header->shape[header->num_dims]);
        if (status != EPLB_OK)
            return status;
        header->num_dims++;
        if (!take(c, ',') && (c->at >= c->length || c->text[c->at] != ')'))
            return malformed(c, "',' or ')' was expected after a dimension");
    }
    return EPLB_OK;
}

/* Product of the shape, checked so that the bytes of the array can be counted. */
static eplb_status count_items(npy_header *header, const char *name, io_error *error)
{
    bool empty = false;
    for (int32_t d = 0; d < header->num_dims; d++)
        empty = empty || header->shape[d] == 0;
    header->num_items = empty ? 0 : 1;
    for (int32_t d = 0; d < header->num_dims && !empty; d++) {
        if (header->num_items > INT64_MAX / header->item_bytes / header->shape[d])
            return io_fail(error, EPLB_ERROR_OVERFLOW,
                           "%s: dimension %d is %" PRId64 ": the array would have more than 2^63 bytes", name,
                           d, header->shape[d]);
        header->num_items *= header->shape[d];
    }
    return EPLB_OK;
}

enum { SEEN_DESCR = 1, SEEN_ORDER = 2, SEEN_SHAPE = 4, SEEN_ALL = 7 };

static eplb_status parse_entry(cursor *c, npy_header *header, int *seen)
{
    char key[24];
    eplb_status status = parse_string(c, key, sizeof key);
    if (status != EPLB_OK)
        return status;
    if (!take(c, ':'))
        return malformed(c, "':' was expected after a key");
    int bit = strcmp(key, "descr") == 0           ? SEEN_DESCR
              : strcmp(key, "fortran_order") == 0 ? SEEN_ORDER
              : strcmp(key, "shape") == 0         ? SEEN_SHAPE
                                                  : 0;
    if (bit == 0 || (*seen & bit) != 0)
        return io_fail(c->error, EPLB_ERROR_INVALID,
                       "%s: the .npy header has the key '%s' %s; it must have descr, fortran_order and shape",
                       c->name, key, bit == 0 ? "" : "twice");
    *seen |= bit;
    if (bit == SEEN_DESCR)
        return parse_descr(c, header);
    return bit == SEEN_ORDER ? parse_bool(c, &header->fortran_order) : parse_shape(c, header);
}

eplb_status npy_header_parse(const char *text, size_t length, const char *name, npy_header *header,
                             io_error *error)
{
    cursor c = {text, 0, length, name, error};
    int seen = 0;
    if (!take(&c, '{'))
        return malformed(&c, "'{' was expected");
    while (!take(&c, '}')) {
        eplb_status status = parse_entry(&c, header, &seen);
        if (status != EPLB_OK)
            return status;
        if (!take(&c, ',') && (c.at >= c.length || c.text[c.at] != '}'))
            return malformed(&c, "',' or '}' was expected after a value");
    }
    skip_space(&c);
    if (c.at != c.length)
        return malformed(&c, "only white space may follow '}'");
    if (seen != SEEN_ALL)
        return io_fail(error, EPLB_ERROR_INVALID, "%s: the .npy header lacks %s", name,
                       (seen & SEEN_DESCR) == 0   ? "descr"
                       : (seen & SEEN_ORDER) == 0 ? "fortran_order"
                                                  : "shape");
    return count_items(header, name, error);
}

size_t npy_header_write(npy_kind kind, int32_t item_bytes, int32_t num_dims, const int64_t *shape,
                        unsigned char out[256])
{
    char text[200];
    char letter = kind == NPY_SIGNED ? 'i' : kind == NPY_UNSIGNED ? 'u' : 'f';
    int used = snprintf(text, sizeof text, "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (",
                        item_bytes == 1 ? '|' : '<', letter, item_bytes);
    for (int32_t d = 0; d < num_dims; d++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%" PRId64 "%s", shape[d],
                         num_dims == 1 ? "," : (d + 1 < num_dims ? ", " : ""));
    used += snprintf(text + used, sizeof text - (size_t)used, "), }");
    size_t total = (10 + (size_t)used + 1 + 63) / 64 * 64;
    memcpy(out, magic, sizeof magic);
    out[6] = 1;
    out[7] = 0;
    out[8] = (unsigned char)((total - 10) & 0xff);
    out[9] = (unsigned char)((total - 10) >> 8);
    memcpy(out + 10, text, (size_t)used);
    memset(out + 10 + used, ' ', total - 10 - (size_t)used - 1);
    out[total - 1] = '\n';
    return total;
}
