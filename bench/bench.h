/* Benches: each is one function in bench/<name>.c that measures and adds rows to a report; `eplb bench NAME`
 * prints the report as a table or as one JSON document. Ratios are taken inside one run, from medians of
 * interleaved pairs. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>

typedef struct bench_report bench_report;

typedef struct bench_options {
    int repetitions;        /* 0: the bench's default */
    const char *trace_path; /* a recorded trace (--trace), or NULL: the shipped example or generated loads */
    bool quick;             /* a few seconds: used by tests to see that it runs */
} bench_options;

/* Starts a row; figures that follow belong to it. Names are lower-case words joined by dots:
 * "zipf1.global". */
void bench_row(bench_report *report, const char *name);
/* Adds a figure to the current row; the key carries the unit where there is one ("plan_ms", "ratio"). */
void bench_number(bench_report *report, const char *key, double value);

/* Tells on standard error why a bench ends early, behind "eplb bench: ". */
void bench_complain(const char *format, ...) __attribute__((__format__(__printf__, 1, 2)));

/* Monotonic seconds. */
double bench_seconds(void);
/* Processor seconds of this process: for ratios of runs of different lengths on one thread, which a busy
 * machine would bend, since only the longer one loses its turn. */
double bench_cpu_seconds(void);
/* Median of values[count]; reorders them. */
double bench_median(double *values, int count);

/* One bench: name, one line, function returning 0 or an exit status after printing to stderr. */
typedef struct bench {
    const char *name;
    const char *summary;
    int (*run)(bench_report *report, const bench_options *options);
} bench;

/* The table, ended by a NULL name (bench/table.c). */
extern const bench bench_table[];

#endif
