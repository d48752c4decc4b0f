/* The command as a process: time from start to finish of `eplb plan` on [58,256], and how much more memory it
 * takes on [1000,58,256] than on [1,58,256]. Runs this very executable on generated files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "benches.h"
#include "io/load.h"
#include "synthetic.h"

enum { LAYERS = 58, EXPERTS = 256, WINDOWS = 1000, QUICK_WINDOWS = 50, REPETITIONS = 51 };

/* Runs `eplb plan FILE` with its output thrown away; returns seconds, or a negative number. ru_maxrss is of
 * that child alone: wait4 gives it, but it is no part of POSIX, so the child reports through RUSAGE_CHILDREN
 * of a process in between. */
static double run_plan(const char *path)
{
    double start = bench_seconds();
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        if (freopen("/dev/null", "w", stdout) == NULL)
            _exit(127);
        (void)execl("/proc/self/exe", "eplb", "plan", path, "--ranks", "32", "--slots", "288", (char *)NULL);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return -1.0;
    return bench_seconds() - start;
}

/* Peak resident kilobytes of one run, measured by a process whose only child it is; negative on failure. */
static double peak_kilobytes(const char *path)
{
    int ends[2], status = 0;
    struct rusage usage;
    long peak = -1;
    if (pipe(ends) != 0)
        return -1.0;
    pid_t middle = fork();
    if (middle == 0) {
        if (run_plan(path) >= 0.0 && getrusage(RUSAGE_CHILDREN, &usage) == 0)
            peak = usage.ru_maxrss;
        _exit(write(ends[1], &peak, sizeof peak) == (ssize_t)sizeof peak ? 0 : 1);
    }
    (void)close(ends[1]);
    bool good = middle > 0 && read(ends[0], &peak, sizeof peak) == (ssize_t)sizeof peak;
    (void)close(ends[0]);
    if (middle > 0)
        (void)waitpid(middle, &status, 0);
    return good ? (double)peak : -1.0;
}

static bool write_windows(const char *path, int32_t windows)
{
    static int64_t rows[LAYERS * EXPERTS];
    static double weights[EXPERTS];
    io_load_writer *writer;
    random_state random = random_seed(1);
    if (io_load_writer_open(&writer, path, windows, LAYERS, EXPERTS, EPLB_ELEMENT_INT64, NULL) != EPLB_OK)
        return false;
    for (int32_t t = 0; t < windows; t++) {
        for (size_t l = 0; l < LAYERS; l++) {
            synthetic_lognormal(&random, 0.5, EXPERTS, weights);
            synthetic_counts(weights, EXPERTS, 256000.0, 0, rows + l * EXPERTS);
        }
        io_load_writer_window(writer, rows);
    }
    return io_load_writer_close(writer, NULL) == EPLB_OK;
}

static bool measure_time(bench_report *report, const char *path, int repetitions)
{
    double *seconds = malloc((size_t)repetitions * sizeof *seconds);
    bool good = seconds != NULL;
    for (int i = 0; good && i < repetitions; i++)
        good = (seconds[i] = run_plan(path)) >= 0.0;
    if (good) {
        bench_row(report, "process.plan");
        bench_number(report, "median_ms", 1e3 * bench_median(seconds, repetitions));
        bench_number(report, "least_ms", 1e3 * seconds[0]);
        bench_number(report, "repetitions", repetitions);
    }
    free(seconds);
    return good;
}

static bool measure_memory(bench_report *report, const char *one, const char *many, int windows)
{
    double less = peak_kilobytes(one), more = peak_kilobytes(many);
    if (less < 0.0 || more < 0.0)
        return false;
    bench_row(report, "process.memory");
    bench_number(report, "windows", windows);
    bench_number(report, "peak_mb", 1e-3 * more);
    bench_number(report, "peak_mb_one_window", 1e-3 * less);
    bench_number(report, "more_mb", 1e-3 * (more - less));
    return true;
}

int bench_process(bench_report *report, const bench_options *options)
{
    const char *folder = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";
    char place[512], one[540], many[540];
    int windows = options->quick ? QUICK_WINDOWS : WINDOWS;
    int repetitions = options->repetitions > 0 ? options->repetitions : options->quick ? 3 : REPETITIONS;
    (void)snprintf(place, sizeof place, "%s/eplb-bench-XXXXXX", folder);
    if (mkdtemp(place) == NULL) {
        bench_complain("cannot make a folder in %s", folder);
        return 2;
    }
    (void)snprintf(one, sizeof one, "%s/one.npy", place);
    (void)snprintf(many, sizeof many, "%s/many.npy", place);
    bool good = write_windows(one, 1) && write_windows(many, windows) &&
                measure_time(report, one, repetitions) && measure_memory(report, one, many, windows);
    (void)remove(one);
    (void)remove(many);
    (void)remove(place);
    if (!good)
        bench_complain("a run of eplb plan failed, or %s is full", folder);
    return good ? 0 : 2;
}
