/* Maximum-overlap relabelling: an assignment problem between new contents and ranks.
 *
 * A plan made from nothing does not care which of several like ranks gets which contents; choosing the
 * assignment that keeps most experts in place saves about a sixth of the moves of DeepSeek's full replan.
 * Where groups are bound to nodes, whole nodes are assigned first, by what the best assignment of their ranks
 * costs.
 * Solved by assignment.c. */
#include "plan/relabel.h"

#include <string.h>

#include "base/error.h"
#include "plan/node_ranks.h"

#define EXACT_RANKS  256
#define GREEDY_RANKS 4096

/* What it costs to put the new contents of one rank on another. */
typedef struct overlap {
    const layer_problem *problem;
    const int32_t *rank_area;
    const uint64_t *home;
    const uint64_t *node_home; /* [N, words] what the ranks of a node hold together */
    int32_t words;
    const int32_t *expert;
} overlap;

/* Received experts count large, those from other nodes one more each. */
static int64_t overlap_cost(const overlap *over, int32_t contents, int32_t rank)
{
    const layer_problem *problem = over->problem;
    if (!ranks_alike(problem, contents, rank) ||
        (over->rank_area != NULL && over->rank_area[contents] != over->rank_area[rank]))
        return ASSIGNMENT_FORBIDDEN;
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
    assignment match;
    int32_t n = over->problem->num_ranks;
    if (!assignment_take(&match, n, scratch))
        return false;
    for (int32_t r = 0; r < n; r++) {
        for (int32_t c = 0; c < n; c++)
            match.cost[(size_t)r * (size_t)n + (size_t)c] = overlap_cost(over, r, c);
    }
    assignment_solve(&match);
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

/* Least cost of the contents of node `a` on the ranks of node `b`; false when memory is out. */
static bool node_cost(const overlap *over, const node_ranks *nodes, int32_t a, int32_t b, int64_t *cost,
                      arena *scratch)
{
    arena_mark mark = arena_position(scratch);
    assignment match;
    int32_t n = nodes->first[a + 1] - nodes->first[a];
    *cost = 0;
    if (!assignment_take(&match, n, scratch))
        return false;
    for (int32_t r = 0; r < n; r++) {
        for (int32_t c = 0; c < n; c++)
            match.cost[(size_t)r * (size_t)n + (size_t)c] =
                overlap_cost(over, nodes->rank[nodes->first[a] + r], nodes->rank[nodes->first[b] + c]);
    }
    assignment_solve(&match);
    for (int32_t c = 0; c < n; c++)
        *cost += match.cost[(size_t)(match.row[c + 1] - 1) * (size_t)n + (size_t)c];
    arena_rewind(scratch, mark);
    return true;
}

/* Exchanges the contents of like nodes for most overlap; each expert's fellows go with it. */
static bool relabel_nodes(const overlap *all, int32_t *expert, arena *scratch)
{
    const layer_problem *problem = all->problem;
    int32_t n = problem->num_nodes;
    overlap over = *all;
    over.rank_area = NULL;
    node_ranks nodes;
    assignment match;
    if (!node_ranks_list(&nodes, problem, scratch) || !assignment_take(&match, n, scratch))
        return false;
    for (int32_t a = 0; a < n; a++) {
        for (int32_t b = 0; b < n; b++) {
            int64_t *cost = &match.cost[(size_t)a * (size_t)n + (size_t)b];
            *cost = ASSIGNMENT_FORBIDDEN;
            if (node_ranks_alike(&nodes, problem, a, b) && !node_cost(&over, &nodes, a, b, cost, scratch))
                return false;
        }
    }
    assignment_solve(&match);
    return node_ranks_permute(&nodes, problem, &match, expert, NULL, scratch);
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
