/* Text of strangers, made fit for a terminal: names and values that came from a file or a command line may
 * hold bytes that a terminal takes as orders. */
#ifndef TOOLS_VISIBLE_TEXT_H
#define TOOLS_VISIBLE_TEXT_H

#include <stddef.h>

/* Copies `text` to out[size], cut to fit: control characters (ASCII's, and Unicode's U+0080 to U+009F) and
 * bytes that are no UTF-8 become \xNN, line ends \n, tabs \t. The rest, letters of any language, stays.
 * Returns out. O(length). */
char *visible_text(const char *text, char *out, size_t size);

#endif
