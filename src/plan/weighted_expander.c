/* Which experts fill the slots that exact balance does not need.
 *
 * Duplicates of the hottest expert help if that expert grows hotter; they do not help when a rank grows hot
 * through others, because its load cannot leave. So each spare slot joins its rank to another, far away: the
 * t-th spare slot holds the largest expert of rank t * a mod G, with a near 0.618 G and coprime to it, so
 * that every rank gives and takes about as many links and short cycles are rare (an expander). Its quota is 0
 * for the load at hand; a re-split of a later load uses it. Cost: O(k) per spare slot, O(E) where the
 * neighbours tried have nothing new. Source: expander graphs (Hoory, Linial, Wigderson 2006); the
 * multiplicative sequence is Fibonacci hashing (Knuth 3, 6.4). */
#include "plan/weighted.h"

enum { TRIES = 4 };

typedef struct expander {
    const layer_problem *problem;
    const weighted_part *part;
    layer_answer *answer;
    int32_t *held_by; /* [E] stamp: the last rank that was seen to hold it */
    int32_t *added;   /* [E] replicas added here */
    int32_t stride;
    int32_t source; /* position of the next rank to link to */
} expander;

static int32_t common_divisor(int32_t a, int32_t b)
{
    while (b != 0) {
        int32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int32_t coprime_stride(int32_t num_ranks)
{
    int32_t stride = (int32_t)((int64_t)num_ranks * 618 / 1000);
    while (stride > 1 && common_divisor(stride, num_ranks) != 1)
        stride--;
    return stride < 1 ? 1 : stride;
}

static void mark_held(expander *work, int32_t rank)
{
    for (int32_t s = work->problem->first_slot[rank]; s < work->problem->first_slot[rank + 1]; s++) {
        if (work->answer->expert[s] >= 0)
            work->held_by[work->answer->expert[s]] = rank;
    }
}

/* The expert with most load on `from` that `rank` lacks and that got no more than `limit` replicas here; -1:
 * none. */
static int32_t largest_new(const expander *work, int32_t from, int32_t rank, int32_t limit)
{
    int32_t best = -1;
    int64_t best_quota = -1;
    for (int32_t s = work->problem->first_slot[from]; s < work->problem->first_slot[from + 1]; s++) {
        int32_t expert = work->answer->expert[s];
        if (expert >= 0 && work->held_by[expert] != rank && work->added[expert] <= limit &&
            work->answer->quota[s] > best_quota) {
            best = expert;
            best_quota = work->answer->quota[s];
        }
    }
    return best;
}

/* The expert that got fewest replicas here, the largest of these, that `rank` lacks; -1: it has all. */
static int32_t least_added(const expander *work, int32_t rank)
{
    int32_t best = -1;
    for (int32_t i = work->part->num_experts - 1; i >= 0; i--) {
        int32_t expert = work->part->experts[i];
        if (work->held_by[expert] != rank && (best < 0 || work->added[expert] < work->added[best]))
            best = expert;
    }
    return best;
}

/* From the next ranks in turn: an expert that got nothing here yet, else the largest seen; -1: none. */
static int32_t choose(expander *work, int32_t rank)
{
    int32_t second = -1;
    for (int32_t attempt = 0; attempt < TRIES; attempt++) {
        int32_t from = work->part->ranks[work->source];
        work->source += work->stride; /* both below num_ranks */
        if (work->source >= work->part->num_ranks)
            work->source -= work->part->num_ranks;
        if (from == rank)
            continue;
        int32_t expert = largest_new(work, from, rank, 0);
        if (expert >= 0)
            return expert;
        if (second < 0)
            second = largest_new(work, from, rank, INT32_MAX);
    }
    return second >= 0 ? second : least_added(work, rank);
}

static void fill_rank(expander *work, int32_t rank)
{
    bool marked = false; /* not before the first empty slot */
    for (int32_t s = work->problem->first_slot[rank]; s < work->problem->first_slot[rank + 1]; s++) {
        if (work->answer->expert[s] >= 0)
            continue;
        if (!marked)
            mark_held(work, rank);
        marked = true;
        int32_t expert = choose(work, rank);
        if (expert < 0)
            return;
        work->answer->expert[s] = expert;
        work->held_by[expert] = rank;
        work->added[expert]++;
    }
}

bool weighted_expander(const layer_problem *problem, const weighted_part *part, arena *scratch,
                       layer_answer *answer)
{
    arena_mark mark = arena_position(scratch);
    size_t experts = (size_t)problem->num_experts;
    int32_t *held_by = arena_take(scratch, experts, sizeof *held_by);
    int32_t *added = arena_take_zero(scratch, experts, sizeof *added);
    if (held_by == NULL || added == NULL)
        return false;
    for (size_t e = 0; e < experts; e++)
        held_by[e] = -1;
    expander work = {problem, part, answer, held_by, added, coprime_stride(part->num_ranks), 0};
    for (int32_t i = 0; i < part->num_ranks; i++)
        fill_rank(&work, part->ranks[i]);
    arena_rewind(scratch, mark);
    return true;
}
