/* The readers and writers behind io_document_read and io_document_write, one pair per format.
 *
 * A reader fills a zeroed document from what the file says; the caller clears it on failure. A writer sends
 * text to an open output whose errors stick; it is called only for documents that the format can hold. */
#ifndef IO_PLACEMENT_FORMATS_H
#define IO_PLACEMENT_FORMATS_H

#include <jansson.h>

#include "io/input.h"
#include "io/output.h"
#include "io/placement.h"

eplb_status plan_json_read(const json_t *root, const char *name, io_document *document, io_error *error);
void plan_json_write(const io_document *document, io_output *output);

eplb_status sglang_json_read(const json_t *root, const char *name, io_document *document, io_error *error);
void sglang_json_write(const io_document *document, io_output *output);

eplb_status vllm_json_read(const json_t *root, const char *name, io_document *document, io_error *error);
eplb_status vllm_json_write(const io_document *document, io_output *output, io_error *error);

eplb_status ascend_json_read(const json_t *root, const char *name, io_document *document, io_error *error);
void ascend_json_write(const io_document *document, io_output *output);

eplb_status trtllm_yaml_read(io_input *input, io_document *document, io_error *error);
void trtllm_yaml_write(const io_document *document, int32_t first_layer, io_output *output);

/* Archives of both kinds (ours and vLLM's names); a bare .npy is the slots alone. */
eplb_status placement_npz_read(io_input *input, io_document *document, io_error *error);
eplb_status placement_npy_read(io_input *input, io_document *document, io_error *error);
/* Sends a whole archive; `vllm`: vLLM's names and int64, else ours. */
eplb_status placement_npz_write(const io_document *document, bool vllm, io_output *output, io_error *error);

/* Sizes of a document from its map, checked against the limits. */
eplb_status document_take_map(io_document *document, const char *name, int32_t *map, int64_t layers,
                              int64_t slots, io_error *error);
/* The inverse maps of a document's slots, empty slots and ids outside 0 .. E-1 left out: count [L, E] and
 * slots [L, E, *width], padded with -1. The caller frees both. */
eplb_status document_inverse(const io_document *document, const char *name, int32_t **count, int32_t **slots,
                             int64_t *width, io_error *error);
/* Checks inverse maps that a file gives, count [L, E] and slots [L, E, width] (either may be NULL). */
eplb_status document_check_inverse(const io_document *document, const char *name, const int32_t *count,
                                   const int32_t *slots, int64_t width, io_error *error);

#endif
