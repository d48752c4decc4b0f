/* The benches: one file each; to add one, a line in benches.h and a line here. */
#include "benches.h"

#include <stddef.h>

const bench bench_table[] = {
    {"process", "eplb plan as a process: time from start to finish, peak memory with many windows",
     bench_process},
    {NULL, NULL, NULL},
};
