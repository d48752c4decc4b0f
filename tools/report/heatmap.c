/* Heat map in the terminal. The scale runs from idle over the mean to `hottest`; blue is below the mean, red
 * above (a diverging scale, so that an even placement is pale). Without colour the same scale is ten
 * characters. A cell that stands for several ranks or layers shows the hottest of them: a peak never
 * hides. */
#include "report/heatmap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LABEL = 11, MAX_ROWS = 32 };

/* An odd number of levels: the mean is the middle of one, not the edge of two. */
static const char density[] = " .:-~=+*#%@";
enum { LEVELS = sizeof density - 1 };

color_mode heatmap_color(FILE *out, int wish)
{
    const char *plain = getenv("NO_COLOR"), *term = getenv("TERM"), *deep = getenv("COLORTERM");
    if (wish == 2)
        return COLOR_NONE;
    if (wish == 0 && (!isatty(fileno(out)) || (plain != NULL && *plain != '\0') || term == NULL ||
                      strcmp(term, "dumb") == 0))
        return COLOR_NONE;
    return deep != NULL && (strcmp(deep, "truecolor") == 0 || strcmp(deep, "24bit") == 0) ? COLOR_TRUE
                                                                                          : COLOR_256;
}

int heatmap_width(FILE *out)
{
    struct winsize size;
    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    const char *columns = getenv("COLUMNS");
    int width = columns != NULL ? atoi(columns) : 0;
    return width >= 20 && width <= 1000 ? width : 80;
}

/* Place of a relative load on the scale: 0 idle, 0.5 the mean, 1 hottest. */
static double scale_place(double relative, double hottest)
{
    if (relative <= 1.0)
        return relative < 0.0 ? 0.0 : 0.5 * relative;
    double place = 0.5 + 0.5 * (relative - 1.0) / (hottest - 1.0);
    return place > 1.0 ? 1.0 : place;
}

/* Blue (33,102,172), nearly white (247,247,247), red (178,24,43), linear in between. */
static void scale_rgb(double place, int rgb[3])
{
    static const double stops[3][3] = {{33, 102, 172}, {247, 247, 247}, {178, 24, 43}};
    int side = place < 0.5 ? 0 : 1;
    double t = (place - 0.5 * side) * 2.0;
    for (int i = 0; i < 3; i++)
        rgb[i] = (int)(stops[side][i] + t * (stops[side + 1][i] - stops[side][i]) + 0.5);
}

/* Nearest entry of the 6 x 6 x 6 cube of the 256 colours. */
static int cube_color(const int rgb[3])
{
    int index = 16, weight = 36;
    for (int i = 0; i < 3; i++, weight /= 6) {
        int level = rgb[i] < 48 ? 0 : rgb[i] < 115 ? 1 : (rgb[i] - 35) / 40;
        index += weight * level;
    }
    return index;
}

static void put_cell(FILE *out, const heatmap *map, double relative, int width)
{
    double place = scale_place(relative, map->hottest);
    int rgb[3];
    if (relative < 0.0) {
        (void)fprintf(out, "%.*s", width, "xxxx"); /* a dead rank */
        return;
    }
    if (map->color == COLOR_NONE) {
        int level = (int)(place * LEVELS);
        for (int i = 0; i < width; i++)
            (void)fputc(density[level < LEVELS ? level : LEVELS - 1], out);
        return;
    }
    scale_rgb(place, rgb);
    if (map->color == COLOR_TRUE)
        (void)fprintf(out, "\033[48;2;%d;%d;%dm%*s\033[0m", rgb[0], rgb[1], rgb[2], width, "");
    else
        (void)fprintf(out, "\033[48;5;%dm%*s\033[0m", cube_color(rgb), width, "");
}

/* Hottest of a block of ranks and layers. */
static double block_peak(const heatmap *map, int32_t rank, int32_t ranks, int32_t layer, int32_t layers)
{
    double peak = -1.0;
    for (int32_t l = layer; l < layer + layers && l < map->num_layers; l++)
        for (int32_t g = rank; g < rank + ranks && g < map->num_ranks; g++) {
            double value = map->relative[(size_t)l * (size_t)map->num_ranks + (size_t)g];
            peak = value > peak ? value : peak;
        }
    return peak;
}

static void put_legend(FILE *out, const heatmap *map, int32_t ranks, int32_t layers)
{
    (void)fprintf(out, "%*s0 ", LABEL, "");
    for (int i = 0; i < LEVELS; i++) {
        double place = (i + 0.5) / LEVELS;
        if (i == LEVELS / 2)
            (void)fputs(" 1 ", out);
        put_cell(out, map, place < 0.5 ? 2.0 * place : 1.0 + (place - 0.5) * 2.0 * (map->hottest - 1.0), 1);
    }
    (void)fprintf(out, " %.2f of the mean", map->hottest);
    if (ranks > 1 || layers > 1)
        (void)fprintf(out, "; a cell is the hottest of %d x %d", (int)ranks, (int)layers);
    (void)fputc('\n', out);
}

void heatmap_print(FILE *out, const heatmap *map)
{
    int room = map->width - LABEL - 1;
    room = room < 8 ? 8 : room;
    int32_t layers = (map->num_layers + room - 1) / room; /* per cell */
    int32_t ranks = (map->num_ranks + MAX_ROWS - 1) / MAX_ROWS;
    int32_t columns = (map->num_layers + layers - 1) / layers;
    int cell = room / columns > 4 ? 4 : room / columns;
    char label[32], last[32];
    (void)snprintf(last, sizeof last, "layer %d", (int)map->num_layers - 1);
    int gap = columns * cell - (int)strlen("layer 0") - (int)strlen(last);
    (void)fprintf(out, "%s\n", map->title);
    if (gap >= 1)
        (void)fprintf(out, "%*slayer 0%*s%s\n", LABEL, "", gap, "", last);
    else if (map->num_layers == 1)
        (void)fprintf(out, "%*slayer 0\n", LABEL, "");
    else
        (void)fprintf(out, "%*slayers 0-%d\n", LABEL, "", (int)map->num_layers - 1);
    for (int32_t g = 0; g < map->num_ranks; g += ranks) {
        if (ranks == 1)
            (void)snprintf(label, sizeof label, "rank %d", (int)g);
        else
            (void)snprintf(label, sizeof label, "%d-%d", (int)g,
                           (int)(g + ranks < map->num_ranks ? g + ranks : map->num_ranks) - 1);
        (void)fprintf(out, "%*s ", LABEL - 1, label);
        for (int32_t l = 0; l < map->num_layers; l += layers)
            put_cell(out, map, block_peak(map, g, ranks, l, layers), cell);
        (void)fputc('\n', out);
    }
    put_legend(out, map, ranks, layers);
}
