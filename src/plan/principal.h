/* Largest eigenvalues of a small symmetric matrix. */
#ifndef PLAN_PRINCIPAL_H
#define PLAN_PRINCIPAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

/* The `count` largest eigenvalues of the symmetric, positive semi-definite matrix [n, n], descending, and
 * unit eigenvectors: vector[i * n ..] belongs to value[i]. 1 <= count <= n. False when memory is out.
 * O(n^2 count) with a constant of about fifty. */
bool principal_components(const double *matrix, int32_t n, int32_t count, double *value, double *vector,
                          arena *scratch);

#endif
