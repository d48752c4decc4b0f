/* Principal components of matrices whose components are known. */
#include <math.h>

#include "../../testing.h"
#include "base/random.h"
#include "plan/principal.h"

enum { N = 24, COUNT = 6 };

/* matrix = sum of value[i] * v_i v_i' with orthonormal v_i: columns of a Householder reflection. */
static void build(const double *value, double *matrix, double vectors[N][N])
{
    random_state random = random_seed(3);
    double u[N], length = 0.0;
    for (int i = 0; i < N; i++) {
        u[i] = random_unit(&random) - 0.5;
        length += u[i] * u[i];
    }
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++)
            vectors[i][j] = (i == j ? 1.0 : 0.0) - 2.0 * u[i] * u[j] / length;
    }
    for (int a = 0; a < N; a++) {
        for (int b = 0; b < N; b++) {
            matrix[a * N + b] = 0.0;
            for (int i = 0; i < N; i++)
                matrix[a * N + b] += value[i] * vectors[i][a] * vectors[i][b];
        }
    }
}

static void test_known_spectrum(void **state)
{
    (void)state;
    arena scratch;
    arena_init(&scratch, NULL);
    double value[N] = {1.0, 50.0, 2.0, 9.0, 400.0}, matrix[N * N], vectors[N][N];
    double found[COUNT], vector[COUNT * N];
    build(value, matrix, vectors);
    assert_true(principal_components(matrix, N, COUNT, found, vector, &scratch));
    const int order[5] = {4, 1, 3, 2, 0};
    for (int i = 0; i < 5; i++) {
        double along = 0.0;
        assert_true(fabs(found[i] - value[order[i]]) < 1e-9 * 400.0);
        for (int k = 0; k < N; k++)
            along += vector[i * N + k] * vectors[order[i]][k];
        assert_true(fabs(fabs(along) - 1.0) < 1e-6);
    }
    assert_true(fabs(found[5]) < 1e-6);
    arena_destroy(&scratch);
}

/* A matrix of zeros and one with a single row do not divide by zero. */
static void test_degenerate(void **state)
{
    (void)state;
    arena scratch;
    arena_init(&scratch, NULL);
    double zero[9] = {0.0}, one[1] = {4.0}, value[3], vector[9];
    assert_true(principal_components(zero, 3, 3, value, vector, &scratch));
    for (int i = 0; i < 3; i++)
        assert_true(value[i] == 0.0);
    assert_true(principal_components(one, 1, 1, value, vector, &scratch));
    assert_true(value[0] == 4.0);
    arena_destroy(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_spectrum),
        cmocka_unit_test(test_degenerate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
