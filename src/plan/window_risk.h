/* What a window like the recorded ones may bring: mean and spread of every expert's share of the tokens. */
#ifndef PLAN_WINDOW_RISK_H
#define PLAN_WINDOW_RISK_H

#include "plan/layer.h"

/* Shares are fractions of a window's tokens; over experts the means sum to 1. If a rank holds the fractions
 * c[e] of the experts, its share has mean sum c mean, and variance |sum c spread|^2 + sum c^2 noise. */
typedef struct window_risk {
    int32_t num_experts;
    int32_t num_windows; /* with tokens; 0: nothing is known, every expert has the same mean */
    int32_t width;       /* entries of a spread, a multiple of 4, or 0 */
    float *spread;       /* [E, width] variation that experts share: directions times standard deviation */
    float *mean;         /* [E] */
    float *noise;        /* [E] variance that an expert has for itself */
    double unexplained;  /* 0 .. 1: how far the variation beside the main directions is shared, too */
} window_risk;

/* Estimates it from the windows of a layer. Windows without tokens are left out. Errors: MEMORY.
 * O(T (E + 64) + min(T, 64)^2 E). */
eplb_status window_risk_init(window_risk *risk, const layer_problem *problem, arena *scratch,
                             eplb_error *error);
/* Moves every mean towards the same for all: mean' = (1 - part) mean + part / E, but none down by more than
 * `most`. */
void window_risk_level(window_risk *risk, double part, double most);

#endif
