/* Decode: one replica per active expert, so that no rank reads more experts' weights than it must.
 *
 * With a load of one per active expert the exact min-max split is whole by itself: it is an optimal
 * semi-matching of experts to ranks. Then tokens are evened out: the rank with most tokens gives an expert
 * away, or exchanges it for a smaller one, as long as no rank goes above the optimum. Microseconds for 256
 * experts. Source: METRO (arXiv 2512.09277); semi-matchings (Harvey, Ladner, Lovasz, Tamir 2006). */
#include <string.h>

#include "base/error.h"
#include "route/resplit.h"

/* The choice on the edges of the graph. */
typedef struct choice {
    const min_max_graph *graph;
    const int64_t *load; /* [E] tokens */
    int32_t most;        /* activated replicas allowed on a rank */
    int32_t *edge;       /* [movable] chosen edge, or -1: idle */
    int32_t *count;      /* [G] activated */
    int64_t *tokens;     /* [G] */
} choice;

static int64_t tokens_of(const choice *c, int32_t movable)
{
    return c->load[c->graph->movable_expert[movable]];
}

static void put(choice *c, int32_t movable, int32_t edge)
{
    if (c->edge[movable] >= 0) {
        c->count[c->graph->edge_rank[c->edge[movable]]]--;
        c->tokens[c->graph->edge_rank[c->edge[movable]]] -= tokens_of(c, movable);
    }
    c->edge[movable] = edge;
    c->count[c->graph->edge_rank[edge]]++;
    c->tokens[c->graph->edge_rank[edge]] += tokens_of(c, movable);
}

/* The change that leaves the larger of the two ranks with fewest tokens: expert `give` goes to `edge`, and
 * expert `take`, unless that is -1, comes back over `take_edge`. */
typedef struct exchange {
    int64_t larger;
    int32_t give, edge, take, take_edge;
} exchange;

static void consider(const choice *c, int32_t rank, exchange *best, exchange candidate)
{
    int32_t to = c->graph->edge_rank[candidate.edge];
    int64_t back = candidate.take >= 0 ? tokens_of(c, candidate.take) : 0;
    int64_t here = c->tokens[rank] - tokens_of(c, candidate.give) + back;
    int64_t there = c->tokens[to] + tokens_of(c, candidate.give) - back;
    candidate.larger = here > there ? here : there;
    if (candidate.larger < best->larger)
        *best = candidate;
}

/* Everything that expert `give` of `rank` can do. */
static void look_at(const choice *c, int32_t rank, int32_t give, exchange *best)
{
    const min_max_graph *graph = c->graph;
    for (int32_t i = graph->edge_first[give]; i < graph->edge_first[give + 1]; i++) {
        int32_t to = graph->edge_rank[i];
        if (to == rank || c->tokens[to] >= c->tokens[rank])
            continue;
        if (c->count[to] < c->most)
            consider(c, rank, best, (exchange){0, give, i, -1, -1});
        for (int32_t k = graph->rank_first[rank]; k < graph->rank_first[rank + 1]; k++) {
            int32_t back_edge = graph->rank_edge[k], take = graph->edge_movable[back_edge];
            if (take != give && c->edge[take] >= 0 && graph->edge_rank[c->edge[take]] == to)
                consider(c, rank, best, (exchange){0, give, i, take, back_edge});
        }
    }
}

static int32_t fullest(const choice *c)
{
    int32_t rank = 0;
    for (int32_t g = 1; g < c->graph->num_ranks; g++)
        rank = c->tokens[g] > c->tokens[rank] ? g : rank;
    return rank;
}

/* Exchanges until the fullest rank cannot be relieved; every one lowers it, and their number is bounded. */
static void even_out(choice *c)
{
    const min_max_graph *graph = c->graph;
    for (int32_t round = 0; round < 2 * graph->num_ranks; round++) {
        int32_t rank = fullest(c);
        exchange best = {c->tokens[rank], -1, -1, -1, -1};
        for (int32_t k = graph->rank_first[rank]; k < graph->rank_first[rank + 1]; k++) {
            int32_t edge = graph->rank_edge[k];
            if (c->edge[graph->edge_movable[edge]] == edge)
                look_at(c, rank, graph->edge_movable[edge], &best);
        }
        if (best.give < 0)
            return;
        put(c, best.give, best.edge);
        if (best.take >= 0)
            put(c, best.take, best.take_edge);
    }
}

/* Takes the whole split over as a choice. */
static void read_split(eplb_resplit *resplit, choice *c)
{
    const min_max_graph *graph = c->graph;
    memset(c->count, 0, (size_t)graph->num_ranks * sizeof *c->count);
    memset(c->tokens, 0, (size_t)graph->num_ranks * sizeof *c->tokens);
    for (int32_t n = 0; n < graph->num_fixed; n++) {
        c->count[graph->fixed_rank[n]] += c->load[graph->fixed_expert[n]] > 0;
        c->tokens[graph->fixed_rank[n]] += c->load[graph->fixed_expert[n]];
    }
    for (int32_t m = 0; m < graph->num_movable; m++) {
        c->edge[m] = -1;
        for (int32_t i = graph->edge_first[m]; i < graph->edge_first[m + 1]; i++) {
            if (resplit->quota[graph->edge_replica[i]] > 0)
                put(c, m, i);
        }
    }
}

static void write_slots(const eplb_resplit *resplit, const choice *c, int32_t *slot)
{
    const min_max_graph *graph = c->graph;
    for (int32_t e = 0; e < graph->num_experts; e++)
        slot[e] = -1;
    for (int32_t n = 0; n < graph->num_fixed; n++) {
        if (c->load[graph->fixed_expert[n]] > 0)
            slot[graph->fixed_expert[n]] = resplit->slot[graph->fixed_replica[n]];
    }
    for (int32_t m = 0; m < graph->num_movable; m++) {
        if (c->edge[m] >= 0)
            slot[graph->movable_expert[m]] = resplit->slot[graph->edge_replica[c->edge[m]]];
    }
}

eplb_status eplb_resplit_activate(eplb_resplit *resplit, const int64_t *tokens, int32_t *slot,
                                  int32_t *max_activated, eplb_error *error)
{
    eplb_status status = resplit_check_load(resplit, tokens, error);
    if (status != EPLB_OK)
        return status;
    for (int32_t e = 0; e < resplit->num_experts; e++)
        resplit->load[e] = tokens[e] > 0;
    min_max_graph graph = resplit->graph;
    graph.rank_speed = NULL;
    graph.total_speed = graph.num_ranks;
    arena_mark mark = arena_position(&resplit->scratch);
    choice c = {.graph = &graph, .load = tokens};
    size_t ranks = (size_t)graph.num_ranks;
    c.tokens = arena_take(&resplit->scratch, ranks, sizeof *c.tokens);
    c.count = arena_take(&resplit->scratch, ranks, sizeof *c.count);
    c.edge = arena_take(&resplit->scratch, (size_t)graph.num_movable, sizeof *c.edge);
    min_max_result solved = {
        .quota = resplit->quota, .rank_load = resplit->rank_load, .tight_rank = resplit->tight};
    resplit->solved = false; /* these quotas are no start for a split of tokens */
    if (c.tokens == NULL || c.count == NULL || c.edge == NULL ||
        !min_max_split(&graph, resplit->load, NULL, false, &resplit->scratch, &solved))
        return error_memory(error, (size_t)resplit->num_slots * sizeof(int64_t), "a decode assignment");
    c.most = (int32_t)solved.max_load;
    read_split(resplit, &c);
    even_out(&c);
    write_slots(resplit, &c, slot);
    arena_rewind(&resplit->scratch, mark);
    if (max_activated != NULL)
        *max_activated = c.most;
    return EPLB_OK;
}
