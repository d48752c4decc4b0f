/* One run of `eplb plan`: what it was asked for, what it has read and made. */
#ifndef TOOLS_PLAN_RUN_H
#define TOOLS_PLAN_RUN_H

#include <eplb/plan.h>

#include "cluster.h"
#include "command.h"
#include "io/load.h"
#include "io/placement.h"
#include "window_spread.h"

typedef struct plan_values {
    cluster_options cluster;
    int64_t groups, spill, threads, work_limit, tile, tokens_per_window, experts, first_layer;
    double target, time_budget;
    const char *policy, *current, *max_moves, *cost, *sources, *array, *output;
    int split, format; /* -1: what the policy is for; told by the output's name */
    bool json, topk, frontier;
} plan_values;

/* Everything a run holds; released in one place. */
typedef struct plan_run {
    const command *self;
    plan_values values;
    const char *load_path;
    eplb_plan_params params;
    io_load load, sources;
    io_document current_file, document;
    eplb_topology *topology;
    eplb_placement *current; /* as the file has it */
    eplb_placement *start;   /* what "before" is measured on, if not that */
    eplb_plan *plan;
    double *before;
    window_spread windows[2]; /* before and after */
} plan_run;

/* Fills `before`: the imbalance of the current placement under its own shares (or split anew, as the plan),
 * or of the layout that engines start from; also that of each window on its own, before and after. PARSED or
 * an exit status, as plan_run_answer. */
int plan_run_measure(plan_run *run);
/* Tells on standard error what a plan may surprise with. */
void plan_run_warn(const plan_run *run);
/* Makes the document; writes what was asked for, or prints the report. */
int plan_run_answer(plan_run *run);
/* False for a plan from a current placement that moves nothing and makes no layer better. */
bool plan_run_gains(const plan_run *run);

#endif
