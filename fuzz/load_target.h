/* What every load must satisfy, whatever the bytes: it is refused with a text, or it is valid, and the sum
 * over its windows is the same whether they are kept, merged or summed at once. */
#ifndef FUZZ_LOAD_TARGET_H
#define FUZZ_LOAD_TARGET_H

#include <string.h>

#include "input_file.h"
#include "io/load.h"
#include "require.h"

static void same_sums(const eplb_load *a, const eplb_load *b)
{
    require(eplb_load_num_layers(a) == eplb_load_num_layers(b));
    require(eplb_load_num_experts(a) == eplb_load_num_experts(b));
    for (int32_t layer = 0; layer < eplb_load_num_layers(a); layer++)
        require(eplb_load_total(a, layer) == eplb_load_total(b, layer));
}

static void check_load(const uint8_t *data, size_t size)
{
    const char *path = input_file(data, size);
    io_load_options options = {.max_bytes = 4096};
    io_load windows, sum;
    io_error error = {0};
    if (io_load_read(path, &options, &windows, &error) != EPLB_OK) {
        require(error.status != EPLB_OK && error.text[0] != '\0');
        require(windows.load == NULL && windows.counts == NULL);
        return;
    }
    require(eplb_load_is_valid(windows.load));
    require(windows.num_windows >= 1 && eplb_load_num_windows(windows.load) >= 1);
    options.max_windows = 1;
    require(io_load_read(path, &options, &sum, &error) == EPLB_OK);
    require(eplb_load_num_windows(sum.load) == 1);
    /* A sum of floats is rounded once per window, in another order. */
    if (windows.counts != NULL && sum.counts != NULL)
        same_sums(windows.load, sum.load);
    io_load_clear(&windows);
    io_load_clear(&sum);
}

#endif
