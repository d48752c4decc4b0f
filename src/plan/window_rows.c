/* From recorded windows to rows.
 *
 * Up to WINDOW_ROWS windows are rows of their own. Of more, the two neighbours that differ least become one
 * row, again and again: the rise of the sum of squares (Ward 1963) tells which, so that long runs of one mix
 * end as one row, and a mix that lasted a single window stays what it was as long as there is room. Averaging
 * blocks of equal length instead would level windows that differ, and more windows would plan worse than
 * fewer. Noise is the median difference of neighbours, whom a change of the mix parts but now and then. */
#include "plan/window_rows.h"

#include <math.h>
#include <string.h>

#define MEDIAN_CHI_SQUARE 0.4549364 /* median of the square of a standard normal deviate */
#define MOST_PAIRS        (WINDOW_ROWS - 1)

int32_t window_rows_filled(const layer_problem *problem)
{
    int32_t count = 0;
    for (int32_t t = 0; t < problem->num_windows; t++)
        count += layer_window_total(problem, t) > 0;
    return count;
}

/* Windows on their way to rows: the rows in the order of time, and how far neighbours are apart. */
typedef struct row_chain {
    window_rows *rows;
    int32_t order[WINDOW_ROWS + 1];
    double gap[WINDOW_ROWS + 1]; /* between order[i] and order[i + 1] */
    int32_t length;
    int32_t spare; /* a row without windows */
} row_chain;

static double *row_of(const window_rows *rows, int32_t row)
{
    return rows->share + (size_t)row * (size_t)rows->num_experts;
}

/* What joining two rows adds to the sum of squares, in units of the noise. */
static double gap_after(const row_chain *chain, int32_t i)
{
    const window_rows *rows = chain->rows;
    int32_t a = chain->order[i], b = chain->order[i + 1];
    const double *x = row_of(rows, a), *y = row_of(rows, b);
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    for (int32_t e = 0; e < rows->num_experts; e++) {
        double d = (y[e] - x[e]) / rows->sigma[e];
        sum[e & 3] += d * d;
    }
    double together = rows->weight[a] + rows->weight[b];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) * (rows->weight[a] * rows->weight[b] / together);
}

/* Joins the two neighbours that differ least; ties to the earlier. */
static void join_closest(row_chain *chain)
{
    window_rows *rows = chain->rows;
    int32_t best = 0;
    for (int32_t i = 1; i + 1 < chain->length; i++) {
        if (chain->gap[i] < chain->gap[best])
            best = i;
    }
    int32_t a = chain->order[best], b = chain->order[best + 1];
    double *x = row_of(rows, a), *y = row_of(rows, b);
    double together = rows->weight[a] + rows->weight[b], part = rows->weight[b] / together;
    for (int32_t e = 0; e < rows->num_experts; e++)
        x[e] += part * (y[e] - x[e]);
    rows->weight[a] = together;
    chain->spare = b;
    chain->length--;
    for (int32_t i = best + 1; i < chain->length; i++) {
        chain->order[i] = chain->order[i + 1];
        chain->gap[i - 1] = chain->gap[i];
    }
    if (best > 0)
        chain->gap[best - 1] = gap_after(chain, best - 1);
    if (best + 1 < chain->length)
        chain->gap[best] = gap_after(chain, best);
}

/* A window that follows those before; `many`: more are to come than there are rows. */
static void add_window(row_chain *chain, const int64_t *load, double total, double weight, bool many)
{
    window_rows *rows = chain->rows;
    int32_t row = chain->spare;
    double *share = row_of(rows, row);
    for (int32_t e = 0; e < rows->num_experts; e++) {
        share[e] = (double)load[e] / total;
        rows->mean[e] += weight * share[e];
        rows->variance[e] += weight * share[e] * share[e];
    }
    rows->weight[row] = weight;
    chain->order[chain->length++] = row;
    chain->spare = chain->length;
    if (many && chain->length > 1)
        chain->gap[chain->length - 2] = gap_after(chain, chain->length - 2);
    if (chain->length > WINDOW_ROWS)
        join_closest(chain);
}

/* The last row fills the spare one, so that rows lie without a hole. */
static void close_hole(row_chain *chain)
{
    window_rows *rows = chain->rows;
    int32_t last = chain->length;
    if (chain->spare < last) {
        memcpy(row_of(rows, chain->spare), row_of(rows, last), (size_t)rows->num_experts * sizeof(double));
        rows->weight[chain->spare] = rows->weight[last];
    }
    rows->count = chain->length;
}

/* A window with fewer tokens than the mean counts less: its shares are mostly chance. */
static void read_rows(window_rows *rows, const layer_problem *problem)
{
    double windows = (double)rows->num_windows, typical = (double)problem->total / windows, sum = 0.0;
    row_chain chain = {.rows = rows};
    for (int32_t t = 0; t < problem->num_windows; t++) {
        double total = (double)layer_window_total(problem, t);
        if (!(total > 0.0))
            continue;
        double weight = total < typical ? total / typical : 1.0;
        add_window(&chain, layer_window(problem, t), total, weight, rows->num_windows > WINDOW_ROWS);
        sum += weight;
    }
    close_hole(&chain);
    for (int32_t e = 0; e < rows->num_experts; e++) {
        rows->mean[e] /= sum;
        rows->variance[e] = rows->variance[e] / sum - rows->mean[e] * rows->mean[e];
    }
    for (int32_t row = 0; row < rows->count; row++)
        rows->weight[row] *= windows / sum;
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

/* Windows with tokens, each followed by the next such: `pairs` of them, spread evenly. */
static int32_t choose_pairs(const layer_problem *problem, int32_t filled, int32_t first[], int32_t second[])
{
    int32_t gaps = filled - 1, pairs = gaps < MOST_PAIRS ? gaps : MOST_PAIRS, found = 0, seen = 0, last = -1;
    for (int32_t t = 0; t < problem->num_windows && found < pairs; t++) {
        if (layer_window_total(problem, t) == 0)
            continue;
        if (last >= 0 && seen++ == (int32_t)((int64_t)found * gaps / pairs)) {
            first[found] = last;
            second[found++] = t;
        }
        last = t;
    }
    return found;
}

/* Noise of each expert, robust against changes of the mix: they are few among the differences of
 * neighbours. */
static void measure_noise(window_rows *rows, const layer_problem *problem)
{
    int32_t first[MOST_PAIRS], second[MOST_PAIRS];
    double scale[2][MOST_PAIRS], difference[MOST_PAIRS], uniform = 1.0 / (double)rows->num_experts;
    int32_t pairs = choose_pairs(problem, rows->num_windows, first, second);
    for (int32_t k = 0; k < pairs; k++) {
        scale[0][k] = (double)layer_window_total(problem, first[k]);
        scale[1][k] = (double)layer_window_total(problem, second[k]);
    }
    for (int32_t e = 0; e < rows->num_experts; e++) {
        for (int32_t k = 0; k < pairs; k++) {
            double d = (double)layer_window(problem, second[k])[e] / scale[1][k] -
                       (double)layer_window(problem, first[k])[e] / scale[0][k];
            difference[k] = d * d / 2.0;
        }
        double noise = pairs > 0 ? sqrt(median(difference, pairs) / MEDIAN_CHI_SQUARE) : 0.0;
        double least = 0.02 * ((double)problem->load[e] / (double)problem->total + uniform);
        rows->sigma[e] = noise > least ? noise : least;
    }
}

bool window_rows_read(window_rows *rows, const layer_problem *problem, arena *scratch)
{
    size_t experts = (size_t)problem->num_experts;
    *rows = (window_rows){.num_experts = problem->num_experts, .num_windows = window_rows_filled(problem)};
    size_t room = (size_t)(rows->num_windows <= WINDOW_ROWS ? rows->num_windows : WINDOW_ROWS + 1);
    rows->weight = arena_take_zero(scratch, room, sizeof(double));
    rows->share = arena_take_zero(scratch, room * experts, sizeof(double));
    rows->mean = arena_take_zero(scratch, experts, sizeof(double));
    rows->variance = arena_take_zero(scratch, experts, sizeof(double));
    rows->sigma = arena_take_zero(scratch, experts, sizeof(double));
    if (rows->weight == NULL || rows->share == NULL || rows->mean == NULL || rows->variance == NULL ||
        rows->sigma == NULL)
        return false;
    measure_noise(rows, problem);
    read_rows(rows, problem);
    return true;
}
