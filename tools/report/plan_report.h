/* A plan as a table for people. */
#ifndef TOOLS_REPORT_PLAN_REPORT_H
#define TOOLS_REPORT_PLAN_REPORT_H

#include <stdio.h>

#include <eplb/plan.h>

#include "io/placement.h"
#include "window_spread.h"

/* What was measured besides the plan. */
typedef struct plan_figures {
    int64_t num_windows;             /* of the load's file */
    int32_t num_blocks;              /* windows or sums of neighbours that were kept */
    const window_spread *windows;    /* [2] before and after on each of them, when there are several */
    const double *before;            /* [L] */
    const double *cross_node_tokens; /* [L], or NULL on one node */
    double total_tokens;             /* over all layers */
    bool from_current;               /* before is a current placement, not the start layout */
    const int64_t *lost_first;       /* [L + 1] */
    const int32_t *lost_experts;     /* what no rank can send, layer by layer, or NULL: nothing */
} plan_figures;

/* Prints sizes, imbalance before and after with bound and gap, the worst layers and, when the plan started
 * from a current placement, the moves. */
void plan_report(FILE *out, const eplb_plan *plan, const plan_figures *figures);

/* Moves against imbalance, one row a point. */
void frontier_report(FILE *out, const io_frontier_point *points, int32_t count);

#endif
