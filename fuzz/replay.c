/* Runs a fuzz target over saved inputs, so that every input that once mattered stays a plain test with any
 * compiler. Arguments are files or folders of files, which are taken in the order of their names. An empty or
 * missing folder fails: a target without a corpus would pass whatever it does. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    int result = -1;
    uint8_t *data = NULL;
    if (fseek(file, 0, SEEK_END) != 0)
        goto close_file;
    long size = ftell(file);
    if (size < 0 || fseek(file, 0, SEEK_SET) != 0)
        goto close_file;
    /* Exactly as large as the input: a sanitizer sees the first byte read past it. */
    data = malloc(size > 0 ? (size_t)size : 1);
    if (data == NULL || fread(data, 1, (size_t)size, file) != (size_t)size)
        goto free_data;
    (void)LLVMFuzzerTestOneInput(data, (size_t)size);
    result = 0;
free_data:
    free(data);
close_file:
    fclose(file);
    if (result != 0)
        fprintf(stderr, "%s: cannot be read\n", path);
    return result;
}

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The number of inputs run, or -1. */
static int run_folder(const char *folder)
{
    struct dirent **entries = NULL;
    int num_entries = scandir(folder, &entries, is_input, alphasort);
    if (num_entries < 0)
        return -1;
    int failed = 0;
    for (int i = 0; i < num_entries; i++) {
        char path[4096];
        int length = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (length < 0 || (size_t)length >= sizeof path || run_file(path) != 0)
            failed = 1;
        free(entries[i]);
    }
    free(entries);
    return failed ? -1 : num_entries;
}

int main(int argc, char **argv)
{
    int num_inputs = 0;
    for (int i = 1; i < argc; i++) {
        int found = run_folder(argv[i]);
        if (found < 0 && errno == ENOTDIR)
            found = run_file(argv[i]) == 0 ? 1 : -1;
        if (found < 0) {
            fprintf(stderr, "%s: failed\n", argv[i]);
            return 1;
        }
        num_inputs += found;
    }
    if (num_inputs == 0) {
        fprintf(stderr, "no inputs\n");
        return 1;
    }
    printf("%d inputs\n", num_inputs);
    return 0;
}
