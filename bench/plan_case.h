/* Loads, ranks and timed plans, as several benches need them. */
#ifndef BENCH_PLAN_CASE_H
#define BENCH_PLAN_CASE_H

#include <eplb/eplb.h>

typedef struct plan_shape {
    int32_t layers;
    int32_t experts;
    int32_t slots;
    int32_t ranks;
    int32_t nodes;
    int32_t groups;
} plan_shape;

/* Whole counts [layers, experts] as a load and equal ranks as a topology. Exits of the library are told on
 * stderr; false then, and nothing is left behind. */
bool plan_case_create(const plan_shape *shape, const int64_t *counts, eplb_load **load,
                      eplb_topology **topology);
/* One plan by the named policy on one thread for the first split that it takes: equal, weighted, batch; NULL
 * after telling why on stderr. */
eplb_plan *plan_case_run(const plan_shape *shape, const eplb_load *load, const eplb_topology *topology,
                         const char *policy);

/* What a plan says of itself, over its layers. */
typedef struct plan_figures {
    double mean; /* imbalance */
    double worst;
    double bound; /* mean of the proved bounds */
    double above; /* largest imbalance / bound - 1 */
} plan_figures;

plan_figures plan_case_figures(const eplb_plan *plan);

#endif
