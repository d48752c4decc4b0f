/* The benches, one file each. To add one: its file, a line here, a line in table.c. */
#ifndef BENCH_BENCHES_H
#define BENCH_BENCHES_H

#include "bench.h"

int bench_equal(bench_report *report, const bench_options *options);
int bench_moves(bench_report *report, const bench_options *options);
int bench_plan(bench_report *report, const bench_options *options);
int bench_decode(bench_report *report, const bench_options *options);
int bench_process(bench_report *report, const bench_options *options);
int bench_resplit(bench_report *report, const bench_options *options);
int bench_route(bench_report *report, const bench_options *options);
int bench_study(bench_report *report, const bench_options *options);
int bench_spill(bench_report *report, const bench_options *options);
int bench_windows(bench_report *report, const bench_options *options);
int bench_weighted(bench_report *report, const bench_options *options);
int bench_realtime(bench_report *report, const bench_options *options);

#endif
