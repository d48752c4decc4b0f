/* Chance between windows is told from change, in whatever unit tokens are written. */
#include <string.h>

#include "../../layer_case.h"
#include "../../testing.h"
#include "base/random.h"
#include "plan/window_noise.h"

enum { EXPERTS = 64, WINDOWS = 16 };

static layer_case layer;
static int64_t windows[WINDOWS * EXPERTS];

static window_noise measure(int32_t count, int64_t unit)
{
    static int64_t scaled[WINDOWS * EXPERTS];
    case_init(&layer, EXPERTS, 8, 9);
    memset(layer.load, 0, sizeof layer.load);
    for (int32_t i = 0; i < count * EXPERTS; i++) {
        scaled[i] = windows[i] * unit;
        layer.load[i % EXPERTS] += scaled[i];
    }
    case_refresh(&layer);
    layer.problem.num_windows = count;
    layer.problem.window_load = scaled;
    return window_noise_measure(&layer.problem);
}

/* `tokens` independent draws; early experts weigh more, those below `hot` five times as much again. */
static void draw(random_state *random, int32_t window, int32_t tokens, int32_t hot)
{
    uint32_t weight[EXPERTS], sum = 0;
    for (int32_t e = 0; e < EXPERTS; e++) {
        weight[e] = (uint32_t)((e < hot ? 5 : 1) * (8 + 400 / (e + 1)));
        sum += weight[e];
    }
    int64_t *load = windows + window * EXPERTS;
    memset(load, 0, EXPERTS * sizeof *load);
    for (int32_t i = 0; i < tokens; i++) {
        uint32_t left = random_below(random, sum);
        int32_t e = 0;
        while (left >= weight[e])
            left -= weight[e++];
        load[e]++;
    }
}

/* Draws from one mix: the ratio is near 1 and no variation is seen beyond it, also where windows have
 * different numbers of tokens or every token counts seven times. */
static void test_chance(void **state)
{
    (void)state;
    random_state random = random_seed(3);
    for (int32_t round = 0; round < 20; round++) {
        for (int32_t t = 0; t < WINDOWS; t++)
            draw(&random, t, t % 3 == 0 ? 1500 : 4096, 0);
        for (int32_t count = 2; count <= WINDOWS; count *= 2) {
            window_noise plain = measure(count, 1), sevenfold = measure(count, 7);
            assert_int_equal(plain.num_windows, count);
            assert_true(window_noise_explains(&plain) && window_noise_explains(&sevenfold));
            assert_true(plain.ratio > 0.4 && plain.ratio < 2.0 && plain.variation < 0.15);
            assert_true(sevenfold.ratio > plain.ratio * 0.999 && sevenfold.ratio < plain.ratio * 1.001);
        }
    }
}

/* A quarter of the experts is five times as hot in every other window. */
static void test_change(void **state)
{
    (void)state;
    random_state random = random_seed(4);
    for (int32_t t = 0; t < WINDOWS; t++)
        draw(&random, t, 4096, t % 2 == 0 ? 0 : EXPERTS / 4);
    for (int32_t count = 2; count <= WINDOWS; count *= 2) {
        window_noise noise = measure(count, 1);
        assert_false(window_noise_explains(&noise));
        assert_true(noise.variation > 0.125);
    }
}

/* Nothing to compare: one window, empty windows, one expert with tokens. */
static void test_nothing(void **state)
{
    (void)state;
    memset(windows, 0, sizeof windows);
    window_noise noise = measure(WINDOWS, 1);
    assert_true(noise.num_windows == 0 && window_noise_explains(&noise));
    windows[3 * EXPERTS + 5] = 10;
    noise = measure(WINDOWS, 1);
    assert_true(noise.num_windows == 1 && window_noise_explains(&noise));
    windows[7 * EXPERTS + 5] = 30;
    noise = measure(WINDOWS, 1);
    assert_true(noise.num_windows == 2 && window_noise_explains(&noise) && noise.variation == 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chance),
        cmocka_unit_test(test_change),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
