/* Number partitioning with sizes that may change: annealing over components of ranks and experts.
 *
 * A step exchanges two experts of different components, or hands a rank and the experts that come with it to
 * another component. What counts is the excess of load per rank over an aim halfway between the floor and the
 * best so far; the first component of a step is the fullest of three drawn, since only those above the aim
 * matter. Descent (weighted_components.c) stops where no exchange with the fullest component helps, which on
 * components of two or three experts is soon. O(1) a step, O(E) where ranks change hands. Source: simulated
 * annealing (Kirkpatrick et al. 1983). */
#include "plan/component_search.h"

#include <string.h>

#include "base/random.h"

#define SEED       UINT64_C(20240603)
#define HEAT       1e-4 /* of the squared floor, at the start */
#define AIM        0.5  /* of the way from the floor to the best */
#define DRAWN      3
#define RANK_STEPS 8 /* one of so many steps moves a rank */
#define MOST_MATES 64
#define POLL       1024

typedef struct search {
    component_split *split;
    const component_limits *limits;
    random_state random;
    int64_t *load;  /* [count] */
    double *height; /* [count] load per rank */
    int32_t *best_component;
    int32_t *best_size;
    double aim;
    double best;   /* largest load per rank */
    double excess; /* sum over components of max(0, load per rank - aim)^2 */
    int32_t above; /* components that are not below `best` */
} search;

static double excess_of(const search *work, double height)
{
    double over = height - work->aim;
    return over > 0 ? over * over : 0;
}

/* The split as it is becomes the best. */
static void keep_best(search *work)
{
    const component_split *split = work->split;
    work->best = 0;
    for (int32_t i = 0; i < split->count; i++) {
        work->height[i] = (double)work->load[i] / split->size[i];
        work->best = work->height[i] > work->best ? work->height[i] : work->best;
    }
    work->aim = work->limits->floor + (work->best - work->limits->floor) * AIM;
    work->excess = 0;
    work->above = 0;
    for (int32_t i = 0; i < split->count; i++) {
        work->excess += excess_of(work, work->height[i]);
        work->above += work->height[i] >= work->best;
    }
    memcpy(work->best_component, split->component, (size_t)split->num_experts * sizeof(int32_t));
    memcpy(work->best_size, split->size, (size_t)split->count * sizeof(int32_t));
}

/* Component `from` becomes `ranks` ranks and `shift` load smaller, `to` as much larger, unless that leaves
 * more excess than `bar`. */
static bool settle(search *work, int32_t from, int32_t to, int32_t ranks, int64_t shift, double bar)
{
    int64_t *load = work->load;
    int32_t *size = work->split->size;
    double *height = work->height;
    double lower = (double)(load[from] - shift) / (size[from] - ranks);
    double higher = (double)(load[to] + shift) / (size[to] + ranks);
    double excess = work->excess - excess_of(work, height[from]) - excess_of(work, height[to]) +
                    excess_of(work, lower) + excess_of(work, higher);
    if (excess > bar)
        return false;
    work->above += (lower >= work->best) + (higher >= work->best) - (height[from] >= work->best) -
                   (height[to] >= work->best);
    load[from] -= shift;
    load[to] += shift;
    size[from] -= ranks;
    size[to] += ranks;
    height[from] = lower;
    height[to] = higher;
    work->excess = excess;
    return true;
}

/* An expert of the fullest of some components. */
static int32_t draw(search *work)
{
    const component_split *split = work->split;
    uint32_t experts = (uint32_t)split->num_experts;
    int32_t best = (int32_t)random_below(&work->random, experts);
    for (int32_t i = 1; i < DRAWN; i++) {
        int32_t other = (int32_t)random_below(&work->random, experts);
        if (work->height[split->component[other]] > work->height[split->component[best]])
            best = other;
    }
    return best;
}

static void exchange(search *work, int32_t expert, int32_t other, double bar)
{
    component_split *split = work->split;
    int32_t from = split->component[expert], to = split->component[other];
    if (!settle(work, from, to, 0, split->load[expert] - split->load[other], bar))
        return;
    split->component[expert] = to;
    split->component[other] = from;
}

/* One rank of the expert's component goes to that of `other`, with the expert and those next in the list. */
static void hand_over(search *work, int32_t expert, int32_t other, double bar)
{
    component_split *split = work->split;
    int32_t from = split->component[expert], to = split->component[other], mates[MOST_MATES], count = 0;
    int32_t wanted = split->slots_per_rank - 1;
    int64_t shift = 0;
    if (split->size[from] < 2 || wanted > MOST_MATES)
        return;
    for (int32_t e = expert; count < wanted; e = e + 1 < split->num_experts ? e + 1 : 0) {
        if (split->component[e] != from)
            continue;
        mates[count++] = e;
        shift += split->load[e];
    }
    if (!settle(work, from, to, 1, shift, bar))
        return;
    for (int32_t i = 0; i < count; i++)
        split->component[mates[i]] = to;
}

static void anneal(search *work)
{
    const component_limits *limits = work->limits;
    uint32_t experts = (uint32_t)work->split->num_experts;
    double heat = HEAT * limits->floor * limits->floor;
    for (int64_t step = 0; step < limits->steps && work->best > limits->enough; step++) {
        int32_t expert = draw(work), other = (int32_t)random_below(&work->random, experts);
        double left = 1 - (double)step / (double)limits->steps;
        double bar = work->excess + heat * left * left * random_unit(&work->random);
        if (step % POLL == 0 && limits->should_stop != NULL && limits->should_stop(limits->stop_context))
            break;
        if (work->split->component[expert] == work->split->component[other])
            continue;
        if (step % RANK_STEPS == 0)
            hand_over(work, expert, other, bar);
        else
            exchange(work, expert, other, bar);
        if (work->above == 0)
            keep_best(work);
    }
}

bool component_search(component_split *split, const component_limits *limits, arena *scratch)
{
    arena_mark mark = arena_position(scratch);
    size_t experts = (size_t)split->num_experts, count = (size_t)split->count;
    search work = {.split = split,
                   .limits = limits,
                   .random = random_seed(SEED),
                   .load = arena_take_zero(scratch, count, sizeof *work.load),
                   .height = arena_take(scratch, count, sizeof *work.height),
                   .best_component = arena_take(scratch, experts, sizeof *work.best_component),
                   .best_size = arena_take(scratch, count, sizeof *work.best_size)};
    if (work.load == NULL || work.height == NULL || work.best_component == NULL || work.best_size == NULL)
        return false;
    for (size_t e = 0; e < experts; e++)
        work.load[split->component[e]] += split->load[e];
    keep_best(&work);
    anneal(&work);
    memcpy(split->component, work.best_component, experts * sizeof *split->component);
    memcpy(split->size, work.best_size, count * sizeof *split->size);
    arena_rewind(scratch, mark);
    return true;
}
