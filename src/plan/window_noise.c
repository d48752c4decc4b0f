/* Telling windows that differ from windows that only count differently.
 *
 * Tokens are counts: if every window drew from the same mix, the count n_te of expert e in window t would
 * have the mean m_te = (tokens of t) (share of e) and, drawn independently, the same variance (less for top-k
 * routing, which draws without replacement). Pearson's sum of (n - m)^2 / m over its degrees of freedom is
 * then 1 within a few times sqrt(2 / freedom). Planning for the windows instead of their sum fits chance
 * where nothing else is seen. Source: Pearson's test of homogeneity (1900). Cost: two passes over the
 * counts. */
#include "plan/window_noise.h"

#include <math.h>

#define SURE 3.5 /* standard deviations of the ratio that chance may explain */
/* Over the square of the windows: a ratio so far above 1 is too little to learn from so few. */
#define SMALL 2.0

/* The greatest common divisor of all counts: a load may be written in other units than single tokens. */
static double unit_of(const layer_problem *problem)
{
    int64_t unit = 0;
    size_t cells = (size_t)problem->num_windows * (size_t)problem->num_experts;
    for (size_t i = 0; i < cells && unit != 1; i++) {
        int64_t rest = problem->window_load[i];
        while (rest != 0) {
            int64_t next = unit % rest;
            unit = rest;
            rest = next;
        }
    }
    return unit > 0 ? (double)unit : 1.0;
}

window_noise window_noise_measure(const layer_problem *problem)
{
    window_noise noise = {.allowed = 1.0};
    double total = (double)problem->total, unit = unit_of(problem);
    double pearson = 0.0, square = 0.0, expected = 0.0, strength = 0.0;
    int32_t seen = 0;
    for (int32_t e = 0; e < problem->num_experts; e++)
        seen += problem->load[e] > 0;
    for (int32_t t = 0; t < problem->num_windows; t++) {
        const int64_t *load = layer_window(problem, t);
        double part = (double)layer_window_total(problem, t) / total;
        if (!(part > 0.0))
            continue;
        noise.num_windows++;
        for (int32_t e = 0; e < problem->num_experts; e++) {
            if (problem->load[e] == 0)
                continue;
            double mean = part * (double)problem->load[e], off = (double)load[e] - mean;
            pearson += off * off / mean;
            square += off * off;
            expected += mean;
            strength += mean * mean;
        }
    }
    if (noise.num_windows < 2 || seen < 2)
        return noise;
    double windows = (double)noise.num_windows, left = (windows - 1.0) / windows;
    double freedom = (windows - 1.0) * (double)(seen - 1);
    noise.ratio = pearson / (unit * freedom);
    noise.allowed = 1.0 + SURE * sqrt(2.0 / freedom) + SMALL / (windows * windows);
    double excess = square - unit * expected * left;
    noise.variation = excess > 0.0 ? sqrt(excess / (strength * left)) : 0.0;
    return noise;
}
