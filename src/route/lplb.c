/* LPLB's solver restated, to compare with: affine scaling on the same linear programme in single precision.
 *
 * Variables: tokens of every movable replica over the total, a slack per rank, the maximum t, and one
 * artificial column that makes x = 1 a start. Rows: each movable expert's tokens are served; each rank's load
 * plus slack is t. Minimise t + 1000 * artificial. A step solves (A X^2 A') y = A X^2 c, takes d = x (c - A'
 * y) and scales x by 1 - 0.999 d / max d. After a fixed number of steps the answer is taken if d, the
 * artificial column and the residual are small, else every share is 0.5. The columns of A have two entries
 * but for t and the artificial one, and are added up as such. O(steps * (experts + ranks)^3). Source:
 * DeepSeek LPLB; SGLang pull request 24515. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "route/resplit.h"

#define STEP_LENGTH    0.999f
#define ARTIFICIAL     1000.0f
#define ACCEPT_STEP    0.1f
#define ACCEPT_COLUMN  1e-4f
#define ACCEPT_RESIDUE 0.05f

typedef struct programme {
    const min_max_graph *graph;
    int32_t num_rows;    /* movable experts, then ranks */
    int32_t num_columns; /* edges, slacks, t, artificial */
    float *b;            /* [rows] */
    float *artificial;   /* [rows] the artificial column */
    float *matrix;       /* [rows, rows] */
    float *y;            /* [rows] */
    float *x;            /* [columns] */
    float *d;            /* [columns] */
} programme;

static bool take_programme(programme *p, const min_max_graph *graph, arena *scratch)
{
    size_t rows = (size_t)graph->num_movable + (size_t)graph->num_ranks;
    size_t columns = (size_t)graph->edge_first[graph->num_movable] + (size_t)graph->num_ranks + 2;
    float *block = arena_take(scratch, rows * rows + 3 * rows + 2 * columns, sizeof *block);
    if (block == NULL)
        return false;
    *p = (programme){
        .graph = graph, .num_rows = (int32_t)rows, .num_columns = (int32_t)columns, .matrix = block};
    p->b = p->matrix + rows * rows;
    p->artificial = p->b + rows;
    p->y = p->artificial + rows;
    p->x = p->y + rows;
    p->d = p->x + columns;
    return true;
}

static int32_t edge_rows(const programme *p, int32_t edge, int32_t *expert_row)
{
    *expert_row = p->graph->edge_movable[edge];
    return p->graph->num_movable + p->graph->edge_rank[edge];
}

static int32_t num_edges(const programme *p)
{
    return p->graph->edge_first[p->graph->num_movable];
}

/* Right-hand side and artificial column for counts over their total. */
static void set_up(programme *p, const int64_t *load)
{
    const min_max_graph *graph = p->graph;
    double total = 0.0;
    for (int32_t e = 0; e < graph->num_experts; e++)
        total += (double)load[e];
    total = total > 1.0 ? total : 1.0;
    for (int32_t r = 0; r < p->num_rows; r++)
        p->b[r] = 0.0f;
    for (int32_t m = 0; m < graph->num_movable; m++)
        p->b[m] = (float)((double)load[graph->movable_expert[m]] / total);
    for (int32_t n = 0; n < graph->num_fixed; n++)
        p->b[graph->num_movable + graph->fixed_rank[n]] -=
            (float)((double)load[graph->fixed_expert[n]] / total);
    memcpy(p->artificial, p->b, (size_t)p->num_rows * sizeof *p->b);
    for (int32_t i = 0; i < num_edges(p); i++) {
        int32_t expert_row, rank_row = edge_rows(p, i, &expert_row);
        p->artificial[expert_row] -= 1.0f;
        p->artificial[rank_row] -= 1.0f;
    }
    /* A slack of 1 and t = 1 cancel in every rank's row. */
    for (int32_t c = 0; c < p->num_columns; c++)
        p->x[c] = 1.0f;
}

/* matrix = A X^2 A' (upper triangle) and y = A X^2 c. */
static void form_normal(programme *p)
{
    size_t rows = (size_t)p->num_rows, first_rank = (size_t)p->graph->num_movable;
    int32_t edges = num_edges(p), ranks = p->graph->num_ranks;
    float t = p->x[edges + ranks], a = p->x[edges + ranks + 1];
    float t_weight = t * t, a_weight = a * a;
    for (size_t r = 0; r < rows; r++) {
        float scaled = a_weight * p->artificial[r];
        float *row = p->matrix + r * rows;
        for (size_t c = r; c < rows; c++)
            row[c] = scaled * p->artificial[c];
        for (size_t c = r; r >= first_rank && c < rows; c++)
            row[c] += t_weight;
        p->y[r] = ARTIFICIAL * scaled - (r >= first_rank ? t_weight : 0.0f);
    }
    for (int32_t i = 0; i < edges; i++) {
        int32_t expert_row, rank_row = edge_rows(p, i, &expert_row);
        float weight = p->x[i] * p->x[i];
        p->matrix[(size_t)expert_row * rows + (size_t)expert_row] += weight;
        p->matrix[(size_t)rank_row * rows + (size_t)rank_row] += weight;
        p->matrix[(size_t)expert_row * rows + (size_t)rank_row] += weight;
    }
    for (int32_t g = 0; g < ranks; g++) {
        size_t r = first_rank + (size_t)g;
        p->matrix[r * rows + r] += p->x[edges + g] * p->x[edges + g];
    }
}

/* matrix = U' U, row by row: the inner loops run over neighbours, so that compilers make them parallel
 * without changing the order of a sum. Then y = matrix^-1 y. False when a pivot is not positive. */
static bool solve_normal(programme *p)
{
    size_t rows = (size_t)p->num_rows;
    for (size_t r = 0; r < rows; r++) {
        float *row = p->matrix + r * rows;
        if (!(row[r] > 0.0f))
            return false;
        float scale = 1.0f / sqrtf(row[r]);
        for (size_t c = r; c < rows; c++)
            row[c] *= scale;
        for (size_t below = r + 1; below < rows; below++) {
            float factor = row[below], *target = p->matrix + below * rows;
            if (factor == 0.0f)
                continue;
            for (size_t c = below; c < rows; c++)
                target[c] -= factor * row[c];
        }
    }
    for (size_t r = 0; r < rows; r++) {
        const float *row = p->matrix + r * rows;
        p->y[r] /= row[r];
        for (size_t c = r + 1; c < rows; c++)
            p->y[c] -= row[c] * p->y[r];
    }
    for (size_t r = rows; r-- > 0;) {
        const float *row = p->matrix + r * rows;
        float sum = p->y[r];
        for (size_t c = r + 1; c < rows; c++)
            sum -= row[c] * p->y[c];
        p->y[r] = sum / row[r];
    }
    return true;
}

/* d = x (c - A' y) and x scaled by it; returns max d. */
static float take_step(programme *p)
{
    int32_t edges = num_edges(p), ranks = p->graph->num_ranks, first_rank = p->graph->num_movable;
    float t_sum = 0.0f, a_sum = 0.0f, worst = 0.0f;
    for (int32_t i = 0; i < edges; i++) {
        int32_t expert_row, rank_row = edge_rows(p, i, &expert_row);
        p->d[i] = -p->x[i] * (p->y[expert_row] + p->y[rank_row]);
    }
    for (int32_t g = 0; g < ranks; g++) {
        p->d[edges + g] = -p->x[edges + g] * p->y[first_rank + g];
        t_sum -= p->y[first_rank + g];
    }
    for (int32_t r = 0; r < p->num_rows; r++)
        a_sum += p->artificial[r] * p->y[r];
    p->d[edges + ranks] = p->x[edges + ranks] * (1.0f - t_sum);
    p->d[edges + ranks + 1] = p->x[edges + ranks + 1] * (ARTIFICIAL - a_sum);
    for (int32_t c = 0; c < p->num_columns; c++)
        worst = p->d[c] > worst ? p->d[c] : worst;
    float step = worst > 0.0f ? STEP_LENGTH / worst : 0.0f;
    for (int32_t c = 0; c < p->num_columns; c++)
        p->x[c] *= 1.0f - step * p->d[c];
    return worst;
}

/* max |A x - b|; uses y. */
static float residue(programme *p)
{
    int32_t edges = num_edges(p), ranks = p->graph->num_ranks, first_rank = p->graph->num_movable;
    float t = p->x[edges + ranks], a = p->x[edges + ranks + 1], worst = 0.0f;
    for (int32_t r = 0; r < p->num_rows; r++)
        p->y[r] =
            a * p->artificial[r] - p->b[r] + (r >= first_rank ? p->x[edges + r - first_rank] - t : 0.0f);
    for (int32_t i = 0; i < edges; i++) {
        int32_t expert_row, rank_row = edge_rows(p, i, &expert_row);
        p->y[expert_row] += p->x[i];
        p->y[rank_row] += p->x[i];
    }
    for (int32_t r = 0; r < p->num_rows; r++)
        worst = fabsf(p->y[r]) > worst ? fabsf(p->y[r]) : worst;
    return worst;
}

static bool run(programme *p, int32_t steps)
{
    float d_max = INFINITY;
    for (int32_t step = 0; step < steps; step++) {
        form_normal(p);
        if (!solve_normal(p))
            return false;
        d_max = take_step(p);
    }
    float column = p->x[p->num_columns - 1];
    return d_max < ACCEPT_STEP && column >= 0.0f && column < ACCEPT_COLUMN && residue(p) < ACCEPT_RESIDUE;
}

/* Tokens of each edge to shares of its expert; an expert without tokens is split equally. */
static void write_shares(const eplb_resplit *resplit, const programme *p, bool accepted, double *share)
{
    const min_max_graph *graph = p->graph;
    memset(share, 0, (size_t)resplit->num_slots * sizeof *share);
    for (int32_t n = 0; n < graph->num_fixed; n++)
        share[resplit->slot[graph->fixed_replica[n]]] = 1.0;
    for (int32_t m = 0; m < graph->num_movable; m++) {
        int32_t begin = graph->edge_first[m], end = graph->edge_first[m + 1];
        double sum = 0.0;
        for (int32_t i = begin; i < end; i++)
            sum += accepted && p->x[i] > 0.0f ? (double)p->x[i] : 0.0;
        for (int32_t i = begin; i < end; i++) {
            double part =
                sum > 0.0 ? (p->x[i] > 0.0f ? (double)p->x[i] / sum : 0.0) : 1.0 / (double)(end - begin);
            share[resplit->slot[graph->edge_replica[i]]] = part;
        }
    }
}

eplb_status eplb_resplit_lplb(eplb_resplit *resplit, const int64_t *load, int32_t steps, double *share,
                              bool *accepted, eplb_error *error)
{
    eplb_status status = resplit_check_load(resplit, load, error);
    if (status != EPLB_OK)
        return status;
    if (steps < 0)
        return error_text(error, EPLB_ERROR_INVALID, "%d steps: expected 0 or more", steps);
    programme p;
    arena_mark mark = arena_position(&resplit->scratch);
    if (!take_programme(&p, &resplit->graph, &resplit->scratch))
        return error_memory(error, (size_t)resplit->num_slots * sizeof(float), "a linear programme");
    set_up(&p, load);
    bool taken = run(&p, steps);
    write_shares(resplit, &p, taken, share);
    arena_rewind(&resplit->scratch, mark);
    if (accepted != NULL)
        *accepted = taken;
    return EPLB_OK;
}
