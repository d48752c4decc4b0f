/* Principal components by subspace iteration.
 *
 * A block of vectors is multiplied by the matrix and made orthonormal again and again, then turned to the
 * eigenvectors inside the block by Jacobi rotations. Close eigenvalues may still be mixed at the end; who
 * asks for the noise threshold of a spectrum does not mind. Only basic operations and square roots in a fixed
 * order: the same bits everywhere. Source: Bauer 1957 (simultaneous iteration), Jacobi 1846. */
#include "plan/principal.h"

#include <math.h>
#include <string.h>

#include "base/random.h"

#define ROUNDS 24
#define SWEEPS 10

static double dot(const double *a, const double *b, int32_t n)
{
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    int32_t i = 0;
    for (; i + 4 <= n; i += 4) {
        for (int32_t j = 0; j < 4; j++)
            sum[j] += a[i + j] * b[i + j];
    }
    for (; i < n; i++)
        sum[0] += a[i] * b[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Gram and Schmidt, each vector against those before it, twice for accuracy. A vector that vanishes becomes
 * zero. */
static void orthonormalise(double *vector, int32_t n, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        double *v = vector + (size_t)i * (size_t)n;
        for (int32_t pass = 0; pass < 2; pass++) {
            for (int32_t j = 0; j < i; j++) {
                const double *u = vector + (size_t)j * (size_t)n;
                double along = dot(u, v, n);
                for (int32_t k = 0; k < n; k++)
                    v[k] -= along * u[k];
            }
        }
        double length = sqrt(dot(v, v, n));
        for (int32_t k = 0; k < n; k++)
            v[k] = length > 0.0 ? v[k] / length : 0.0;
    }
}

static void multiply(const double *matrix, const double *vector, double *product, int32_t n, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        for (int32_t k = 0; k < n; k++)
            product[(size_t)i * (size_t)n + (size_t)k] =
                dot(matrix + (size_t)k * (size_t)n, vector + (size_t)i * (size_t)n, n);
    }
}

static void turn(double *a, double *b, int32_t n, double c, double s)
{
    for (int32_t k = 0; k < n; k++) {
        double x = a[k], y = b[k];
        a[k] = c * x - s * y;
        b[k] = s * x + c * y;
    }
}

/* One Jacobi rotation that makes small[p, q] zero; `vector` turns along. */
static void rotate(double *small, double *vector, int32_t n, int32_t count, int32_t p, int32_t q)
{
    double *row_p = small + (size_t)p * (size_t)count, *row_q = small + (size_t)q * (size_t)count;
    double off = row_p[q];
    if (off == 0.0)
        return;
    double theta = (row_q[q] - row_p[p]) / (2.0 * off);
    double t = (theta >= 0.0 ? 1.0 : -1.0) / (fabs(theta) + sqrt(theta * theta + 1.0));
    double c = 1.0 / sqrt(t * t + 1.0), s = t * c;
    turn(row_p, row_q, count, c, s);
    for (int32_t k = 0; k < count; k++) {
        double *row = small + (size_t)k * (size_t)count;
        double x = row[p], y = row[q];
        row[p] = c * x - s * y;
        row[q] = s * x + c * y;
    }
    row_p[q] = row_q[p] = 0.0;
    turn(vector + (size_t)p * (size_t)n, vector + (size_t)q * (size_t)n, n, c, s);
}

static void sort_descending(double *value, double *vector, int32_t n, int32_t count)
{
    for (int32_t i = 0; i + 1 < count; i++) {
        int32_t largest = i;
        for (int32_t j = i + 1; j < count; j++) {
            if (value[j] > value[largest])
                largest = j;
        }
        double swap = value[i];
        value[i] = value[largest];
        value[largest] = swap;
        for (int32_t k = 0; largest != i && k < n; k++) {
            double *a = vector + (size_t)i * (size_t)n + k, *b = vector + (size_t)largest * (size_t)n + k;
            swap = *a;
            *a = *b;
            *b = swap;
        }
    }
}

bool principal_components(const double *matrix, int32_t n, int32_t count, double *value, double *vector,
                          arena *scratch)
{
    size_t block = (size_t)n * (size_t)count;
    double *product = arena_take(scratch, block, sizeof *product);
    double *small = arena_take(scratch, (size_t)count * (size_t)count, sizeof *small);
    if (product == NULL || small == NULL)
        return false;
    random_state random = random_seed(1);
    for (size_t i = 0; i < block; i++)
        vector[i] = random_unit(&random) - 0.5;
    orthonormalise(vector, n, count);
    for (int32_t round = 0; round < ROUNDS; round++) {
        multiply(matrix, vector, product, n, count);
        memcpy(vector, product, block * sizeof *vector);
        orthonormalise(vector, n, count);
    }
    multiply(matrix, vector, product, n, count);
    for (int32_t i = 0; i < count; i++) {
        for (int32_t j = 0; j < count; j++)
            small[i * count + j] = dot(vector + (size_t)i * (size_t)n, product + (size_t)j * (size_t)n, n);
    }
    for (int32_t sweep = 0; sweep < SWEEPS; sweep++) {
        for (int32_t p = 0; p < count; p++) {
            for (int32_t q = p + 1; q < count; q++)
                rotate(small, vector, n, count, p, q);
        }
    }
    for (int32_t i = 0; i < count; i++)
        value[i] = small[i * count + i];
    sort_descending(value, vector, n, count);
    return true;
}
