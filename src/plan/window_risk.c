/* The risk of a window, estimated so that it holds for windows that come later.
 *
 * Recorded windows are few, so their covariance over-promises. Directions of variation that stand out of the
 * noise (Marchenko and Pastur's edge; noise per expert from the median difference of neighbouring windows)
 * are kept and brought closer in strength: a mix that was rare so far may be common next. What remains is
 * shared between experts only as far as the windows agree on it (Ledoit and Wolf's shrinkage, 2004), the rest
 * is each expert's own noise. A near-static load so has almost nothing but noise, and is planned as its sum.
 * Many windows come as few rows (window_rows.c). */
#include "plan/window_risk.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "plan/principal.h"
#include "plan/window_rows.h"

#define MOST_DIRECTIONS 12
#define LEAST_SHARED    0.05 /* below it the rest is taken as noise */

typedef struct estimate {
    int32_t experts;
    int32_t rows;
    double *share;    /* [rows, E] weighted deviations from the mean; later what the directions leave */
    double *mean;     /* [E] */
    double *variance; /* [E] over all windows; later what the directions leave */
    double *sigma;    /* [E] noise, later the deviation of what the directions leave */
    double *weight;   /* [rows] windows in a row */
    double windows;   /* sum of weight */
    double *scaled;   /* [rows, E] deviations / sigma */
    double *gram;     /* [rows, rows] */
    double *value;    /* [MOST_DIRECTIONS] */
    double *vector;   /* [MOST_DIRECTIONS, rows] */
    int32_t directions;
} estimate;

static double *row_of(double *matrix, const estimate *e, int32_t t)
{
    return matrix + (size_t)t * (size_t)e->experts;
}

static bool estimate_init(estimate *e, const layer_problem *problem, arena *scratch)
{
    window_rows read;
    if (!window_rows_read(&read, problem, scratch))
        return false;
    size_t rows = (size_t)read.count, experts = (size_t)read.num_experts;
    *e = (estimate){.experts = read.num_experts,
                    .rows = read.count,
                    .share = read.share,
                    .mean = read.mean,
                    .variance = read.variance,
                    .sigma = read.sigma,
                    .weight = read.weight,
                    .windows = (double)read.num_windows};
    e->scaled = arena_take_zero(scratch, rows * experts, sizeof(double));
    e->gram = arena_take_zero(scratch, rows * rows, sizeof(double));
    e->value = arena_take_zero(scratch, MOST_DIRECTIONS, sizeof(double));
    e->vector = arena_take_zero(scratch, MOST_DIRECTIONS * rows, sizeof(double));
    return e->scaled != NULL && e->gram != NULL && e->value != NULL && e->vector != NULL;
}

/* Turns shares into weighted deviations. */
static void centre(estimate *e)
{
    for (int32_t t = 0; t < e->rows; t++) {
        double scale = sqrt(e->weight[t]);
        for (int32_t i = 0; i < e->experts; i++)
            row_of(e->share, e, t)[i] = (row_of(e->share, e, t)[i] - e->mean[i]) * scale;
    }
}

static void scale_and_multiply(estimate *e)
{
    for (int32_t t = 0; t < e->rows; t++) {
        for (int32_t i = 0; i < e->experts; i++)
            row_of(e->scaled, e, t)[i] = row_of(e->share, e, t)[i] / e->sigma[i];
    }
    for (int32_t a = 0; a < e->rows; a++) {
        for (int32_t b = 0; b <= a; b++) {
            const double *x = row_of(e->scaled, e, a), *y = row_of(e->scaled, e, b);
            double sum[4] = {0.0, 0.0, 0.0, 0.0};
            for (int32_t i = 0; i < e->experts; i++)
                sum[i & 3] += x[i] * y[i];
            double product = (sum[0] + sum[1]) + (sum[2] + sum[3]);
            e->gram[a * e->rows + b] = e->gram[b * e->rows + a] = product;
        }
    }
}

/* Counts the directions above the edge of pure noise. */
static bool find_directions(estimate *e, arena *scratch)
{
    int32_t most = e->rows - 1 < MOST_DIRECTIONS ? e->rows - 1 : MOST_DIRECTIONS;
    if (most < 1)
        return true;
    if (!principal_components(e->gram, e->rows, most, e->value, e->vector, scratch))
        return false;
    double root = sqrt((double)e->experts) + sqrt((double)e->rows);
    while (e->directions < most && e->value[e->directions] > root * root)
        e->directions++;
    return true;
}

/* Writes the directions as spreads and leaves in `share` and `variance` what they do not explain. The factor
 * takes the noise out of the strength and halves (on a logarithmic scale) the distance to the strongest. */
static void split_off(estimate *e, float *spread, int32_t width)
{
    double experts = (double)e->experts, scale = 1.0 / sqrt(e->windows);
    for (int32_t d = 0; d < e->directions; d++) {
        const double *v = e->vector + (size_t)d * (size_t)e->rows;
        double clean = e->value[d] - experts, strongest = e->value[0] - experts;
        double factor = scale * sqrt(clean / e->value[d]) * sqrt(sqrt(strongest / clean));
        for (int32_t i = 0; i < e->experts; i++) {
            double along = 0.0;
            for (int32_t t = 0; t < e->rows; t++)
                along += v[t] * row_of(e->share, e, t)[i];
            for (int32_t t = 0; t < e->rows; t++)
                row_of(e->share, e, t)[i] -= v[t] * along;
            spread[(size_t)i * (size_t)width + (size_t)d] = (float)(along * factor);
            e->variance[i] -= along * along * scale * scale;
        }
    }
}

/* Ledoit and Wolf: the part of the remaining correlations that is not chance. */
static double shared_part(estimate *e)
{
    double rows = (double)e->rows, square = 0.0, fourth = 0.0;
    for (int32_t a = 0; a < e->rows; a++) {
        for (int32_t b = 0; b < e->rows; b++) {
            double product = e->gram[a * e->rows + b];
            square += product * product;
        }
        fourth += e->gram[a * e->rows + a] * e->gram[a * e->rows + a];
    }
    square /= rows * rows;
    double distance = square - (double)e->experts, chance = (fourth / rows - square) / rows;
    if (!(distance > 0.0) || chance >= distance)
        return 0.0;
    return chance > 0.0 ? 1.0 - chance / distance : 1.0;
}

static void measure_rest(estimate *e)
{
    for (int32_t i = 0; i < e->experts; i++) {
        double square = 0.0;
        for (int32_t t = 0; t < e->rows; t++)
            square += row_of(e->share, e, t)[i] * row_of(e->share, e, t)[i];
        e->sigma[i] = sqrt(square / e->windows) + 1e-6 / (double)e->experts;
    }
}

/* Spreads of the rest follow those of the directions; what is not shared is noise. */
static void write_rest(const estimate *e, window_risk *risk)
{
    double part = risk->unexplained, scale = sqrt(part / e->windows);
    for (int32_t i = 0; i < e->experts; i++) {
        float *spread = risk->spread + (size_t)i * (size_t)risk->width + e->directions;
        double shared = 0.0;
        for (int32_t t = 0; part > 0.0 && t < e->rows; t++) {
            double x = e->share[(size_t)t * (size_t)e->experts + (size_t)i] * scale;
            spread[t] = (float)x;
            shared += x * x;
        }
        double noise = e->variance[i] - shared;
        risk->noise[i] = noise > 0.0 ? (float)noise : 0.0f;
        risk->mean[i] = (float)e->mean[i];
    }
}

static bool take_risk(window_risk *risk, int32_t most, arena *scratch)
{
    size_t experts = (size_t)risk->num_experts;
    risk->width = (most + 3) / 4 * 4;
    risk->mean = arena_take_zero(scratch, experts, sizeof(float));
    risk->noise = arena_take_zero(scratch, experts, sizeof(float));
    risk->spread = arena_take_zero(scratch, experts * (size_t)risk->width, sizeof(float));
    return risk->mean != NULL && risk->noise != NULL && risk->spread != NULL;
}

/* Drops the columns that stayed empty. */
static void narrow(window_risk *risk, int32_t used)
{
    int32_t width = (used + 3) / 4 * 4;
    for (int32_t i = 0; i < risk->num_experts; i++)
        memmove(risk->spread + (size_t)i * (size_t)width, risk->spread + (size_t)i * (size_t)risk->width,
                (size_t)width * sizeof(float));
    risk->width = width;
}

eplb_status window_risk_init(window_risk *risk, const layer_problem *problem, arena *scratch,
                             eplb_error *error)
{
    int32_t full = window_rows_filled(problem), rows = full < WINDOW_ROWS ? full : WINDOW_ROWS;
    *risk = (window_risk){.num_experts = problem->num_experts, .num_windows = full};
    estimate e = {0};
    if (!take_risk(risk, rows > 1 ? rows + MOST_DIRECTIONS : 0, scratch) ||
        (full > 0 && !estimate_init(&e, problem, scratch)))
        return error_memory(error, (size_t)problem->num_experts * WINDOW_ROWS * sizeof(double),
                            "window moments");
    if (full == 0) {
        window_risk_level(risk, 1.0, 1.0);
        return EPLB_OK;
    }
    centre(&e);
    if (rows > 1) {
        scale_and_multiply(&e);
        if (!find_directions(&e, scratch))
            return error_memory(error, (size_t)rows * sizeof(double), "principal components");
        split_off(&e, risk->spread, risk->width);
        measure_rest(&e);
        scale_and_multiply(&e);
        risk->unexplained = shared_part(&e);
        if (risk->unexplained < LEAST_SHARED)
            risk->unexplained = 0.0;
    }
    write_rest(&e, risk);
    narrow(risk, rows > 1 ? e.directions + (risk->unexplained > 0.0 ? rows : 0) : 0);
    return EPLB_OK;
}

void window_risk_level(window_risk *risk, double part, double most)
{
    for (int32_t i = 0; i < risk->num_experts; i++) {
        double mean = (double)risk->mean[i];
        double level = (1.0 - part) * mean + part / (double)risk->num_experts;
        risk->mean[i] = (float)(level < mean - most ? mean - most : level);
    }
}
