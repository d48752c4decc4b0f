/* Which contents go where: the assignment problem of relabel.c and match_nodes.c. */
#ifndef PLAN_ASSIGNMENT_H
#define PLAN_ASSIGNMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

#define ASSIGNMENT_FORBIDDEN ((int64_t)1 << 44) /* more than what all allowed pairs cost together */

typedef struct assignment {
    int32_t n;
    int64_t *cost;  /* [n, n] contents of row r on rank c */
    int64_t *u;     /* [n + 1] potentials of rows; index 0 is the virtual row of the classical scheme */
    int64_t *v;     /* [n + 1] potentials of columns */
    int64_t *slack; /* [n + 1] */
    int32_t *row;   /* [n + 1] row matched to a column */
    int32_t *way;   /* [n + 1] column before this one on the path */
    uint8_t *seen;  /* [n + 1] */
} assignment;

/* Takes the arrays; the caller fills cost. False when memory is out. */
bool assignment_take(assignment *match, int32_t n, arena *scratch);

/* Once for a problem that was just taken. row[c] for c in 1 .. n: 1 + the row on column c - 1, with the least
 * total cost. O(n^3). */
void assignment_solve(assignment *match);

/* The row on column c, 0 .. n-1. */
static inline int32_t assignment_row(const assignment *match, int32_t column)
{
    return match->row[column + 1] - 1;
}

#endif
