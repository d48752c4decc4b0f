/* Greedy planning on any ranks: replicas to the hottest experts, hottest replica first to the least loaded
 * rank.
 *
 * As DeepSeek's planner, but exact in integers, with unequal slots and speeds, no expert twice on a rank, and
 * loads of zero spread evenly (equal heat: fewer replicas first, then the lower index). With groups on
 * several nodes, groups go to nodes first, heaviest first, and each node is planned alone. When only ranks
 * that hold an expert have room, another replica makes way; when none can, the slot goes to an expert that
 * fits. O(S G + R log E) per layer. Source: Graham's LPT (1969); divisor rule for the counts. */
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "plan/policies.h"

/* A part of the layer that is planned alone: a node with its groups, or everything. */
typedef struct area {
    const layer_problem *problem;
    int32_t *experts; /* [num_experts] a heap of expert ids, hottest replica first */
    int32_t num_experts;
    int32_t *ranks; /* [num_ranks] ascending */
    int32_t num_ranks;
    int32_t num_slots;
    int32_t *count;   /* [E] replicas of each expert */
    int32_t *filled;  /* [G] slots taken on each rank */
    double *load;     /* [G] tokens of each rank */
    int32_t *expert;  /* [S] the answer */
    bool dropped_any; /* a replica found no rank: some slots are still free */
} area;

static bool is_hotter(const area *a, int32_t x, int32_t y)
{
    const int64_t *load = a->problem->load;
    int order = fraction_compare(load[x], a->count[x], load[y], a->count[y]);
    if (order != 0)
        return order > 0;
    return a->count[x] != a->count[y] ? a->count[x] < a->count[y] : x < y;
}

static void sift_down(area *a, int32_t at, int32_t size)
{
    int32_t moving = a->experts[at];
    for (;;) {
        int32_t child = 2 * at + 1;
        if (child >= size)
            break;
        if (child + 1 < size && is_hotter(a, a->experts[child + 1], a->experts[child]))
            child++;
        if (!is_hotter(a, a->experts[child], moving))
            break;
        a->experts[at] = a->experts[child];
        at = child;
    }
    a->experts[at] = moving;
}

/* Replica counts; afterwards `experts` is in ascending order of heat. */
static void choose_counts(area *a)
{
    int32_t size = a->num_experts, spares = a->num_slots - a->num_experts, open = size;
    for (int32_t i = 0; i < size; i++)
        a->count[a->experts[i]] = 1;
    for (int32_t i = size / 2 - 1; i >= 0; i--)
        sift_down(a, i, size);
    while (spares > 0 && open > 0) {
        int32_t e = a->experts[0];
        if (a->count[e] == a->num_ranks) { /* one on every rank: out of the race, behind the heap */
            a->experts[0] = a->experts[--open];
            a->experts[open] = e;
        } else {
            a->count[e]++;
            spares--;
        }
        if (open > 0)
            sift_down(a, 0, open);
    }
    for (int32_t i = size / 2 - 1; i >= 0; i--)
        sift_down(a, i, size);
    for (int32_t last = size - 1; last > 0; last--) {
        int32_t e = a->experts[0];
        a->experts[0] = a->experts[last];
        a->experts[last] = e;
        sift_down(a, 0, last);
    }
}

static int32_t room(const area *a, int32_t rank)
{
    const int32_t *first = a->problem->first_slot;
    return first[rank + 1] - first[rank] - a->filled[rank];
}

static bool holds(const area *a, int32_t rank, int32_t expert)
{
    const int32_t *slots = a->expert + a->problem->first_slot[rank];
    for (int32_t i = 0; i < a->filled[rank]; i++) {
        if (slots[i] == expert)
            return true;
    }
    return false;
}

static double replica_load(const area *a, int32_t expert)
{
    return (double)a->problem->load[expert] / (double)a->count[expert];
}

static void add(area *a, int32_t rank, int32_t expert)
{
    a->expert[a->problem->first_slot[rank] + a->filled[rank]++] = expert;
    a->load[rank] += replica_load(a, expert);
}

/* The rank with room that is done first with the replica and does not hold the expert; -1: none. */
static int32_t least_loaded(const area *a, int32_t expert)
{
    double extra = replica_load(a, expert), least = 0.0;
    int32_t best = -1;
    for (int32_t i = 0; i < a->num_ranks; i++) {
        int32_t g = a->ranks[i];
        if (room(a, g) == 0)
            continue;
        double time = (a->load[g] + extra) / (double)a->problem->rank_speed[g];
        if ((best < 0 || time < least) && !holds(a, g, expert)) {
            best = g;
            least = time;
        }
    }
    return best;
}

/* Moves some replica from a full rank without `expert` to `to`, which has room, and takes its place. */
static bool make_way(area *a, int32_t expert, int32_t to)
{
    for (int32_t i = 0; i < a->num_ranks; i++) {
        int32_t from = a->ranks[i];
        if (from == to || holds(a, from, expert))
            continue;
        int32_t *slots = a->expert + a->problem->first_slot[from];
        for (int32_t j = a->filled[from] - 1; j >= 0; j--) {
            int32_t moved = slots[j];
            if (holds(a, to, moved))
                continue;
            slots[j] = expert;
            a->load[from] += replica_load(a, expert) - replica_load(a, moved);
            add(a, to, moved);
            return true;
        }
    }
    return false;
}

static bool make_way_anywhere(area *a, int32_t expert)
{
    for (int32_t i = 0; i < a->num_ranks; i++) {
        if (room(a, a->ranks[i]) > 0 && make_way(a, expert, a->ranks[i]))
            return true;
    }
    return false;
}

/* First replicas cannot fail (an expert without replicas fits wherever there is room); later ones may. */
static void place_expert(area *a, int32_t expert)
{
    int32_t wanted = a->count[expert];
    for (int32_t r = 0; r < wanted; r++) {
        int32_t rank = least_loaded(a, expert);
        if (rank >= 0) {
            add(a, rank, expert);
        } else if (!make_way_anywhere(a, expert)) {
            a->count[expert] = r;
            a->dropped_any = true;
            return;
        }
    }
}

/* Gives slots that dropped replicas left to the hottest expert that fits. */
static void fill_rest(area *a)
{
    for (int32_t i = 0; i < a->num_ranks; i++) {
        int32_t g = a->ranks[i];
        while (room(a, g) > 0) {
            int32_t best = -1;
            for (int32_t j = 0; j < a->num_experts; j++) {
                int32_t e = a->experts[j];
                if (!holds(a, g, e) && (best < 0 || is_hotter(a, e, best)))
                    best = e;
            }
            if (best < 0)
                break;
            a->count[best]++;
            add(a, g, best);
        }
    }
}

static void plan_area(area *a)
{
    a->dropped_any = false;
    choose_counts(a);
    for (int32_t i = a->num_experts - 1; i >= 0; i--)
        place_expert(a, a->experts[i]);
    if (a->dropped_any)
        fill_rest(a);
}

/* Groups to nodes: heaviest group first to the node that has room for its experts and least load per
 * speed. */
typedef struct node_choice {
    double *group_load; /* [groups] */
    double *load;       /* [N] */
    double *speed;      /* [N] */
    int32_t *slots;     /* [N] free slots */
    int32_t *node;      /* [groups] answer */
} node_choice;

static bool choose_node(node_choice *choice, const layer_problem *problem, int32_t group)
{
    int32_t size = problem->num_experts / problem->num_groups, best = -1;
    double least = 0.0;
    for (int32_t n = 0; n < problem->num_nodes; n++) {
        if (choice->slots[n] < size)
            continue;
        double time = (choice->load[n] + choice->group_load[group]) / choice->speed[n];
        if (best < 0 || time < least) {
            best = n;
            least = time;
        }
    }
    if (best < 0)
        return false;
    choice->load[best] += choice->group_load[group];
    choice->slots[best] -= size;
    choice->node[group] = best;
    return true;
}

static bool choose_nodes(node_choice *choice, const layer_problem *problem)
{
    int32_t groups = problem->num_groups, size = problem->num_experts / groups;
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        int32_t n = problem->rank_node[g];
        choice->slots[n] += problem->first_slot[g + 1] - problem->first_slot[g];
        choice->speed[n] += (double)problem->rank_speed[g];
    }
    for (int32_t e = 0; e < problem->num_experts; e++)
        choice->group_load[e / size] += (double)problem->load[e];
    for (int32_t i = 0; i < groups; i++)
        choice->node[i] = -1;
    for (int32_t i = 0; i < groups; i++) {
        int32_t heaviest = -1;
        for (int32_t g = 0; g < groups; g++) {
            if (choice->node[g] < 0 && (heaviest < 0 || choice->group_load[g] > choice->group_load[heaviest]))
                heaviest = g;
        }
        if (!choose_node(choice, problem, heaviest))
            return false;
    }
    return true;
}

static void plan_node(area *a, const node_choice *choice, int32_t node)
{
    const layer_problem *problem = a->problem;
    int32_t size = problem->num_experts / problem->num_groups;
    a->num_experts = a->num_ranks = a->num_slots = 0;
    for (int32_t e = 0; e < problem->num_experts; e++) {
        if (choice->node[e / size] == node)
            a->experts[a->num_experts++] = e;
    }
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        if (problem->rank_node[g] != node)
            continue;
        a->ranks[a->num_ranks++] = g;
        a->num_slots += problem->first_slot[g + 1] - problem->first_slot[g];
    }
    if (a->num_experts > 0)
        plan_area(a);
}

static bool take_choice(node_choice *choice, const layer_problem *problem, arena *scratch)
{
    size_t groups = (size_t)problem->num_groups, nodes = (size_t)problem->num_nodes;
    choice->group_load = arena_take_zero(scratch, groups, sizeof(double));
    choice->load = arena_take_zero(scratch, nodes, sizeof(double));
    choice->speed = arena_take_zero(scratch, nodes, sizeof(double));
    choice->slots = arena_take_zero(scratch, nodes, sizeof(int32_t));
    choice->node = arena_take_zero(scratch, groups, sizeof(int32_t));
    return choice->group_load != NULL && choice->load != NULL && choice->speed != NULL &&
           choice->slots != NULL && choice->node != NULL;
}

static bool take_area(area *a, const layer_problem *problem, layer_answer *answer, arena *scratch)
{
    size_t experts = (size_t)problem->num_experts, ranks = (size_t)problem->num_ranks;
    *a = (area){.problem = problem, .expert = answer->expert};
    a->experts = arena_take(scratch, experts, sizeof(int32_t));
    a->count = arena_take(scratch, experts, sizeof(int32_t));
    a->ranks = arena_take(scratch, ranks, sizeof(int32_t));
    a->filled = arena_take_zero(scratch, ranks, sizeof(int32_t));
    a->load = arena_take_zero(scratch, ranks, sizeof(double));
    return a->experts != NULL && a->count != NULL && a->ranks != NULL && a->filled != NULL && a->load != NULL;
}

static void plan_everything(area *a)
{
    const layer_problem *problem = a->problem;
    for (int32_t e = 0; e < problem->num_experts; e++)
        a->experts[e] = e;
    for (int32_t g = 0; g < problem->num_ranks; g++)
        a->ranks[g] = g;
    a->num_experts = problem->num_experts;
    a->num_ranks = problem->num_ranks;
    a->num_slots = problem->num_slots;
    plan_area(a);
}

eplb_status plan_layer_greedy(const layer_problem *problem, arena *scratch, layer_answer *answer,
                              eplb_error *error)
{
    if (problem->max_moves != INT64_MAX)
        return error_text(error, EPLB_ERROR_UNSUPPORTED,
                          "policy greedy plans from nothing and cannot bound the moves");
    area a;
    node_choice choice;
    if (!take_area(&a, problem, answer, scratch) || !take_choice(&choice, problem, scratch))
        return error_memory(error, (size_t)problem->num_slots * sizeof(int32_t), "the greedy planner");
    if (layer_binds_groups(problem)) {
        if (choose_nodes(&choice, problem)) {
            for (int32_t n = 0; n < problem->num_nodes; n++)
                plan_node(&a, &choice, n);
            answer->reason = "groups to nodes, then the hottest replica first to the least loaded rank";
            return EPLB_OK;
        }
        answer->reason = "groups do not fit into the live nodes: planned over all ranks, hottest replica "
                         "first";
    } else {
        answer->reason = "hottest replica first to the least loaded rank";
    }
    plan_everything(&a);
    return EPLB_OK;
}
