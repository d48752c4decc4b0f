/* Writing a placement in the format that was asked for. */
#include "placement_output.h"

#include "failure.h"
#include "io/path.h"

io_format placement_format(int wished, const char *path)
{
    if (wished >= 0)
        return (io_format)wished;
    if (path_ends_with(path, ".npz"))
        return IO_FORMAT_NPZ;
    if (path_ends_with(path, ".yaml") || path_ends_with(path, ".yml"))
        return IO_FORMAT_TRTLLM;
    return IO_FORMAT_JSON;
}

int placement_check_first_layer(const command *self, io_format format, int64_t first_layer)
{
    if (first_layer < 0 || format == IO_FORMAT_TRTLLM)
        return PARSED;
    return complain(self, "--first-layer goes with the format trtllm, not %s", io_format_name((int)format));
}

int placement_write(const command *self, const io_document *document, io_format format, const char *path,
                    int64_t first_layer)
{
    io_error error;
    if (first_layer >= 0 && document->layer_ids != NULL && document->layer_ids[0] != first_layer)
        return complain(self, "--first-layer is %lld, but the placement's first layer is %d",
                        (long long)first_layer, (int)document->layer_ids[0]);
    if (document->split == EPLB_SPLIT_WEIGHTED && document->shares != NULL && !io_format_keeps_shares(format))
        warn(self, "the format %s has no place for unequal shares; they are left out",
             io_format_name((int)format));
    if (io_document_write(document, format, path, first_layer > 0 ? (int32_t)first_layer : 0, &error) !=
        EPLB_OK)
        return fail_io(self, &error);
    return PARSED;
}
