#include <stdint.h>
#include <stddef.h>
#include <eplb/x.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size){return eplb_x((int)size)+(data==NULL)<0;}
