/* The table of policies: names are part of the interface, in the order in which they are listed to users. */
#include "plan/policies.h"

#include <stdio.h>
#include <string.h>

static const plan_policy table[] = {
    {.name = "auto",
     .summary = "the best of ours for the given load, ranks and split; says why (default)",
     .plan_layer = plan_layer_auto,
     .honours = HONOURS_TARGET | HONOURS_SPILL,
     .frontier = plan_frontier_auto},
    {.name = "deepseek",
     .summary = "exactly DeepSeek's planner, faults included: hierarchical or global",
     .plan_layer = plan_layer_deepseek,
     .sums_windows = true,
     .may_duplicate = true},
    {.name = "vllm",
     .summary = "DeepSeek's planner, then experts that stay on a rank keep their slot",
     .plan_layer = plan_layer_vllm,
     .sums_windows = true,
     .may_duplicate = true},
    {.name = "greedy",
     .summary = "hottest replica first to the least loaded rank; any ranks, no expert twice on one",
     .plan_layer = plan_layer_greedy,
     .sums_windows = true},
    {.name = "equal",
     .summary = "equal split: counts and places searched together, or repaired from the current placement",
     .plan_layer = plan_layer_equal,
     .honours = HONOURS_TARGET,
     .frontier = plan_frontier_equal,
     .sums_windows = true},
    {.name = "windows",
     .summary = "equal split over many windows: little imbalance in each, also in those that come",
     .plan_layer = plan_layer_windows,
     .honours = HONOURS_TARGET | HONOURS_SPILL},
    {.name = "batch",
     .summary = "for engines that split every batch anew: replicas where they free ranks",
     .plan_layer = plan_layer_batch,
     .honours = HONOURS_TARGET | HONOURS_SPILL},
    {.name = "spill",
     .summary = "groups on nodes, a few replicas outside: balance between nodes for little traffic",
     .plan_layer = plan_layer_spill,
     .honours = HONOURS_TARGET | HONOURS_SPILL},
    {.name = "weighted",
     .summary =
         "unequal shares: every rank at the mean exactly where spare slots allow, else near and proved",
     .plan_layer = plan_layer_weighted,
     .honours = HONOURS_TARGET | HONOURS_SPILL,
     .frontier = plan_frontier_weighted,
     .sums_windows = true},
};

#define NUM_POLICIES ((int32_t)(sizeof table / sizeof *table))

const plan_policy *policy_find(const char *name)
{
    if (name == NULL)
        return &table[0];
    for (int32_t i = 0; i < NUM_POLICIES; i++) {
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    }
    return NULL;
}

void policy_list_names(char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < NUM_POLICIES && used < bytes; i++) {
        int written = snprintf(text + used, bytes - used, "%s%s", i > 0 ? ", " : "", table[i].name);
        used += written > 0 ? (size_t)written : 0;
    }
}

int32_t eplb_policy_count(void)
{
    return NUM_POLICIES;
}

const char *eplb_policy_name(int32_t index)
{
    return index >= 0 && index < NUM_POLICIES ? table[index].name : NULL;
}

const char *eplb_policy_summary(int32_t index)
{
    return index >= 0 && index < NUM_POLICIES ? table[index].summary : NULL;
}
