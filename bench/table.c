/* The benches: one file each; to add one, a line in benches.h and a line here. */
#include "benches.h"

#include <stddef.h>

const bench bench_table[] = {
    {"study",
     "the published study: imbalance of DeepSeek's planner on DeepSeek-V3's shape; none: 8 experts a rank, "
     "no spare slots",
     bench_study},
    {"plan", "planning time of every policy on one thread against a plain heap-based planner", bench_plan},
    {"process", "eplb plan as a process: time from start to finish, peak memory with many windows",
     bench_process},
    {"equal", "equal split: balance and time against DeepSeek's planner and simulated annealing",
     bench_equal},
    {"moves", "repair: balance against weights received after a drift, and window after window", bench_moves},
    {"resplit", "the exact split of a batch against LPLB's steps; with --trace, the next window",
     bench_resplit},
    {"route", "choosing slots: time against reading and writing alone, and how far from the quota",
     bench_route},
    {"decode", "one replica per active expert: activated replicas and time; with --trace, recorded batches",
     bench_decode},
    {"windows", "plans for many windows, judged on windows they have not seen; also with batches split anew",
     bench_windows},
    {"weighted", "unequal shares: balance and bound, time, drift and repair; with --trace, its layers",
     bench_weighted},
    {"realtime", "one batch in spare slots: balance, replicas, and time against one pass over the layer",
     bench_realtime},
    {"spill", "groups on nodes with a few replicas outside: balance, its proved floor, tokens between nodes",
     bench_spill},
    {NULL, NULL, NULL},
};
