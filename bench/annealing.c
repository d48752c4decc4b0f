/* Simulated annealing, done with care so that beating it means something.
 *
 * Energy: sum over ranks of (load / mean)^16. A step swaps two random slots (7 of 10) or gives a random slot
 * to a random expert; changes that put an expert twice on a rank or take its last replica are not proposed.
 * The temperature falls geometrically from 0.02 to 0.00001: of the schedules tried (starts 0.005 to 0.1, ends
 * 1e-6 to 1e-3, powers 4 to 32) none is better on all shapes. Kirkpatrick, Gelatt, Vecchi 1983. */
#include "annealing.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

#define START 0.02
#define END   1e-5

typedef struct anneal_state {
    const annealing_case *problem;
    random_state random;
    int32_t slots;
    int32_t *expert;   /* [slots] */
    int32_t *best;     /* [slots] */
    int32_t *count;    /* [experts] */
    uint8_t *on;       /* [ranks, experts] */
    double *weight;    /* [experts] load / mean rank load */
    double *rank_load; /* [ranks] */
    double *changed;   /* [ranks] loads after the proposed change of counts */
} anneal_state;

static double power16(double x)
{
    double y = x * x;
    y *= y;
    y *= y;
    return y * y;
}

static uint8_t *on(const anneal_state *state, int32_t rank, int32_t expert)
{
    return &state->on[(size_t)rank * (size_t)state->problem->experts + (size_t)expert];
}

static bool accept(anneal_state *state, double rise, double temperature)
{
    return rise <= 0 || random_unit(&state->random) < exp(-rise / temperature);
}

static bool try_swap(anneal_state *state, double temperature)
{
    int32_t k = state->problem->slots_per_rank;
    int32_t i = (int32_t)random_below(&state->random, (uint32_t)state->slots);
    int32_t j = (int32_t)random_below(&state->random, (uint32_t)state->slots);
    int32_t a = i / k, b = j / k, x = state->expert[i], y = state->expert[j];
    if (a == b || x == y || *on(state, a, y) || *on(state, b, x))
        return false;
    double *load = state->rank_load;
    double give = state->weight[x] / state->count[x] - state->weight[y] / state->count[y];
    double rise = power16(load[a] - give) + power16(load[b] + give) - power16(load[a]) - power16(load[b]);
    if (!accept(state, rise, temperature))
        return false;
    load[a] -= give;
    load[b] += give;
    *on(state, a, x) = *on(state, b, y) = 0;
    *on(state, a, y) = *on(state, b, x) = 1;
    state->expert[i] = y;
    state->expert[j] = x;
    return true;
}

static bool try_counts(anneal_state *state, double temperature)
{
    const annealing_case *problem = state->problem;
    int32_t i = (int32_t)random_below(&state->random, (uint32_t)state->slots);
    int32_t y = (int32_t)random_below(&state->random, (uint32_t)problem->experts);
    int32_t a = i / problem->slots_per_rank, x = state->expert[i];
    if (x == y || state->count[x] < 2 || state->count[y] >= problem->ranks || *on(state, a, y))
        return false;
    double now = state->weight[x] / state->count[x], later = state->weight[y] / (state->count[y] + 1);
    double dearer = state->weight[x] / (state->count[x] - 1) - now;
    double cheaper = later - state->weight[y] / state->count[y];
    double rise = 0;
    for (int32_t g = 0; g < problem->ranks; g++) {
        double load = state->rank_load[g];
        double after = g == a ? load - now + later
                              : load + (*on(state, g, x) ? dearer : 0) + (*on(state, g, y) ? cheaper : 0);
        state->changed[g] = after;
        if (after != load)
            rise += power16(after) - power16(load);
    }
    if (!accept(state, rise, temperature))
        return false;
    memcpy(state->rank_load, state->changed, (size_t)problem->ranks * sizeof(double));
    *on(state, a, x) = 0;
    *on(state, a, y) = 1;
    state->count[x]--;
    state->count[y]++;
    state->expert[i] = y;
    return true;
}

static double hottest(const anneal_state *state)
{
    double most = 0;
    for (int32_t g = 0; g < state->problem->ranks; g++)
        most = state->rank_load[g] > most ? state->rank_load[g] : most;
    return most;
}

static void start(anneal_state *state)
{
    const annealing_case *problem = state->problem;
    double mean = 0;
    for (int32_t e = 0; e < problem->experts; e++)
        mean += (double)problem->load[e] / problem->ranks;
    for (int32_t e = 0; e < problem->experts; e++)
        state->weight[e] = mean > 0 ? (double)problem->load[e] / mean : 0;
    for (int32_t p = 0; p < state->slots; p++)
        state->count[state->expert[p]]++;
    for (int32_t p = 0; p < state->slots; p++) {
        int32_t e = state->expert[p], g = p / problem->slots_per_rank;
        *on(state, g, e) = 1;
        state->rank_load[g] += state->weight[e] / state->count[e];
    }
}

double anneal(const annealing_case *problem, int64_t steps, int32_t *expert)
{
    size_t experts = (size_t)problem->experts, ranks = (size_t)problem->ranks;
    anneal_state state = {.problem = problem,
                          .random = random_seed(1),
                          .slots = problem->ranks * problem->slots_per_rank,
                          .expert = expert,
                          .count = calloc(experts, sizeof(int32_t)),
                          .on = calloc(ranks, experts),
                          .weight = calloc(experts, sizeof(double)),
                          .rank_load = calloc(ranks, sizeof(double)),
                          .changed = calloc(ranks, sizeof(double))};
    size_t bytes = (size_t)state.slots * sizeof *expert;
    double least = -1;
    state.best = malloc(bytes);
    if (state.best != NULL && state.count != NULL && state.on != NULL && state.weight != NULL &&
        state.rank_load != NULL && state.changed != NULL) {
        start(&state);
        least = hottest(&state);
        memcpy(state.best, expert, bytes);
        double cooling = pow(END / START, 1.0 / (double)steps), temperature = START;
        for (int64_t i = 0; i < steps; i++, temperature *= cooling) {
            bool changed = random_below(&state.random, 10) < 7 ? try_swap(&state, temperature)
                                                               : try_counts(&state, temperature);
            double now = changed ? hottest(&state) : least;
            if (now < least) {
                least = now;
                memcpy(state.best, expert, bytes);
            }
        }
        memcpy(expert, state.best, bytes);
    }
    free(state.best);
    free(state.count);
    free(state.on);
    free(state.weight);
    free(state.rank_load);
    free(state.changed);
    return least;
}
