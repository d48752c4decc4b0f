/* Which of the experts that ranks hold stay in a slot when ranks have fewer slots than before.
 *
 * A rank that lives holds the weights of a slot that is cut off, and which slot an expert lands in is free:
 * so a rank keeps as many of its experts as it has slots. As many experts as possible keep a replica: a
 * largest matching of experts to ranks that hold them, by augmenting paths (a rank that no path leads from is
 * never looked at again). The slots left go to the replicas that serve most. Ranks that grow or join have
 * empty slots. Source: Kuhn, "The Hungarian method for the assignment problem" (1955), for the paths. */
#include "plan/carry_over.h"

#include <string.h>

#include "plan/sort_loads.h"

#define NONE (-1)

typedef struct carry {
    layer_problem *problem;
    const plan_request *request;
    const int32_t *row;    /* [old slots] the layer before */
    const int32_t *first;  /* [old ranks + 1] slots before */
    const uint8_t *alive;  /* [old ranks] */
    int32_t old_ranks;     /* before */
    int32_t *held_first;   /* [G + 1] experts that each live rank holds, each once */
    int32_t *held;         /* in the order of its slots */
    int32_t *owner;        /* [E] rank that keeps the expert's first replica */
    int32_t *holder_first; /* [E + 1] ranks that hold each expert */
    int32_t *holder;       /* as many as held */
    int32_t *used;         /* [G] slots of experts that the rank owns */
    int32_t *via;          /* [G] expert that the path brings to the rank */
    int32_t *queue;        /* [G] ranks on paths */
    int32_t *owned_next;   /* [E] next expert of the same owner */
    int32_t *owned;        /* [G] its first */
    uint8_t *seen;         /* [G] on a path that led nowhere, or on this one */
    int32_t *stamp;        /* [E] */
    int64_t *serves;       /* [E] load of one more replica */
    int32_t *copies;       /* [E] replicas kept */
} carry;

static int32_t room(const carry *c, int32_t rank)
{
    return c->problem->first_slot[rank + 1] - c->problem->first_slot[rank];
}

/* The slots that a live rank had before, none if it is new or was dead. */
static const int32_t *slots_before(const carry *c, int32_t rank, int32_t *count)
{
    int32_t number = c->request->live->rank[rank];
    *count = 0;
    if (number >= c->old_ranks || !c->alive[number])
        return NULL;
    *count = c->first[number + 1] - c->first[number];
    return c->row + c->first[number];
}

/* Copies slot by slot; true if no rank has lost one that holds an expert. */
static bool copy_slots(const carry *c, int32_t *current)
{
    bool all = true;
    for (int32_t g = 0; g < c->problem->num_ranks; g++) {
        int32_t count, slots = room(c, g), *out = current + c->problem->first_slot[g];
        const int32_t *old = slots_before(c, g, &count);
        for (int32_t j = 0; j < slots; j++)
            out[j] = j < count ? old[j] : NONE;
        for (int32_t j = slots; j < count; j++)
            all = all && old[j] < 0;
    }
    return all;
}

static bool take_arrays(carry *c, arena *scratch)
{
    size_t ranks = (size_t)c->problem->num_ranks, experts = (size_t)c->problem->num_experts;
    size_t slots = (size_t)c->first[c->old_ranks];
    int32_t *block = arena_take_zero(scratch, 5 * ranks + 1 + 5 * experts + 1 + 2 * slots, sizeof *block);
    c->seen = arena_take_zero(scratch, ranks, sizeof *c->seen);
    c->serves = arena_take_zero(scratch, experts, sizeof *c->serves);
    if (block == NULL || c->seen == NULL || c->serves == NULL)
        return false;
    c->held_first = block;
    c->used = c->held_first + ranks + 1;
    c->via = c->used + ranks;
    c->queue = c->via + ranks;
    c->owned = c->queue + ranks;
    c->owner = c->owned + ranks;
    c->owned_next = c->owner + experts;
    c->stamp = c->owned_next + experts;
    c->copies = c->stamp + experts;
    c->holder_first = c->copies + experts;
    c->held = c->holder_first + experts + 1;
    c->holder = c->held + slots;
    for (size_t g = 0; g < ranks; g++)
        c->owned[g] = NONE;
    for (size_t e = 0; e < experts; e++)
        c->owner[e] = NONE;
    return true;
}

static void list_holders(carry *c)
{
    int32_t ranks = c->problem->num_ranks, experts = c->problem->num_experts, n = 0;
    for (int32_t g = 0; g < ranks; g++) {
        int32_t count;
        const int32_t *old = slots_before(c, g, &count);
        for (int32_t j = 0; j < count; j++) {
            if (old[j] < 0 || c->stamp[old[j]] == g + 1)
                continue;
            c->stamp[old[j]] = g + 1;
            c->holder_first[old[j] + 1]++;
            c->held[n++] = old[j];
        }
        c->held_first[g + 1] = n;
    }
    for (int32_t e = 0; e < experts; e++)
        c->holder_first[e + 1] += c->holder_first[e];
    /* from the back: ascending in the end, and starts as they were */
    for (int32_t g = ranks - 1; g >= 0; g--) {
        for (int32_t i = c->held_first[g + 1] - 1; i >= c->held_first[g]; i--)
            c->holder[--c->holder_first[c->held[i] + 1]] = g;
    }
    for (int32_t e = 0; e < experts; e++)
        c->holder_first[e] = c->holder_first[e + 1];
    c->holder_first[experts] = n;
}

static void own(carry *c, int32_t expert, int32_t rank)
{
    c->owner[expert] = rank;
    c->owned_next[expert] = c->owned[rank];
    c->owned[rank] = expert;
    c->used[rank]++;
}

static void disown(carry *c, int32_t expert)
{
    int32_t rank = c->owner[expert], *link = &c->owned[rank];
    while (*link != expert)
        link = &c->owned_next[*link];
    *link = c->owned_next[expert];
    c->used[rank]--;
}

/* Appends the expert's ranks that were not seen; returns the new end of the queue. */
static int32_t reach(carry *c, int32_t expert, int32_t end)
{
    for (int32_t i = c->holder_first[expert]; i < c->holder_first[expert + 1]; i++) {
        int32_t g = c->holder[i];
        if (c->seen[g])
            continue;
        c->seen[g] = 1;
        c->via[g] = expert;
        c->queue[end++] = g;
    }
    return end;
}

/* Finds a rank for an expert without one, others giving way; where none is found, what was seen stays
 * seen. */
static void augment(carry *c, int32_t expert)
{
    int32_t end = reach(c, expert, 0), at = 0;
    while (at < end && c->used[c->queue[at]] >= room(c, c->queue[at])) {
        for (int32_t e = c->owned[c->queue[at]]; e != NONE; e = c->owned_next[e])
            end = reach(c, e, end);
        at++;
    }
    if (at == end)
        return;
    for (int32_t g = c->queue[at], mover = NONE; mover != expert;) {
        int32_t left;
        mover = c->via[g];
        left = c->owner[mover];
        if (left != NONE)
            disown(c, mover);
        own(c, mover, g);
        g = left;
    }
    for (int32_t i = 0; i < end; i++)
        c->seen[c->queue[i]] = 0;
}

/* Gives every expert a rank that keeps it, as far as that goes: where it has a slot that stays, if it can. */
static void match(carry *c, const int32_t *current)
{
    for (int32_t g = 0; g < c->problem->num_ranks; g++) {
        for (int32_t p = c->problem->first_slot[g]; p < c->problem->first_slot[g + 1]; p++) {
            if (current[p] >= 0 && c->owner[current[p]] == NONE)
                own(c, current[p], g);
        }
    }
    for (int32_t e = 0; e < c->problem->num_experts; e++) {
        if (c->owner[e] == NONE && c->holder_first[e] < c->holder_first[e + 1])
            augment(c, e);
    }
}

/* The experts of a rank that keep a slot, marked by stamps: those it owns, then those that serve most. */
static bool choose(carry *c, int32_t rank, int32_t mark, arena *scratch)
{
    int32_t left = room(c, rank) - c->used[rank], n = 0;
    size_t most = (size_t)(c->held_first[rank + 1] - c->held_first[rank]);
    arena_mark position = arena_position(scratch);
    int32_t *list = arena_take(scratch, most, sizeof *list),
            *order = arena_take(scratch, most, sizeof *order);
    if (list == NULL || order == NULL)
        return false;
    /* from the back: of equals, early slots */
    for (int32_t i = c->held_first[rank + 1] - 1; i >= c->held_first[rank]; i--) {
        int32_t e = c->held[i];
        if (c->owner[e] == rank) {
            c->stamp[e] = mark;
            continue;
        }
        c->serves[e] = c->problem->load[e] / (c->copies[e] + 1);
        list[n++] = e;
    }
    if (!sort_loads(c->serves, list, n, order, scratch))
        return false;
    for (; n > 0 && left > 0; left--) {
        c->stamp[order[--n]] = mark;
        c->copies[order[n]]++;
    }
    arena_rewind(scratch, position);
    return true;
}

/* Keeps marked experts in their slots and brings those of slots that are cut off into the free ones. */
static void settle(const carry *c, int32_t rank, int32_t mark, int32_t *out)
{
    int32_t count, slots = room(c, rank), j = 0;
    const int32_t *old = slots_before(c, rank, &count);
    for (int32_t i = 0; i < slots; i++) {
        bool stays = i < count && old[i] >= 0 && c->stamp[old[i]] == mark;
        out[i] = stays ? old[i] : NONE;
        if (stays)
            c->stamp[old[i]] = NONE; /* placed */
    }
    for (int32_t i = slots; i < count; i++) {
        if (old[i] < 0 || c->stamp[old[i]] != mark)
            continue;
        while (out[j] != NONE)
            j++;
        out[j] = old[i];
        c->stamp[old[i]] = NONE;
    }
}

/* What live ranks hold in no slot that is left. */
static bool mark_cut_off(carry *c, const int32_t *current, arena *scratch)
{
    int32_t words = expert_bits_words(c->problem->num_experts), ranks = c->problem->num_ranks;
    uint64_t *cut = arena_take_zero(scratch, (size_t)ranks * (size_t)words, sizeof *cut);
    for (int32_t g = 0; cut != NULL && g < ranks; g++) {
        for (int32_t i = c->held_first[g]; i < c->held_first[g + 1]; i++)
            expert_bits_add(cut, words, g, c->held[i]);
        for (int32_t p = c->problem->first_slot[g]; p < c->problem->first_slot[g + 1]; p++) {
            if (current[p] >= 0)
                expert_bits_remove(cut, words, g, current[p]);
        }
    }
    c->problem->cut_off = cut;
    return cut != NULL;
}

static bool shrinks(const carry *c, int32_t rank)
{
    int32_t count;
    (void)slots_before(c, rank, &count);
    return count > room(c, rank);
}

static bool keep_most(carry *c, int32_t *current, arena *scratch)
{
    if (!take_arrays(c, scratch))
        return false;
    list_holders(c);
    match(c, current);
    for (int32_t e = 0; e < c->problem->num_experts; e++)
        c->copies[e] = c->owner[e] != NONE;
    for (int32_t g = 0; g < c->problem->num_ranks; g++) {
        /* a rank that does not shrink keeps all */
        for (int32_t i = c->held_first[g]; i < c->held_first[g + 1] && !shrinks(c, g); i++)
            c->copies[c->held[i]] += c->owner[c->held[i]] != g;
    }
    for (int32_t g = 0, mark = c->problem->num_ranks; g < c->problem->num_ranks; g++) {
        if (!shrinks(c, g))
            continue;
        if (!choose(c, g, ++mark, scratch))
            return false;
        settle(c, g, mark, current + c->problem->first_slot[g]);
    }
    return mark_cut_off(c, current, scratch);
}

bool carry_over(layer_problem *problem, const plan_request *request, arena *scratch)
{
    const eplb_placement *before = request->params.current;
    const eplb_topology *topology = eplb_placement_topology(before);
    int32_t *current = arena_take(scratch, (size_t)problem->num_slots, sizeof *current);
    if (current == NULL)
        return false;
    carry c = {.problem = problem,
               .request = request,
               .row = eplb_placement_physical_to_logical(before) +
                      (size_t)problem->layer * (size_t)eplb_placement_num_slots(before),
               .first = eplb_topology_first_slot(topology),
               .alive = eplb_topology_rank_alive(topology),
               .old_ranks = eplb_topology_num_ranks(topology)};
    problem->current = current;
    return copy_slots(&c, current) || keep_most(&c, current, scratch);
}
