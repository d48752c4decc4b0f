/* A clock for measuring: seconds from an unspecified start, which no change of the time of day moves. */
#ifndef TOOLS_CLOCK_H
#define TOOLS_CLOCK_H

#include <time.h>

static inline double clock_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
