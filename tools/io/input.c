/* Input: one buffer over read(2). See input.h. */
#include "io/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static eplb_status check_kind(io_input *input, io_error *error)
{
    struct stat status;
    if (fstat(input->descriptor, &status) != 0)
        return io_fail_errno(error, input->name, "read it", errno);
    if (S_ISDIR(status.st_mode))
        return io_fail(error, EPLB_ERROR_SYSTEM, "%s: is a folder; a file is wanted", input->name);
    input->seekable = S_ISREG(status.st_mode);
    if (!input->seekable)
        return EPLB_OK;
    /* Standard input may be a file of which something was read before: count from where it stands. */
    off_t start = lseek(input->descriptor, 0, SEEK_CUR);
    if (start < 0)
        return io_fail_errno(error, input->name, "read it", errno);
    input->seekable = start == 0;
    input->size = (int64_t)status.st_size > (int64_t)start ? (int64_t)status.st_size - (int64_t)start : 0;
    if (input->size == 0)
        return io_fail(error, EPLB_ERROR_INVALID, "%s: is empty", input->name);
    return EPLB_OK;
}

eplb_status io_input_open(io_input **result, const char *path, io_error *error)
{
    *result = NULL;
    bool standard = strcmp(path, "-") == 0;
    io_input *input = malloc(sizeof *input);
    if (input == NULL)
        return io_fail_memory(error, path, "a buffer");
    memset(input, 0, offsetof(io_input, buffer));
    input->size = -1;
    input->path = strdup(standard ? "standard input" : path);
    eplb_status status = EPLB_OK;
    if (input->path == NULL) {
        status = io_fail_memory(error, path, "a path");
    } else {
        input->name = input->path;
        input->descriptor = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
        input->owned = !standard && input->descriptor >= 0;
        if (input->descriptor < 0)
            status = io_fail_errno(error, input->name, "open it", errno);
        else
            status = check_kind(input, error);
    }
    if (status == EPLB_OK && io_input_look(input) < 0) {
        status = io_input_status(input, error);
        if (status == EPLB_OK)
            status = io_fail(error, EPLB_ERROR_INVALID, "%s: is empty", input->name);
    }
    if (status != EPLB_OK) {
        io_input_close(input);
        return status;
    }
    *result = input;
    return EPLB_OK;
}

void io_input_close(io_input *input)
{
    if (input == NULL)
        return;
    if (input->owned)
        (void)close(input->descriptor);
    free(input->path);
    free(input);
}

/* Appends to the buffer after `filled`; false at the end or on error. */
static bool read_more(io_input *input)
{
    ssize_t got;
    do {
        got = read(input->descriptor, input->buffer + input->filled, IO_INPUT_BUFFER_BYTES - input->filled);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        input->read_errno = errno;
    if (got <= 0)
        return false;
    input->filled += (size_t)got;
    return true;
}

bool io_input_fill(io_input *input)
{
    if (input->read_errno != 0)
        return false;
    input->base += (int64_t)input->filled;
    input->at = 0;
    input->filled = 0;
    return read_more(input);
}

eplb_status io_input_status(const io_input *input, io_error *error)
{
    if (input->read_errno != 0)
        return io_fail_errno(error, input->name, "read it", input->read_errno);
    return EPLB_OK;
}

int64_t io_input_offset(const io_input *input)
{
    return input->base + (int64_t)input->at;
}

size_t io_input_peek(io_input *input, size_t count, const unsigned char **bytes)
{
    while (input->filled < count && read_more(input))
        continue;
    *bytes = input->buffer;
    return input->filled < count ? input->filled : count;
}

static bool starts_with_mark(const unsigned char *bytes, size_t count)
{
    return count >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0;
}

void io_input_skip_mark(io_input *input)
{
    const unsigned char *bytes;
    if (io_input_offset(input) != 0)
        return;
    size_t ready = io_input_peek(input, 3, &bytes);
    if (starts_with_mark(bytes, ready))
        input->at = 3;
}

eplb_status io_input_read(io_input *input, void *bytes, size_t count, size_t *got, io_error *error)
{
    unsigned char *out = bytes;
    *got = 0;
    while (*got < count) {
        if (input->at == input->filled && !io_input_fill(input))
            return io_input_status(input, error);
        size_t ready = input->filled - input->at;
        size_t take = ready < count - *got ? ready : count - *got;
        memcpy(out + *got, input->buffer + input->at, take);
        input->at += take;
        *got += take;
    }
    return EPLB_OK;
}

/* The first byte that is neither a byte order mark nor white space; 0 if there is none. */
static unsigned char first_character(const unsigned char *bytes, size_t count)
{
    size_t at = starts_with_mark(bytes, count) ? 3 : 0;
    while (at < count && strchr(" \t\r\n", bytes[at]) != NULL && bytes[at] != '\0')
        at++;
    return at < count ? bytes[at] : 0;
}

io_content io_input_content(io_input *input)
{
    static const unsigned char npy[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    const unsigned char *bytes;
    size_t ready = io_input_peek(input, 4096, &bytes);
    if (ready >= sizeof npy && memcmp(bytes, npy, sizeof npy) == 0)
        return IO_CONTENT_NPY;
    if (ready >= 4 && (memcmp(bytes, "PK\003\004", 4) == 0 || memcmp(bytes, "PK\005\006", 4) == 0))
        return IO_CONTENT_ZIP;
    unsigned char first = first_character(bytes, ready);
    return first == '{' || first == '[' ? IO_CONTENT_JSON : IO_CONTENT_TEXT;
}
