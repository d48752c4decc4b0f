/* The tests of test_checked.c on the portable wide product, for compilers without a 128-bit integer. */
#define EPLB_NO_INT128
#include "unit/base/test_checked.c"
