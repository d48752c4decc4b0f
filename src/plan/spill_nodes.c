/* Node-limited placement with a few exceptions, first between nodes, then inside them.
 *
 * Under skew the hottest group alone exceeds a node's part, whatever is done inside nodes. One spilled
 * replica of a hot expert takes up to a rank's load off its node. Which groups share a node, which experts
 * spill, to where and with how many replicas is annealed together on node loads: a handful of numbers per
 * step. Bound: a node with load W and g ranks cannot end below W / (g + spilled). Source: locality as a cost,
 * not a partition; no planner in the field trades them. */
#include "plan/spill_nodes.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/random.h"
#include "plan/group_nodes.h"

#define SPILL_STEPS 30000
#define HEAT        0.1
#define POWER_STEPS 4    /* ratios to the power 2^4 */
#define HOTTEST     32   /* experts that may spill */
#define POLL_STEPS  256  /* between looks at the clock */
#define SPILL_PRICE 1e-3 /* of a spilled replica, so that useless ones go */
#define SEED        UINT64_C(11)

typedef struct node_search {
    const layer_problem *problem;
    spill_nodes *state; /* entries with spill_expert < 0 are free */
    int32_t size;       /* experts of a group */
    double *group_load; /* [groups] */
    double *node_speed; /* [N] */
    int32_t *node_slots;
    int32_t *node_ranks;
    double *load;  /* [N] of the state looked at */
    int32_t *used; /* [N] slots */
    int32_t *hot;  /* [num_hot] experts by load */
    int32_t num_hot;
    double mean;      /* load per speed if nodes were even */
    double rank_part; /* what an average rank takes */
    double *origin;   /* [HOTTEST, N] fraction of a hot expert's tokens that start on a node */
    int32_t *hot_of;  /* [E] place in `hot`, -1 */
    int32_t *needs;   /* [num_hot] replicas without which one is too much for a rank */
    double room;      /* part of an average rank that one replica may take: colder ones share its slots */
    random_state random;
} node_search;

static double power_of(double x)
{
    for (int32_t i = 0; i < POWER_STEPS; i++)
        x *= x;
    return x;
}

static int32_t home_of(const node_search *search, int32_t expert)
{
    return search->state->group_node[expert / search->size];
}

static int32_t spilled_of(const spill_nodes *state, int32_t max_spill, int32_t expert, int32_t node)
{
    int32_t count = 0;
    for (int32_t i = 0; i < max_spill; i++)
        count += state->spill_expert[i] == expert && (node < 0 || state->spill_node[i] == node);
    return count;
}

/* Fraction of a hot expert's tokens that start on a node. */
static double origin_at(const node_search *search, int32_t expert, int32_t node)
{
    return search->origin[(size_t)search->hot_of[expert] * (size_t)search->problem->num_nodes + (size_t)node];
}

/* True if the replicas of a spilled expert fit and its home keeps the tokens that start there. */
static bool is_legal(const node_search *search, int32_t expert, int32_t node)
{
    const spill_nodes *state = search->state;
    int32_t spilled = spilled_of(state, search->problem->max_spill, expert, -1);
    int32_t home = home_of(search, expert), kept = state->count[expert] - spilled;
    if (node == home || kept < 1 || kept > search->node_ranks[home])
        return false;
    if (spilled_of(state, search->problem->max_spill, expert, node) > search->node_ranks[node])
        return false;
    return (double)kept >= origin_at(search, expert, home) * (double)state->count[expert];
}

/* Loads and slots of the nodes without spilling. */
static void start_loads(node_search *search)
{
    const spill_nodes *state = search->state;
    for (int32_t n = 0; n < search->problem->num_nodes; n++) {
        search->load[n] = 0.0;
        search->used[n] = 0;
    }
    for (int32_t i = 0; i < search->problem->num_groups; i++) {
        search->load[state->group_node[i]] += search->group_load[i];
        search->used[state->group_node[i]] += search->size;
    }
}

/* True if no earlier entry is of the same expert: it then stands for the replicas at home. */
static bool is_first_entry(const spill_nodes *state, int32_t entry)
{
    for (int32_t j = 0; j < entry; j++) {
        if (state->spill_expert[j] == state->spill_expert[entry])
            return false;
    }
    return true;
}

static void shift(node_search *search, int32_t entry, double tokens)
{
    search->load[home_of(search, search->state->spill_expert[entry])] -= tokens;
    search->load[search->state->spill_node[entry]] += tokens;
    search->state->amount[entry] += tokens;
}

/* What a replica takes is given by the count. Returns the cost of the replicas. */
static double spread_equally(node_search *search)
{
    spill_nodes *state = search->state;
    double cost = 0.0;
    for (int32_t i = 0; i < search->problem->max_spill; i++) {
        int32_t e = state->spill_expert[i];
        state->amount[i] = 0.0;
        if (e < 0)
            continue;
        double part = (double)search->problem->load[e] / (double)state->count[e];
        shift(search, i, part);
        if (is_first_entry(state, i))
            search->used[home_of(search, e)] +=
                state->count[e] - spilled_of(state, search->problem->max_spill, e, -1) - 1;
        cost += power_of(part / (search->room * search->rank_part));
    }
    return cost;
}

/* Slots that the other hot experts should have for their replicas. */
static void add_needs(node_search *search)
{
    for (int32_t i = 0; i < search->num_hot && search->needs[i] > 1; i++) {
        if (spilled_of(search->state, search->problem->max_spill, search->hot[i], -1) == 0)
            search->used[home_of(search, search->hot[i])] += search->needs[i] - 1;
    }
}

/* What is minimised; INFINITY if something does not fit. */
static double value(node_search *search)
{
    const layer_problem *problem = search->problem;
    spill_nodes *state = search->state;
    start_loads(search);
    double sum = 0.0;
    for (int32_t i = 0; i < problem->max_spill; i++) {
        if (state->spill_expert[i] < 0)
            continue;
        if (!is_legal(search, state->spill_expert[i], state->spill_node[i]))
            return INFINITY;
        search->used[state->spill_node[i]]++;
        sum += SPILL_PRICE;
    }
    sum += spread_equally(search);
    for (int32_t n = 0; n < problem->num_nodes; n++) {
        if (search->used[n] > search->node_slots[n])
            return INFINITY;
    }
    add_needs(search);
    for (int32_t n = 0; n < problem->num_nodes; n++) {
        int32_t missing = search->used[n] - search->node_slots[n];
        sum += missing > 0 ? (double)missing : 0.0;
        if (search->node_speed[n] > 0.0)
            sum += power_of(search->load[n] / (search->node_speed[n] * search->mean));
    }
    return sum;
}

static uint32_t draw(node_search *search, int32_t bound)
{
    return random_below(&search->random, (uint32_t)bound);
}

/* Fewest replicas that fit a rank each and a few more at random, as far as the ranks go. */
static int32_t draw_count(node_search *search, int32_t expert)
{
    int32_t spilled = spilled_of(search->state, search->problem->max_spill, expert, -1);
    int32_t most = search->node_ranks[home_of(search, expert)] + spilled;
    double wanted = (double)search->problem->load[expert] / search->rank_part;
    int32_t count = 1 + (int32_t)draw(search, 6) + (wanted < (double)most ? (int32_t)wanted : most);
    if (count > most)
        count = most - (int32_t)draw(search, 3);
    return count > spilled ? count : spilled + 1;
}

/* An entry gets a hot expert; now and then a group leaves that node to make room. */
static void spill_one(node_search *search, int32_t entry)
{
    const layer_problem *problem = search->problem;
    spill_nodes *state = search->state;
    int32_t e = search->hot[draw(search, search->num_hot)], node = (int32_t)draw(search, problem->num_nodes);
    state->spill_expert[entry] = e;
    state->spill_node[entry] = node;
    if (spilled_of(state, problem->max_spill, e, -1) == 1 || draw(search, 2) == 0)
        state->count[e] = draw_count(search, e);
    int32_t group = (int32_t)draw(search, problem->num_groups);
    if (draw(search, 4) == 0 && state->group_node[group] == node)
        state->group_node[group] = (int32_t)draw(search, problem->num_nodes);
}

/* One random change of the state. */
static void change(node_search *search)
{
    const layer_problem *problem = search->problem;
    spill_nodes *state = search->state;
    int32_t entry = (int32_t)draw(search, problem->max_spill), e = state->spill_expert[entry];
    switch (draw(search, 8)) {
    case 0: { /* two groups change places */
        int32_t a = (int32_t)draw(search, problem->num_groups),
                b = (int32_t)draw(search, problem->num_groups);
        int32_t node = state->group_node[a];
        state->group_node[a] = state->group_node[b];
        state->group_node[b] = node;
        return;
    }
    case 1: /* a group goes to another node */
        state->group_node[draw(search, problem->num_groups)] = (int32_t)draw(search, problem->num_nodes);
        return;
    case 2: /* a replica less outside */
        state->spill_expert[entry] = -1;
        return;
    case 3: /* the same replica to another node */
        state->spill_node[entry] = (int32_t)draw(search, problem->num_nodes);
        return;
    case 4: /* other counts */
        if (e >= 0)
            state->count[e] += draw(search, 2) == 0 ? 1 : -1;
        return;
    default:
        spill_one(search, entry);
        return;
    }
}

static void copy_state(spill_nodes *to, const spill_nodes *from, const layer_problem *problem)
{
    memcpy(to->group_node, from->group_node, (size_t)problem->num_groups * sizeof(int32_t));
    memcpy(to->spill_expert, from->spill_expert, (size_t)problem->max_spill * sizeof(int32_t));
    memcpy(to->spill_node, from->spill_node, (size_t)problem->max_spill * sizeof(int32_t));
    memcpy(to->amount, from->amount, (size_t)problem->max_spill * sizeof(double));
    memcpy(to->count, from->count, (size_t)problem->num_experts * sizeof(int32_t));
}

static bool take_state(spill_nodes *state, const layer_problem *problem, arena *scratch)
{
    size_t spill = (size_t)problem->max_spill;
    state->group_node = arena_take_zero(scratch, (size_t)problem->num_groups, sizeof(int32_t));
    state->spill_expert = arena_take(scratch, spill, sizeof(int32_t));
    state->spill_node = arena_take_zero(scratch, spill, sizeof(int32_t));
    state->count = arena_take_zero(scratch, (size_t)problem->num_experts, sizeof(int32_t));
    state->amount = arena_take_zero(scratch, spill, sizeof(double));
    if (state->group_node == NULL || state->spill_expert == NULL || state->spill_node == NULL ||
        state->count == NULL || state->amount == NULL)
        return false;
    for (size_t i = 0; i < spill; i++)
        state->spill_expert[i] = -1;
    return true;
}

static bool take_search(node_search *search, arena *scratch)
{
    size_t nodes = (size_t)search->problem->num_nodes, experts = (size_t)search->problem->num_experts;
    search->group_load = arena_take_zero(scratch, (size_t)search->problem->num_groups, sizeof(double));
    search->node_speed = arena_take_zero(scratch, nodes, sizeof(double));
    search->node_slots = arena_take_zero(scratch, nodes, sizeof(int32_t));
    search->node_ranks = arena_take_zero(scratch, nodes, sizeof(int32_t));
    search->load = arena_take_zero(scratch, nodes, sizeof(double));
    search->used = arena_take_zero(scratch, nodes, sizeof(int32_t));
    search->hot = arena_take_zero(scratch, HOTTEST, sizeof(int32_t));
    search->hot_of = arena_take_zero(scratch, experts, sizeof(int32_t));
    search->needs = arena_take_zero(scratch, HOTTEST, sizeof(int32_t));
    search->origin = arena_take_zero(scratch, HOTTEST * nodes, sizeof(double));
    return search->group_load != NULL && search->node_speed != NULL && search->node_slots != NULL &&
           search->node_ranks != NULL && search->load != NULL && search->used != NULL &&
           search->hot != NULL && search->needs != NULL && search->hot_of != NULL && search->origin != NULL;
}

/* Fractions of the hot experts' tokens by the node they start on: as told, or by ranks. */
static void read_origin(node_search *search)
{
    const layer_problem *problem = search->problem;
    for (int32_t i = 0; i < search->num_hot; i++) {
        double *row = search->origin + (size_t)i * (size_t)problem->num_nodes, sum = 0.0;
        for (int32_t g = 0; g < problem->num_ranks; g++) {
            double tokens = 1.0;
            if (problem->source_load != NULL)
                tokens =
                    g < problem->num_sources
                        ? (double)problem
                              ->source_load[(size_t)g * (size_t)problem->num_experts + (size_t)search->hot[i]]
                        : 0.0;
            row[problem->rank_node[g]] += tokens;
            sum += tokens;
        }
        for (int32_t n = 0; n < problem->num_nodes && sum > 0.0; n++)
            row[n] /= sum;
    }
}

static void read_problem(node_search *search)
{
    const layer_problem *problem = search->problem;
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        int32_t n = problem->rank_node[g], slots = problem->first_slot[g + 1] - problem->first_slot[g];
        search->node_speed[n] += (double)problem->rank_speed[g];
        search->node_slots[n] += slots;
        search->node_ranks[n] += slots > 0;
    }
    for (int32_t e = 0; e < problem->num_experts; e++) {
        search->group_load[e / search->size] += (double)problem->load[e];
        search->hot_of[e] = -1;
    }
    search->num_hot = problem->num_experts < HOTTEST ? problem->num_experts : HOTTEST;
    for (int32_t i = 0; i < search->num_hot; i++) {
        int32_t best = -1;
        for (int32_t e = 0; e < problem->num_experts; e++) {
            if (search->hot_of[e] < 0 && (best < 0 || problem->load[e] > problem->load[best]))
                best = e;
        }
        search->hot[i] = best;
        search->hot_of[best] = i;
    }
    search->mean = (double)problem->total / (double)problem->total_speed;
    search->rank_part = (double)problem->total / (double)problem->num_ranks;
    for (int32_t i = 0; i < search->num_hot; i++)
        search->needs[i] = 1 + (int32_t)((double)problem->load[search->hot[i]] / search->rank_part);
    read_origin(search);
}

/* Where even all that may spill leaves a node or a hot expert's ranks above the mean, a replica may take that
 * much more. */
static void widen_room(node_search *search)
{
    const layer_problem *problem = search->problem;
    double rank_speed = (double)problem->total_speed / (double)problem->num_ranks, reach = 1.0;
    start_loads(search);
    for (int32_t n = 0; n < problem->num_nodes; n++) {
        double speed = search->node_speed[n] + rank_speed * (double)problem->max_spill;
        double level = search->load[n] / (speed * search->mean);
        reach = level > reach ? level : reach;
    }
    if (search->num_hot > 0) {
        int32_t e = search->hot[0], replicas = search->node_ranks[home_of(search, e)] + problem->max_spill;
        double level = (double)problem->load[e] / ((double)replicas * search->rank_part);
        reach = level > reach ? level : reach;
    }
    search->room *= reach;
}

static void finish(spill_nodes *spill, const layer_problem *problem)
{
    for (int32_t e = 0; e < problem->num_experts; e++) {
        if (spilled_of(spill, problem->max_spill, e, -1) == 0)
            spill->count[e] = 0;
    }
    for (int32_t i = 0; i < problem->max_spill; i++) {
        if (spill->spill_expert[i] < 0)
            continue;
        spill->spill_expert[spill->num_spilled] = spill->spill_expert[i];
        spill->amount[spill->num_spilled] = spill->amount[i];
        spill->spill_node[spill->num_spilled++] = spill->spill_node[i];
    }
}

eplb_status spill_nodes_choose(spill_nodes *spill, const layer_problem *problem, const replica_work *work,
                               double room, arena *scratch, eplb_error *error)
{
    *spill = (spill_nodes){.fits = false};
    spill_nodes state = {0}, before = {0};
    node_search search = {.problem = problem,
                          .state = &state,
                          .size = problem->num_experts / problem->num_groups,
                          .room = room,
                          .random = random_seed(SEED)};
    if (!take_state(spill, problem, scratch) || !take_state(&state, problem, scratch) ||
        !take_state(&before, problem, scratch) || !take_search(&search, scratch))
        return error_memory(error, (size_t)problem->num_experts * sizeof(double), "spilling between nodes");
    eplb_status status = group_nodes_choose(problem, work, state.group_node, &spill->fits, scratch, error);
    if (status != EPLB_OK || !spill->fits)
        return status;
    read_problem(&search);
    widen_room(&search);
    copy_state(spill, &state, problem);
    double now = value(&search), best = now;
    for (int32_t step = 0; problem->total > 0 && step < SPILL_STEPS; step++) {
        if (step % POLL_STEPS == 0 && layer_is_stopped(problem))
            break;
        double left = 1.0 - (double)step / SPILL_STEPS;
        double bar = HEAT * left * left * now * 2.0 * random_unit(&search.random);
        copy_state(&before, &state, problem);
        change(&search);
        double next = value(&search);
        if (!(next <= now + bar)) {
            copy_state(&state, &before, problem);
            continue;
        }
        now = next;
        if (now < best) {
            best = now;
            copy_state(spill, &state, problem);
        }
    }
    finish(spill, problem);
    return EPLB_OK;
}
