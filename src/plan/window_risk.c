/* The risk of a window, estimated so that it holds for windows that come later.
 *
 * Recorded windows are few, so their covariance over-promises. Directions of variation that stand out of the
 * noise (Marchenko and Pastur's edge; noise per expert from the median difference of neighbouring windows)
 * are kept and brought closer in strength: a mix that was rare so far may be common next. What remains is
 * shared between experts only as far as the windows agree on it (Ledoit and Wolf's shrinkage, 2004), the rest
 * is each expert's own noise. A near-static load so has almost nothing but noise, and is planned as its sum.
 * More than BLOCKS windows are averaged in blocks of neighbours. */
#include "plan/window_risk.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "plan/principal.h"

#define BLOCKS            64
#define MOST_DIRECTIONS   12
#define MEDIAN_CHI_SQUARE 0.4549364 /* median of the square of a standard normal deviate */
#define LEAST_SHARED      0.05      /* below it the rest is taken as noise */

typedef struct estimate {
    int32_t experts;
    int32_t windows;  /* rows, at most BLOCKS */
    double *weight;   /* [windows] sums to windows */
    double *share;    /* [windows, E]; later the weighted deviations from the mean */
    double *mean;     /* [E] */
    double *variance; /* [E] over all windows */
    double *sigma;    /* [E] noise, later the deviation of what the directions leave */
    double *scaled;   /* [windows, E] deviations / sigma */
    double *gram;     /* [windows, windows] */
    double *value;    /* [MOST_DIRECTIONS] */
    double *vector;   /* [MOST_DIRECTIONS, windows] */
    int32_t directions;
} estimate;

static double *row_of(double *matrix, const estimate *e, int32_t t)
{
    return matrix + (size_t)t * (size_t)e->experts;
}

static double total_of(const layer_problem *problem, int32_t t)
{
    const int64_t *load = problem->window_load + (size_t)t * (size_t)problem->num_experts;
    int64_t total = 0;
    for (int32_t i = 0; i < problem->num_experts; i++)
        total += load[i];
    return (double)total;
}

static int32_t count_windows(const layer_problem *problem)
{
    int32_t count = 0;
    for (int32_t t = 0; t < problem->num_windows; t++)
        count += total_of(problem, t) > 0.0;
    return count;
}

static bool estimate_init(estimate *e, int32_t experts, int32_t windows, arena *scratch)
{
    size_t cells = (size_t)experts * (size_t)windows, width = (size_t)experts;
    *e = (estimate){.experts = experts, .windows = windows};
    e->weight = arena_take_zero(scratch, (size_t)windows, sizeof(double));
    e->share = arena_take_zero(scratch, cells, sizeof(double));
    e->scaled = arena_take_zero(scratch, cells, sizeof(double));
    e->mean = arena_take_zero(scratch, width, sizeof(double));
    e->variance = arena_take_zero(scratch, width, sizeof(double));
    e->sigma = arena_take_zero(scratch, width, sizeof(double));
    e->gram = arena_take_zero(scratch, (size_t)windows * (size_t)windows, sizeof(double));
    e->value = arena_take_zero(scratch, MOST_DIRECTIONS, sizeof(double));
    e->vector = arena_take_zero(scratch, (size_t)MOST_DIRECTIONS * (size_t)windows, sizeof(double));
    return e->weight != NULL && e->share != NULL && e->scaled != NULL && e->mean != NULL &&
           e->variance != NULL && e->sigma != NULL && e->gram != NULL && e->value != NULL &&
           e->vector != NULL;
}

/* Shares by block and their moments. A window with fewer tokens than the mean counts less: its shares are
 * mostly chance. */
static void read_windows(estimate *e, const layer_problem *problem, int32_t full)
{
    double typical = (double)problem->total / (double)full, sum = 0.0;
    for (int32_t t = 0, seen = 0; t < problem->num_windows; t++) {
        double total = total_of(problem, t);
        if (!(total > 0.0))
            continue;
        int32_t block = (int32_t)((int64_t)seen++ * e->windows / full);
        double weight = total < typical ? total / typical : 1.0;
        const int64_t *load = problem->window_load + (size_t)t * (size_t)e->experts;
        double *row = row_of(e->share, e, block);
        for (int32_t i = 0; i < e->experts; i++) {
            double share = (double)load[i] / total;
            row[i] += weight * share;
            e->mean[i] += weight * share;
            e->variance[i] += weight * share * share;
        }
        e->weight[block] += weight;
        sum += weight;
    }
    for (int32_t i = 0; i < e->experts; i++) {
        e->mean[i] /= sum;
        e->variance[i] = e->variance[i] / sum - e->mean[i] * e->mean[i];
    }
    for (int32_t b = 0; b < e->windows; b++) {
        for (int32_t i = 0; i < e->experts; i++)
            row_of(e->share, e, b)[i] /= e->weight[b];
        e->weight[b] *= (double)e->windows / sum;
    }
}

static double median(double *value, int32_t count)
{
    for (int32_t i = 1; i < count; i++) {
        double moving = value[i];
        int32_t j = i;
        for (; j > 0 && value[j - 1] > moving; j--)
            value[j] = value[j - 1];
        value[j] = moving;
    }
    return value[count / 2];
}

/* Noise of each expert, robust against changes of the mix: they are few among the differences of neighbours.
 */
static void measure_noise(estimate *e)
{
    double difference[BLOCKS], uniform = 1.0 / (double)e->experts;
    for (int32_t i = 0; i < e->experts; i++) {
        for (int32_t t = 0; t + 1 < e->windows; t++) {
            double d = row_of(e->share, e, t + 1)[i] - row_of(e->share, e, t)[i];
            difference[t] = d * d / 2.0;
        }
        double noise = e->windows > 1 ? sqrt(median(difference, e->windows - 1) / MEDIAN_CHI_SQUARE) : 0.0;
        double least = 0.02 * (e->mean[i] + uniform);
        e->sigma[i] = noise > least ? noise : least;
    }
}

/* Turns shares into weighted deviations. */
static void centre(estimate *e)
{
    for (int32_t t = 0; t < e->windows; t++) {
        double scale = sqrt(e->weight[t]);
        for (int32_t i = 0; i < e->experts; i++)
            row_of(e->share, e, t)[i] = (row_of(e->share, e, t)[i] - e->mean[i]) * scale;
    }
}

static void scale_and_multiply(estimate *e)
{
    for (int32_t t = 0; t < e->windows; t++) {
        for (int32_t i = 0; i < e->experts; i++)
            row_of(e->scaled, e, t)[i] = row_of(e->share, e, t)[i] / e->sigma[i];
    }
    for (int32_t a = 0; a < e->windows; a++) {
        for (int32_t b = 0; b <= a; b++) {
            const double *x = row_of(e->scaled, e, a), *y = row_of(e->scaled, e, b);
            double sum[4] = {0.0, 0.0, 0.0, 0.0};
            for (int32_t i = 0; i < e->experts; i++)
                sum[i & 3] += x[i] * y[i];
            double product = (sum[0] + sum[1]) + (sum[2] + sum[3]);
            e->gram[a * e->windows + b] = e->gram[b * e->windows + a] = product;
        }
    }
}

/* Counts the directions above the edge of pure noise. */
static bool find_directions(estimate *e, arena *scratch)
{
    int32_t most = e->windows - 1 < MOST_DIRECTIONS ? e->windows - 1 : MOST_DIRECTIONS;
    if (most < 1)
        return true;
    if (!principal_components(e->gram, e->windows, most, e->value, e->vector, scratch))
        return false;
    double root = sqrt((double)e->experts) + sqrt((double)e->windows);
    while (e->directions < most && e->value[e->directions] > root * root)
        e->directions++;
    return true;
}

/* Writes the directions as spreads and leaves in `share` and `variance` what they do not explain. The factor
 * takes the noise out of the strength and halves (on a logarithmic scale) the distance to the strongest. */
static void split_off(estimate *e, float *spread, int32_t width)
{
    double experts = (double)e->experts, scale = 1.0 / sqrt((double)e->windows);
    for (int32_t d = 0; d < e->directions; d++) {
        const double *v = e->vector + (size_t)d * (size_t)e->windows;
        double clean = e->value[d] - experts, strongest = e->value[0] - experts;
        double factor = scale * sqrt(clean / e->value[d]) * sqrt(sqrt(strongest / clean));
        for (int32_t i = 0; i < e->experts; i++) {
            double along = 0.0;
            for (int32_t t = 0; t < e->windows; t++)
                along += v[t] * row_of(e->share, e, t)[i];
            for (int32_t t = 0; t < e->windows; t++)
                row_of(e->share, e, t)[i] -= v[t] * along;
            spread[(size_t)i * (size_t)width + (size_t)d] = (float)(along * factor);
            e->variance[i] -= along * along * scale * scale;
        }
    }
}

/* Ledoit and Wolf: the part of the remaining correlations that is not chance. */
static double shared_part(estimate *e)
{
    double windows = (double)e->windows, square = 0.0, fourth = 0.0;
    for (int32_t a = 0; a < e->windows; a++) {
        for (int32_t b = 0; b < e->windows; b++) {
            double product = e->gram[a * e->windows + b];
            square += product * product;
        }
        fourth += e->gram[a * e->windows + a] * e->gram[a * e->windows + a];
    }
    square /= windows * windows;
    double distance = square - (double)e->experts, chance = (fourth / windows - square) / windows;
    if (!(distance > 0.0) || chance >= distance)
        return 0.0;
    return chance > 0.0 ? 1.0 - chance / distance : 1.0;
}

static void measure_rest(estimate *e)
{
    for (int32_t i = 0; i < e->experts; i++) {
        double square = 0.0;
        for (int32_t t = 0; t < e->windows; t++)
            square += row_of(e->share, e, t)[i] * row_of(e->share, e, t)[i];
        e->sigma[i] = sqrt(square / (double)e->windows) + 1e-6 / (double)e->experts;
    }
}

/* Spreads of the rest follow those of the directions; what is not shared is noise. */
static void write_rest(const estimate *e, window_risk *risk)
{
    double part = risk->unexplained, scale = sqrt(part / (double)e->windows);
    for (int32_t i = 0; i < e->experts; i++) {
        float *spread = risk->spread + (size_t)i * (size_t)risk->width + e->directions;
        double shared = 0.0;
        for (int32_t t = 0; part > 0.0 && t < e->windows; t++) {
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
    int32_t full = count_windows(problem), rows = full < BLOCKS ? full : BLOCKS;
    *risk = (window_risk){.num_experts = problem->num_experts, .num_windows = full};
    estimate e;
    if (!take_risk(risk, rows > 1 ? rows + MOST_DIRECTIONS : 0, scratch) ||
        !estimate_init(&e, problem->num_experts, rows > 0 ? rows : 1, scratch))
        return error_memory(error, (size_t)problem->num_experts * BLOCKS * sizeof(double), "window moments");
    if (full == 0) {
        window_risk_level(risk, 1.0, 1.0);
        return EPLB_OK;
    }
    read_windows(&e, problem, full);
    measure_noise(&e);
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
