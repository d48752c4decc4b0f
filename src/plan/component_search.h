/* Dividing experts and ranks among connected components so that all have the same load per rank. */
#ifndef PLAN_COMPONENT_SEARCH_H
#define PLAN_COMPONENT_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

/* Experts 0 .. num_experts-1 (of any list), each in one of `count` components. A component of g ranks has
 * (slots_per_rank - 1) g + 1 experts. */
typedef struct component_split {
    int32_t num_experts;
    int32_t count;
    int32_t slots_per_rank;
    const int64_t *load; /* [num_experts] */
    int32_t *component;  /* [num_experts] */
    int32_t *size;       /* [count] ranks >= 1 */
} component_split;

typedef struct component_limits {
    double floor;  /* load per rank that cannot be undercut */
    double enough; /* load per rank that is good enough */
    int64_t steps; /* changes to look at, at most */
    bool (*should_stop)(void *context);
    void *stop_context;
} component_limits;

/* Lowers the largest load per rank, or leaves all as it is. False when memory is out. O(steps + E). */
bool component_search(component_split *split, const component_limits *limits, arena *scratch);

#endif
