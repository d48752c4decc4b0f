/* Transfers of a placement change, over all ranks before and after. One layer is a capacitated bipartite
 * matching: every transfer needs a source, a source sends at most `limit` times; the limit starts at the
 * largest number of receives, which no choice can better, and rises only when the augmenting search fails. */
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = -1 };

/* One layer's transfers and the search over them. */
typedef struct transfers {
    int32_t ranks;            /* G: those before or those after, whichever are more */
    int32_t *node;            /* [G] */
    uint8_t *alive;           /* [G] may send: lives after, or leaves */
    const int32_t *before;    /* [slots before] this layer's experts before */
    const int32_t *first;     /* [E + 1] of the placement before, this layer */
    const int32_t *holders;   /* [slots before] slots by expert, this layer */
    const int32_t *slot_rank; /* [slots before] */
    int32_t count;
    int32_t *expert;           /* [count <= slots after] what moves */
    int32_t *receiver;         /* [count] */
    int32_t *source;           /* [count] chosen rank, or NONE */
    int32_t *next;             /* [count] next transfer of the same source */
    int32_t *head;             /* [G] first transfer of a source */
    int32_t *sends, *receives; /* [G] */
    int32_t *via;              /* [G] search: the transfer that would move to this rank; NONE: not seen */
    int32_t *queue;            /* [G] */
    int32_t *stamp; /* [E] last rank, counted from 1, that holds the expert already or receives it */
} transfers;

/* Whether slot `holder` may feed transfer t: alive, and of the receiver's node if any such holder is. */
static bool may_send(const transfers *self, int32_t t, int32_t holder, bool near)
{
    int32_t rank = self->slot_rank[holder];
    return self->alive[rank] && (!near || self->node[rank] == self->node[self->receiver[t]]);
}

static bool has_near_holder(const transfers *self, int32_t t)
{
    int32_t e = self->expert[t];
    for (int32_t i = self->first[e]; i < self->first[e + 1]; i++)
        if (may_send(self, t, self->holders[i], true))
            return true;
    return false;
}

static void attach(transfers *self, int32_t t, int32_t rank)
{
    self->source[t] = rank;
    self->next[t] = self->head[rank];
    self->head[rank] = t;
    self->sends[rank]++;
}

static void detach(transfers *self, int32_t t)
{
    int32_t rank = self->source[t], *link = &self->head[rank];
    while (*link != t)
        link = &self->next[*link];
    *link = self->next[t];
    self->sends[rank]--;
}

/* Marks the possible sources of t that were not seen before; returns the new end of the queue. */
static int32_t reach(transfers *self, int32_t t, int32_t end)
{
    int32_t e = self->expert[t];
    bool near = has_near_holder(self, t);
    for (int32_t i = self->first[e]; i < self->first[e + 1]; i++) {
        int32_t rank = self->slot_rank[self->holders[i]];
        if (!may_send(self, t, self->holders[i], near) || self->via[rank] != NONE)
            continue;
        self->via[rank] = t;
        self->queue[end++] = rank;
    }
    return end;
}

/* Finds a source for t under the limit, moving others out of the way; 1 found, 0 not under this limit, -1
 * nobody holds the expert. */
static int assign(transfers *self, int32_t t, int32_t limit)
{
    for (int32_t g = 0; g < self->ranks; g++)
        self->via[g] = NONE;
    int32_t end = reach(self, t, 0);
    if (end == 0)
        return -1;
    for (int32_t i = 0; i < end; i++) {
        int32_t rank = self->queue[i];
        if (self->sends[rank] >= limit) {
            for (int32_t other = self->head[rank]; other != NONE; other = self->next[other])
                end = reach(self, other, end);
            continue;
        }
        for (;;) {
            int32_t mover = self->via[rank], left = mover == t ? NONE : self->source[mover];
            if (left != NONE)
                detach(self, mover);
            attach(self, mover, rank);
            if (left == NONE)
                return 1;
            rank = left;
        }
    }
    return 0;
}

/* Lists what each live rank of `after` receives in this layer. */
static void list_transfers(transfers *self, const eplb_topology *was, const eplb_topology *now,
                           const int32_t *after, int32_t num_experts)
{
    const int32_t *first = eplb_topology_first_slot(now), *old_first = eplb_topology_first_slot(was);
    const uint8_t *lives = eplb_topology_rank_alive(now), *lived = eplb_topology_rank_alive(was);
    int32_t old_ranks = eplb_topology_num_ranks(was);
    self->count = 0;
    memset(self->receives, 0, (size_t)self->ranks * sizeof *self->receives);
    memset(self->sends, 0, (size_t)self->ranks * sizeof *self->sends);
    memset(self->stamp, 0, (size_t)num_experts * sizeof *self->stamp);
    for (int32_t g = 0; g < self->ranks; g++)
        self->head[g] = NONE;
    for (int32_t g = 0; g < eplb_topology_num_ranks(now); g++) {
        bool kept = g < old_ranks && lived[g];
        for (int32_t q = kept ? old_first[g] : 0; kept && q < old_first[g + 1]; q++)
            if (self->before[q] >= 0)
                self->stamp[self->before[q]] = g + 1;
        for (int32_t p = first[g]; p < first[g + 1] && lives[g]; p++) {
            int32_t e = after[p];
            if (e < 0 || self->stamp[e] == g + 1)
                continue;
            self->stamp[e] = g + 1;
            self->expert[self->count] = e;
            self->receiver[self->count] = g;
            self->source[self->count++] = NONE;
            self->receives[g]++;
        }
    }
}

static int32_t most(const int32_t *values, int32_t count)
{
    int32_t largest = 0;
    for (int32_t i = 0; i < count; i++)
        largest = values[i] > largest ? values[i] : largest;
    return largest;
}

/* Seconds of the busiest rank; time[4 G] is scratch: intra and inter, in and out. */
static double busiest(const transfers *self, const transfer_links *links, double *time)
{
    double longest = 0.0;
    memset(time, 0, 2 * (size_t)self->ranks * sizeof *time);
    for (int32_t t = 0; t < self->count; t++) {
        int32_t from = self->source[t], to = self->receiver[t];
        bool near = from != NONE && self->node[from] == self->node[to];
        double seconds =
            links->bytes_per_expert / (near ? links->intra_bytes_per_second : links->inter_bytes_per_second);
        time[to] += seconds;
        if (from != NONE)
            time[self->ranks + from] += seconds;
    }
    for (int32_t i = 0; i < 2 * self->ranks; i++)
        longest = time[i] > longest ? time[i] : longest;
    return longest;
}

static void cost_layer(transfers *self, const transfer_links *links, double *time, transfer_cost *cost)
{
    int32_t limit = most(self->receives, self->ranks);
    for (int32_t t = 0; t < self->count;) {
        int found = assign(self, t, limit);
        if (found == 0)
            limit++;
        else
            t++;
    }
    cost->rounds += limit;
    cost->seconds += busiest(self, links, time);
}

/* Ranks of both placements: a rank's node is that after, if it stays. */
static void read_ranks(transfers *self, const eplb_topology *was, const eplb_topology *now)
{
    int32_t staying = eplb_topology_num_ranks(now);
    for (int32_t g = 0; g < self->ranks; g++) {
        const eplb_topology *known = g < staying ? now : was;
        self->node[g] = eplb_topology_rank_node(known)[g];
        self->alive[g] = eplb_topology_rank_alive(known)[g];
    }
}

static bool take_arrays(transfers *self, size_t slots, size_t experts)
{
    size_t ranks = (size_t)self->ranks;
    int32_t *block = malloc((4 * slots + 6 * ranks + experts) * sizeof *block);
    self->alive = malloc(ranks);
    self->expert = block;
    if (block == NULL || self->alive == NULL)
        return false;
    self->receiver = block + slots;
    self->source = block + 2 * slots;
    self->next = block + 3 * slots;
    self->head = block + 4 * slots;
    self->sends = self->head + ranks;
    self->receives = self->sends + ranks;
    self->via = self->receives + ranks;
    self->queue = self->via + ranks;
    self->node = self->queue + ranks;
    self->stamp = self->node + ranks;
    return true;
}

bool transfer_plan(const eplb_placement *before, const eplb_placement *after, const transfer_links *links,
                   transfer_cost *cost)
{
    const eplb_topology *was = eplb_placement_topology(before), *now = eplb_placement_topology(after);
    size_t old_slots = (size_t)eplb_topology_num_slots(was), slots = (size_t)eplb_topology_num_slots(now);
    size_t experts = (size_t)eplb_placement_num_experts(after);
    int32_t old_ranks = eplb_topology_num_ranks(was), ranks = eplb_topology_num_ranks(now);
    transfers layer = {.ranks = old_ranks > ranks ? old_ranks : ranks,
                       .slot_rank = eplb_topology_slot_rank(was)};
    double *time = malloc(2 * (size_t)layer.ranks * sizeof *time);
    *cost = (transfer_cost){0, 0.0};
    bool good = take_arrays(&layer, slots, experts) && time != NULL;
    if (good)
        read_ranks(&layer, was, now);
    for (size_t l = 0; good && l < (size_t)eplb_placement_num_layers(after); l++) {
        layer.before = eplb_placement_physical_to_logical(before) + l * old_slots;
        layer.first = eplb_placement_replica_first(before) + l * (experts + 1);
        layer.holders = eplb_placement_replica_slots(before) + l * old_slots;
        list_transfers(&layer, was, now, eplb_placement_physical_to_logical(after) + l * slots,
                       (int32_t)experts);
        cost_layer(&layer, links, time, cost);
    }
    free(time);
    free(layer.alive);
    free(layer.expert);
    return good;
}
