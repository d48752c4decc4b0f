/* Mean, worst and the places of the largest of a row of figures. */
#ifndef TOOLS_REPORT_SUMMARY_H
#define TOOLS_REPORT_SUMMARY_H

#include <stdint.h>

typedef struct summary {
    double mean, worst;
    int32_t worst_index; /* the first of equals */
} summary;

/* values[count >= 1]. */
summary summarize(const double *values, int32_t count);
/* Places of the `most` largest values, largest first, ties to the lower place; returns how many. */
int32_t largest(const double *values, int32_t count, int32_t *places, int32_t most);

#endif
