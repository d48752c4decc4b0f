/* Groups to nodes: heaviest group first to the node that is done first, then swaps and moves of groups.
 *
 * A node needs a slot for every expert of its groups; beyond that its load per speed decides. After the
 * greedy start, the change that lowers the hotter of the two nodes it touches most is made until none is
 * left: greedy alone (as in DeepSeek's hierarchical planner) is often a few per cent off. Where groups are
 * few, a depth-first search of the assignments follows, bounded by the hottest node so far, and then one a
 * little above what it finds that also leaves groups with hot experts the slots to split them. */
#include "plan/group_nodes.h"

#include <math.h>

#include "base/error.h"
#include "plan/group_refine.h"

#define BRANCH_GROUPS 64
#define BRANCH_VISITS 2000
#define PACK_STEP     0.0005 /* of the least time */
#define PACK_TRIES    16

typedef struct node_state {
    const layer_problem *problem;
    int32_t size; /* experts of a group */
    int32_t num_groups;
    int32_t num_nodes;
    double *group_load; /* [groups] */
    double *load;       /* [N] */
    double *speed;      /* [N] */
    double *inverse;    /* [N] 1 / speed */
    int32_t *room;      /* [N] slots not spoken for */
    int32_t *need;      /* [groups] slots that a group speaks for; at least its experts */
    int32_t *node;      /* [groups] */
} node_state;

/* Nodes without groups. */
static void clear_nodes(node_state *state)
{
    const layer_problem *problem = state->problem;
    for (int32_t n = 0; n < state->num_nodes; n++) {
        state->load[n] = 0;
        state->room[n] = 0;
    }
    for (int32_t g = 0; g < problem->num_ranks; g++)
        state->room[problem->rank_node[g]] += problem->first_slot[g + 1] - problem->first_slot[g];
}

static bool take_state(node_state *state, const layer_problem *problem, int32_t *group_node, arena *scratch)
{
    size_t groups = (size_t)problem->num_groups, nodes = (size_t)problem->num_nodes;
    *state = (node_state){.problem = problem,
                          .size = problem->num_experts / problem->num_groups,
                          .num_groups = problem->num_groups,
                          .num_nodes = problem->num_nodes,
                          .group_load = arena_take_zero(scratch, groups, sizeof(double)),
                          .load = arena_take(scratch, nodes, sizeof(double)),
                          .speed = arena_take_zero(scratch, nodes, sizeof(double)),
                          .inverse = arena_take(scratch, nodes, sizeof(double)),
                          .room = arena_take(scratch, nodes, sizeof(int32_t)),
                          .need = arena_take(scratch, groups, sizeof(int32_t)),
                          .node = group_node};
    if (state->group_load == NULL || state->load == NULL || state->speed == NULL || state->inverse == NULL ||
        state->room == NULL || state->need == NULL)
        return false;
    for (size_t i = 0; i < groups; i++)
        state->need[i] = state->size;
    for (int32_t g = 0; g < problem->num_ranks; g++)
        state->speed[problem->rank_node[g]] +=
            problem->first_slot[g + 1] > problem->first_slot[g] ? problem->rank_speed[g] : 0;
    for (size_t n = 0; n < nodes; n++)
        state->inverse[n] = state->speed[n] > 0 ? 1 / state->speed[n] : 0;
    clear_nodes(state);
    return true;
}

static void assign(node_state *state, int32_t group, int32_t node)
{
    state->node[group] = node;
    state->load[node] += state->group_load[group];
    state->room[node] -= state->need[group];
}

/* The heaviest group without a node; -1: all have one. */
static int32_t heaviest_left(const node_state *state)
{
    int32_t best = -1;
    for (int32_t i = 0; i < state->num_groups; i++) {
        if (state->node[i] < 0 && (best < 0 || state->group_load[i] > state->group_load[best]))
            best = i;
    }
    return best;
}

static bool assign_greedily(node_state *state)
{
    for (int32_t group = heaviest_left(state); group >= 0; group = heaviest_left(state)) {
        int32_t best = -1;
        double least = 0;
        for (int32_t n = 0; n < state->num_nodes; n++) {
            if (state->room[n] < state->need[group])
                continue;
            double time = (state->load[n] + state->group_load[group]) / state->speed[n];
            if (best < 0 || time < least) {
                best = n;
                least = time;
            }
        }
        if (best < 0)
            return false;
        assign(state, group, best);
    }
    return true;
}

typedef struct trade {
    int32_t group;
    int32_t other; /* -1: the group moves alone */
    int32_t node;
    double time; /* of the hotter node afterwards */
} trade;

static void try_trade(const node_state *state, trade candidate, trade *best)
{
    int32_t from = state->node[candidate.group];
    double given = state->group_load[candidate.group];
    if (candidate.other >= 0)
        given -= state->group_load[candidate.other];
    else if (state->room[candidate.node] < state->size)
        return;
    double here = (state->load[from] - given) / state->speed[from];
    double there = (state->load[candidate.node] + given) / state->speed[candidate.node];
    candidate.time = here > there ? here : there;
    if (candidate.time < best->time)
        *best = candidate;
}

static int32_t hottest_node(const node_state *state)
{
    int32_t hottest = 0;
    double most = -1;
    for (int32_t n = 0; n < state->num_nodes; n++) {
        if (state->speed[n] > 0 && state->load[n] / state->speed[n] > most) {
            most = state->load[n] / state->speed[n];
            hottest = n;
        }
    }
    return hottest;
}

/* Makes the best change at the hottest node; false if none helps. */
static bool improve(node_state *state)
{
    int32_t hot = hottest_node(state);
    trade best = {-1, -1, -1, state->load[hot] / state->speed[hot]};
    for (int32_t group = 0; group < state->num_groups; group++) {
        if (state->node[group] != hot)
            continue;
        for (int32_t n = 0; n < state->num_nodes; n++) {
            if (n != hot && state->speed[n] > 0)
                try_trade(state, (trade){group, -1, n, 0}, &best);
        }
        for (int32_t other = 0; other < state->num_groups; other++) {
            if (state->node[other] != hot)
                try_trade(state, (trade){group, other, state->node[other], 0}, &best);
        }
    }
    if (best.group < 0)
        return false;
    for (int32_t i = 0; i < 2; i++) {
        int32_t group = i == 0 ? best.group : best.other;
        if (group < 0)
            continue;
        state->load[state->node[group]] -= state->group_load[group];
        state->room[state->node[group]] += state->size;
    }
    assign(state, best.group, best.node);
    if (best.other >= 0)
        assign(state, best.other, hot);
    return true;
}

/* Depth-first search for a better assignment than `best`, which has `time`. */
typedef struct branching {
    node_state *state;
    const int32_t *order; /* [groups] heaviest first */
    int32_t *best;        /* [groups] */
    double time;
    int32_t left; /* visits allowed */
    bool any;     /* the first assignment below `time` will do */
    bool found;
} branching;

/* True if a node before `node` is in the same state: trying both would be trying one twice. */
static bool is_repeated(const node_state *state, int32_t node)
{
    for (int32_t n = 0; n < node; n++) {
        if (state->load[n] == state->load[node] && state->speed[n] == state->speed[node] &&
            state->room[n] == state->room[node])
            return true;
    }
    return false;
}

/* Nodes from the one that is done first on; -1 before the first and after the last. */
static int32_t next_node(const node_state *state, int32_t last)
{
    int32_t best = -1;
    for (int32_t n = 0; n < state->num_nodes; n++) {
        double here = state->load[n] * state->inverse[n];
        if (last >= 0 && (here < state->load[last] * state->inverse[last] ||
                          (here == state->load[last] * state->inverse[last] && n <= last)))
            continue;
        if (best < 0 || here < state->load[best] * state->inverse[best])
            best = n;
    }
    return best;
}

/* Places the groups from `at` on, each first where it is done first; depth is the number of groups, at most
 * BRANCH_GROUPS. */
static void branch(branching *search, int32_t at)
{
    node_state *state = search->state;
    if (at == state->num_groups) {
        int32_t hot = hottest_node(state);
        search->time = state->load[hot] / state->speed[hot];
        search->found = true;
        search->left = search->any ? 0 : search->left;
        for (int32_t i = 0; i < state->num_groups; i++)
            search->best[i] = state->node[i];
        return;
    }
    int32_t group = search->order[at];
    for (int32_t n = next_node(state, -1); n >= 0 && search->left > 0; n = next_node(state, n)) {
        if (state->room[n] < state->need[group] || is_repeated(state, n) ||
            (state->load[n] + state->group_load[group]) / state->speed[n] >= search->time)
            continue;
        search->left--;
        double load = state->load[n];
        assign(state, group, n);
        branch(search, at + 1);
        state->load[n] = load;
        state->room[n] += state->need[group];
    }
}

/* Slots that each group needs if no replica may take a rank more than `time`. */
static void measure_needs(node_state *state, const replica_work *work, double time)
{
    const layer_problem *problem = state->problem;
    int32_t fastest = 1;
    for (int32_t g = 0; g < problem->num_ranks; g++)
        fastest = problem->rank_speed[g] > fastest ? problem->rank_speed[g] : fastest;
    for (int32_t i = 0; i < state->num_groups; i++) {
        double need = 0;
        for (int32_t e = i * state->size; e < (i + 1) * state->size; e++) {
            double parts = replica_work_at(work, e, 1) / (time * fastest), whole = (double)(int64_t)parts;
            whole += whole < parts;
            need += whole > 1 ? whole : 1;
        }
        state->need[i] = need < EPLB_MAX_SLOTS ? (int32_t)need : EPLB_MAX_SLOTS;
    }
}

/* Packs by load and slots for times from the least possible on, a little more each try. */
static void search_by_slots(branching *search, const replica_work *work)
{
    double least = search->time, more = PACK_STEP;
    for (int32_t i = 0; least > 0 && i < PACK_TRIES; i++, more *= 2) {
        search->time = least * (1 + more);
        search->left = BRANCH_VISITS;
        measure_needs(search->state, work, search->time);
        clear_nodes(search->state);
        search->found = false;
        branch(search, 0);
        if (search->found)
            return;
    }
}

static eplb_status search_all(node_state *state, const replica_work *work, arena *scratch, eplb_error *error)
{
    size_t groups = (size_t)state->num_groups;
    int32_t *order = arena_take(scratch, groups, sizeof *order);
    int32_t *best = arena_take(scratch, groups, sizeof *best);
    if (order == NULL || best == NULL)
        return error_memory(error, groups * sizeof *order, "groups and nodes");
    int32_t hot = hottest_node(state);
    branching search = {state,         order, best, state->load[hot] / state->speed[hot],
                        BRANCH_VISITS, false, false};
    for (int32_t i = 0; i < state->num_groups; i++) {
        best[i] = state->node[i];
        state->node[i] = -1;
    }
    for (int32_t i = 0; i < state->num_groups; i++) {
        order[i] = heaviest_left(state);
        state->node[order[i]] = 0;
    }
    clear_nodes(state);
    branch(&search, 0);
    search.any = true;
    search_by_slots(&search, work);
    for (int32_t i = 0; i < state->num_groups; i++)
        state->node[i] = best[i];
    return EPLB_OK;
}

eplb_status group_nodes_choose(const layer_problem *problem, const replica_work *work, int32_t *group_node,
                               bool *fits, arena *scratch, eplb_error *error)
{
    node_state state;
    if (!take_state(&state, problem, group_node, scratch))
        return error_memory(error, (size_t)problem->num_groups * sizeof(double), "groups and nodes");
    for (int32_t e = 0; e < problem->num_experts; e++)
        state.group_load[e / state.size] += replica_work_at(work, e, 1);
    for (int32_t i = 0; i < state.num_groups; i++)
        group_node[i] = -1;
    *fits = assign_greedily(&state);
    /* each step lowers a node: a guard against rounding */
    int32_t most = state.num_groups * state.num_groups;
    while (*fits && most-- > 0 && improve(&state))
        continue;
    eplb_status status = EPLB_OK;
    if (*fits && state.num_groups <= BRANCH_GROUPS)
        status = search_all(&state, work, scratch, error);
    bool even = problem->uniform_speed && problem->uniform_slots >= 0;
    return status == EPLB_OK && *fits && !even ? group_refine(problem, group_node, scratch, error) : status;
}

eplb_status group_nodes_read(const layer_problem *problem, int32_t *group_node, bool *fits, arena *scratch,
                             eplb_error *error)
{
    node_state state;
    size_t nodes = (size_t)problem->num_nodes;
    int32_t *held = arena_take_zero(scratch, (size_t)problem->num_groups * nodes, sizeof *held);
    if (held == NULL || !take_state(&state, problem, group_node, scratch))
        return error_memory(error, (size_t)problem->num_groups * nodes * sizeof *held, "groups and nodes");
    for (int32_t p = 0; p < problem->num_slots; p++) {
        int32_t e = problem->current[p];
        if (e >= 0)
            held[(size_t)(e / state.size) * nodes + (size_t)problem->rank_node[problem->slot_rank[p]]]++;
    }
    *fits = true;
    for (int32_t i = 0; i < state.num_groups; i++) {
        int32_t best = 0;
        for (int32_t n = 1; n < state.num_nodes; n++) {
            if (held[(size_t)i * nodes + (size_t)n] > held[(size_t)i * nodes + (size_t)best])
                best = n;
        }
        assign(&state, i, best);
        *fits &= state.room[best] >= 0;
    }
    return EPLB_OK;
}
