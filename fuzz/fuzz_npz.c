/* Fuzzes the reader of .npz archives, as a load, as token routing and as a placement. */
#include "load_target.h"

#include "io/placement.h"
#include "io/topk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_topk(const char *path)
{
    io_topk *topk;
    io_error error = {0};
    if (io_topk_open(&topk, path, 0, &error) != EPLB_OK) {
        require(topk == NULL && error.text[0] != '\0');
        return;
    }
    int64_t per_token = (int64_t)io_topk_num_layers(topk) * io_topk_width(topk), read = 1;
    int32_t *ids = per_token < 1 << 20 ? malloc((size_t)per_token * 3 * sizeof *ids) : NULL;
    while (ids != NULL && read > 0 && io_topk_read(topk, 3, ids, &read, &error) == EPLB_OK)
        for (int64_t i = 0; i < read * per_token; i++)
            require(ids[i] >= -1 && ids[i] < io_topk_num_experts(topk));
    free(ids);
    io_topk_close(topk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_load(data, size);
    const char *path = input_file(data, size);
    check_topk(path);
    io_document document;
    io_error error = {0};
    if (io_document_read(path, NULL, &document, &error) == EPLB_OK)
        io_document_clear(&document);
    return 0;
}
