/* Printing into a buffer. */
#ifndef TESTS_TOOLS_CAPTURE_H
#define TESTS_TOOLS_CAPTURE_H

#include <stdio.h>

/* Runs `call`, which prints to `out`, with `out` going to text[size]. */
#define CAPTURE(text, size, call)                                                                            \
    do {                                                                                                     \
        FILE *out = fmemopen(text, size, "w");                                                               \
        assert_non_null(out);                                                                                \
        call;                                                                                                \
        assert_int_equal(fclose(out), 0);                                                                    \
    } while (0)

#endif
