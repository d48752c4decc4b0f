/* Heat maps, to the character: scale, crowding, colours. */
#include "report/heatmap.h"

#include <stdlib.h>
#include <string.h>

#include "testing.h"

#include "capture.h"

static void test_plain_map(void **state)
{
    /* two layers of two ranks: idle, the mean, hottest, dead */
    static const double relative[4] = {0.0, 1.0, 2.0, -1.0};
    char text[512] = "";
    heatmap map = {.title = "map",
                   .relative = relative,
                   .num_layers = 2,
                   .num_ranks = 2,
                   .hottest = 2.0,
                   .color = COLOR_NONE,
                   .width = 40};
    (void)state;
    CAPTURE(text, sizeof text, heatmap_print(out, &map));
    assert_string_equal(text, "map\n"
                              "           layers 0-1\n"
                              "    rank 0     @@@@\n"
                              "    rank 1 ====xxxx\n"
                              "           0  .:-~ 1 =+*#%@ 2.00 of the mean\n");
}

static void test_crowded_map_shows_peaks(void **state)
{
    static double relative[100 * 64];
    static char text[16384];
    (void)state;
    for (int i = 0; i < 100 * 64; i++)
        relative[i] = 1.0;
    relative[63 * 64 + 41] = 3.0; /* layer 63, rank 41 */
    heatmap map = {.title = "",
                   .relative = relative,
                   .num_layers = 100,
                   .num_ranks = 64,
                   .hottest = 3.0,
                   .color = COLOR_NONE,
                   .width = 62};
    CAPTURE(text, sizeof text, heatmap_print(out, &map));
    assert_non_null(strstr(text, "     40-41 ===============================@==================\n"));
    assert_non_null(strstr(text, "a cell is the hottest of 2 x 2"));
}

static void test_colors(void **state)
{
    static const double relative[2] = {1.0, 2.0};
    char text[2048] = "";
    heatmap map = {.title = "",
                   .relative = relative,
                   .num_layers = 1,
                   .num_ranks = 2,
                   .hottest = 2.0,
                   .color = COLOR_TRUE,
                   .width = 40};
    (void)state;
    CAPTURE(text, sizeof text, heatmap_print(out, &map));
    assert_non_null(strstr(text, "rank 0 \033[48;2;247;247;247m    \033[0m\n"));
    assert_non_null(strstr(text, "rank 1 \033[48;2;178;24;43m    \033[0m\n"));
    map.color = COLOR_256;
    memset(text, 0, sizeof text);
    CAPTURE(text, sizeof text, heatmap_print(out, &map));
    assert_non_null(strstr(text, "rank 0 \033[48;5;231m"));
    assert_non_null(strstr(text, "rank 1 \033[48;5;124m"));
}

static void test_color_choice(void **state)
{
    FILE *out = tmpfile();
    (void)state;
    assert_non_null(out);
    assert_int_equal(unsetenv("COLORTERM"), 0);
    assert_int_equal(heatmap_color(out, 0), COLOR_NONE); /* auto: a file is no terminal */
    assert_int_equal(heatmap_color(out, 1), COLOR_256);
    assert_int_equal(heatmap_color(out, 2), COLOR_NONE);
    assert_int_equal(setenv("COLORTERM", "truecolor", 1), 0);
    assert_int_equal(heatmap_color(out, 1), COLOR_TRUE);
    assert_int_equal(setenv("COLUMNS", "120", 1), 0);
    assert_int_equal(heatmap_width(out), 120);
    assert_int_equal(setenv("COLUMNS", "none", 1), 0);
    assert_int_equal(heatmap_width(out), 80);
    assert_int_equal(fclose(out), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_map),
        cmocka_unit_test(test_crowded_map_shows_peaks),
        cmocka_unit_test(test_colors),
        cmocka_unit_test(test_color_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
