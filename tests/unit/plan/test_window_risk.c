/* The risk of a window: what is pattern is kept, what is noise is not, means are means. */
#include <math.h>
#include <string.h>

#include "../../layer_case.h"
#include "../../testing.h"
#include "base/random.h"
#include "plan/window_risk.h"

enum { EXPERTS = 64, WINDOWS = 48, MOST_WINDOWS = 200 };

static layer_case layer;
static int64_t windows[MOST_WINDOWS * EXPERTS];
static arena scratch;

static window_risk estimate(int32_t count)
{
    window_risk risk;
    case_init(&layer, EXPERTS, 8, 9);
    case_windows(&layer, windows, count);
    assert_int_equal(window_risk_init(&risk, &layer.problem, &scratch, NULL), EPLB_OK);
    return risk;
}

/* Standard deviation of the sum of some experts, as the risk tells it. */
static double deviation_of(const window_risk *risk, int32_t first, int32_t last)
{
    double variance = 0.0;
    for (int32_t i = 0; i < risk->width; i++) {
        double sum = 0.0;
        for (int32_t e = first; e < last; e++)
            sum += (double)risk->spread[e * risk->width + i];
        variance += sum * sum;
    }
    for (int32_t e = first; e < last; e++)
        variance += (double)risk->noise[e];
    return sqrt(variance);
}

/* A quarter of the experts is hot together half of the time: their joint deviation is far above what
 * independent experts have. */
static void test_pattern(void **state)
{
    (void)state;
    random_state random = random_seed(5);
    for (int32_t t = 0; t < WINDOWS; t++) {
        bool hot = t / 6 % 2 == 0;
        for (int32_t e = 0; e < EXPERTS; e++)
            windows[t * EXPERTS + e] = (e < 16 && hot ? 3000 : 1000) + random_below(&random, 200);
    }
    window_risk risk = estimate(WINDOWS);
    assert_int_equal(risk.num_windows, WINDOWS);
    assert_true(risk.width >= 4 && risk.width % 4 == 0);
    double total = 0.0;
    for (int32_t e = 0; e < EXPERTS; e++)
        total += (double)risk.mean[e];
    assert_true(fabs(total - 1.0) < 1e-5);
    /* shares of the sixteen move between 1/4 and 1/2 */
    double deviation = deviation_of(&risk, 0, 16);
    assert_true(deviation > 0.10 && deviation < 0.15);
    /* one of the pattern and one against it cancel to a large part: 3 of the others move 1/16 of that */
    assert_true(deviation_of(&risk, 30, 33) < 0.02);
}

/* Independent noise around fixed means: no direction stands out, the variance is the experts' own. */
static void test_noise(void **state)
{
    (void)state;
    random_state random = random_seed(6);
    for (int32_t i = 0; i < WINDOWS * EXPERTS; i++)
        windows[i] = 800 + random_below(&random, 400);
    window_risk risk = estimate(WINDOWS);
    assert_true(risk.unexplained < 0.2);
    double own = 0.0;
    for (int32_t e = 0; e < EXPERTS; e++)
        own += (double)risk.noise[e];
    double joint = deviation_of(&risk, 0, EXPERTS);
    assert_true(joint * joint < 1.5 * own);
    /* uniform in 800 .. 1199: deviation 115 of 64,000 */
    double expected = 115.5 / 64000.0;
    assert_true(fabs(sqrt(own / EXPERTS) / expected - 1.0) < 0.2);
}

/* Windows without tokens do not count, small ones little; one window has no spread; none at all is even. */
static void test_sizes(void **state)
{
    (void)state;
    memset(windows, 0, sizeof windows);
    for (int32_t e = 0; e < EXPERTS; e++) {
        windows[1 * EXPERTS + e] = 1000;
        windows[3 * EXPERTS + e] = e == 0 ? 1 : 0; /* a single token */
    }
    window_risk risk = estimate(4);
    assert_int_equal(risk.num_windows, 2);
    assert_true((double)risk.mean[0] < 0.02);
    risk = estimate(2);
    assert_int_equal(risk.num_windows, 1);
    assert_int_equal(risk.width, 0);
    assert_true(risk.noise[0] < 1e-9f);
    memset(windows, 0, sizeof windows);
    risk = estimate(3);
    assert_int_equal(risk.num_windows, 0);
    assert_true(fabs((double)risk.mean[EXPERTS - 1] - 1.0 / EXPERTS) < 1e-6);
}

/* More windows than blocks: the width stays bounded. */
static void test_blocks(void **state)
{
    (void)state;
    random_state random = random_seed(8);
    for (int32_t t = 0; t < MOST_WINDOWS; t++) {
        for (int32_t e = 0; e < EXPERTS; e++)
            windows[t * EXPERTS + e] = (e % 8 == t / 10 % 8 ? 5000 : 1000) + random_below(&random, 100);
    }
    window_risk risk = estimate(MOST_WINDOWS);
    assert_int_equal(risk.num_windows, MOST_WINDOWS);
    assert_true(risk.width <= 76);
    assert_true(deviation_of(&risk, 0, 1) > 0.005);
}

/* Many windows whose mix lasts one or two of them vary as much as few such windows do. */
static void test_many(void **state)
{
    (void)state;
    double deviation[2];
    for (int32_t i = 0; i < 2; i++) {
        random_state random = random_seed(9);
        int32_t count = i == 0 ? WINDOWS : MOST_WINDOWS, left = 0;
        bool hot = false;
        for (int32_t t = 0; t < count; t++, left--) {
            if (left == 0) {
                hot = !hot;
                left = 1 + (int32_t)random_below(&random, 2);
            }
            for (int32_t e = 0; e < EXPERTS; e++)
                windows[t * EXPERTS + e] = (e < 16 && hot ? 3000 : 1000) + random_below(&random, 200);
        }
        window_risk risk = estimate(count);
        deviation[i] = deviation_of(&risk, 0, 16);
    }
    assert_true(deviation[0] > 0.10 && deviation[0] < 0.15);
    assert_true(deviation[1] > 0.7 * deviation[0] && deviation[1] < 1.1 * deviation[0]);
}

static void test_level(void **state)
{
    (void)state;
    for (int32_t e = 0; e < EXPERTS; e++)
        windows[e] = e;
    window_risk risk = estimate(1);
    float before = risk.mean[EXPERTS - 1];
    window_risk_level(&risk, 0.5, 1.0);
    assert_true(fabs((double)risk.mean[0] - 0.5 / EXPERTS) < 1e-7);
    float after = before / 2 + 0.5f / EXPERTS;
    assert_true(fabs((double)(risk.mean[EXPERTS - 1] - after)) < 1e-7);
    window_risk_level(&risk, 0.5, 0.001);
    assert_true(fabs((double)(risk.mean[EXPERTS - 1] - (after - 0.001f))) < 1e-7);
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
        cmocka_unit_test(test_pattern), cmocka_unit_test(test_noise), cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_blocks),  cmocka_unit_test(test_level), cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
