/* Fuzzes the reader of plan documents, SGLang's and vLLM's JSON. */
#include "document_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_document(data, size);
    return 0;
}
