/* Benches of the planner. */
#ifndef BENCH_PLAN_BENCHES_H
#define BENCH_PLAN_BENCHES_H

#include "bench.h"

int bench_plan(bench_report *report, const bench_options *options);
int bench_study(bench_report *report, const bench_options *options);

#endif
