/* Synthetic loads: seeded generators shared by `eplb generate`, the benches and the property tests.
 *
 * All draw from a random_state (SplitMix64), so a seed names one load; values pass through libm's exp, log
 * and pow, so the last bit may differ between C libraries. Loads are integers with a given total per
 * layer. */
#ifndef TOOLS_SYNTHETIC_H
#define TOOLS_SYNTHETIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"

/* Standard normal deviate (Box and Muller 1958, one of the pair). */
double synthetic_normal(random_state *random);
/* weights[n] = exp(sigma * z). */
void synthetic_lognormal(random_state *random, double sigma, int32_t n, double *weights);
/* weights[n] = rank^-exponent in random order. */
void synthetic_zipf(random_state *random, double exponent, int32_t n, double *weights);
/* weights[i] *= exp(sigma * z): a drift of the logarithm. */
void synthetic_drift(random_state *random, double sigma, int32_t n, double *weights);
/* counts[n]: weights scaled to about `total`, rounded to nearest, at least `least`. */
void synthetic_counts(const double *weights, int32_t n, double total, int64_t least, int64_t *counts);

/* Bursty windows: num_topics topics with their own expert preferences (lognormal 0.9 over a common lognormal
 * 0.4), a Dirichlet(concentration) topic mix that is redrawn with 15 % probability per step, noise lognormal
 * 0.1. counts [T, E], each window about `total` tokens. False when memory is out. */
bool synthetic_topics(random_state *random, int32_t num_windows, int32_t n, int32_t num_topics,
                      double concentration, double total, int64_t *counts);
/* Rank-skewed loads for real-time planning: rank weights 1 / rank^a with `a` solved so that max/mean over
 * ranks is `ratio`, local expert weights 1 / j^4 (UltraEP, arXiv 2606.04101). counts [num_ranks *
 * experts_per_rank]. False when memory is out. */
bool synthetic_rank_skew(random_state *random, int32_t num_ranks, int32_t experts_per_rank, double ratio,
                         double total, int64_t *counts);

#endif
