/* Maximum-overlap relabelling: an assignment problem between new contents and ranks.
 *
 * A plan made from nothing does not care which of several like ranks gets which contents; choosing the
 * assignment that keeps most experts in place saves about a sixth of the moves of DeepSeek's full replan.
 * Where groups are bound to nodes, whole nodes are assigned first, by what the best assignment of their ranks
 * costs.
 * Shortest augmenting paths with potentials (Kuhn, Munkres; Jonker and Volgenant 1987). */
#include "plan/relabel.h"

#include <string.h>

#include "base/error.h"

#define EXACT_RANKS  256
#define GREEDY_RANKS 4096
#define FORBIDDEN    ((int64_t)1 << 44)

/* What it costs to put the new contents of one rank on another. */
typedef struct overlap {
    const layer_problem *problem;
    const int32_t *rank_area;
    const uint64_t *home;
    const uint64_t *node_home; /* [N, words] what the ranks of a node hold together */
    int32_t words;
    const int32_t *expert;
} overlap;

typedef struct matching {
    int32_t n;
    int64_t *cost;  /* [n, n] contents of row r on rank c */
    int64_t *u;     /* [n + 1] potentials of rows; index 0 is the virtual row of the classical scheme */
    int64_t *v;     /* [n + 1] potentials of columns */
    int64_t *slack; /* [n + 1] */
    int32_t *row;   /* [n + 1] row matched to a column */
    int32_t *way;   /* [n + 1] column before this one on the path */
    uint8_t *seen;  /* [n + 1] */
} matching;

static bool matching_take(matching *match, int32_t n, arena *scratch)
{
    size_t size = (size_t)n + 1;
    *match = (matching){.n = n,
                        .cost = arena_take(scratch, (size_t)n * (size_t)n, sizeof *match->cost),
                        .u = arena_take_zero(scratch, size, sizeof *match->u),
                        .v = arena_take_zero(scratch, size, sizeof *match->v),
                        .slack = arena_take(scratch, size, sizeof *match->slack),
                        .row = arena_take_zero(scratch, size, sizeof *match->row),
                        .way = arena_take_zero(scratch, size, sizeof *match->way),
                        .seen = arena_take(scratch, size, sizeof *match->seen)};
    return match->cost != NULL && match->u != NULL && match->v != NULL && match->slack != NULL &&
           match->row != NULL && match->way != NULL && match->seen != NULL;
}

/* Extends the shortest path from `column` by one; returns the next column. */
static int32_t extend(matching *match, int32_t column)
{
    int32_t row = match->row[column], next = 0;
    int64_t least = INT64_MAX;
    match->seen[column] = 1;
    for (int32_t c = 1; c <= match->n; c++) {
        if (match->seen[c])
            continue;
        int64_t reduced =
            match->cost[(size_t)(row - 1) * (size_t)match->n + (size_t)(c - 1)] - match->u[row] - match->v[c];
        if (reduced < match->slack[c]) {
            match->slack[c] = reduced;
            match->way[c] = column;
        }
        if (match->slack[c] < least) {
            least = match->slack[c];
            next = c;
        }
    }
    for (int32_t c = 0; c <= match->n; c++) {
        if (match->seen[c]) {
            match->u[match->row[c]] += least;
            match->v[c] -= least;
        } else {
            match->slack[c] -= least;
        }
    }
    return next;
}

/* row[c] for c in 1 .. n: 1 + the row on column c - 1, with the least total cost. */
static void match_exactly(matching *match)
{
    for (int32_t r = 1; r <= match->n; r++) {
        match->row[0] = r;
        for (int32_t c = 0; c <= match->n; c++) {
            match->slack[c] = INT64_MAX;
            match->seen[c] = 0;
        }
        int32_t column = 0;
        while (match->row[column] != 0)
            column = extend(match, column);
        while (column != 0) {
            int32_t before = match->way[column];
            match->row[column] = match->row[before];
            column = before;
        }
    }
}

static bool alike(const layer_problem *problem, const int32_t *rank_area, int32_t a, int32_t b)
{
    const int32_t *first = problem->first_slot;
    return first[a + 1] - first[a] == first[b + 1] - first[b] &&
           problem->rank_speed[a] == problem->rank_speed[b] &&
           (rank_area == NULL || rank_area[a] == rank_area[b]);
}

/* Received experts count large, those from other nodes one more each. */
static int64_t overlap_cost(const overlap *over, int32_t contents, int32_t rank)
{
    const layer_problem *problem = over->problem;
    if (!alike(problem, over->rank_area, contents, rank))
        return FORBIDDEN;
    int32_t node = problem->rank_node[rank];
    int64_t cost = 0;
    for (int32_t p = problem->first_slot[contents]; p < problem->first_slot[contents + 1]; p++) {
        int32_t e = over->expert[p];
        if (e >= 0 && !expert_bits_has(over->home, over->words, rank, e))
            cost += (int64_t)EPLB_MAX_SLOTS + !expert_bits_has(over->node_home, over->words, node, e);
    }
    return cost;
}

/* Without guarantee, for very many ranks: each rank in turn takes the best contents left. from[c]: whose. */
static void match_greedily(const overlap *over, uint8_t *taken, int32_t *from)
{
    int32_t n = over->problem->num_ranks;
    for (int32_t c = 0; c < n; c++) {
        int32_t best = -1;
        int64_t least = 0;
        for (int32_t r = 0; r < n; r++) {
            if (taken[r])
                continue;
            int64_t cost = overlap_cost(over, r, c);
            if (best < 0 || cost < least) {
                best = r;
                least = cost;
            }
        }
        taken[best] = 1;
        from[c] = best;
    }
}

/* The least total cost. */
static bool match_best(const overlap *over, int32_t *from, arena *scratch)
{
    matching match;
    int32_t n = over->problem->num_ranks;
    if (!matching_take(&match, n, scratch))
        return false;
    for (int32_t r = 0; r < n; r++) {
        for (int32_t c = 0; c < n; c++)
            match.cost[(size_t)r * (size_t)n + (size_t)c] = overlap_cost(over, r, c);
    }
    match_exactly(&match);
    for (int32_t c = 0; c < n; c++)
        from[c] = match.row[c + 1] - 1;
    return true;
}

static uint64_t *unite_nodes(const layer_problem *problem, const uint64_t *home, int32_t words,
                             arena *scratch)
{
    size_t width = (size_t)words;
    uint64_t *united = arena_take_zero(scratch, (size_t)problem->num_nodes * width, sizeof *united);
    if (united == NULL)
        return NULL;
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        uint64_t *row = united + (size_t)problem->rank_node[g] * width;
        for (size_t i = 0; i < width; i++)
            row[i] |= home[(size_t)g * width + i];
    }
    return united;
}

/* --- whole nodes ------------------------------------------------------------------------------------- */

/* Ranks by node: rank[first[n]] .. rank[first[n + 1] - 1], ascending. */
typedef struct node_ranks {
    int32_t *first; /* [N + 1] */
    int32_t *rank;  /* [G] */
} node_ranks;

static bool list_nodes(node_ranks *nodes, const layer_problem *problem, arena *scratch)
{
    int32_t at = 0;
    nodes->first = arena_take(scratch, (size_t)problem->num_nodes + 1, sizeof *nodes->first);
    nodes->rank = arena_take(scratch, (size_t)problem->num_ranks, sizeof *nodes->rank);
    if (nodes->first == NULL || nodes->rank == NULL)
        return false;
    for (int32_t n = 0; n < problem->num_nodes; n++) {
        nodes->first[n] = at;
        for (int32_t g = 0; g < problem->num_ranks; g++) {
            if (problem->rank_node[g] == n)
                nodes->rank[at++] = g;
        }
    }
    nodes->first[problem->num_nodes] = at;
    return true;
}

/* True if the nodes have like ranks in the same order. */
static bool nodes_alike(const layer_problem *problem, const node_ranks *nodes, int32_t a, int32_t b)
{
    int32_t count = nodes->first[a + 1] - nodes->first[a];
    if (count != nodes->first[b + 1] - nodes->first[b])
        return false;
    for (int32_t i = 0; i < count; i++) {
        if (!alike(problem, NULL, nodes->rank[nodes->first[a] + i], nodes->rank[nodes->first[b] + i]))
            return false;
    }
    return true;
}

/* Least cost of the contents of node `a` on the ranks of node `b`; false when memory is out. */
static bool node_cost(const overlap *over, const node_ranks *nodes, int32_t a, int32_t b, int64_t *cost,
                      arena *scratch)
{
    arena_mark mark = arena_position(scratch);
    matching match;
    int32_t n = nodes->first[a + 1] - nodes->first[a];
    *cost = 0;
    if (!matching_take(&match, n, scratch))
        return false;
    for (int32_t r = 0; r < n; r++) {
        for (int32_t c = 0; c < n; c++)
            match.cost[(size_t)r * (size_t)n + (size_t)c] =
                overlap_cost(over, nodes->rank[nodes->first[a] + r], nodes->rank[nodes->first[b] + c]);
    }
    match_exactly(&match);
    for (int32_t c = 0; c < n; c++)
        *cost += match.cost[(size_t)(match.row[c + 1] - 1) * (size_t)n + (size_t)c];
    arena_rewind(scratch, mark);
    return true;
}

/* Exchanges the contents of like nodes for most overlap; each expert's fellows go with it. */
static bool relabel_nodes(const overlap *all, int32_t *expert, arena *scratch)
{
    const layer_problem *problem = all->problem;
    size_t slots = (size_t)problem->num_slots;
    int32_t n = problem->num_nodes;
    overlap over = *all;
    over.rank_area = NULL;
    node_ranks nodes;
    matching match;
    int32_t *copy = arena_take(scratch, slots, sizeof *copy);
    if (copy == NULL || !list_nodes(&nodes, problem, scratch) || !matching_take(&match, n, scratch))
        return false;
    for (int32_t a = 0; a < n; a++) {
        for (int32_t b = 0; b < n; b++) {
            int64_t *cost = &match.cost[(size_t)a * (size_t)n + (size_t)b];
            *cost = FORBIDDEN;
            if (nodes_alike(problem, &nodes, a, b) && !node_cost(&over, &nodes, a, b, cost, scratch))
                return false;
        }
    }
    match_exactly(&match);
    memcpy(copy, expert, slots * sizeof *copy);
    for (int32_t b = 0; b < n; b++) {
        int32_t a = match.row[b + 1] - 1;
        for (int32_t i = nodes.first[b]; i < nodes.first[b + 1]; i++) {
            int32_t to = nodes.rank[i], from = nodes.rank[nodes.first[a] + i - nodes.first[b]];
            memcpy(expert + problem->first_slot[to], copy + problem->first_slot[from],
                   (size_t)(problem->first_slot[to + 1] - problem->first_slot[to]) * sizeof *expert);
        }
    }
    return true;
}

eplb_status relabel_ranks(const layer_problem *problem, const int32_t *rank_area, const uint64_t *home,
                          int32_t words, int32_t *expert, arena *scratch, eplb_error *error)
{
    int32_t n = problem->num_ranks;
    if (n > GREEDY_RANKS)
        return EPLB_OK;
    size_t slots = (size_t)problem->num_slots;
    int32_t *copy = arena_take(scratch, slots, sizeof *copy);
    int32_t *from = arena_take(scratch, (size_t)n, sizeof *from);
    uint8_t *taken = arena_take_zero(scratch, (size_t)n, sizeof *taken);
    uint64_t *node_home = unite_nodes(problem, home, words, scratch);
    overlap over = {problem, rank_area, home, node_home, words, expert};
    if (copy == NULL || from == NULL || taken == NULL || node_home == NULL ||
        (rank_area != NULL && n <= EXACT_RANKS && !relabel_nodes(&over, expert, scratch)) ||
        (n <= EXACT_RANKS && !match_best(&over, from, scratch)))
        return error_memory(error, (size_t)n * (size_t)n * sizeof(int64_t), "relabelling");
    if (n > EXACT_RANKS)
        match_greedily(&over, taken, from);
    memcpy(copy, expert, slots * sizeof *copy);
    for (int32_t c = 0; c < n; c++) {
        int32_t start = problem->first_slot[c], count = problem->first_slot[c + 1] - start;
        memcpy(expert + start, copy + problem->first_slot[from[c]], (size_t)count * sizeof *expert);
    }
    return EPLB_OK;
}
