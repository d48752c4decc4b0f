/* A first placement inside the nodes, once it is known which node serves what.
 *
 * Replicas to the hottest experts of each node, hottest replica first to the node's least loaded rank. Cost:
 * O(S (G + E)). */
#include <string.h>

#include "base/error.h"
#include "plan/spill_nodes.h"

typedef struct placing {
    const layer_problem *problem;
    const spill_nodes *spill;
    double large;    /* tokens: smaller replicas need no more */
    int32_t *count;  /* [E] replicas in all */
    int32_t *want;   /* [N, E] replicas on a node */
    int32_t *filled; /* [G] */
    double *load;    /* [G] */
    int32_t *expert; /* [S] */
    int32_t *order;  /* [E] */
} placing;

static double replica_of(const placing *p, int32_t expert)
{
    return (double)p->problem->load[expert] / (double)p->count[expert];
}

static bool holds(const placing *p, int32_t rank, int32_t expert)
{
    int32_t first = p->problem->first_slot[rank];
    for (int32_t i = 0; i < p->filled[rank]; i++) {
        if (p->expert[first + i] == expert)
            return true;
    }
    return false;
}

/* One more replica to the hottest expert of a node that may have one; false: none may, or none is large. */
static bool add_replica(placing *p, int32_t node, int32_t ranks)
{
    const layer_problem *problem = p->problem;
    int32_t size = problem->num_experts / problem->num_groups, best = -1;
    for (int32_t e = 0; e < problem->num_experts; e++) {
        if (p->spill->group_node[e / size] != node || p->spill->count[e] > 0 || p->count[e] >= ranks)
            continue;
        if (best < 0 || replica_of(p, e) > replica_of(p, best) ||
            (replica_of(p, e) == replica_of(p, best) && p->count[e] < p->count[best]))
            best = e;
    }
    if (best < 0 || replica_of(p, best) <= p->large)
        return false;
    p->count[best]++;
    p->want[(size_t)node * (size_t)problem->num_experts + (size_t)best]++;
    return true;
}

static void decide_counts(placing *p)
{
    const layer_problem *problem = p->problem;
    size_t experts = (size_t)problem->num_experts;
    int32_t size = problem->num_experts / problem->num_groups;
    for (int32_t e = 0; e < problem->num_experts; e++) {
        p->count[e] = p->spill->count[e] > 0 ? p->spill->count[e] : 1;
        p->want[(size_t)p->spill->group_node[e / size] * experts + (size_t)e] = p->count[e];
    }
    for (int32_t i = 0; i < p->spill->num_spilled; i++) {
        int32_t e = p->spill->spill_expert[i];
        p->want[(size_t)p->spill->spill_node[i] * experts + (size_t)e]++;
        p->want[(size_t)p->spill->group_node[e / size] * experts + (size_t)e]--;
    }
    for (int32_t n = 0; n < problem->num_nodes; n++) {
        int32_t slots = 0, ranks = 0, used = 0;
        for (int32_t g = 0; g < problem->num_ranks; g++) {
            int32_t own = problem->first_slot[g + 1] - problem->first_slot[g];
            slots += problem->rank_node[g] == n ? own : 0;
            ranks += problem->rank_node[g] == n && own > 0;
        }
        for (size_t e = 0; e < experts; e++)
            used += p->want[(size_t)n * experts + e];
        while (used < slots && add_replica(p, n, ranks))
            used++;
    }
}

/* The rank of the node that is done first with one more replica; -1: none has room without it. */
static int32_t lightest(const placing *p, int32_t node, int32_t expert)
{
    const layer_problem *problem = p->problem;
    int32_t best = -1;
    double least = 0.0;
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        if (problem->rank_node[g] != node ||
            p->filled[g] == problem->first_slot[g + 1] - problem->first_slot[g] || holds(p, g, expert))
            continue;
        double time = (p->load[g] + replica_of(p, expert)) / (double)problem->rank_speed[g];
        if (best < 0 || time < least) {
            best = g;
            least = time;
        }
    }
    return best;
}

/* Hottest replica first. What finds no rank is left out: its expert has others. */
static void fill_node(placing *p, int32_t node)
{
    const layer_problem *problem = p->problem;
    const int32_t *want = p->want + (size_t)node * (size_t)problem->num_experts;
    int32_t used = 0;
    for (int32_t e = 0; e < problem->num_experts; e++) {
        if (want[e] == 0)
            continue;
        int32_t i = used++;
        for (; i > 0 && replica_of(p, p->order[i - 1]) < replica_of(p, e); i--)
            p->order[i] = p->order[i - 1];
        p->order[i] = e;
    }
    for (int32_t i = 0; i < used; i++) {
        int32_t e = p->order[i];
        for (int32_t j = 0; j < want[e]; j++) {
            int32_t rank = lightest(p, node, e);
            if (rank < 0)
                break;
            p->expert[problem->first_slot[rank] + p->filled[rank]++] = e;
            p->load[rank] += replica_of(p, e);
        }
    }
}

/* Slots that are left take the hottest expert of the node's groups that their rank lacks. */
static void fill_left(placing *p)
{
    const layer_problem *problem = p->problem;
    int32_t size = problem->num_experts / problem->num_groups;
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        while (p->filled[g] < problem->first_slot[g + 1] - problem->first_slot[g]) {
            int32_t best = -1;
            for (int32_t e = 0; e < problem->num_experts; e++) {
                if (p->spill->group_node[e / size] == problem->rank_node[g] && !holds(p, g, e) &&
                    (best < 0 || problem->load[e] > problem->load[best]))
                    best = e;
            }
            if (best < 0)
                break;
            p->expert[problem->first_slot[g] + p->filled[g]++] = best;
        }
    }
}

eplb_status spill_nodes_place(const spill_nodes *spill, const layer_problem *problem, double large,
                              int32_t *expert, arena *scratch, eplb_error *error)
{
    size_t experts = (size_t)problem->num_experts, ranks = (size_t)problem->num_ranks;
    placing p = {.problem = problem, .spill = spill, .large = large, .expert = expert};
    p.count = arena_take_zero(scratch, experts, sizeof(int32_t));
    p.order = arena_take_zero(scratch, experts, sizeof(int32_t));
    p.want = arena_take_zero(scratch, experts * (size_t)problem->num_nodes, sizeof(int32_t));
    p.filled = arena_take_zero(scratch, ranks, sizeof(int32_t));
    p.load = arena_take_zero(scratch, ranks, sizeof(double));
    if (p.count == NULL || p.order == NULL || p.want == NULL || p.filled == NULL || p.load == NULL)
        return error_memory(error, experts * (size_t)problem->num_nodes * sizeof(int32_t), "first placement");
    for (int32_t s = 0; s < problem->num_slots; s++)
        expert[s] = -1;
    decide_counts(&p);
    for (int32_t n = 0; n < problem->num_nodes; n++)
        fill_node(&p, n);
    if (large <= 0.0)
        fill_left(&p);
    return EPLB_OK;
}
