/* Node-limited placement with a few replicas elsewhere ("spill"), shares as they are best.
 *
 * spill_floor.c tells which assignments of groups to nodes may come lowest and, at a level T, which nodes
 * send pieces to which. The pieces are of the hottest experts; weighted_hosts.c fills the ranks that host
 * them; the rest of each node is a layer of its own, exact at T or below; the best split of the whole is the
 * answer. Where the rest of a node is not, its hosts leave it a spare slot more, and T is the least level
 * with that; it starts at the floor. A piece first serves tokens that start on its own node; no more of an
 * expert leaves home than keeps the tokens between nodes from growing. Cost: some ten placements of O(E + S +
 * flow), a hundred at most. Source: docs/planning/nodes.md. */
#include "plan/weighted_spill.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "plan/sort_loads.h"
#include "plan/spill_floor.h"
#include "plan/weighted.h"
#include "plan/weighted_hosts.h"

enum { LEVELS = 7 };

#define STEP   1e-3 /* to the next level tried where nothing is learned */
#define ENOUGH 5e-5 /* above the level tried: it is reached */
#define WORTH  1e-4 /* other homes are tried if they may be better by this */

typedef struct spilling {
    const layer_problem *problem;
    weighted_area_planner plan;
    spill_floor floor;
    double mean;       /* tokens per unit of speed */
    double level;      /* tried */
    int32_t *order;    /* [E] ascending load */
    double *origin;    /* [N, E] tokens of an expert that start on a node */
    int32_t *scarce;   /* [N] spare slots kept for other ranks than hosts */
    spill_piece *flow; /* [max_spill] */
    double *height;    /* [N] reached inside the nodes */
    double *free;      /* [E] tokens that may still leave */
    weighted_hosts hosts;
    int32_t *ranks;   /* [G] of a node */
    int32_t *experts; /* [E] of a node, ascending load */
    layer_answer trial;
    weighted_shares shares;
} spilling;

static bool take(spilling *work, arena *scratch)
{
    const layer_problem *problem = work->problem;
    size_t nodes = (size_t)problem->num_nodes, experts = (size_t)problem->num_experts;
    size_t slots = (size_t)problem->num_slots;
    work->order = arena_take(scratch, experts, sizeof *work->order);
    work->origin = arena_take_zero(scratch, nodes * experts, sizeof *work->origin);
    work->scarce = arena_take(scratch, nodes, sizeof *work->scarce);
    work->flow = arena_take(scratch, (size_t)problem->max_spill, sizeof *work->flow);
    work->height = arena_take(scratch, nodes, sizeof *work->height);
    work->free = arena_take(scratch, experts, sizeof *work->free);
    work->ranks = arena_take(scratch, (size_t)problem->num_ranks, sizeof *work->ranks);
    work->experts = arena_take(scratch, experts, sizeof *work->experts);
    work->trial = (layer_answer){.expert = arena_take(scratch, slots, sizeof(int32_t)),
                                 .quota = arena_take(scratch, slots, sizeof(int64_t))};
    return work->order != NULL && work->origin != NULL && work->scarce != NULL && work->flow != NULL &&
           work->height != NULL && work->free != NULL && work->ranks != NULL && work->experts != NULL &&
           work->trial.expert != NULL && work->trial.quota != NULL &&
           sort_loads(problem->load, NULL, problem->num_experts, work->order, scratch) &&
           weighted_hosts_init(&work->hosts, problem, work->order, &work->trial, scratch) &&
           weighted_shares_init(&work->shares, problem, scratch);
}

/* --- pieces ------------------------------------------------------------------------------------------ */

/* Tokens by the node they start on: as told, or as many on each rank. */
static void read_origin(spilling *work)
{
    const layer_problem *problem = work->problem;
    size_t experts = (size_t)problem->num_experts;
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        double *row = work->origin + (size_t)problem->rank_node[g] * experts;
        for (size_t e = 0; e < experts; e++) {
            if (problem->source_load == NULL)
                row[e] += (double)problem->load[e] / (double)problem->num_ranks;
            else if (g < problem->num_sources)
                row[e] += (double)problem->source_load[(size_t)g * experts + e];
        }
    }
}

/* What may leave without more tokens between nodes: all, if no other node starts less, else what does not
 * start at home. */
static double may_leave(const spilling *work, int32_t expert, int32_t home)
{
    size_t experts = (size_t)work->problem->num_experts;
    const double *origin = work->origin + (size_t)expert;
    double load = (double)work->problem->load[expert], here = origin[(size_t)home * experts];
    for (int32_t n = 0; n < work->problem->num_nodes; n++) {
        if (origin[(size_t)n * experts] < here * (1.0 - 1e-12))
            return load > here ? load - here : 0.0;
    }
    return load;
}

static void start_pieces(spilling *work, const spill_homes *homes)
{
    const layer_problem *problem = work->problem;
    int32_t size = problem->num_experts / problem->num_groups;
    for (int32_t e = 0; e < problem->num_experts; e++) {
        int32_t home = homes->group_node[e / size];
        work->hosts.area[e] = home;
        work->hosts.kept[e] = problem->load[e];
        work->free[e] = may_leave(work, e, home);
    }
    memcpy(work->hosts.rank_area, problem->rank_node, (size_t)problem->num_ranks * sizeof(int32_t));
}

static int32_t freest_expert(const spilling *work, int32_t node)
{
    int32_t best = -1;
    for (int32_t e = 0; e < work->problem->num_experts; e++) {
        if (work->hosts.area[e] == node && (best < 0 || work->free[e] > work->free[best]))
            best = e;
    }
    return best;
}

/* The fastest rank of the node that hosts nothing; -1: none. */
static int32_t free_rank(const spilling *work, int32_t node)
{
    const layer_problem *problem = work->problem;
    int32_t best = -1;
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        if (work->hosts.rank_area[g] == node && problem->first_slot[g + 1] > problem->first_slot[g] &&
            (best < 0 || problem->rank_speed[g] > problem->rank_speed[best]))
            best = g;
    }
    return best;
}

/* Tokens of a piece if those between the same two nodes are levelled. */
static double level_flow(const spilling *work, const spill_piece *flow)
{
    double sum = 0.0;
    int32_t alike = 0;
    for (int32_t i = 0; i < work->hosts.num_pieces; i++) {
        if (work->flow[i].from == flow->from && work->flow[i].to == flow->to) {
            sum += work->flow[i].tokens;
            alike++;
        }
    }
    return sum / alike;
}

/* The flows as pieces, the largest first; hosts and experts are not chosen. */
static void list_pieces(spilling *work)
{
    weighted_piece *piece = work->hosts.piece;
    for (int32_t i = 0; i < work->hosts.num_pieces; i++) {
        const spill_piece *flow = &work->flow[i];
        weighted_piece next = {-1, flow->from, flow->to, -1, level_flow(work, flow)};
        int32_t j = i;
        for (; j > 0 && piece[j - 1].tokens < next.tokens; j--)
            piece[j] = piece[j - 1];
        piece[j] = next;
    }
}

static void give(spilling *work, weighted_piece *piece, double tokens)
{
    piece->tokens += tokens;
    work->free[piece->expert] -= tokens;
    work->hosts.kept[piece->expert] -= (int64_t)tokens;
}

/* An expert and a host for each piece; false if there is none. */
static bool choose_pieces(spilling *work)
{
    list_pieces(work);
    for (int32_t i = 0; i < work->hosts.num_pieces; i++) {
        weighted_piece *piece = &work->hosts.piece[i];
        double tokens = piece->tokens;
        piece->host = free_rank(work, piece->to);
        piece->expert = freest_expert(work, piece->from);
        if (piece->host < 0 || piece->expert < 0)
            return false;
        work->hosts.rank_area[piece->host] = work->problem->num_nodes;
        piece->tokens = 0.0;
        give(work, piece, tokens < work->free[piece->expert] ? tokens : work->free[piece->expert]);
    }
    return true;
}

/* Pieces take what their hosts have left, as far as their experts have it, or less where hosts have too
 * much. */
static void settle_pieces(spilling *work)
{
    for (int32_t i = 0; i < work->hosts.num_pieces; i++) {
        weighted_piece *piece = &work->hosts.piece[i];
        double more = work->hosts.room[piece->host];
        more = more < work->free[piece->expert] ? more : work->free[piece->expert];
        give(work, piece, more > -piece->tokens ? more : -piece->tokens);
    }
}

/* --- the whole --------------------------------------------------------------------------------------- */

/* Slots that are left get replicas of their node's experts. */
static bool fill_left(spilling *work, const spill_homes *homes, int32_t node, arena *scratch)
{
    const layer_problem *problem = work->problem;
    int32_t size = problem->num_experts / problem->num_groups;
    weighted_part part = {.ranks = work->ranks, .experts = work->experts};
    for (int32_t i = 0; i < problem->num_experts; i++) {
        if (homes->group_node[work->order[i] / size] == node)
            work->experts[part.num_experts++] = work->order[i];
    }
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        if (problem->rank_node[g] == node)
            work->ranks[part.num_ranks++] = g;
    }
    return part.num_experts == 0 || part.num_ranks == 0 ||
           weighted_expander(problem, &part, scratch, &work->trial);
}

/* Whether every expert has a slot. */
static bool is_complete(const weighted_shares *shares)
{
    for (int32_t e = 0; e < shares->problem->num_experts; e++) {
        if (shares->first[e] == shares->first[e + 1])
            return false;
    }
    return true;
}

static eplb_status no_memory(const layer_problem *problem, eplb_error *error)
{
    return error_memory(error, (size_t)problem->num_slots * sizeof(int64_t), "spilled replicas");
}

/* A placement at the level and what the best split of it reaches; INFINITY: there is none. */
static eplb_status try_level(spilling *work, const spill_homes *homes, double *reached, arena *scratch,
                             eplb_error *error)
{
    const layer_problem *problem = work->problem;
    *reached = INFINITY;
    start_pieces(work, homes);
    if (!choose_pieces(work))
        return EPLB_OK;
    memset(work->trial.expert, -1, (size_t)problem->num_slots * sizeof(int32_t));
    memset(work->trial.quota, 0, (size_t)problem->num_slots * sizeof(int64_t));
    work->hosts.rank_tokens = work->level * work->mean;
    for (int32_t n = 0; n < problem->num_nodes; n++)
        weighted_hosts_fill(&work->hosts, n);
    settle_pieces(work);
    layer_problem rest = *problem;
    rest.load = rest.window_load = work->hosts.kept;
    rest.rank_node = work->hosts.rank_area;
    eplb_status status =
        weighted_nodes_plan(&rest, work->hosts.area, work->plan, scratch, &work->trial, work->height, error);
    for (int32_t n = 0; status == EPLB_OK && n < problem->num_nodes; n++) {
        if (!fill_left(work, homes, n, scratch))
            status = no_memory(problem, error);
    }
    if (status != EPLB_OK)
        return status;
    if (!weighted_shares_solve(&work->shares, work->trial.expert, NULL, scratch))
        return no_memory(problem, error);
    if (is_complete(&work->shares))
        *reached = weighted_shares_imbalance(&work->shares);
    return EPLB_OK;
}

/* Hosts of nodes whose other ranks did not come down to the level leave them a slot more. False: none did. */
static bool learn(spilling *work)
{
    bool learned = false;
    for (int32_t n = 0; n < work->problem->num_nodes; n++) {
        bool hosts = false;
        for (int32_t i = 0; i < work->hosts.num_pieces; i++)
            hosts = hosts || work->hosts.piece[i].to == n;
        if (hosts && work->height[n] > work->level * (1.0 + ENOUGH)) {
            work->scarce[n]++;
            learned = true;
        }
    }
    return learned;
}

/* Levels from that of the homes on, until one is reached. */
static eplb_status try_homes(spilling *work, const spill_homes *homes, layer_answer *answer, double *best,
                             bool *better, arena *scratch, eplb_error *error)
{
    double level = homes->level, before = 0.0;
    memset(work->scarce, 0, (size_t)work->problem->num_nodes * sizeof *work->scarce);
    for (int32_t i = 0; i < LEVELS; i++) {
        double reached;
        arena_mark mark = arena_position(scratch);
        work->level = level = spill_floor_pieces(&work->floor, homes, work->scarce, level, *best, work->flow,
                                                 &work->hosts.num_pieces);
        if (level >= *best)
            return EPLB_OK;
        eplb_status status = try_level(work, homes, &reached, scratch, error);
        if (status != EPLB_OK)
            return status;
        arena_rewind(scratch, mark);
        if (reached < *best) {
            *best = reached;
            *better = true;
            memcpy(answer->expert, work->trial.expert, (size_t)work->problem->num_slots * sizeof(int32_t));
            weighted_shares_write(&work->shares, answer->quota);
        }
        if (reached <= level * (1.0 + ENOUGH))
            return EPLB_OK;
        bool learned = learn(work);
        if (!learned || level <= before)
            level *= 1.0 + STEP;
        before = level;
    }
    return EPLB_OK;
}

eplb_status weighted_spill_plan(const layer_problem *problem, weighted_area_planner plan, arena *scratch,
                                layer_answer *answer, double *imbalance, double *floor, bool *better,
                                eplb_error *error)
{
    arena_mark mark = arena_position(scratch);
    spilling work = {.problem = problem, .plan = plan};
    *better = false;
    *floor = 1.0;
    if (problem->total == 0)
        return EPLB_OK;
    eplb_status status = spill_floor_find(&work.floor, problem, scratch, error);
    if (status != EPLB_OK)
        return status;
    if (!take(&work, scratch))
        return no_memory(problem, error);
    *floor = work.floor.level;
    read_origin(&work);
    work.mean = (double)problem->total / (double)problem->total_speed;
    for (int32_t i = 0; status == EPLB_OK && i < work.floor.num_homes; i++) {
        if (work.floor.homes[i].level * (1.0 + WORTH) >= *imbalance)
            break;
        status = try_homes(&work, &work.floor.homes[i], answer, imbalance, better, scratch, error);
    }
    arena_rewind(scratch, mark);
    return status;
}
