/* Heat map of rank loads in the terminal: ranks down, layers across, one cell per rank and layer or the
 * hottest of several where there is no room. */
#ifndef TOOLS_REPORT_HEATMAP_H
#define TOOLS_REPORT_HEATMAP_H

#include <stdint.h>
#include <stdio.h>

typedef enum color_mode { COLOR_NONE, COLOR_256, COLOR_TRUE } color_mode;

/* COLOR_NONE unless `wish` (0 auto, 1 always, 2 never) and the terminal agree: auto means that `out` is a
 * terminal, NO_COLOR is unset and TERM is not "dumb". COLORTERM tells true colour. */
color_mode heatmap_color(FILE *out, int wish);
/* Columns of the terminal behind `out`: its size, else COLUMNS, else 80. */
int heatmap_width(FILE *out);

typedef struct heatmap {
    const char *title;
    const double *relative; /* [num_layers, num_ranks] load / mean of the layer; 1 is perfect, < 0 is dead */
    int32_t num_layers;
    int32_t num_ranks;
    double hottest; /* end of the scale, > 1; the same for maps that are compared */
    color_mode color;
    int width;
} heatmap;

void heatmap_print(FILE *out, const heatmap *map);

#endif
