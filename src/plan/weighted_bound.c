/* Lower bounds of the weighted split: no placement and no shares reach less.
 *
 * Mean: total / speed. Counts: at level T expert e needs replicas on so many ranks that T times the speed of
 * the fastest of them reaches w_e, and there are only S slots. Hot ranks: let the j largest experts live on u
 * ranks; what lies elsewhere has S - K slots, K those of the u ranks, so at least K - R experts live on these
 * ranks alone, the j and, at best, the smallest others; with the fewest slots and the most speed that u ranks
 * have, the worst over j of the best over u is a bound; j + R >= G makes it the mean. Crowded ranks: the same
 * without hot experts, on the ranks with most slots for their speed. Whole items (R = 0): of the i G + 1
 * largest experts some rank holds i + 1, and k - 1 - i more. Slots: a rank with k_g slots carries at most its
 * k_g largest experts. Cost: O(S) sums, O((G - R) R) for hot ranks, O(E log G) per step of the bisection on
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

/* What u ranks have at most or at least, [ranks + 1]. Slots beyond one for each expert are of no use. */
typedef struct rank_sums {
    int64_t *fewest_slots;
    int64_t *most_slots;
    int64_t *most_speed;
    int64_t slots; /* of all */
} rank_sums;

static int32_t useful_slots(const layer_problem *problem, const weighted_part *part, int32_t rank)
{
    int32_t slots = problem->first_slot[rank + 1] - problem->first_slot[rank];
    return slots < part->num_experts ? slots : part->num_experts;
}

static int64_t speed_of(const layer_problem *problem, int32_t rank)
{
    return problem->uniform_speed ? 1 : problem->rank_speed[rank];
}

/* Shell sort, descending (Ciura's gaps). */
static void sort_descending(int64_t *value, int32_t n)
{
    static const int32_t gaps[] = {1750, 701, 301, 132, 57, 23, 10, 4, 1};
    for (size_t k = 0; k < sizeof gaps / sizeof *gaps; k++) {
        int32_t gap = gaps[k];
        for (int32_t i = gap; i < n; i++) {
            int64_t moving = value[i];
            int32_t at = i;
            for (; at >= gap && value[at - gap] < moving; at -= gap)
                value[at] = value[at - gap];
            value[at] = moving;
        }
    }
}

static bool sum_ranks(rank_sums *sums, const layer_problem *problem, const weighted_part *part,
                      arena *scratch)
{
    int32_t ranks = part->num_ranks;
    size_t count = (size_t)ranks + 1;
    *sums = (rank_sums){.fewest_slots = arena_take_zero(scratch, count, sizeof(int64_t)),
                        .most_slots = arena_take_zero(scratch, count, sizeof(int64_t)),
                        .most_speed = arena_take_zero(scratch, count, sizeof(int64_t))};
    if (sums->fewest_slots == NULL || sums->most_slots == NULL || sums->most_speed == NULL)
        return false;
    for (int32_t i = 0; i < ranks; i++) {
        sums->most_slots[i + 1] = useful_slots(problem, part, part->ranks[i]);
        sums->most_speed[i + 1] = speed_of(problem, part->ranks[i]);
    }
    sort_descending(sums->most_slots + 1, ranks);
    sort_descending(sums->most_speed + 1, ranks);
    for (int32_t i = 0; i < ranks; i++)
        sums->fewest_slots[i + 1] = sums->fewest_slots[i] + sums->most_slots[ranks - i];
    for (int32_t i = 0; i < ranks; i++) {
        sums->most_slots[i + 1] += sums->most_slots[i];
        sums->most_speed[i + 1] += sums->most_speed[i];
    }
    sums->slots = sums->most_slots[ranks];
    return true;
}

/* Fewest ranks that can carry the load, the fastest carrying `level`; ranks + 1: all are too few. */
static int32_t ranks_for(const rank_sums *sums, int32_t num_ranks, int64_t load, int64_t level)
{
    int32_t low = 1, high = num_ranks + 1;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (fraction_compare(load, sums->most_speed[middle], level, sums->most_speed[1]) <= 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* True if there are slots enough for all experts when the fastest rank carries at most `level`. */
static bool counts_fit(const layer_problem *problem, const weighted_part *part, const rank_sums *sums,
                       int64_t level)
{
    int64_t slots = sums->slots;
    for (int32_t i = 0; i < part->num_experts; i++) {
        int64_t load = item_load(problem, part, i);
        if (load <= level)
            return slots >= part->num_experts - i;
        int32_t replicas = ranks_for(sums, part->num_ranks, load, level);
        slots -= replicas;
        if (replicas > part->num_ranks || slots < 0)
            return false;
    }
    return true;
}

/* The largest whole level that counts refuse: the least possible maximum is above it. */
static fraction bound_by_counts(const layer_problem *problem, const weighted_part *part,
                                const rank_sums *sums)
{
    int64_t fastest = sums->most_speed[1];
    int64_t refused = part->total / sums->most_speed[part->num_ranks] * fastest;
    int64_t fits = item_load(problem, part, 0);
    if (refused < 1 || fits <= refused || counts_fit(problem, part, sums, refused))
        return (fraction){0, 1};
    while (fits - refused > 1) {
        int64_t middle = refused + (fits - refused) / 2;
        if (counts_fit(problem, part, sums, middle))
            fits = middle;
        else
            refused = middle;
    }
    return (fraction){refused, fastest};
}

/* The least load per speed of the ranks that hold the j largest experts, whose sum is `hot`. */
static fraction hot_on_ranks(const layer_problem *problem, const weighted_part *part, const rank_sums *sums,
                             int32_t j, int64_t hot)
{
    int64_t spare = sums->slots - part->num_experts, load = hot;
    int32_t others = 0; /* smallest experts counted in load */
    fraction best = {INT64_MAX, 1};
    for (int32_t u = 1; u <= j + spare && u <= part->num_ranks; u++) {
        if (sums->most_slots[u] < j)
            continue;
        int64_t inside = sums->fewest_slots[u] - spare - j;
        while (others < inside)
            load += smallest_load(problem, part, others++);
        if (fraction_compare(load, sums->most_speed[u], best.numerator, best.denominator) < 0)
            best = (fraction){load, sums->most_speed[u]};
    }
    return best;
}

static fraction bound_by_hot_ranks(const layer_problem *problem, const weighted_part *part,
                                   const rank_sums *sums)
{
    int64_t spare = sums->slots - part->num_experts;
    fraction bound = {0, 1};
    int64_t hot = 0;
    for (int32_t j = 1; j + spare < part->num_ranks && j < part->num_experts; j++) {
        hot += item_load(problem, part, j - 1);
        bound = larger(bound, hot_on_ranks(problem, part, sums, j, hot));
    }
    return bound;
}

/* Ranks with many slots for their speed hold experts that live nowhere else, at best the smallest. */
static fraction bound_by_crowded_ranks(const layer_problem *problem, const weighted_part *part,
                                       const rank_sums *sums, int32_t *order)
{
    int64_t spare = sums->slots - part->num_experts, slots = 0, speed = 0, load = 0;
    fraction bound = {0, 1};
    int32_t inside = 0;
    for (int32_t i = 0; i < part->num_ranks; i++) {
        int32_t rank = part->ranks[i], at = i;
        int64_t own = useful_slots(problem, part, rank), pace = speed_of(problem, rank);
        for (; at > 0 && fraction_compare(useful_slots(problem, part, order[at - 1]),
                                          speed_of(problem, order[at - 1]), own, pace) < 0;
             at--)
            order[at] = order[at - 1];
        order[at] = rank;
    }
    for (int32_t i = 0; i < part->num_ranks; i++) {
        slots += useful_slots(problem, part, order[i]);
        speed += speed_of(problem, order[i]);
        while (inside < slots - spare)
            load += smallest_load(problem, part, inside++);
        bound = larger(bound, (fraction){load, speed});
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
    int32_t slots = useful_slots(problem, part, rank);
    int64_t load = 0;
    for (int32_t i = 0; i < slots; i++)
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
            if (fraction_compare(limit, speed_of(problem, g), level.numerator, level.denominator) < 0)
                load -= limit;
            else
                speed += speed_of(problem, g);
        }
        if (speed == 0 || load <= 0 || fraction_compare(load, speed, level.numerator, level.denominator) <= 0)
            break;
        level = (fraction){load, speed};
    }
    return level;
}

bool weighted_bound(const layer_problem *problem, const weighted_part *part, arena *scratch, double *bound)
{
    arena_mark mark = arena_position(scratch);
    rank_sums sums;
    *bound = 1.0;
    if (part->total == 0)
        return true;
    int32_t *order = arena_take(scratch, (size_t)part->num_ranks, sizeof *order);
    if (order == NULL || !sum_ranks(&sums, problem, part, scratch))
        return false;
    fraction most = larger(bound_by_counts(problem, part, &sums), bound_by_hot_ranks(problem, part, &sums));
    int32_t slots = equal_slots(problem, part);
    if (!problem->uniform_speed || slots < 0) {
        most = larger(most, bound_by_slots(problem, part));
        most = larger(most, bound_by_crowded_ranks(problem, part, &sums, order));
    } else if (part->num_slots == part->num_experts) {
        most = larger(most, bound_by_whole_items(problem, part, slots));
    }
    double ratio = (double)most.numerator / (double)most.denominator *
                   ((double)sums.most_speed[part->num_ranks] / (double)part->total);
    ratio *= 1.0 - 0x1p-50; /* rounded down: a bound must not pass what is reached */
    *bound = ratio > 1.0 ? ratio : 1.0;
    arena_rewind(scratch, mark);
    return true;
}
