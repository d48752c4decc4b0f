/* A bench's rows of figures, and their two forms: a table and a JSON document. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdio.h>

#include "bench.h"
#include "io/error.h"

bench_report *bench_report_create(void);
void bench_report_destroy(bench_report *report);
/* True when a figure was lost because memory was out. */
bool bench_report_lost(const bench_report *report);
/* One table for each run of rows that have the same figures. */
void bench_report_print(const bench_report *report, FILE *out);
/* {"results": [{"name", figures...}], "machine", "version"} to path, or to standard output for NULL. */
eplb_status bench_report_json(const bench_report *report, const char *path, io_error *error);

#endif
