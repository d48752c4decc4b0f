/* Output: buffered writes to a temporary file beside the target, or straight into a stream.
 *
 * The choice is made once, by what the path names: rename() makes a regular file appear whole; a device or a
 * pipe cannot be replaced and must not be. rename() is atomic: an interrupted run leaves the old file or the
 * new one, never a part. (Not forced to the disk first: that costs as much as planning.) */
#define _XOPEN_SOURCE 700 /* realpath */
#include "io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)64 * 1024)

struct io_output {
    int descriptor;
    bool owned;      /* the descriptor is ours to close */
    char *name;      /* for messages */
    char *target;    /* final path; NULL for a stream */
    char *temporary; /* NULL for a stream */
    size_t used;
    io_error failure; /* status OK: none so far */
    unsigned char buffer[BUFFER_BYTES];
};

/* The temporary file that a signal must take away: set while one exists. The command writes one file at a
 * time. */
static char *volatile pending_file;

static void remove_pending(int number)
{
    if (pending_file != NULL)
        (void)unlink(pending_file);
    (void)raise(number); /* the handler is reset: now with the signal's own effect */
}

static const int ending_signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
#define NUM_ENDING_SIGNALS (sizeof ending_signals / sizeof *ending_signals)

void io_output_catch_signals(void)
{
    struct sigaction action = {.sa_handler = remove_pending, .sa_flags = (int)SA_RESETHAND};
    (void)signal(SIGPIPE, SIG_IGN); /* a closed pipe and a limit of the file's size are errors of write, */
    (void)signal(SIGXFSZ, SIG_IGN); /* told like any other */
    for (size_t i = 0; i < NUM_ENDING_SIGNALS; i++) {
        struct sigaction before;
        if (sigaction(ending_signals[i], NULL, &before) == 0 &&
            before.sa_handler != SIG_IGN) /* as nohup asks */
            (void)sigaction(ending_signals[i], &action, NULL);
    }
}

/* mkstemp, and its registration before a signal can come between. */
static int make_temporary(char *name)
{
    sigset_t ending, before;
    (void)sigemptyset(&ending);
    for (size_t i = 0; i < NUM_ENDING_SIGNALS; i++)
        (void)sigaddset(&ending, ending_signals[i]);
    (void)sigprocmask(SIG_BLOCK, &ending, &before);
    int descriptor = mkstemp(name);
    if (descriptor >= 0)
        pending_file = name;
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return descriptor;
}

static bool is_stream_name(const char *path)
{
    return path == NULL || strcmp(path, "-") == 0;
}

static void output_free(io_output *output)
{
    if (pending_file == output->temporary)
        pending_file = NULL;
    free(output->name);
    free(output->target);
    free(output->temporary);
    free(output);
}

/* Where a link points: its text, beside the link's own folder unless absolute. NULL: memory is out or it is
 * no link any more. */
static char *read_link(const char *path)
{
    const char *name = strrchr(path, '/');
    size_t folder = name != NULL ? (size_t)(name - path) + 1 : 0;
    char *target = calloc(folder + PATH_MAX + 1, 1);
    if (target == NULL)
        return NULL;
    memcpy(target, path, folder);
    ssize_t length = readlink(path, target + folder, PATH_MAX);
    if (length < 0) {
        free(target);
        return NULL;
    }
    if (target[folder] == '/')
        memmove(target, target + folder, (size_t)length + 1);
    return target;
}

/* The file that a rename must replace: links are followed, so that a link stays a link, also one whose file
 * is not there yet. (A ring of links was refused before.) */
static char *resolve_target(const char *path)
{
    char *target = realpath(path, NULL);
    struct stat status;
    if (target != NULL)
        return target;
    target = strdup(path);
    while (target != NULL && lstat(target, &status) == 0 && S_ISLNK(status.st_mode)) {
        char *next = read_link(target);
        free(target);
        target = next;
    }
    return target;
}

/* The path of a file beside the target, for mkstemp; of a long name only the first part. */
static char *temporary_name(const char *target)
{
    static const char suffix[] = ".XXXXXX";
    const char *slash = strrchr(target, '/');
    size_t folder = slash != NULL ? (size_t)(slash - target) + 1 : 0, name = strlen(target + folder);
    if (name + sizeof suffix > NAME_MAX)
        name = NAME_MAX - sizeof suffix;
    char *path = malloc(folder + name + sizeof suffix);
    if (path == NULL)
        return NULL;
    memcpy(path, target, folder + name);
    memcpy(path + folder + name, suffix, sizeof suffix);
    return path;
}

/* Permissions of the file that is replaced, or those that open(O_CREAT) would give. */
static mode_t target_mode(const char *target)
{
    struct stat status;
    if (stat(target, &status) == 0)
        return status.st_mode & 0777;
    mode_t mask = umask(0);
    (void)umask(mask);
    return 0666 & ~mask;
}

static eplb_status open_temporary(io_output *output, const char *path, io_error *error)
{
    output->target = resolve_target(path);
    output->temporary = output->target != NULL ? temporary_name(output->target) : NULL;
    if (output->temporary == NULL)
        return io_fail_memory(error, path, "a path");
    output->descriptor = make_temporary(output->temporary);
    if (output->descriptor < 0) {
        int reason = errno;
        free(output->temporary);
        output->temporary = NULL;
        return io_fail_errno(error, path, "write it", reason);
    }
    output->owned = true;
    if (fchmod(output->descriptor, target_mode(output->target)) != 0)
        return io_fail_errno(error, path, "set its permissions", errno);
    return EPLB_OK;
}

static eplb_status open_path(io_output *output, const char *path, io_error *error)
{
    if (path[0] == '\0')
        return io_fail(error, EPLB_ERROR_INVALID, "the path of the output is empty");
    struct stat status;
    bool exists = stat(path, &status) == 0;
    if (!exists && errno != ENOENT) /* a ring of links, a name too long */
        return io_fail_errno(error, path, "write it", errno);
    if (exists && S_ISDIR(status.st_mode))
        return io_fail(error, EPLB_ERROR_SYSTEM, "%s: is a folder; the output needs the path of a file",
                       path);
    /* A rename would replace a file that may not be written. */
    if (exists && S_ISREG(status.st_mode) && access(path, W_OK) != 0)
        return io_fail_errno(error, path, "write it", errno);
    if (!exists || S_ISREG(status.st_mode))
        return open_temporary(output, path, error);
    output->descriptor = open(path, O_WRONLY | O_CLOEXEC);
    if (output->descriptor < 0)
        return io_fail_errno(error, path, "write it", errno);
    output->owned = true;
    return EPLB_OK;
}

eplb_status io_output_open(io_output **result, const char *path, io_error *error)
{
    *result = NULL;
    bool stream = is_stream_name(path);
    io_output *output = calloc(1, sizeof *output);
    if (output == NULL)
        return io_fail_memory(error, stream ? "standard output" : path, "a buffer");
    output->descriptor = STDOUT_FILENO;
    output->name = strdup(stream ? "standard output" : path);
    eplb_status status = EPLB_OK;
    if (output->name == NULL)
        status = io_fail_memory(error, "output", "a path");
    else if (!stream)
        status = open_path(output, path, error);
    if (status != EPLB_OK) {
        io_output_abandon(output);
        return status;
    }
    *result = output;
    return EPLB_OK;
}

const char *io_output_name(const io_output *output)
{
    return output->name;
}

static void write_all(io_output *output, const unsigned char *bytes, size_t count)
{
    while (count > 0 && output->failure.status == EPLB_OK) {
        ssize_t written = write(output->descriptor, bytes, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            (void)io_fail_errno(&output->failure, output->name, "write to it", errno);
            return;
        }
        bytes += written;
        count -= (size_t)written;
    }
}

static void flush(io_output *output)
{
    write_all(output, output->buffer, output->used);
    output->used = 0;
}

void io_output_write(io_output *output, const void *bytes, size_t count)
{
    if (count > BUFFER_BYTES - output->used)
        flush(output);
    if (count > BUFFER_BYTES) {
        write_all(output, bytes, count);
        return;
    }
    if (count > 0)
        memcpy(output->buffer + output->used, bytes, count);
    output->used += count;
}

void io_output_text(io_output *output, const char *text)
{
    io_output_write(output, text, strlen(text));
}

void io_output_format(io_output *output, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length >= 0 && (size_t)length < sizeof line) {
        io_output_write(output, line, (size_t)length);
    } else if (length >= 0) {
        char *text = malloc((size_t)length + 1);
        if (text == NULL) {
            if (output->failure.status == EPLB_OK)
                (void)io_fail_memory(&output->failure, output->name, "a line of text");
        } else {
            (void)vsnprintf(text, (size_t)length + 1, format, again);
            io_output_write(output, text, (size_t)length);
            free(text);
        }
    }
    va_end(again);
}

void io_output_fail(io_output *output, const char *format, ...)
{
    char text[160];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (output->failure.status == EPLB_OK)
        (void)io_fail(&output->failure, EPLB_ERROR_INTERNAL, "%s: %s", output->name, text);
}

static void keep_failure(io_output *output, const char *what, int errno_value)
{
    if (output->failure.status == EPLB_OK)
        (void)io_fail_errno(&output->failure, output->name, what, errno_value);
}

eplb_status io_output_close(io_output *output, io_error *error)
{
    flush(output);
    if (output->owned && close(output->descriptor) != 0)
        keep_failure(output, "close it", errno);
    output->owned = false;
    if (output->temporary != NULL && output->failure.status == EPLB_OK) {
        if (rename(output->temporary, output->target) != 0)
            keep_failure(output, "rename the finished file to it", errno);
        else
            output->temporary[0] = '\0';
    }
    eplb_status status = output->failure.status;
    if (status != EPLB_OK && error != NULL)
        *error = output->failure;
    io_output_abandon(output);
    return status;
}

void io_output_abandon(io_output *output)
{
    if (output == NULL)
        return;
    if (output->owned)
        (void)close(output->descriptor);
    if (output->temporary != NULL && output->temporary[0] != '\0')
        (void)unlink(output->temporary);
    output_free(output);
}
