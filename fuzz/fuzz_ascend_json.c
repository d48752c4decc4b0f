/* Fuzzes the reader of vllm-ascend's expert_map.json. */
#include "document_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_document(data, size);
    return 0;
}
