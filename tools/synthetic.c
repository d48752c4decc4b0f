/* Synthetic loads; see synthetic.h for what each draws and where it comes from. */
#include "synthetic.h"

#include <math.h>
#include <stdlib.h>

#define TWO_PI 6.283185307179586476925286766559

double synthetic_normal(random_state *random)
{
    double u = 1.0 - random_unit(random); /* (0, 1]: the logarithm is finite */
    double v = random_unit(random);
    return sqrt(-2.0 * log(u)) * cos(TWO_PI * v);
}

void synthetic_lognormal(random_state *random, double sigma, int32_t n, double *weights)
{
    for (int32_t i = 0; i < n; i++)
        weights[i] = exp(sigma * synthetic_normal(random));
}

/* Fisher and Yates. */
static void shuffle(random_state *random, int32_t n, double *values)
{
    for (int32_t i = n - 1; i > 0; i--) {
        int32_t j = (int32_t)random_below(random, (uint32_t)i + 1);
        double swap = values[i];
        values[i] = values[j];
        values[j] = swap;
    }
}

void synthetic_zipf(random_state *random, double exponent, int32_t n, double *weights)
{
    for (int32_t i = 0; i < n; i++)
        weights[i] = pow((double)(i + 1), -exponent);
    shuffle(random, n, weights);
}

void synthetic_drift(random_state *random, double sigma, int32_t n, double *weights)
{
    for (int32_t i = 0; i < n; i++)
        weights[i] *= exp(sigma * synthetic_normal(random));
}

void synthetic_counts(const double *weights, int32_t n, double total, int64_t least, int64_t *counts)
{
    double sum = 0.0;
    for (int32_t i = 0; i < n; i++)
        sum += weights[i];
    for (int32_t i = 0; i < n; i++) {
        int64_t count = sum > 0.0 ? (int64_t)llrint(weights[i] / sum * total) : 0;
        counts[i] = count < least ? least : count;
    }
}

/* Gamma(shape, 1) deviate (Marsaglia and Tsang 2000; shape below 1 by their boost). */
static double gamma_deviate(random_state *random, double shape)
{
    double boost = 1.0;
    if (shape < 1.0) {
        boost = pow(1.0 - random_unit(random), 1.0 / shape);
        shape += 1.0;
    }
    double d = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        double x = synthetic_normal(random);
        double v = 1.0 + c * x;
        if (v <= 0.0)
            continue;
        v = v * v * v;
        double u = 1.0 - random_unit(random);
        if (log(u) < 0.5 * x * x + d - d * v + d * log(v))
            return boost * d * v;
    }
}

static void dirichlet(random_state *random, double concentration, int32_t n, double *mix)
{
    double sum = 0.0;
    for (int32_t i = 0; i < n; i++)
        sum += mix[i] = gamma_deviate(random, concentration);
    for (int32_t i = 0; i < n; i++)
        mix[i] /= sum;
}

bool synthetic_topics(random_state *random, int32_t num_windows, int32_t n, int32_t num_topics,
                      double concentration, double total, int64_t *counts)
{
    size_t experts = (size_t)n, topics = (size_t)num_topics;
    double *preference = calloc(topics * experts + experts + topics, sizeof *preference);
    if (preference == NULL)
        return false;
    double *weights = preference + topics * experts, *mix = weights + experts;
    synthetic_lognormal(random, 0.4, n, weights);
    for (int32_t t = 0; t < num_topics; t++) {
        double sum = 0.0, *row = preference + (size_t)t * experts;
        synthetic_lognormal(random, 0.9, n, row);
        for (int32_t e = 0; e < n; e++)
            sum += row[e] *= weights[e];
        for (int32_t e = 0; e < n; e++)
            row[e] /= sum;
    }
    dirichlet(random, concentration, num_topics, mix);
    for (int32_t w = 0; w < num_windows; w++) {
        if (w > 0 && random_unit(random) < 0.15)
            dirichlet(random, concentration, num_topics, mix);
        for (int32_t e = 0; e < n; e++) {
            weights[e] = 0.0;
            for (int32_t t = 0; t < num_topics; t++)
                weights[e] += mix[t] * preference[(size_t)t * experts + (size_t)e];
        }
        synthetic_drift(random, 0.1, n, weights);
        synthetic_counts(weights, n, total, 0, counts + (size_t)w * experts);
    }
    free(preference);
    return true;
}

/* max/mean of 1 / rank^a over n ranks. */
static double power_ratio(double a, int32_t n)
{
    double sum = 0.0;
    for (int32_t i = 1; i <= n; i++)
        sum += pow((double)i, -a);
    return (double)n / sum;
}

bool synthetic_rank_skew(random_state *random, int32_t num_ranks, int32_t experts_per_rank, double ratio,
                         double total, int64_t *counts)
{
    double low = 0.0, high = 8.0;
    for (int step = 0; step < 60; step++) {
        double middle = 0.5 * (low + high);
        if (power_ratio(middle, num_ranks) < ratio)
            low = middle;
        else
            high = middle;
    }
    int32_t n = num_ranks * experts_per_rank;
    double *rank_weight =
        calloc((size_t)num_ranks + (size_t)n + (size_t)experts_per_rank, sizeof *rank_weight);
    if (rank_weight == NULL)
        return false;
    double *weights = rank_weight + num_ranks, *local = weights + n;
    synthetic_zipf(random, low, num_ranks, rank_weight);
    for (int32_t g = 0; g < num_ranks; g++) {
        double sum = 0.0;
        synthetic_zipf(random, 4.0, experts_per_rank, local);
        for (int32_t j = 0; j < experts_per_rank; j++)
            sum += local[j];
        for (int32_t j = 0; j < experts_per_rank; j++)
            weights[g * experts_per_rank + j] = rank_weight[g] * local[j] / sum;
    }
    synthetic_counts(weights, n, total, 0, counts);
    free(rank_weight);
    return true;
}
