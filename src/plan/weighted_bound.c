/* Lower bounds of the weighted split: no placement and no shares reach less.
 * Mean: total / G. Counts: at level T expert e needs ceil(w_e / T) replicas, and there are only S slots. Hot
 * ranks: let the j largest experts live on u ranks; what lies elsewhere has S - k u slots, so at least k u -
 * R experts live on these ranks alone, the j and, at best, the smallest others; their load is on u ranks. The
 * worst over j of the best over u is a bound; j + R >= G makes it the mean. Whole items (R = 0): of the i G +
 * 1 largest experts some rank holds i + 1, and k - 1 - i more. Slots: a rank with k_g slots carries at most
 * its k_g largest experts. Cost: O(S) sums, O((G - R) R) for hot ranks, O(E) per step of the bisection on
 * counts; slots: O(S) a round. */
#include "plan/weighted.h"

#include "base/checked.h"

typedef struct fraction {
    int64_t numerator;
    int64_t denominator;
} fraction;

static fraction larger(fraction a, fraction b)
{
    return fraction_compare(a.numerator, a.denominator, b.numerator, b.denominator) >= 0 ? a : b;
}

static int64_t item_load(const layer_problem *problem, const weighted_part *part, int32_t from_largest)
{
    return problem->load[part->experts[part->num_experts - 1 - from_largest]];
}

static int64_t smallest_load(const layer_problem *problem, const weighted_part *part, int32_t from_smallest)
{
    return problem->load[part->experts[from_smallest]];
}

/* True if replicas of at most `level` tokens fit in the slots. */
static bool counts_fit(const layer_problem *problem, const weighted_part *part, int64_t level)
{
    int64_t slots = part->num_slots;
    for (int32_t i = 0; i < part->num_experts; i++) {
        int64_t load = item_load(problem, part, i);
        if (load <= level)
            return slots >= part->num_experts - i;
        int64_t replicas = (load - 1) / level + 1;
        if (replicas > part->num_ranks)
            return false;
        slots -= replicas;
        if (slots < 0)
            return false;
    }
    return true;
}

/* The largest whole level that counts refuse: the least possible maximum is above it. */
static fraction bound_by_counts(const layer_problem *problem, const weighted_part *part)
{
    int64_t refused = part->total / part->num_ranks;
    int64_t fits = item_load(problem, part, 0);
    if (refused < 1 || fits <= refused || counts_fit(problem, part, refused))
        return (fraction){0, 1};
    while (fits - refused > 1) {
        int64_t middle = refused + (fits - refused) / 2;
        if (counts_fit(problem, part, middle))
            fits = middle;
        else
            refused = middle;
    }
    return (fraction){refused, 1};
}

/* The least load on u ranks that hold the j largest experts, whose sum is `hot`, over u. */
static fraction hot_on_ranks(const layer_problem *problem, const weighted_part *part, int32_t slots_per_rank,
                             int32_t j, int64_t hot)
{
    int32_t spare = part->num_slots - part->num_experts;
    int32_t least = (j + slots_per_rank - 1) / slots_per_rank, most = j + spare;
    int64_t load = hot;
    int32_t others = 0; /* smallest experts counted in load */
    fraction best = {INT64_MAX, 1};
    for (int32_t u = least; u <= most && u <= part->num_ranks; u++) {
        int64_t inside = (int64_t)slots_per_rank * u - spare - j;
        while (others < inside)
            load += smallest_load(problem, part, others++);
        if (fraction_compare(load, u, best.numerator, best.denominator) < 0)
            best = (fraction){load, u};
    }
    return best;
}

static fraction bound_by_hot_ranks(const layer_problem *problem, const weighted_part *part,
                                   int32_t slots_per_rank)
{
    int32_t spare = part->num_slots - part->num_experts;
    fraction bound = {0, 1};
    int64_t hot = 0;
    for (int32_t j = 1; j + spare < part->num_ranks && j < part->num_experts; j++) {
        hot += item_load(problem, part, j - 1);
        bound = larger(bound, hot_on_ranks(problem, part, slots_per_rank, j, hot));
    }
    return bound;
}

/* No spare slot at all: every rank holds k whole experts. */
static fraction bound_by_whole_items(const layer_problem *problem, const weighted_part *part,
                                     int32_t slots_per_rank)
{
    fraction bound = {0, 1};
    for (int32_t i = 0; i < slots_per_rank; i++) {
        int64_t load = 0;
        for (int32_t j = 0; j <= i; j++)
            load += item_load(problem, part, i * part->num_ranks - j);
        for (int32_t j = 0; j < slots_per_rank - 1 - i; j++)
            load += smallest_load(problem, part, j);
        bound = larger(bound, (fraction){load, 1});
    }
    return bound;
}

static int32_t equal_slots(const layer_problem *problem, const weighted_part *part)
{
    for (int32_t i = 0; i < part->num_ranks; i++) {
        int32_t g = part->ranks[i];
        if (problem->first_slot[g + 1] - problem->first_slot[g] != part->min_slots)
            return -1;
    }
    return part->min_slots;
}

static int64_t rank_limit(const layer_problem *problem, const weighted_part *part, int32_t rank)
{
    int32_t slots = problem->first_slot[rank + 1] - problem->first_slot[rank];
    int64_t load = 0;
    for (int32_t i = 0; i < slots && i < part->num_experts; i++)
        load += item_load(problem, part, i);
    return load;
}

/* The level at which ranks that cannot reach it are full: sum over ranks of min(T speed, limit) = total. */
static fraction bound_by_slots(const layer_problem *problem, const weighted_part *part)
{
    fraction level = {0, 1};
    for (int32_t round = 0; round < part->num_ranks; round++) {
        int64_t load = part->total, speed = 0;
        for (int32_t i = 0; i < part->num_ranks; i++) {
            int32_t g = part->ranks[i];
            int64_t limit = rank_limit(problem, part, g);
            if (fraction_compare(limit, problem->rank_speed[g], level.numerator, level.denominator) < 0)
                load -= limit;
            else
                speed += problem->rank_speed[g];
        }
        if (speed == 0 || load <= 0 || fraction_compare(load, speed, level.numerator, level.denominator) <= 0)
            break;
        level = (fraction){load, speed};
    }
    return level;
}

double weighted_bound(const layer_problem *problem, const weighted_part *part)
{
    if (part->total == 0)
        return 1.0;
    fraction bound = {0, 1};
    int64_t speed = part->num_ranks;
    if (problem->uniform_speed && equal_slots(problem, part) > 0) {
        bound = larger(bound, bound_by_counts(problem, part));
        bound = larger(bound, bound_by_hot_ranks(problem, part, part->min_slots));
        if (part->num_slots == part->num_experts)
            bound = larger(bound, bound_by_whole_items(problem, part, part->min_slots));
    } else {
        bound = bound_by_slots(problem, part);
        speed = 0;
        for (int32_t i = 0; i < part->num_ranks; i++)
            speed += problem->rank_speed[part->ranks[i]];
    }
    double ratio =
        (double)bound.numerator / (double)bound.denominator * ((double)speed / (double)part->total);
    ratio *= 1.0 - 0x1p-50; /* rounded down: a bound must not pass what is reached */
    return ratio > 1.0 ? ratio : 1.0;
}
