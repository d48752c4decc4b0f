/* Windows as rows: few stay what they are, of many the neighbours that are alike become one. */
#include <math.h>
#include <string.h>

#include "../../layer_case.h"
#include "../../testing.h"
#include "base/random.h"
#include "plan/window_rows.h"

enum { EXPERTS = 32, MOST_WINDOWS = 400, TOKENS = 100000 };

static layer_case layer;
static int64_t windows[MOST_WINDOWS * EXPERTS];
static arena scratch;

static window_rows read(int32_t count)
{
    window_rows rows;
    case_init(&layer, EXPERTS, 8, 5);
    case_windows(&layer, windows, count);
    assert_true(window_rows_read(&rows, &layer.problem, &scratch));
    return rows;
}

/* Shares of a mix, the same for every call with its number: half of the experts share 3/4 of the tokens. */
static double share_of(int32_t mix, int32_t expert)
{
    random_state random = random_seed((uint64_t)(100 + mix));
    for (int32_t i = 0; i < expert / 2; i++)
        (void)random_next(&random);
    bool first = random_unit(&random) < 0.5;
    return ((expert & 1) == 0) == first ? 1.5 / EXPERTS : 0.5 / EXPERTS;
}

static void write_window(random_state *random, int32_t window, int32_t mix)
{
    for (int32_t e = 0; e < EXPERTS; e++)
        windows[window * EXPERTS + e] =
            (int64_t)(TOKENS * share_of(mix, e)) + (int64_t)random_below(random, 101) - 50;
}

static bool is_mix(const double *share, int32_t mix)
{
    for (int32_t e = 0; e < EXPERTS; e++) {
        if (fabs(share[e] - share_of(mix, e)) > 100.0 / TOKENS)
            return false;
    }
    return true;
}

static double sum_of(const double *value, int32_t count)
{
    double sum = 0.0;
    for (int32_t i = 0; i < count; i++)
        sum += value[i];
    return sum;
}

/* As many windows as rows: each is its own; one without tokens is left out, a small one counts less. */
static void test_few(void **state)
{
    (void)state;
    random_state random = random_seed(1);
    for (int32_t t = 0; t < WINDOW_ROWS + 1; t++)
        write_window(&random, t, t);
    memset(windows + 7 * EXPERTS, 0, EXPERTS * sizeof *windows);
    for (int32_t e = 0; e < EXPERTS; e++)
        windows[9 * EXPERTS + e] = e;
    window_rows rows = read(WINDOW_ROWS + 1);
    assert_int_equal(rows.num_windows, WINDOW_ROWS);
    assert_int_equal(rows.count, WINDOW_ROWS);
    for (int32_t row = 0; row < rows.count; row++) {
        const int64_t *load = windows + (row + (row >= 7)) * EXPERTS;
        double total = 0.0;
        for (int32_t e = 0; e < EXPERTS; e++)
            total += (double)load[e];
        for (int32_t e = 0; e < EXPERTS; e++)
            assert_true(fabs(rows.share[row * EXPERTS + e] - (double)load[e] / total) < 1e-12);
        assert_true(row == 8 ? rows.weight[row] < 0.01 : fabs(rows.weight[row] - 1.0) < 0.05);
    }
    assert_true(fabs(sum_of(rows.weight, rows.count) - WINDOW_ROWS) < 1e-9);
}

/* Fewer runs than rows: no row mixes two of them, however long or short they are. */
static void test_runs(void **state)
{
    (void)state;
    random_state random = random_seed(2);
    enum { RUNS = WINDOW_ROWS - 10 };
    bool found[RUNS] = {false};
    int32_t count = 0;
    for (int32_t run = 0; run < RUNS; run++) {
        int32_t length = run % 3 == 0 ? 1 : 1 + (int32_t)random_below(&random, 8);
        for (int32_t i = 0; i < length; i++)
            write_window(&random, count++, run);
    }
    window_rows rows = read(count);
    assert_true(count > 2 * WINDOW_ROWS && count <= MOST_WINDOWS);
    assert_int_equal(rows.count, WINDOW_ROWS);
    assert_true(fabs(sum_of(rows.weight, rows.count) - count) < 1e-9);
    for (int32_t row = 0; row < rows.count; row++) {
        int32_t run = 0;
        while (run < RUNS && !is_mix(rows.share + row * EXPERTS, run))
            run++;
        assert_true(run < RUNS);
        found[run] = true;
    }
    for (int32_t run = 0; run < RUNS; run++)
        assert_true(found[run]);
}

/* Means and variances are those of the windows, and what they are made of keeps its mean. */
static void test_moments(void **state)
{
    (void)state;
    random_state random = random_seed(3);
    for (int32_t t = 0; t < MOST_WINDOWS; t++)
        write_window(&random, t, t % 2);
    window_rows rows = read(MOST_WINDOWS);
    for (int32_t e = 0; e < EXPERTS; e++) {
        double a = share_of(0, e), b = share_of(1, e), mean = 0.0;
        assert_true(fabs(rows.mean[e] - (a + b) / 2.0) < 20.0 / TOKENS);
        assert_true(fabs(rows.variance[e] - (a - b) * (a - b) / 4.0) < 5e-6);
        for (int32_t row = 0; row < rows.count; row++)
            mean += rows.weight[row] * rows.share[row * EXPERTS + e] / MOST_WINDOWS;
        assert_true(fabs(mean - rows.mean[e]) < 20.0 / TOKENS);
    }
}

/* The noise is that of a single window, though the mix changes now and then. Uniform in -50 .. 50: deviation
 * 29.2. */
static void test_noise(void **state)
{
    (void)state;
    random_state random = random_seed(4);
    for (int32_t t = 0; t < MOST_WINDOWS; t++)
        write_window(&random, t, t / 11);
    window_rows rows = read(MOST_WINDOWS);
    double sigma = sum_of(rows.sigma, EXPERTS) / EXPERTS;
    double least = 0.02 * 2.0 / EXPERTS; /* what the noise is never below */
    assert_true(fabs(sigma / least - 1.0) < 0.01);
    for (int32_t i = 0; i < MOST_WINDOWS * EXPERTS; i++)
        windows[i] += (int64_t)random_below(&random, 1201) - 600; /* deviation 347 */
    rows = read(MOST_WINDOWS);
    sigma = sum_of(rows.sigma, EXPERTS) / EXPERTS;
    assert_true(fabs(sigma * TOKENS / 347.0 - 1.0) < 0.15);
}

static int open_arena(void **state)
{
    (void)state;
    arena_init(&scratch, NULL);
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    arena_destroy(&scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_noise),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
