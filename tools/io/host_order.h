/* Byte order of the host, for arrays in files. */
#ifndef IO_HOST_ORDER_H
#define IO_HOST_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline bool host_is_big_endian(void)
{
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 0;
}

/* Reverses the bytes of each item. */
static inline void swap_items(unsigned char *bytes, size_t count, size_t item_bytes)
{
    for (size_t i = 0; i < count; i++, bytes += item_bytes)
        for (size_t b = 0; b < item_bytes / 2; b++) {
            unsigned char byte = bytes[b];
            bytes[b] = bytes[item_bytes - 1 - b];
            bytes[item_bytes - 1 - b] = byte;
        }
}

static inline void host_to_little_endian(unsigned char *bytes, size_t count, size_t item_bytes)
{
    if (host_is_big_endian())
        swap_items(bytes, count, item_bytes);
}

#endif
