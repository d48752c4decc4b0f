/* Text made fit for a terminal. UTF-8 is decoded only as far as needed to tell a letter from an order: the
 * length of a character by its first byte, its other bytes by their range (RFC 3629). */
#include "visible_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the UTF-8 character at text, or 0 where there is none. */
static size_t character_length(const unsigned char *text)
{
    size_t length = text[0] < 0x80                      ? 1
                    : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
                    : text[0] >= 0xe0 && text[0] < 0xf0 ? 3
                    : text[0] >= 0xf0 && text[0] < 0xf5 ? 4
                                                        : 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80) /* also where the text ends */
            return 0;
    return length;
}

static bool is_control(const unsigned char *text, size_t length)
{
    return length == 0 || (length == 1 && (text[0] < 0x20 || text[0] == 0x7f)) ||
           (length == 2 && text[0] == 0xc2 && text[1] < 0xa0);
}

char *visible_text(const char *text, char *out, size_t size)
{
    const unsigned char *next = (const unsigned char *)text;
    size_t used = 0;
    while (*next != '\0') {
        size_t length = character_length(next);
        char piece[8];
        if (*next == '\n' || *next == '\t') {
            (void)snprintf(piece, sizeof piece, "%s", *next == '\n' ? "\\n" : "\\t");
            length = 1;
        } else if (is_control(next, length)) {
            (void)snprintf(piece, sizeof piece, "\\x%02x", *next);
            length = 1; /* what follows is looked at on its own */
        } else {
            (void)snprintf(piece, sizeof piece, "%.*s", (int)length, (const char *)next);
        }
        size_t bytes = strlen(piece);
        if (used + bytes >= size)
            break;
        memcpy(out + used, piece, bytes);
        used += bytes;
        next += length;
    }
    out[used] = '\0';
    return out;
}
