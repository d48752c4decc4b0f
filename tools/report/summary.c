/* Mean, worst and the places of the largest of a row of figures. */
#include "report/summary.h"

summary summarize(const double *values, int32_t count)
{
    summary s = {0.0, values[0], 0};
    for (int32_t i = 0; i < count; i++) {
        s.mean += values[i];
        if (values[i] > s.worst) {
            s.worst = values[i];
            s.worst_index = i;
        }
    }
    s.mean /= count;
    return s;
}

int32_t largest(const double *values, int32_t count, int32_t *places, int32_t most)
{
    int32_t found = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t j = found < most ? found++ : most;
        for (; j > 0 && values[places[j - 1]] < values[i]; j--)
            if (j < most)
                places[j] = places[j - 1];
        if (j < most)
            places[j] = i;
    }
    return found;
}
