/* Node-limited placement with a few replicas elsewhere ("spill").
 * Groups fixed to nodes leave a floor: the fullest node over the mean. A spilled replica carries part of a
 * hot expert from a full node to a rank of another one, its host. Nodes above a level T export what is above
 * it, the largest excess to the largest room, one piece per host; the least T that max_spill pieces reach is
 * found by bisection. A host holds k - 1 whole experts of its node and a piece that fills the rank up to T at
 * most: it needs no split expert, so the rest of the node keeps slots enough for exact balance, whatever the
 * number of hosts (weighted_tree.c). The whole experts are neighbours in order of load, the smallest that
 * leave the rest of the node at T. A piece first serves tokens that start on its own node, so it adds no
 * tokens between nodes as long as its expert keeps a node's worth at home. Cost: O(BISECTIONS * spills * (E +
 * N)). Source: docs/planning/weighted.md. */
#include "plan/weighted_spill.h"

#include <string.h>

#include "base/error.h"
#include "plan/sort_loads.h"

enum { BISECTIONS = 24 };

/* One replica of `expert` on `rank`, not of its node, that serves `tokens` of its load. */
typedef struct spill {
    int32_t expert;
    int32_t rank;
    int64_t tokens;
} spill;

typedef struct spilling {
    const layer_problem *problem;
    const int32_t *node_of_expert;
    double mean;        /* tokens per unit of speed */
    int32_t *order;     /* [E] ascending load */
    double *rest_load;  /* [N] tokens of experts that no host holds, less what was exported */
    double *rest_speed; /* [N] of ranks that are no hosts */
    int64_t *kept;      /* [E] tokens that stay at home */
    int32_t *host_of;   /* [E] host that holds it whole; -1: none */
    uint8_t *is_host;   /* [G] */
    spill *spills;      /* [limit] */
    int32_t count;
    int32_t limit;
} spilling;

static bool take(spilling *work, arena *scratch)
{
    size_t nodes = (size_t)work->problem->num_nodes, experts = (size_t)work->problem->num_experts;
    work->order = arena_take(scratch, experts, sizeof *work->order);
    work->rest_load = arena_take(scratch, nodes, sizeof *work->rest_load);
    work->rest_speed = arena_take(scratch, nodes, sizeof *work->rest_speed);
    work->kept = arena_take(scratch, experts, sizeof *work->kept);
    work->host_of = arena_take(scratch, experts, sizeof *work->host_of);
    work->is_host = arena_take(scratch, (size_t)work->problem->num_ranks, sizeof *work->is_host);
    work->spills = arena_take(scratch, (size_t)work->limit, sizeof *work->spills);
    return work->order != NULL && work->rest_load != NULL && work->rest_speed != NULL && work->kept != NULL &&
           work->host_of != NULL && work->is_host != NULL && work->spills != NULL &&
           sort_loads(work->problem->load, NULL, work->problem->num_experts, work->order, scratch);
}

static int32_t rank_slots(const layer_problem *problem, int32_t rank)
{
    return problem->first_slot[rank + 1] - problem->first_slot[rank];
}

/* --- pieces
 * ------------------------------------------------------------------------------------------------------ */

static void forget_pieces(spilling *work)
{
    const layer_problem *problem = work->problem;
    work->count = 0;
    memcpy(work->kept, problem->load, (size_t)problem->num_experts * sizeof *work->kept);
    memset(work->host_of, -1, (size_t)problem->num_experts * sizeof *work->host_of);
    memset(work->is_host, 0, (size_t)problem->num_ranks);
    for (int32_t n = 0; n < problem->num_nodes; n++)
        work->rest_load[n] = work->rest_speed[n] = 0.0;
    for (int32_t e = 0; e < problem->num_experts; e++)
        work->rest_load[work->node_of_expert[e]] += (double)problem->load[e];
    for (int32_t g = 0; g < problem->num_ranks; g++)
        work->rest_speed[problem->rank_node[g]] += (double)problem->rank_speed[g];
}

/* Tokens that the node has above the level, hosts aside. */
static double above(const spilling *work, int32_t node, double level)
{
    return work->rest_load[node] - level * work->mean * work->rest_speed[node];
}

/* The fastest rank of the node that hosts no piece; -1: none. */
static int32_t free_rank(const spilling *work, int32_t node)
{
    const layer_problem *problem = work->problem;
    int32_t best = -1;
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        if (problem->rank_node[g] == node && !work->is_host[g] && rank_slots(problem, g) > 1 &&
            (best < 0 || problem->rank_speed[g] > problem->rank_speed[best]))
            best = g;
    }
    return best;
}

/* The next expert of the node that no host holds, from place `i` of the order on; num_experts: none. */
static int32_t next_free(const spilling *work, int32_t node, int32_t i)
{
    while (i < work->problem->num_experts &&
           (work->node_of_expert[work->order[i]] != node || work->host_of[work->order[i]] >= 0))
        i++;
    return i;
}

/* The first `count` neighbours in order of load that sum to `least` or more: the places of the first and
 * behind the last. Returns their load, negative if there are none. */
static double find_window(const spilling *work, int32_t node, int32_t count, double least, int32_t *first,
                          int32_t *end)
{
    double sum = 0.0;
    int32_t low = next_free(work, node, 0), high = low, held = 0;
    while (high < work->problem->num_experts) {
        sum += (double)work->kept[work->order[high]];
        held++;
        high = next_free(work, node, high + 1);
        if (held < count)
            continue;
        if (sum >= least) {
            *first = low;
            *end = high;
            return sum;
        }
        sum -= (double)work->kept[work->order[low]];
        held--;
        low = next_free(work, node, low + 1);
    }
    return -1.0;
}

/* The expert of the node that keeps most. */
static int32_t largest_kept(const spilling *work, int32_t node)
{
    int32_t best = -1;
    for (int32_t e = 0; e < work->problem->num_experts; e++) {
        if (work->node_of_expert[e] == node && (best < 0 || work->kept[e] > work->kept[best]))
            best = e;
    }
    return best;
}

/* One piece from the fullest node to a host on `to`; false if there is none. */
static bool spill_to(spilling *work, int32_t from, int32_t to, double level)
{
    const layer_problem *problem = work->problem;
    int32_t rank = free_rank(work, to), expert = largest_kept(work, from), first = 0, end = 0;
    if (rank < 0 || expert < 0)
        return false;
    double target = level * work->mean * (double)problem->rank_speed[rank];
    double window =
        find_window(work, to, rank_slots(problem, rank) - 1, target + above(work, to, level), &first, &end);
    double piece = target - window, excess = above(work, from, level), kept = (double)work->kept[expert];
    piece = piece < excess ? piece : excess;
    piece = piece < kept ? piece : kept;
    if (window < 0.0 || piece < 1.0)
        return false;
    for (int32_t i = first; i < end; i = next_free(work, to, i + 1))
        work->host_of[work->order[i]] = rank;
    int64_t tokens = (int64_t)piece;
    work->spills[work->count++] = (spill){expert, rank, tokens};
    work->is_host[rank] = 1;
    work->kept[expert] -= tokens;
    work->rest_load[from] -= (double)tokens;
    work->rest_load[to] -= window;
    work->rest_speed[to] -= (double)problem->rank_speed[rank];
    return true;
}

/* The next node in order of room at the level, after `node` (-1: the first); -1: none left. */
static int32_t next_by_room(const spilling *work, int32_t node, double level)
{
    int32_t best = -1;
    for (int32_t n = 0; n < work->problem->num_nodes; n++) {
        double here = above(work, n, level);
        bool later =
            node < 0 || here > above(work, node, level) || (here == above(work, node, level) && n > node);
        if (here <= -1.0 && later && (best < 0 || here < above(work, best, level)))
            best = n;
    }
    return best;
}

/* Chooses pieces until no node is above the level; false if there are not enough. */
static bool reach(spilling *work, double level)
{
    forget_pieces(work);
    for (;;) {
        int32_t from = 0;
        for (int32_t n = 1; n < work->problem->num_nodes; n++)
            from = above(work, n, level) > above(work, from, level) ? n : from;
        if (above(work, from, level) < 1.0)
            return true;
        int32_t to = work->count == work->limit ? -1 : next_by_room(work, -1, level);
        while (to >= 0 && !spill_to(work, from, to, level))
            to = next_by_room(work, to, level);
        if (to < 0)
            return false;
    }
}

/* Leaves the pieces of the least level that can be reached. */
static void choose_pieces(spilling *work)
{
    double low = 1.0, high = 1.0;
    forget_pieces(work);
    for (int32_t n = 0; n < work->problem->num_nodes; n++) {
        double height =
            work->rest_speed[n] > 0.0 ? work->rest_load[n] / (work->rest_speed[n] * work->mean) : 0.0;
        high = height > high ? height : high;
    }
    if (reach(work, low))
        return;
    for (int step = 0; step < BISECTIONS; step++) {
        double middle = 0.5 * (low + high);
        if (reach(work, middle))
            high = middle;
        else
            low = middle;
    }
    (void)reach(work, high);
}

/* --- the rest of a node
 * ------------------------------------------------------------------------------------------ */

/* A node without its hosts and what they hold, as a layer of its own. */
typedef struct node_rest {
    layer_problem problem;
    weighted_part part;
    int64_t *load;
    int32_t *first_slot, *slot_rank, *rank_node, *rank_speed, *ranks, *experts;
    int32_t *expert_of; /* [experts] in the layer */
    int32_t *slot_of;   /* [slots] */
    layer_answer answer;
} node_rest;

static bool take_rest(const layer_problem *whole, node_rest *rest, arena *scratch)
{
    size_t experts = (size_t)whole->num_experts, slots = (size_t)whole->num_slots,
           ranks = (size_t)whole->num_ranks;
    rest->load = arena_take(scratch, experts, sizeof(int64_t));
    rest->first_slot = arena_take_zero(scratch, ranks + 1, sizeof(int32_t));
    rest->slot_rank = arena_take(scratch, slots, sizeof(int32_t));
    rest->rank_node = arena_take_zero(scratch, ranks, sizeof(int32_t));
    rest->rank_speed = arena_take(scratch, ranks, sizeof(int32_t));
    rest->ranks = arena_take(scratch, ranks, sizeof(int32_t));
    rest->experts = arena_take(scratch, experts, sizeof(int32_t));
    rest->expert_of = arena_take(scratch, experts, sizeof(int32_t));
    rest->slot_of = arena_take(scratch, slots, sizeof(int32_t));
    rest->answer = (layer_answer){.expert = arena_take(scratch, slots, sizeof(int32_t)),
                                  .quota = arena_take_zero(scratch, slots, sizeof(int64_t))};
    return rest->load != NULL && rest->first_slot != NULL && rest->slot_rank != NULL &&
           rest->rank_node != NULL && rest->rank_speed != NULL && rest->ranks != NULL &&
           rest->experts != NULL && rest->expert_of != NULL && rest->slot_of != NULL &&
           rest->answer.expert != NULL && rest->answer.quota != NULL;
}

static void add_rank(const spilling *work, int32_t rank, node_rest *rest)
{
    layer_problem *p = &rest->problem;
    int32_t slots = rank_slots(work->problem, rank), g = p->num_ranks;
    if (slots == 0)
        return;
    rest->ranks[g] = g;
    rest->rank_speed[g] = work->problem->rank_speed[rank];
    p->total_speed += work->problem->rank_speed[rank];
    for (int32_t s = work->problem->first_slot[rank]; s < work->problem->first_slot[rank + 1]; s++) {
        rest->slot_rank[p->num_slots] = g;
        rest->slot_of[p->num_slots++] = s;
    }
    rest->first_slot[++p->num_ranks] = p->num_slots;
    rest->part.min_slots = g == 0 || slots < rest->part.min_slots ? slots : rest->part.min_slots;
}

static void add_expert(const spilling *work, int32_t expert, node_rest *rest)
{
    layer_problem *p = &rest->problem;
    rest->expert_of[p->num_experts] = expert;
    rest->load[p->num_experts++] = work->kept[expert];
    p->total += work->kept[expert];
}

static bool cut_rest(const spilling *work, int32_t node, node_rest *rest, arena *scratch)
{
    layer_problem *p = &rest->problem;
    *p = *work->problem;
    p->num_experts = p->num_ranks = p->num_slots = 0;
    p->total = p->total_speed = 0;
    p->num_nodes = p->num_groups = 1;
    p->uniform_slots = -1;
    p->current = NULL;
    for (int32_t g = 0; g < work->problem->num_ranks; g++) {
        if (work->problem->rank_node[g] == node && !work->is_host[g])
            add_rank(work, g, rest);
    }
    for (int32_t e = 0; e < work->problem->num_experts; e++) {
        if (work->node_of_expert[e] == node && work->host_of[e] < 0)
            add_expert(work, e, rest);
    }
    p->load = p->window_load = rest->load;
    p->first_slot = rest->first_slot;
    p->slot_rank = rest->slot_rank;
    p->rank_node = rest->rank_node;
    p->rank_speed = rest->rank_speed;
    rest->part.num_ranks = p->num_ranks;
    rest->part.ranks = rest->ranks;
    rest->part.num_experts = p->num_experts;
    rest->part.experts = rest->experts;
    rest->part.total = p->total;
    rest->part.num_slots = p->num_slots;
    memset(rest->answer.expert, -1, (size_t)work->problem->num_slots * sizeof(int32_t));
    return sort_loads(rest->load, NULL, p->num_experts, rest->experts, scratch);
}

/* False when memory is out; *exact tells if the rest could be balanced exactly. */
static bool balance_rest(const spilling *work, node_rest *rest, bool *exact, arena *scratch)
{
    const layer_problem *p = &rest->problem;
    *exact = p->num_experts == 0;
    if (p->num_experts == 0 || p->num_ranks == 0)
        return true;
    int64_t unit = weighted_unit(work->problem->total, p->uniform_speed ? p->num_ranks : p->total_speed);
    bool whole;
    *exact = p->uniform_speed && weighted_tree_fits(&rest->part);
    if (*exact)
        whole = weighted_tree(p, &rest->part, unit, scratch, &rest->answer);
    else
        whole = weighted_uneven(p, &rest->part, unit, scratch, &rest->answer, exact);
    return whole && (!*exact || weighted_expander(p, &rest->part, scratch, &rest->answer));
}

static eplb_status plan_rest(const spilling *work, int32_t node, arena *scratch, layer_answer *answer,
                             bool *exact, eplb_error *error)
{
    arena_mark mark = arena_position(scratch);
    node_rest rest;
    if (!take_rest(work->problem, &rest, scratch) || !cut_rest(work, node, &rest, scratch) ||
        !balance_rest(work, &rest, exact, scratch))
        return error_memory(error, (size_t)work->problem->num_slots * sizeof(int64_t),
                            "a node with spilled replicas");
    for (int32_t s = 0; s < rest.problem.num_slots; s++) {
        int32_t expert = rest.answer.expert[s];
        answer->expert[rest.slot_of[s]] = expert >= 0 ? rest.expert_of[expert] : -1;
    }
    arena_rewind(scratch, mark);
    return EPLB_OK;
}

/* --- the whole
 * --------------------------------------------------------------------------------------------------- */

/* Their whole experts first, the spilled one in the last slot. */
static void fill_hosts(const spilling *work, layer_answer *answer)
{
    const layer_problem *problem = work->problem;
    for (int32_t i = 0; i < work->count; i++) {
        int32_t rank = work->spills[i].rank, slot = problem->first_slot[rank];
        for (int32_t e = 0; e < problem->num_experts; e++) {
            if (work->host_of[e] == rank)
                answer->expert[slot++] = e;
        }
        answer->expert[slot] = work->spills[i].expert;
    }
}

/* Plans with at most work->limit pieces. */
static eplb_status plan_within(spilling *work, arena *scratch, layer_answer *answer, bool *exact,
                               eplb_error *error)
{
    choose_pieces(work);
    *exact = work->count > 0;
    for (int32_t n = 0; n < work->problem->num_nodes && *exact; n++) {
        eplb_status status = plan_rest(work, n, scratch, answer, exact, error);
        if (status != EPLB_OK)
            return status;
    }
    if (*exact)
        fill_hosts(work, answer);
    return EPLB_OK;
}

eplb_status weighted_spill_plan(const layer_problem *problem, const int32_t *node_of_expert, arena *scratch,
                                layer_answer *answer, bool *done, eplb_error *error)
{
    arena_mark mark = arena_position(scratch);
    *done = false;
    spilling work = {.problem = problem, .node_of_expert = node_of_expert};
    work.limit = problem->max_spill < problem->num_ranks ? problem->max_spill : problem->num_ranks;
    if (problem->total == 0 || work.limit == 0)
        return EPLB_OK;
    if (!take(&work, scratch))
        return error_memory(error, (size_t)problem->num_experts * sizeof(int64_t), "spilled replicas");
    work.mean = (double)problem->total / (double)problem->total_speed;
    for (bool more = true; more && !*done;) {
        eplb_status status = plan_within(&work, scratch, answer, done, error);
        if (status != EPLB_OK)
            return status;
        work.limit = work.count - 1; /* fewer may be exact where these are not */
        more = work.limit > 0;
    }
    arena_rewind(scratch, mark);
    return EPLB_OK;
}
