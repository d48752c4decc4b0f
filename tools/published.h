/* Policies that answer as a published planner does, its faults included (docs/deepseek.md): they look at the
 * sum of the windows alone and may put an expert twice on a rank. */
#ifndef TOOLS_PUBLISHED_H
#define TOOLS_PUBLISHED_H

#include <stdbool.h>
#include <string.h>

static inline bool is_published(const char *policy)
{
    return policy != NULL && (strcmp(policy, "deepseek") == 0 || strcmp(policy, "vllm") == 0);
}

#endif
