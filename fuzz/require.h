/* What a fuzzed input must not break: a fuzzer takes an abort for a finding. */
#ifndef FUZZ_REQUIRE_H
#define FUZZ_REQUIRE_H

#include <stdbool.h>
#include <stdlib.h>

static inline void require(bool holds)
{
    if (!holds)
        abort();
}

#endif
