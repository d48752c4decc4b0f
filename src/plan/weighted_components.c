/* Fewer spare slots than G - 1: the graph of ranks and experts falls into components, G - R of them at least,
 * and each can be exact only at its own mean (weighted_tree.c). So the experts are divided among components
 * of g_i ranks and (k - 1) g_i + 1 experts such that load / g_i is as even as possible: number partitioning,
 * with far more freedom than packing ranks has. Sizes: a component is as large as its largest expert needs,
 * the rest as equal as can be. Start: largest first into the component that lacks most per free place. Then
 * exchanges between the fullest component and another, the best first, until none helps; where that is far
 * from the bound, annealing (component_search.c). Cost: O(E log c) to start, O(E) per exchange, 600 E steps
 * of annealing. Source: largest differencing and exchange for number partitioning (Michiels, Korst, Aarts
 * 2003). */
#include "plan/weighted.h"

#include <math.h>

#include "base/checked.h"
#include "plan/component_search.h"
#include "plan/sort_loads.h"

/* This near the bound the first arrangement is kept. */
#define ENOUGH 1.0002
/* Steps of the search: exchanges times experts. */
#define SEARCH_WORK ((int64_t)1 << 24)
/* Annealing is for arrangements this far above the bound: so many steps for each expert. */
#define FAR              1.002
#define STEPS_PER_EXPERT 600

typedef struct components {
    const layer_problem *problem;
    const weighted_part *part;
    int32_t count;
    int32_t slots_per_rank;
    int32_t *size;   /* [c] ranks g_i */
    int32_t *first;  /* [c + 1] places of its experts in `member` */
    int32_t *filled; /* [c] */
    int64_t *load;   /* [c] */
    int32_t *member; /* [E] experts by component, ascending load inside one once sorted */
    int32_t *heap;   /* [c] components by what they lack per free place, most first */
} components;

/* An exchange of one expert between the fullest component and another. */
typedef struct exchange {
    int32_t other;
    int32_t out; /* place in member, of the fullest */
    int32_t in;
    double worst; /* load / size of the worse of the two afterwards */
} exchange;

bool weighted_components_fit(const layer_problem *problem, const weighted_part *part)
{
    return problem->uniform_speed && part->num_slots == part->min_slots * part->num_ranks &&
           part->num_slots >= part->num_experts && part->num_slots - part->num_experts < part->num_ranks - 1;
}

static bool take(components *work, const layer_problem *problem, const weighted_part *part, arena *scratch)
{
    size_t count = (size_t)(part->num_ranks - (part->num_slots - part->num_experts));
    int32_t *block = arena_take_zero(scratch, 4 * count + 1 + (size_t)part->num_experts, sizeof *block);
    int64_t *load = arena_take_zero(scratch, count, sizeof *load);
    if (block == NULL || load == NULL)
        return false;
    *work = (components){.problem = problem,
                         .part = part,
                         .count = (int32_t)count,
                         .slots_per_rank = part->min_slots,
                         .size = block,
                         .first = block + count,
                         .filled = block + 2 * count + 1,
                         .heap = block + 3 * count + 1,
                         .member = block + 4 * count + 1,
                         .load = load};
    return true;
}

/* Component i starts with the i-th largest expert. Each further rank goes where the largest expert would
 * otherwise take more than `crowd` of the mean, most crowded first, then to the smallest component. */
static void choose_sizes(components *work, double crowd)
{
    double room = crowd * (double)work->part->total / (double)work->part->num_ranks;
    const weighted_part *part = work->part;
    for (int32_t i = 0; i < work->count; i++)
        work->size[i] = 1;
    for (int32_t left = part->num_ranks - work->count; left > 0; left--) {
        int32_t best = 0, smallest = 0;
        for (int32_t i = 0; i < work->count; i++) {
            int64_t load = work->problem->load[part->experts[part->num_experts - 1 - i]];
            int64_t best_load = work->problem->load[part->experts[part->num_experts - 1 - best]];
            if (fraction_compare(load, work->size[i], best_load, work->size[best]) > 0)
                best = i;
            if (work->size[i] < work->size[smallest])
                smallest = i;
        }
        int64_t load = work->problem->load[part->experts[part->num_experts - 1 - best]];
        bool hot = (double)load / work->size[best] > room;
        work->size[hot ? best : smallest]++;
    }
}

/* Places for the experts of components of these sizes, all free. */
static void set_places(components *work)
{
    work->first[0] = 0;
    for (int32_t i = 0; i < work->count; i++) {
        work->first[i + 1] = work->first[i] + (work->slots_per_rank - 1) * work->size[i] + 1;
        work->filled[i] = 0;
        work->load[i] = 0;
    }
}

/* What the component lacks to the mean, per place that is still free. */
static double need(const components *work, int32_t component)
{
    double mean = (double)work->part->total / (double)work->part->num_ranks;
    int32_t places = work->first[component + 1] - work->first[component] - work->filled[component];
    return places == 0 ? -HUGE_VAL : (mean * work->size[component] - (double)work->load[component]) / places;
}

static void sift_down(components *work, int32_t place)
{
    int32_t component = work->heap[place];
    double key = need(work, component);
    for (;;) {
        int32_t child = 2 * place + 1;
        if (child >= work->count)
            break;
        if (child + 1 < work->count && need(work, work->heap[child + 1]) > need(work, work->heap[child]))
            child++;
        if (need(work, work->heap[child]) <= key)
            break;
        work->heap[place] = work->heap[child];
        place = child;
    }
    work->heap[place] = component;
}

/* Largest expert first into the component that lacks most per free place. */
static void fill(components *work)
{
    const weighted_part *part = work->part;
    for (int32_t i = 0; i < work->count; i++)
        work->heap[i] = i;
    for (int32_t i = part->num_experts - 1; i >= 0; i--) {
        int32_t expert = part->experts[i], seed = part->num_experts - 1 - i;
        int32_t component = seed < work->count ? seed : work->heap[0];
        work->member[work->first[component + 1] - 1 - work->filled[component]] = expert;
        work->filled[component]++;
        work->load[component] += work->problem->load[expert];
        if (seed == work->count - 1) {
            for (int32_t j = work->count / 2; j >= 0; j--)
                sift_down(work, j);
        } else if (seed >= work->count) {
            sift_down(work, 0);
        }
    }
}

static double height(const components *work, int32_t component, int64_t shift)
{
    return (double)(work->load[component] + shift) / work->size[component];
}

/* The best exchange between two components: both lists ascend, so one sweep keeps the difference of the pair
 * in view near the one that would level the two. */
static void best_between(const components *work, int32_t full, int32_t other, exchange *best)
{
    const int64_t *load = work->problem->load;
    int32_t out = work->first[full], in = work->first[other];
    while (out < work->first[full + 1] && in < work->first[other + 1]) {
        int64_t shift = load[work->member[out]] - load[work->member[in]];
        double left = height(work, full, -shift), raised = height(work, other, shift);
        if (shift > 0 && (left > raised ? left : raised) < best->worst)
            *best = (exchange){other, out, in, left > raised ? left : raised};
        if (shift <= 0 || left > raised)
            out++; /* too little leaves */
        else
            in++;
    }
}

/* Puts `expert` at a place of its component's ascending list whose old expert leaves. */
static void replace_member(components *work, int32_t component, int32_t place, int32_t expert)
{
    const int64_t *load = work->problem->load;
    for (; place > work->first[component] && load[work->member[place - 1]] > load[expert]; place--)
        work->member[place] = work->member[place - 1];
    for (; place + 1 < work->first[component + 1] && load[work->member[place + 1]] < load[expert]; place++)
        work->member[place] = work->member[place + 1];
    work->member[place] = expert;
}

static int32_t fullest(const components *work)
{
    int32_t full = 0;
    for (int32_t i = 1; i < work->count; i++) {
        if (height(work, i, 0) > height(work, full, 0))
            full = i;
    }
    return full;
}

/* True if an exchange lowered the fullest component. */
static bool improve(components *work)
{
    int32_t full = fullest(work);
    exchange best = {-1, -1, -1, height(work, full, 0)};
    for (int32_t other = 0; other < work->count; other++) {
        if (other != full && height(work, other, 0) < best.worst)
            best_between(work, full, other, &best);
    }
    if (best.other < 0)
        return false;
    int32_t leaves = work->member[best.out], comes = work->member[best.in];
    int64_t shift = work->problem->load[leaves] - work->problem->load[comes];
    replace_member(work, full, best.out, comes);
    replace_member(work, best.other, best.in, leaves);
    work->load[full] -= shift;
    work->load[best.other] += shift;
    return true;
}

/* Exchanges until none lowers the fullest component. */
static void descend(components *work)
{
    double mean = (double)work->part->total / (double)work->part->num_ranks;
    for (int64_t left = SEARCH_WORK; left > 0 && height(work, fullest(work), 0) > mean;
         left -= work->part->num_experts) {
        if (!improve(work))
            break;
    }
}

/* Sizes, start and exchanges for one way to share out the ranks; returns the height reached. */
static double arrange(components *work, double crowd)
{
    choose_sizes(work, crowd);
    set_places(work);
    fill(work);
    descend(work);
    return height(work, fullest(work), 0);
}

/* Annealing from the arrangement as it is, then exchanges again. False when memory is out. */
static bool search_on(components *work, double floor, double enough, arena *scratch)
{
    const weighted_part *part = work->part;
    const layer_problem *problem = work->problem;
    size_t experts = (size_t)part->num_experts;
    int64_t *load = arena_take(scratch, experts, sizeof *load);
    int32_t *component = arena_take(scratch, (size_t)problem->num_experts, sizeof *component);
    int32_t *listed = arena_take(scratch, experts, sizeof *listed);
    if (load == NULL || component == NULL || listed == NULL)
        return false;
    for (int32_t i = 0; i < work->count; i++) {
        for (int32_t j = work->first[i]; j < work->first[i + 1]; j++)
            component[work->member[j]] = i;
    }
    for (int32_t i = 0; i < part->num_experts; i++) {
        load[i] = problem->load[part->experts[i]];
        listed[i] = component[part->experts[i]];
    }
    component_split split = {part->num_experts, work->count, work->slots_per_rank, load, listed, work->size};
    component_limits limits = {floor, enough, (int64_t)STEPS_PER_EXPERT * part->num_experts,
                               problem->should_stop, problem->stop_context};
    if (!component_search(&split, &limits, scratch))
        return false;
    set_places(work);
    for (int32_t i = 0; i < part->num_experts; i++) {
        int32_t c = listed[i];
        work->member[work->first[c] + work->filled[c]++] = part->experts[i];
        work->load[c] += load[i];
    }
    descend(work);
    return true;
}

static bool build_trees(const components *work, arena *scratch, layer_answer *answer)
{
    int32_t rank = 0;
    for (int32_t i = 0; i < work->count; i++) {
        weighted_part tree = {.num_ranks = work->size[i],
                              .ranks = work->part->ranks + rank,
                              .num_experts = work->first[i + 1] - work->first[i],
                              .experts = work->member + work->first[i],
                              .total = work->load[i],
                              .min_slots = work->slots_per_rank,
                              .num_slots = work->slots_per_rank * work->size[i]};
        rank += work->size[i];
        if (!weighted_tree(work->problem, &tree, weighted_unit(tree.total, tree.num_ranks), scratch, answer))
            return false;
    }
    return true;
}

bool weighted_components(const layer_problem *problem, const weighted_part *part, arena *scratch,
                         layer_answer *answer)
{
    static const double crowds[] = {1.0, 0.9, 0.8, 0.7, 0.5};
    arena_mark mark = arena_position(scratch);
    components work;
    double floor;
    if (!take(&work, problem, part, scratch) || !weighted_bound(problem, part, scratch, &floor))
        return false;
    floor *= (double)part->total / (double)part->num_ranks;
    double enough = floor * ENOUGH;
    double best = HUGE_VAL, best_crowd = crowds[0], reached = HUGE_VAL;
    for (size_t i = 0; i < sizeof crowds / sizeof *crowds && best > enough; i++) {
        reached = arrange(&work, crowds[i]);
        if (reached < best) {
            best = reached;
            best_crowd = crowds[i];
        }
    }
    if (reached > best)
        (void)arrange(&work, best_crowd);
    if (best > floor * FAR && !search_on(&work, floor, enough, scratch))
        return false;
    if (!build_trees(&work, scratch, answer))
        return false;
    arena_rewind(scratch, mark);
    return true;
}
