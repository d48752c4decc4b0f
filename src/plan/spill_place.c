/* A first placement inside the nodes, once it is known which node serves what.
 *
 * Equal shares: replicas to the hottest experts of each node, hottest replica first to the node's least
 * loaded rank. Weighted shares: a spilled replica takes a slot and its tokens off the target of one rank of
 * its node; what is left of the node is a layer with uneven slots and targets, planned exactly by the
 * weighted policy. Cost: that of the parts. */
#include <string.h>

#include "base/error.h"
#include "plan/policies.h"
#include "plan/spill_nodes.h"

typedef struct placing {
    const layer_problem *problem;
    const spill_nodes *spill;
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

/* One more replica to the hottest expert of a node that may have one; false: none may. */
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
    if (best < 0)
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

eplb_status spill_nodes_place(const spill_nodes *spill, const layer_problem *problem, int32_t *expert,
                              arena *scratch, eplb_error *error)
{
    size_t experts = (size_t)problem->num_experts, ranks = (size_t)problem->num_ranks;
    placing p = {.problem = problem, .spill = spill, .expert = expert};
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
    fill_left(&p);
    return EPLB_OK;
}

/* --- weighted shares --- */

#define TARGET_SCALE 1000000 /* the largest target of a rank, in the speeds of a part */

/* What one node is left to plan: arrays of its own layer_problem. */
typedef struct node_rest {
    layer_problem problem;
    int64_t *load;
    int32_t *expert; /* [num_experts] number in the whole */
    int32_t *slot;   /* [num_slots] */
    int32_t *first_slot;
    int32_t *slot_rank;
    int32_t *rank_node;
    int32_t *rank_speed;
    int32_t *rank; /* [num_ranks] number in the whole */
    double *target;
} node_rest;

static bool take_rest(node_rest *rest, const layer_problem *whole, arena *scratch)
{
    size_t experts = (size_t)whole->num_experts, slots = (size_t)whole->num_slots;
    size_t ranks = (size_t)whole->num_ranks;
    rest->load = arena_take_zero(scratch, experts, sizeof(int64_t));
    rest->expert = arena_take_zero(scratch, experts, sizeof(int32_t));
    rest->slot = arena_take_zero(scratch, slots, sizeof(int32_t));
    rest->first_slot = arena_take_zero(scratch, ranks + 1, sizeof(int32_t));
    rest->slot_rank = arena_take_zero(scratch, slots, sizeof(int32_t));
    rest->rank_node = arena_take_zero(scratch, ranks, sizeof(int32_t));
    rest->rank_speed = arena_take_zero(scratch, ranks, sizeof(int32_t));
    rest->rank = arena_take_zero(scratch, ranks, sizeof(int32_t));
    rest->target = arena_take_zero(scratch, ranks, sizeof(double));
    return rest->load != NULL && rest->expert != NULL && rest->slot != NULL && rest->first_slot != NULL &&
           rest->slot_rank != NULL && rest->rank_node != NULL && rest->rank_speed != NULL &&
           rest->rank != NULL && rest->target != NULL;
}

/* Experts at home, less what their replicas elsewhere serve. */
static void rest_experts(node_rest *rest, const spill_nodes *spill, const layer_problem *whole, int32_t node)
{
    int32_t size = whole->num_experts / whole->num_groups;
    for (int32_t e = 0; e < whole->num_experts; e++) {
        if (spill->group_node[e / size] != node)
            continue;
        double load = (double)whole->load[e];
        for (int32_t i = 0; i < spill->num_spilled; i++)
            load -= spill->spill_expert[i] == e ? spill->amount[i] : 0.0;
        int64_t tokens = load > 0.0 ? (int64_t)load : 0;
        rest->expert[rest->problem.num_experts] = e;
        rest->load[rest->problem.num_experts++] = tokens;
        rest->problem.total += tokens;
    }
}

/* Index into rest->rank of the rank with the largest target that has a slot and lacks the expert; -1: none.
 */
static int32_t roomiest(const node_rest *rest, const layer_problem *whole, const int32_t *taken,
                        const int32_t *expert, int32_t arriving)
{
    int32_t best = -1;
    for (int32_t i = 0; i < rest->problem.num_ranks; i++) {
        int32_t g = rest->rank[i], first = whole->first_slot[g];
        bool room = taken[i] < whole->first_slot[g + 1] - first;
        for (int32_t p = 0; p < taken[i]; p++)
            room = room && expert[first + p] != arriving;
        if (room && (best < 0 || rest->target[i] > rest->target[best]))
            best = i;
    }
    return best;
}

/* Seats what comes from other nodes; taken[i] slots of each rank are then spoken for. */
static void seat_arrivals(node_rest *rest, const spill_nodes *spill, const layer_problem *whole, int32_t node,
                          int32_t *taken, int32_t *expert)
{
    for (int32_t i = 0; i < spill->num_spilled; i++) {
        if (spill->spill_node[i] != node)
            continue;
        int32_t at = roomiest(rest, whole, taken, expert, spill->spill_expert[i]);
        if (at < 0)
            continue;
        expert[whole->first_slot[rest->rank[at]] + taken[at]++] = spill->spill_expert[i];
        rest->target[at] -= spill->amount[i];
    }
}

static void rest_ranks(node_rest *rest, const spill_nodes *spill, const layer_problem *whole, int32_t node,
                       int32_t *taken, int32_t *expert)
{
    double load = (double)rest->problem.total, speed = 0.0, most = 0.0;
    for (int32_t i = 0; i < spill->num_spilled; i++)
        load += spill->spill_node[i] == node ? spill->amount[i] : 0.0;
    for (int32_t g = 0; g < whole->num_ranks; g++) {
        if (whole->rank_node[g] != node)
            continue;
        rest->rank[rest->problem.num_ranks++] = g;
        speed += (double)whole->rank_speed[g];
    }
    for (int32_t i = 0; i < rest->problem.num_ranks; i++)
        rest->target[i] = load * (double)whole->rank_speed[rest->rank[i]] / speed;
    seat_arrivals(rest, spill, whole, node, taken, expert);
    for (int32_t i = 0; i < rest->problem.num_ranks; i++)
        most = rest->target[i] > most ? rest->target[i] : most;
    for (int32_t i = 0; i < rest->problem.num_ranks; i++) {
        int32_t g = rest->rank[i];
        double part = most > 0.0 ? rest->target[i] / most * TARGET_SCALE : TARGET_SCALE;
        rest->rank_speed[i] = part >= 1.0 ? (int32_t)part : 1;
        rest->problem.total_speed += rest->rank_speed[i];
        for (int32_t p = whole->first_slot[g] + taken[i]; p < whole->first_slot[g + 1]; p++) {
            rest->slot[rest->problem.num_slots] = p;
            rest->slot_rank[rest->problem.num_slots++] = i;
        }
        rest->first_slot[i + 1] = rest->problem.num_slots;
    }
}

static void close_rest(node_rest *rest)
{
    layer_problem *problem = &rest->problem;
    problem->load = problem->window_load = rest->load;
    problem->first_slot = rest->first_slot;
    problem->slot_rank = rest->slot_rank;
    problem->rank_node = rest->rank_node;
    problem->rank_speed = rest->rank_speed;
    problem->uniform_speed = true;
    problem->uniform_slots = rest->first_slot[1];
    for (int32_t i = 0; i < problem->num_ranks; i++) {
        if (rest->rank_speed[i] != rest->rank_speed[0])
            problem->uniform_speed = false;
        if (rest->first_slot[i + 1] - rest->first_slot[i] != problem->uniform_slots)
            problem->uniform_slots = -1;
    }
}

static eplb_status place_node_weighted(const spill_nodes *spill, const layer_problem *whole, int32_t node,
                                       int32_t *expert, arena *scratch, eplb_error *error)
{
    node_rest rest = {.problem = *whole};
    layer_problem *problem = &rest.problem;
    problem->num_experts = problem->num_ranks = problem->num_slots = 0;
    problem->total = problem->total_speed = 0;
    problem->num_nodes = problem->num_groups = problem->num_windows = 1;
    problem->num_sources = 0;
    problem->source_load = NULL;
    problem->current = NULL;
    problem->max_moves = INT64_MAX;
    problem->max_spill = 0;
    int32_t *taken = arena_take_zero(scratch, (size_t)whole->num_ranks, sizeof *taken);
    if (taken == NULL || !take_rest(&rest, whole, scratch))
        return error_memory(error, (size_t)whole->num_slots * sizeof(int64_t), "rest of a node");
    rest_experts(&rest, spill, whole, node);
    rest_ranks(&rest, spill, whole, node, taken, expert);
    close_rest(&rest);
    if (problem->num_experts == 0)
        return EPLB_OK;
    size_t slots = (size_t)problem->num_slots;
    layer_answer answer = {.expert = arena_take(scratch, slots, sizeof(int32_t)),
                           .quota = arena_take_zero(scratch, slots, sizeof(int64_t))};
    if (answer.expert == NULL || answer.quota == NULL)
        return error_memory(error, slots * sizeof(int64_t), "rest of a node");
    for (size_t p = 0; p < slots; p++)
        answer.expert[p] = -1;
    eplb_status status = plan_layer_weighted(problem, scratch, &answer, error);
    for (int32_t p = 0; status == EPLB_OK && p < problem->num_slots; p++)
        expert[rest.slot[p]] = answer.expert[p] >= 0 ? rest.expert[answer.expert[p]] : -1;
    return status;
}

eplb_status spill_nodes_place_weighted(const spill_nodes *spill, const layer_problem *problem,
                                       int32_t *expert, arena *scratch, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    for (int32_t s = 0; s < problem->num_slots; s++)
        expert[s] = -1;
    for (int32_t n = 0; status == EPLB_OK && n < problem->num_nodes; n++)
        status = place_node_weighted(spill, problem, n, expert, scratch, error);
    return status;
}
