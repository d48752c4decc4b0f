/* Exact balance of a part whose ranks are equally fast: placement and quotas with every rank at the mean.
 *
 * Pad with dummies to (k - 1) G + 1 items and keep one of them open. Each rank takes the rest of the open
 * item, k - 2 whole items and as much of one more as it lacks; that one becomes the open item. (An open item
 * that fills the rank beside the k - 1 smallest stays open.) So neighbours share at most one expert, the
 * graph is a path of stars, and k G = E + G - 1 slots are enough, the least that generic loads allow. Why a
 * step is always possible: with G ranks left and r open, the k - 1 smallest sum to at most mean - r / G and
 * the k - 1 largest to at least that; so either the k - 1 smallest and the open item fill the rank, or
 * exchanging small for large ones, one at a time, reaches the mean. The same holds with targets that differ
 * by one unit, smaller ones first. Any step that fills the rank exactly leaves a case of the same kind, so
 * the choice is free: shared experts are large and cut near the middle where that is possible, because what
 * they can carry either way is what drift can use when shares are computed anew. Cost: O(E + G k) after the
 * sort. Source: Walker's alias method (1977), which this is for k = 2. */
#include "plan/weighted.h"

int64_t weighted_unit(int64_t total, int64_t divisor)
{
    int64_t most = total == 0 ? divisor : WEIGHTED_TOTAL_LIMIT / total;
    if (most < 1)
        most = 1;
    return divisor < most ? divisor : most;
}

/* Slots per rank that the tree needs: k' = ceil((E + G - 1) / G). */
static int32_t tree_slots(const weighted_part *part)
{
    return (part->num_experts + 2 * part->num_ranks - 2) / part->num_ranks;
}

bool weighted_tree_fits(const weighted_part *part)
{
    return part->num_experts > 0 && tree_slots(part) <= part->min_slots;
}

/* Items left: body low .. body_high-1 and, all larger, links link_low .. high-1, kept to be shared. The open
 * item is in neither. */
typedef struct tree {
    const int32_t *item;   /* [n] experts by ascending load; -1: dummy */
    const int64_t *prefix; /* [n + 1] sums of units */
    int32_t low, body_high;
    int32_t link_low, high;
    int32_t open; /* expert with a remainder */
    int64_t remainder;
    bool placed;    /* the open expert has a slot already */
    int32_t others; /* k - 1 */
    int32_t *expert;
    int64_t *quota;
    int32_t slot; /* next slot of the rank in work */
} tree;

static void put(tree *work, int32_t expert, int64_t quota)
{
    if (expert < 0)
        return;
    work->expert[work->slot] = expert;
    work->quota[work->slot] = quota;
    work->slot++;
}

static void put_range(tree *work, int32_t from, int32_t to)
{
    for (int32_t i = from; i < to; i++)
        put(work, work->item[i], work->prefix[i + 1] - work->prefix[i]);
}

/* Gives the rank `amount` of the open item. Nothing of an item that has a slot needs none here. */
static void put_open(tree *work, int64_t amount, bool last_chance)
{
    if (amount == 0 && (work->placed || !last_chance))
        return;
    put(work, work->open, amount);
    work->remainder -= amount;
    work->placed = true;
}

/* The rank takes what is left of the open item, then `amount` of item `next`, which becomes the open one. */
static void change_open(tree *work, int32_t next, int64_t amount)
{
    put_open(work, work->remainder, true);
    work->open = work->item[next];
    work->remainder = work->prefix[next + 1] - work->prefix[next];
    work->placed = false;
    put_open(work, amount, false);
}

static int64_t range_sum(const tree *work, int32_t from, int32_t to)
{
    return work->prefix[to] - work->prefix[from];
}

static int32_t body_size(const tree *work)
{
    return work->body_high - work->low;
}

/* Sum of the `count` smallest items left. */
static int64_t smallest_sum(const tree *work, int32_t count)
{
    int32_t links = count - body_size(work);
    if (links <= 0)
        return range_sum(work, work->low, work->low + count);
    return range_sum(work, work->low, work->body_high) +
           range_sum(work, work->link_low, work->link_low + links);
}

/* Place of the j-th largest item left, j >= 1. */
static int32_t largest_item(const tree *work, int32_t j)
{
    int32_t links = work->high - work->link_low;
    return j <= links ? work->high - j : work->body_high - (j - links);
}

static void take_smallest(tree *work, int32_t count)
{
    int32_t links = count - body_size(work);
    int32_t body = links > 0 ? count - links : count;
    put_range(work, work->low, work->low + body);
    work->low += body;
    if (links > 0) {
        put_range(work, work->link_low, work->link_low + links);
        work->link_low += links;
    }
}

static void drop_largest(tree *work)
{
    if (work->high > work->link_low)
        work->high--;
    else
        work->body_high--;
}

/* The step that is always possible. */
static void fill_from_the_ends(tree *work, int64_t target, bool last)
{
    int64_t smallest = smallest_sum(work, work->others);
    if (work->remainder + smallest >= target) {
        take_smallest(work, work->others);
        put_open(work, target - smallest, last);
        return;
    }
    int64_t largest = 0; /* sum of the whole ones among the j largest */
    for (int32_t j = 1;; j++) {
        int32_t next = largest_item(work, j);
        int64_t load = range_sum(work, next, next + 1);
        int64_t missing = target - work->remainder - smallest_sum(work, work->others - j) - largest;
        if (missing <= load || j == work->others) {
            for (int32_t taken = 1; taken < j; taken++) {
                int32_t whole = largest_item(work, 1);
                put_range(work, whole, whole + 1);
                drop_largest(work);
            }
            drop_largest(work);
            take_smallest(work, work->others - j);
            change_open(work, next, missing);
            return;
        }
        largest += load;
    }
}

/* Shares the largest link with the next rank and cuts it as near the middle as the ends of the body allow;
 * false if no choice of ends lets it be cut at all. */
static bool fill_with_link(tree *work, int64_t target)
{
    int32_t whole = work->others - 1, next = work->high - 1;
    if (whole < 0 || next < work->link_low || body_size(work) < whole)
        return false;
    int64_t load = range_sum(work, next, next + 1), best_distance = load;
    int32_t best = -1; /* this many from the large end of the body */
    int64_t best_amount = 0;
    for (int32_t j = 0; j <= whole; j++) {
        int64_t amount = target - work->remainder - range_sum(work, work->low, work->low + whole - j) -
                         range_sum(work, work->body_high - j, work->body_high);
        int64_t distance = amount > load - amount ? amount - (load - amount) : load - amount - amount;
        if (amount > 0 && amount < load && distance < best_distance) {
            best_distance = distance;
            best_amount = amount;
            best = j;
        }
        if (amount <= load / 2)
            break;
    }
    if (best < 0)
        return false;
    put_range(work, work->low, work->low + whole - best);
    put_range(work, work->body_high - best, work->body_high);
    work->low += whole - best;
    work->body_high -= best;
    work->high--;
    change_open(work, next, best_amount);
    return true;
}

/* How many of the largest items the ranks will share: an item above the target serves several in a row. */
static int32_t count_links(const int64_t *prefix, int32_t num_items, int32_t ranks, int64_t target)
{
    int32_t links = 0;
    double per_rank = 1.0 / (double)(target > 0 ? target : 1);
    for (double left = (double)(ranks - 1); left > 0.0 && links < num_items - 1; links++) {
        int32_t i = num_items - 1 - links;
        int64_t load = prefix[i + 1] - prefix[i];
        if (load <= target) { /* and so all smaller ones: one rank each */
            int32_t more = (int32_t)left + ((double)(int32_t)left < left ? 1 : 0);
            return links + more < num_items - 1 ? links + more : num_items - 1;
        }
        left -= (double)load * per_rank;
    }
    return links;
}

/* Items with their prefix sums, dummies first, as loads without load are. */
static void list_items(const layer_problem *problem, const weighted_part *part, int64_t unit, int32_t dummies,
                       int32_t *item, int64_t *prefix)
{
    prefix[0] = 0;
    for (int32_t i = 0; i < dummies; i++) {
        item[i] = -1;
        prefix[i + 1] = 0;
    }
    for (int32_t i = 0; i < part->num_experts; i++) {
        item[dummies + i] = part->experts[i];
        prefix[dummies + i + 1] = prefix[dummies + i] + problem->load[part->experts[i]] * unit;
    }
}

bool weighted_tree(const layer_problem *problem, const weighted_part *part, int64_t unit, arena *scratch,
                   layer_answer *answer)
{
    arena_mark mark = arena_position(scratch);
    int32_t others = tree_slots(part) - 1, num_items = others * part->num_ranks + 1;
    int32_t *item = arena_take(scratch, (size_t)num_items, sizeof *item);
    int64_t *prefix = arena_take(scratch, (size_t)num_items + 1, sizeof *prefix);
    if (item == NULL || prefix == NULL)
        return false;
    list_items(problem, part, unit, num_items - part->num_experts, item, prefix);
    int64_t target = prefix[num_items] / part->num_ranks;
    int32_t larger = (int32_t)(prefix[num_items] % part->num_ranks); /* ranks that take one unit more */
    int32_t links = count_links(prefix, num_items, part->num_ranks, target);
    tree work = {.item = item,
                 .prefix = prefix,
                 .low = 1,
                 .body_high = num_items - links,
                 .link_low = num_items - links,
                 .high = num_items,
                 .open = item[0],
                 .remainder = prefix[1],
                 .others = others,
                 .expert = answer->expert,
                 .quota = answer->quota};
    for (int32_t i = 0; i < part->num_ranks; i++) {
        bool last = i == part->num_ranks - 1;
        int64_t exact = target + (i >= part->num_ranks - larger ? 1 : 0);
        work.slot = problem->first_slot[part->ranks[i]];
        if (last || !fill_with_link(&work, exact))
            fill_from_the_ends(&work, exact, last);
    }
    arena_rewind(scratch, mark);
    return true;
}
