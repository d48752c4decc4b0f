/* What a bench says when it cannot go on; names of files are made fit for a terminal, as all commands do
 * it. */
#include <stdarg.h>
#include <stdio.h>

#include "bench.h"
#include "visible_text.h"

void bench_complain(const char *format, ...)
{
    char text[2048], shown[4096];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "eplb bench: %s\n", visible_text(text, shown, sizeof shown));
}
