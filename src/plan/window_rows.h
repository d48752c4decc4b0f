/* Recorded windows as few rows of shares that a covariance can be taken of. */
#ifndef PLAN_WINDOW_ROWS_H
#define PLAN_WINDOW_ROWS_H

#include "plan/layer.h"

#define WINDOW_ROWS 64 /* at most so many */

typedef struct window_rows {
    int32_t num_experts;
    int32_t num_windows; /* with tokens */
    int32_t count;       /* rows: num_windows, or WINDOW_ROWS if there are more */
    double *weight;      /* [count] windows in the row; their sum is num_windows */
    double *share;       /* [count, E] mean of the row's windows */
    double *mean;        /* [E] over all windows */
    double *variance;    /* [E] over all windows, each for itself */
    double *sigma;       /* [E] noise of one window */
} window_rows;

/* Windows that hold tokens. O(T E). */
int32_t window_rows_filled(const layer_problem *problem);
/* Reads the windows of a layer; those without tokens are left out. At least one holds tokens. False when
 * memory is out. O(T (E + WINDOW_ROWS)). */
bool window_rows_read(window_rows *rows, const layer_problem *problem, arena *scratch);

#endif
