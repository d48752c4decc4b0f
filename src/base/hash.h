/* 64-bit hash of a byte-order-free stream of integers: FNV-1a over 64-bit words with a final avalanche
 * (Fowler, Noll, Vo; finaliser of Stafford's mix 13). For equality checks between ranks, not against
 * attackers. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t hash_add(uint64_t hash, uint64_t word)
{
    hash ^= word;
    hash *= UINT64_C(0x100000001b3);
    return hash ^ (hash >> 29);
}

static inline uint64_t hash_finish(uint64_t hash)
{
    hash = (hash ^ (hash >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ (hash >> 27)) * UINT64_C(0x94d049bb133111eb);
    return hash ^ (hash >> 31);
}

#endif
