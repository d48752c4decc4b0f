/* A fuzz input as a file, since the readers take paths: one unlinked file per process, rewritten for each
 * input and opened anew through /proc. */
#ifndef FUZZ_INPUT_FILE_H
#define FUZZ_INPUT_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *input_file(const uint8_t *data, size_t size)
{
    static int file = -1;
    static char path[64];
    if (file < 0) {
        char name[] = "/dev/shm/eplb-fuzz.XXXXXX", other[] = "/tmp/eplb-fuzz.XXXXXX";
        file = mkstemp(name);
        if (file >= 0) {
            (void)unlink(name);
        } else {
            file = mkstemp(other);
            (void)unlink(other);
        }
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != (ssize_t)size)
        abort();
    return path;
}

#endif
