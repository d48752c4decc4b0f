/* Options of the planner that are words of their own: policies, costs, limits of moves. */
#ifndef TOOLS_PLAN_WORDS_H
#define TOOLS_PLAN_WORDS_H

#include <eplb/plan.h>

#include "command.h"

/* PARSED if a policy has that name; else names the nearest and all. */
int plan_find_policy(const command *self, const char *name);
/* The split that a policy is for; equal for those that take several. */
eplb_split plan_split_of(const char *policy);
/* "4" is per layer, "total:4" over all layers; PARSED or an exit status, as in the next. */
int plan_parse_max_moves(const command *self, const char *text, eplb_plan_params *params);
/* "tokens", or a mixture "tokens=1,tiles=2,activated=300". */
int plan_parse_cost(const command *self, const char *text, eplb_cost *cost);

#endif
