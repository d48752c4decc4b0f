/* A plan as a table for people. */
#ifndef TOOLS_REPORT_PLAN_REPORT_H
#define TOOLS_REPORT_PLAN_REPORT_H

#include <stdio.h>

#include <eplb/plan.h>

#include "io/placement.h"

/* Prints sizes, imbalance before and after with bound and gap, the worst layers and, when the plan started
 * from a current placement, the moves. num_windows: of the load's file; before [L]. */
void plan_report(FILE *out, int64_t num_windows, const eplb_plan *plan, const double *before,
                 bool from_current);

/* Moves against imbalance, one row a point. */
void frontier_report(FILE *out, const io_frontier_point *points, int32_t count);

#endif
