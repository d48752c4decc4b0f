/* Steepest descent of sum over ranks of (load / mean)^16 from a given placement.
 *
 * Two moves: a slot of the hottest rank trades places with a slot elsewhere (2 received experts), or a
 * redundant slot elsewhere becomes one more replica of an expert of the hottest rank (1). The best decrease
 * is taken, whatever it costs in moves, and every move counts. */
#include "descent.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct descent {
    int32_t ranks, k;
    const double *weight; /* [experts] load / mean */
    int32_t *expert;      /* [ranks * k] */
    int32_t *count;       /* [experts] */
    double load[DESCENT_MOST_RANKS];
} descent;

static double power16(double x)
{
    double y = x * x;
    y *= y;
    y *= y;
    return y * y;
}

static double measure(descent *state, double *most, int32_t *hottest)
{
    double sum = 0;
    *most = -1;
    for (int32_t g = 0; g < state->ranks; g++) {
        state->load[g] = 0;
        for (int32_t p = g * state->k; p < (g + 1) * state->k; p++)
            state->load[g] += state->weight[state->expert[p]] / state->count[state->expert[p]];
        sum += power16(state->load[g]);
        if (state->load[g] > *most) {
            *most = state->load[g];
            *hottest = g;
        }
    }
    return sum;
}

static bool holds(const descent *state, int32_t rank, int32_t expert)
{
    for (int32_t p = rank * state->k; p < (rank + 1) * state->k; p++) {
        if (state->expert[p] == expert)
            return true;
    }
    return false;
}

/* Potential after giving slot `p` to expert y. */
static double after_reassign(descent *state, int32_t p, int32_t y)
{
    int32_t x = state->expert[p], hottest;
    double most, saved[DESCENT_MOST_RANKS];
    memcpy(saved, state->load, sizeof saved);
    state->count[x]--;
    state->count[y]++;
    state->expert[p] = y;
    double value = measure(state, &most, &hottest);
    state->count[x]++;
    state->count[y]--;
    state->expert[p] = x;
    memcpy(state->load, saved, sizeof saved);
    return value;
}

static double after_swap(const descent *state, double now, int32_t p, int32_t q)
{
    int32_t a = p / state->k, b = q / state->k, x = state->expert[p], y = state->expert[q];
    double give = state->weight[x] / state->count[x] - state->weight[y] / state->count[y];
    return now - power16(state->load[a]) - power16(state->load[b]) + power16(state->load[a] - give) +
           power16(state->load[b] + give);
}

typedef struct step {
    double gain; /* decrease per received expert */
    int32_t slot;
    int32_t other;  /* a slot, or -1 */
    int32_t expert; /* for the slot, if other is -1 */
} step;

static void look_at(descent *state, double now, int32_t hottest, int32_t q, step *best)
{
    for (int32_t p = hottest * state->k; p < (hottest + 1) * state->k; p++) {
        int32_t x = state->expert[p], y = state->expert[q], b = q / state->k;
        if (x == y || holds(state, b, x))
            continue;
        if (!holds(state, hottest, y)) {
            double gain = (now - after_swap(state, now, p, q)) / 2;
            if (gain > best->gain)
                *best = (step){gain, p, q, -1};
        }
        if (state->count[y] > 1 && state->count[x] < state->ranks) {
            double gain = now - after_reassign(state, q, x);
            if (gain > best->gain)
                *best = (step){gain, q, -1, x};
        }
    }
}

static int32_t take(descent *state, const step *best)
{
    int32_t x = state->expert[best->slot];
    if (best->other >= 0) {
        state->expert[best->slot] = state->expert[best->other];
        state->expert[best->other] = x;
        return 2;
    }
    state->count[x]--;
    state->count[best->expert]++;
    state->expert[best->slot] = best->expert;
    return 1;
}

static void descend(descent *state, int32_t most_moves, double *imbalance)
{
    double most;
    int32_t hottest, moves = 0;
    double now = measure(state, &most, &hottest);
    for (int32_t i = 0; i <= most_moves; i++)
        imbalance[i] = most;
    while (moves < most_moves) {
        step best = {0, -1, -1, -1};
        for (int32_t q = 0; q < state->ranks * state->k; q++) {
            if (q / state->k != hottest)
                look_at(state, now, hottest, q, &best);
        }
        if (best.slot < 0)
            break;
        moves += take(state, &best);
        now = measure(state, &most, &hottest);
        for (int32_t i = moves; i <= most_moves; i++)
            imbalance[i] = most < imbalance[i] ? most : imbalance[i];
    }
}

int descent_frontier(const int64_t *load, int32_t experts, int32_t ranks, int32_t k, const int32_t *expert,
                     int32_t most_moves, double *imbalance)
{
    size_t slots = (size_t)ranks * (size_t)k;
    double *weight = malloc((size_t)experts * sizeof *weight), mean = 0;
    descent state = {.ranks = ranks,
                     .k = k,
                     .weight = weight,
                     .expert = malloc(slots * sizeof *state.expert),
                     .count = calloc((size_t)experts, sizeof *state.count)};
    bool good = weight != NULL && state.expert != NULL && state.count != NULL;
    for (int32_t e = 0; good && e < experts; e++)
        mean += (double)load[e] / ranks;
    for (int32_t e = 0; good && e < experts; e++)
        weight[e] = mean > 0 ? (double)load[e] / mean : 0;
    for (size_t p = 0; good && p < slots; p++) {
        state.expert[p] = expert[p];
        state.count[expert[p]]++;
    }
    if (good)
        descend(&state, most_moves, imbalance);
    free(weight);
    free(state.expert);
    free(state.count);
    return good ? 0 : -1;
}
