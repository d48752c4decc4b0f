/* Matching nodes to where tokens start: an assignment problem between contents and like nodes.
 *
 * A plan does not care which of several like nodes gets which contents, but traffic does: tokens that start
 * on a node and are served there do not cross. What contents c would serve at home on node n is the sum over
 * experts of min(part that starts on n, part that c serves); the assignment that serves most is taken if it
 * serves more than the plan as it is. Floating point adds in a fixed order; whole numbers decide. */
#include "plan/match_nodes.h"

#include "base/error.h"
#include "plan/node_ranks.h"

#define ALL_TOKENS                                                                                           \
    ((double)((int64_t)1 << 32)) /* as costs count them; 256 nodes stay below what is forbidden */
#define MOST_NODES 256

/* Parts of each expert's tokens, [N, E] each. */
typedef struct node_parts {
    double *served;   /* by contents */
    double *starting; /* by node */
} node_parts;

static bool take_parts(node_parts *parts, const layer_problem *problem, arena *scratch)
{
    size_t size = (size_t)problem->num_experts * (size_t)problem->num_nodes;
    parts->served = arena_take_zero(scratch, size, sizeof *parts->served);
    parts->starting = arena_take_zero(scratch, size, sizeof *parts->starting);
    return parts->served != NULL && parts->starting != NULL;
}

/* What the contents of each node serve of each expert; equal shares where there are no quotas. */
static bool read_served(const node_parts *parts, const layer_problem *problem, const layer_answer *answer,
                        arena *scratch)
{
    double *sum = arena_take_zero(scratch, (size_t)problem->num_experts, sizeof *sum);
    int32_t *count = arena_take_zero(scratch, (size_t)problem->num_experts, sizeof *count);
    if (sum == NULL || count == NULL)
        return false;
    for (int32_t p = 0; p < problem->num_slots; p++) {
        int32_t e = answer->expert[p];
        if (e < 0)
            continue;
        count[e]++;
        sum[e] += problem->split != EPLB_SPLIT_EQUAL ? (double)answer->quota[p] : 0.0;
    }
    for (int32_t p = 0; p < problem->num_slots; p++) {
        int32_t e = answer->expert[p], n = problem->rank_node[problem->slot_rank[p]];
        if (e >= 0)
            parts->served[(size_t)n * (size_t)problem->num_experts + (size_t)e] +=
                sum[e] > 0.0 ? (double)answer->quota[p] / sum[e] : 1.0 / (double)count[e];
    }
    return true;
}

/* Where no token of an expert starts on a live rank they start evenly, as eplb_cross_node_tokens has it. */
static void read_starting(const node_parts *parts, const layer_problem *problem)
{
    size_t experts = (size_t)problem->num_experts;
    for (size_t e = 0; e < experts; e++) {
        double all = 0.0;
        for (int32_t g = 0; g < problem->num_sources; g++)
            all += (double)problem->source_load[(size_t)g * experts + e];
        for (int32_t g = 0; g < problem->num_ranks; g++)
            parts->starting[(size_t)problem->rank_node[g] * experts + e] +=
                all > 0.0 ? (double)problem->source_load[(size_t)g * experts + e] / all
                          : 1.0 / (double)problem->num_ranks;
    }
}

/* Part of all tokens that are not served at home if node b has the contents of node a, among all that a
 * serves: what costs count. */
static int64_t crossing_cost(const node_parts *parts, const layer_problem *problem, int32_t a, int32_t b)
{
    size_t experts = (size_t)problem->num_experts;
    const double *served = parts->served + (size_t)a * experts;
    const double *starting = parts->starting + (size_t)b * experts;
    double cross = 0.0;
    for (size_t e = 0; e < experts; e++) {
        if (served[e] > starting[e])
            cross += (served[e] - starting[e]) * (double)problem->load[e];
    }
    return (int64_t)(cross / (double)problem->total * ALL_TOKENS);
}

/* Whether the assignment lets fewer tokens cross than every node with its own, beyond what rounding costs. */
static bool is_better(const assignment *match)
{
    int64_t gain = 0;
    for (int32_t b = 0; b < match->n; b++) {
        size_t row = (size_t)assignment_row(match, b);
        gain += match->cost[(size_t)b * (size_t)match->n + (size_t)b] -
                match->cost[row * (size_t)match->n + (size_t)b];
    }
    return gain > match->n;
}

eplb_status match_nodes(const layer_problem *problem, layer_answer *answer, arena *scratch, eplb_error *error)
{
    int32_t n = problem->num_nodes;
    if (problem->source_load == NULL || problem->current != NULL || problem->total == 0 || n <= 1 ||
        n > MOST_NODES)
        return EPLB_OK;
    node_parts parts;
    node_ranks nodes;
    assignment match;
    if (!take_parts(&parts, problem, scratch) || !read_served(&parts, problem, answer, scratch) ||
        !node_ranks_list(&nodes, problem, scratch) || !assignment_take(&match, n, scratch))
        goto no_memory;
    read_starting(&parts, problem);
    for (int32_t a = 0; a < n; a++) {
        for (int32_t b = 0; b < n; b++)
            match.cost[(size_t)a * (size_t)n + (size_t)b] = node_ranks_alike(&nodes, problem, a, b)
                                                                ? crossing_cost(&parts, problem, a, b)
                                                                : ASSIGNMENT_FORBIDDEN;
    }
    assignment_solve(&match);
    if (!is_better(&match))
        return EPLB_OK;
    if (node_ranks_permute(&nodes, problem, &match, answer->expert, answer->quota, scratch))
        return EPLB_OK;
no_memory:
    return error_memory(error, (size_t)problem->num_experts * (size_t)n * sizeof(double), "matching nodes");
}
