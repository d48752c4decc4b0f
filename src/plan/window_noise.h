/* How far the windows of a layer differ beyond what counting alone explains. */
#ifndef PLAN_WINDOW_NOISE_H
#define PLAN_WINDOW_NOISE_H

#include "plan/layer.h"

typedef struct window_noise {
    int32_t num_windows; /* with tokens */
    double ratio;     /* variance of the counts between windows over that of independent draws: about 1, or a
                         little less for top-k routing, where only chance differs */
    double allowed;   /* the ratio up to which chance and a variation too small to plan for explain it */
    double variation; /* standard deviation over windows of an expert's share, over its mean share, without
                         the part of chance; typical for the heavy experts */
} window_noise;

/* Measures it; counts that share a factor are taken as so many times what was counted. O(T E). */
window_noise window_noise_measure(const layer_problem *problem);
/* Whether chance explains the differences. */
static inline bool window_noise_explains(const window_noise *noise)
{
    return noise->ratio <= noise->allowed;
}

#endif
