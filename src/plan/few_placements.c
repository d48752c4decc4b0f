/* Listing all placements of a small layer.
 *
 * Rank by rank, each set of experts that fills it, in lexicographic order; a rank like the one before gets no
 * earlier set than that. A branch ends where the slots left are fewer than the experts without a replica.
 * Exponential: for layers of a handful of experts, where a search by single changes may be trapped. */
#include "plan/few_placements.h"

/* More slots than this have too many placements, and the listing is as deep. */
#define FEW_SLOTS_MOST 32

typedef struct listing {
    const layer_problem *problem;
    few_visit visit;
    void *context;
    int32_t *expert; /* [S] */
    int32_t *count;  /* [E] replicas so far */
    int32_t unserved;
    int64_t left; /* sets that may still be put on a rank */
    bool ended;
} listing;

static int32_t slots_of(const layer_problem *problem, int32_t rank)
{
    return problem->first_slot[rank + 1] - problem->first_slot[rank];
}

static bool is_like(const layer_problem *problem, int32_t rank, int32_t other)
{
    return slots_of(problem, rank) == slots_of(problem, other) &&
           problem->rank_speed[rank] == problem->rank_speed[other] &&
           problem->rank_node[rank] == problem->rank_node[other];
}

/* True if the rank's set, complete, comes before that of the rank before it, which is like it. */
static bool is_repeated(const listing *all, int32_t rank)
{
    const layer_problem *problem = all->problem;
    if (rank == 0 || !is_like(problem, rank, rank - 1))
        return false;
    const int32_t *here = &all->expert[problem->first_slot[rank]];
    const int32_t *before = &all->expert[problem->first_slot[rank - 1]];
    for (int32_t i = 0; i < slots_of(problem, rank); i++) {
        if (here[i] != before[i])
            return here[i] < before[i];
    }
    return false;
}

static void put(listing *all, int32_t slot, int32_t expert)
{
    all->expert[slot] = expert;
    all->unserved -= all->count[expert]++ == 0;
}

static void take_back(listing *all, int32_t slot)
{
    all->unserved += --all->count[all->expert[slot]] == 0;
    all->expert[slot] = -1;
}

/* Fills the slots from `slot` on; within a rank experts ascend from `next` on. */
static void list_from(listing *all, int32_t slot, int32_t next)
{
    const layer_problem *problem = all->problem;
    if (slot == problem->num_slots) {
        all->ended = !all->visit(all->context, all->expert);
        return;
    }
    int32_t rank = problem->slot_rank[slot], end = problem->first_slot[rank + 1];
    if (next == problem->num_experts) { /* more slots than experts: the rest stays empty */
        list_from(all, end, 0);
        return;
    }
    for (int32_t e = next; e < problem->num_experts && !all->ended; e++) {
        bool must = problem->num_experts - e < end - slot; /* too few are left to fill the rank */
        if (must && e > next)
            break;
        put(all, slot, e);
        bool complete = slot + 1 == end || e + 1 == problem->num_experts;
        if (complete && all->left-- <= 0)
            all->ended = true;
        else if (all->unserved <= problem->num_slots - slot - 1 && !(complete && is_repeated(all, rank)))
            list_from(all, slot + 1, slot + 1 == end ? 0 : e + 1);
        take_back(all, slot);
    }
}

bool few_placements(const layer_problem *problem, int64_t most, few_visit visit, void *context, bool *all,
                    arena *scratch)
{
    arena_mark mark = arena_position(scratch);
    listing list = {.problem = problem,
                    .visit = visit,
                    .context = context,
                    .expert = arena_take(scratch, (size_t)problem->num_slots, sizeof(int32_t)),
                    .count = arena_take_zero(scratch, (size_t)problem->num_experts, sizeof(int32_t)),
                    .unserved = problem->num_experts,
                    .left = most};
    *all = false;
    if (list.expert == NULL || list.count == NULL)
        return false;
    for (int32_t p = 0; p < problem->num_slots; p++)
        list.expert[p] = -1;
    if (problem->num_slots <= FEW_SLOTS_MOST)
        list_from(&list, 0, 0);
    *all = problem->num_slots <= FEW_SLOTS_MOST && !list.ended;
    arena_rewind(scratch, mark);
    return true;
}
