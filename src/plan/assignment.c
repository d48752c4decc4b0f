/* The assignment problem: every row gets a column of its own, for the least total cost.
 *
 * Rows are added one by one; each takes the shortest augmenting path under potentials that keep all reduced
 * costs from falling below 0 (Kuhn, Munkres; Jonker and Volgenant 1987). O(n^3). */
#include "plan/assignment.h"

bool assignment_take(assignment *match, int32_t n, arena *scratch)
{
    size_t size = (size_t)n + 1;
    *match = (assignment){.n = n,
                          .cost = arena_take(scratch, (size_t)n * (size_t)n, sizeof *match->cost),
                          .u = arena_take_zero(scratch, size, sizeof *match->u),
                          .v = arena_take_zero(scratch, size, sizeof *match->v),
                          .slack = arena_take(scratch, size, sizeof *match->slack),
                          .row = arena_take_zero(scratch, size, sizeof *match->row),
                          .way = arena_take_zero(scratch, size, sizeof *match->way),
                          .seen = arena_take(scratch, size, sizeof *match->seen)};
    return match->cost != NULL && match->u != NULL && match->v != NULL && match->slack != NULL &&
           match->row != NULL && match->way != NULL && match->seen != NULL;
}

/* Extends the shortest path from `column` by one; returns the next column. */
static int32_t extend(assignment *match, int32_t column)
{
    int32_t row = match->row[column], next = 0;
    int64_t least = INT64_MAX;
    match->seen[column] = 1;
    for (int32_t c = 1; c <= match->n; c++) {
        if (match->seen[c])
            continue;
        int64_t reduced =
            match->cost[(size_t)(row - 1) * (size_t)match->n + (size_t)(c - 1)] - match->u[row] - match->v[c];
        if (reduced < match->slack[c]) {
            match->slack[c] = reduced;
            match->way[c] = column;
        }
        if (match->slack[c] < least) {
            least = match->slack[c];
            next = c;
        }
    }
    for (int32_t c = 0; c <= match->n; c++) {
        if (match->seen[c]) {
            match->u[match->row[c]] += least;
            match->v[c] -= least;
        } else {
            match->slack[c] -= least;
        }
    }
    return next;
}

void assignment_solve(assignment *match)
{
    for (int32_t r = 1; r <= match->n; r++) {
        match->row[0] = r;
        for (int32_t c = 0; c <= match->n; c++) {
            match->slack[c] = INT64_MAX;
            match->seen[c] = 0;
        }
        int32_t column = 0;
        while (match->row[column] != 0)
            column = extend(match, column);
        while (column != 0) {
            int32_t before = match->way[column];
            match->row[column] = match->row[before];
            column = before;
        }
    }
}
