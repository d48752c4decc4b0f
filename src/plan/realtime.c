/* Real-time planner: which spare slots hold which experts for one batch, masters fixed.
 *
 * Ranks above the level T = target * mean export what is above it, from their largest experts; ranks below T
 * have that much room. The two are matched with few pieces, one spare slot each (realtime_fill.c): first so
 * that replicas are few, and if that leaves exports over, so that no slot is wasted. If some remain still, T
 * is raised between what was aimed at and what was reached, a few times. Cost: O(E + (G + exports) log G), a
 * microsecond for 256 experts on 64 ranks. Source: the quota-driven planning of UltraEP (arXiv 2606.04101),
 * as a sweep. */
#include <eplb/realtime.h>

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/params.h"
#include "plan/realtime_fill.h"

enum { MOST_LEVELS = 10 };

struct eplb_realtime {
    eplb_allocator allocator;
    int32_t num_experts;
    int32_t num_ranks;
    int32_t *first;           /* [G + 1] places of a rank's masters in `master` */
    int32_t *master;          /* [E] experts by home rank */
    int64_t *load;            /* [G] */
    realtime_filling filling; /* lists of E exports and G rooms */
};

/* --- the object -------------------------------------------------------------------------------------- */

void eplb_realtime_params_init(eplb_realtime_params *params, size_t size)
{
    eplb_realtime_params defaults = {.size = sizeof defaults, .spare_slots_per_rank = 2};
    params_init(params, size, &defaults, sizeof defaults);
}

static eplb_status check_params(const eplb_realtime_params *params, eplb_error *error)
{
    eplb_status status = params_check(params->size, sizeof *params, "realtime", error);
    if (status != EPLB_OK)
        return status;
    if (params->num_experts < 1 || params->num_experts > EPLB_MAX_EXPERTS)
        return error_text(error, EPLB_ERROR_INVALID, "realtime: %d experts, expected 1 .. %d",
                          params->num_experts, EPLB_MAX_EXPERTS);
    if (params->num_ranks < 1 || params->num_ranks > EPLB_MAX_RANKS)
        return error_text(error, EPLB_ERROR_INVALID, "realtime: %d ranks, expected 1 .. %d",
                          params->num_ranks, EPLB_MAX_RANKS);
    if (params->spare_slots_per_rank < 1 || params->spare_slots_per_rank > EPLB_MAX_SLOTS / params->num_ranks)
        return error_text(error, EPLB_ERROR_INVALID, "realtime: %d spare slots per rank, expected 1 .. %d",
                          params->spare_slots_per_rank, EPLB_MAX_SLOTS / params->num_ranks);
    for (int32_t e = 0; params->home_rank != NULL && e < params->num_experts; e++) {
        int32_t home = params->home_rank[e];
        if (home < 0 || home >= params->num_ranks)
            return error_set(error, EPLB_ERROR_INVALID, (error_place){-1, e, home, -1, home},
                             "realtime: expert %d lives on rank %d, expected 0 .. %d", e, home,
                             params->num_ranks - 1);
    }
    return EPLB_OK;
}

static int32_t home_of(const eplb_realtime_params *params, int32_t expert)
{
    if (params->home_rank != NULL)
        return params->home_rank[expert];
    return (int32_t)((int64_t)expert * params->num_ranks / params->num_experts);
}

static void list_masters(eplb_realtime *realtime, const eplb_realtime_params *params)
{
    for (int32_t e = 0; e < params->num_experts; e++)
        realtime->first[home_of(params, e) + 1]++;
    for (int32_t g = 0; g < params->num_ranks; g++)
        realtime->first[g + 1] += realtime->first[g];
    for (int32_t e = 0; e < params->num_experts; e++)
        realtime->master[realtime->first[home_of(params, e)]++] = e;
    for (int32_t g = params->num_ranks; g > 0; g--)
        realtime->first[g] = realtime->first[g - 1];
    realtime->first[0] = 0;
}

eplb_status eplb_realtime_create(eplb_realtime **realtime, const eplb_realtime_params *params,
                                 const eplb_allocator *allocator, eplb_error *error)
{
    *realtime = NULL;
    eplb_status status = check_params(params, error);
    if (status != EPLB_OK)
        return status;
    eplb_allocator memory = memory_allocator(allocator);
    size_t ranks = (size_t)params->num_ranks, experts = (size_t)params->num_experts;
    size_t bytes = sizeof(eplb_realtime) + ranks * sizeof(int64_t) + (ranks + experts) * sizeof(uint64_t) +
                   (2 * ranks + 1 + experts) * sizeof(int32_t);
    eplb_realtime *made = memory_take(&memory, 1, bytes);
    if (made == NULL)
        return error_memory(error, bytes, "the real-time planner");
    made->allocator = memory;
    made->num_experts = params->num_experts;
    made->num_ranks = params->num_ranks;
    made->filling.spare = params->spare_slots_per_rank;
    made->load = (int64_t *)(made + 1);
    made->filling.rooms.key = (uint64_t *)(made->load + ranks);
    made->filling.exports.key = made->filling.rooms.key + ranks;
    made->first = (int32_t *)(made->filling.exports.key + experts);
    made->master = made->first + ranks + 1;
    made->filling.used = made->master + experts;
    list_masters(made, params);
    *realtime = made;
    return EPLB_OK;
}

void eplb_realtime_destroy(eplb_realtime *realtime)
{
    if (realtime != NULL) {
        eplb_allocator memory = realtime->allocator;
        memory_give(&memory, realtime);
    }
}

/* --- one level --------------------------------------------------------------------------------------- */

/* Lists what the rank exports: its masters with most tokens, as many and as much as are above the level. */
static void list_exports(eplb_realtime *realtime, int32_t rank, int64_t above, const int32_t *home_tokens)
{
    int32_t *master = realtime->master, end = realtime->first[rank + 1];
    for (int32_t next = realtime->first[rank]; above > 0; next++) {
        int32_t best = next;
        for (int32_t i = next + 1; i < end; i++) {
            if (home_tokens[master[i]] > home_tokens[master[best]] ||
                (home_tokens[master[i]] == home_tokens[master[best]] && master[i] < master[best]))
                best = i;
        }
        int32_t expert = master[best];
        master[best] = master[next];
        master[next] = expert;
        int64_t amount = home_tokens[expert] < above ? home_tokens[expert] : above;
        realtime->filling.exports.key[realtime->filling.exports.size++] = realtime_pack(amount, expert);
        above -= amount;
    }
}

static void start_level(eplb_realtime *realtime, const int32_t *tokens, int64_t level,
                        eplb_realtime_plan *plan)
{
    size_t slots = (size_t)realtime->num_ranks * (size_t)realtime->filling.spare;
    memcpy(plan->home_tokens, tokens, (size_t)realtime->num_experts * sizeof *tokens);
    memset(plan->replica_expert, -1, slots * sizeof *plan->replica_expert);
    memset(plan->replica_tokens, 0, slots * sizeof *plan->replica_tokens);
    plan->num_replicas = 0;
    memset(realtime->filling.used, 0, (size_t)realtime->num_ranks * sizeof *realtime->filling.used);
    realtime->filling.exports.size = realtime->filling.rooms.size = 0;
    realtime->filling.plan = plan;
    for (int32_t g = 0; g < realtime->num_ranks; g++) {
        int64_t above = realtime->load[g] - level;
        if (above > 0)
            list_exports(realtime, g, above, tokens);
        else if (above < 0)
            realtime->filling.rooms.key[realtime->filling.rooms.size++] = realtime_pack(-above, g);
    }
}

/* Tokens of the largest rank after filling at a level: those that could not give all away are above it. */
static int64_t largest_left(const eplb_realtime *realtime, const eplb_realtime_plan *plan, int64_t level)
{
    int64_t most = level;
    for (int32_t g = 0; g < realtime->num_ranks; g++) {
        int64_t load = 0;
        if (realtime->load[g] <= level)
            continue;
        for (int32_t i = realtime->first[g]; i < realtime->first[g + 1]; i++)
            load += plan->home_tokens[realtime->master[i]];
        most = load > most ? load : most;
    }
    return most;
}

/* Plans at a level; returns the largest rank's tokens, which may be above it. */
static int64_t plan_at(eplb_realtime *realtime, const int32_t *tokens, int64_t level,
                       eplb_realtime_plan *plan)
{
    start_level(realtime, tokens, level, plan);
    if (realtime_fill_few(&realtime->filling))
        return level;
    start_level(realtime, tokens, level, plan);
    return realtime_fill_tight(&realtime->filling) ? level : largest_left(realtime, plan, level);
}

/* --- a batch ----------------------------------------------------------------------------------------- */

/* Sums per rank; -1 if a count is negative. */
static int64_t sum_ranks(eplb_realtime *realtime, const int32_t *tokens, int64_t *largest)
{
    int64_t total = 0;
    int32_t sign = 0;
    *largest = 0;
    for (int32_t g = 0; g < realtime->num_ranks; g++) {
        int64_t load = 0;
        for (int32_t i = realtime->first[g]; i < realtime->first[g + 1]; i++) {
            load += tokens[realtime->master[i]];
            sign |= tokens[realtime->master[i]];
        }
        realtime->load[g] = load;
        total += load;
        *largest = load > *largest ? load : *largest;
    }
    return sign < 0 ? -1 : total;
}

static eplb_status refuse_tokens(const eplb_realtime *realtime, const int32_t *tokens, eplb_error *error)
{
    int32_t e = 0;
    while (e < realtime->num_experts - 1 && tokens[e] >= 0)
        e++;
    return error_set(error, EPLB_ERROR_INVALID, (error_place){-1, e, -1, -1, tokens[e]},
                     "realtime: expert %d has %d tokens, expected 0 or more", e, tokens[e]);
}

/* Plans at the level aimed at; if the slots do not allow it, looks between the highest level that left
 * exports and the lowest that did not (or what came out of one that did), and plans the best again. */
static void plan_levels(eplb_realtime *realtime, const int32_t *tokens, int64_t level, int64_t largest,
                        eplb_realtime_plan *plan)
{
    int64_t best_level = largest, best = largest, fails = level - 1, current = level;
    for (int i = 0; i < MOST_LEVELS; i++) {
        int64_t reached = plan_at(realtime, tokens, current, plan);
        plan->max_rank_tokens = reached;
        if (i == 0 && reached <= current)
            return;
        if (reached < best) {
            best = reached;
            best_level = current;
        }
        if (reached > current)
            fails = current;
        if (best - fails < 2)
            break;
        current = fails + (best - fails) / 2;
    }
    plan->max_rank_tokens = plan_at(realtime, tokens, best_level, plan);
}

eplb_status eplb_realtime_plan_batch(eplb_realtime *realtime, const int32_t *tokens, double target,
                                     eplb_realtime_plan *plan, eplb_error *error)
{
    if (realtime == NULL || tokens == NULL || plan == NULL || plan->replica_expert == NULL ||
        plan->replica_tokens == NULL || plan->home_tokens == NULL)
        return error_text(error, EPLB_ERROR_INVALID, "realtime: a pointer is missing");
    if (!(target >= 1.0 && target <= 1e6))
        return error_text(error, EPLB_ERROR_INVALID, "realtime: target %g, expected 1 or more", target);
    int64_t largest, total = sum_ranks(realtime, tokens, &largest);
    if (total < 0)
        return refuse_tokens(realtime, tokens, error);
    plan->total_tokens = total;
    int64_t mean = total / realtime->num_ranks + (total % realtime->num_ranks != 0);
    int64_t level = (int64_t)(target * (double)total / (double)realtime->num_ranks);
    level = level > mean ? level : mean;
    plan_levels(realtime, tokens, level < largest ? level : largest, largest, plan);
    if (plan->max_rank_tokens > largest || plan->num_replicas == 0)
        plan->max_rank_tokens = largest;
    return EPLB_OK;
}
