/* Equal split on nodes with a few replicas elsewhere, from what the bound leaves open.
 *
 * As for weighted shares (weighted_spill.c) the assignments of groups to nodes that may come lowest are
 * tried. An expert of load w with r replicas gives pieces of w / r: r is the fewest that leaves each a part
 * of a rank, for several parts, since colder experts must fit beside it; the largest pieces leave the full
 * nodes, and r rises as long as enough leaves. Inside nodes only what is hot gets more replicas at first;
 * slots that are left, many on the ranks of large replicas, take what is lightest there. A short search of
 * counts and places follows (equal_search.c), in which spilled replicas stay on their node. Cost: TRIES
 * searches. Source: docs/planning/nodes.md. */
#include "plan/equal_spill.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "plan/equal_search.h"
#include "plan/spill_floor.h"
#include "plan/spill_nodes.h"

enum { TRIES = 64 };

#define LARGE       0.8   /* of a rank: larger replicas get another one first */
#define ENOUGH      1.001 /* times the level: it is reached */
#define ROUNDING    1e-9
#define SEARCH_WORK INT64_C(60000)

typedef struct spilling {
    const layer_problem *problem;
    spill_floor floor;
    layout seats;
    neighbourhood around;
    int32_t *area;     /* [E] home */
    double *node_load; /* [N] tokens, pieces counted */
    double *need;      /* [N] tokens that have to leave */
    int32_t *scarce;   /* [N] 0 */
    spill_piece *flow; /* [max_spill] */
    spill_nodes spill;
    double rank;     /* tokens that a rank takes at the level, per unit of speed */
    double part;     /* of it that a piece may be */
    double mean;     /* tokens per unit of speed */
    double time;     /* the same in units of work */
    int32_t *expert; /* [S] */
    double best;     /* imbalance */
    int32_t tries;   /* left */
} spilling;

static bool take(spilling *work, arena *scratch)
{
    const layer_problem *problem = work->problem;
    size_t experts = (size_t)problem->num_experts, spill = (size_t)problem->max_spill;
    size_t nodes = (size_t)problem->num_nodes;
    work->area = arena_take(scratch, experts, sizeof *work->area);
    work->node_load = arena_take(scratch, nodes, sizeof *work->node_load);
    work->need = arena_take(scratch, nodes, sizeof *work->need);
    work->scarce = arena_take_zero(scratch, nodes, sizeof *work->scarce);
    work->flow = arena_take(scratch, spill, sizeof *work->flow);
    work->expert = arena_take(scratch, (size_t)problem->num_slots, sizeof *work->expert);
    work->spill.spill_expert = arena_take(scratch, spill, sizeof(int32_t));
    work->spill.spill_node = arena_take(scratch, spill, sizeof(int32_t));
    work->spill.count = arena_take(scratch, experts, sizeof(int32_t));
    return work->area != NULL && work->node_load != NULL && work->need != NULL && work->scarce != NULL &&
           work->flow != NULL && work->expert != NULL && work->spill.spill_expert != NULL &&
           work->spill.spill_node != NULL && work->spill.count != NULL;
}

/* --- pieces --- */

static int32_t spilled_of(const spilling *work, int32_t expert)
{
    int32_t count = 0;
    for (int32_t i = 0; i < work->spill.num_spilled; i++)
        count += work->spill.spill_expert[i] == expert;
    return count;
}

/* Fewest replicas of which none is more than a piece may be. */
static int32_t fewest_replicas(const spilling *work, int32_t expert)
{
    double piece = work->part * work->rank * work->floor.levels->fastest;
    return 1 + (int32_t)((double)work->problem->load[expert] / piece * (1.0 - ROUNDING));
}

/* Part of the expert's tokens that start on the node. */
static double origin_at(const layer_problem *problem, int32_t expert, int32_t node)
{
    double here = 0.0, all = 0.0;
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        double tokens = 1.0;
        if (problem->source_load != NULL)
            tokens =
                g < problem->num_sources
                    ? (double)problem->source_load[(size_t)g * (size_t)problem->num_experts + (size_t)expert]
                    : 0.0;
        here += problem->rank_node[g] == node ? tokens : 0.0;
        all += tokens;
    }
    return all > 0.0 ? here / all : 0.0;
}

/* Whether one piece more of so many replicas lets no more tokens cross nodes: enough stays for those that
 * start at home, or no node starts fewer. */
static bool may_leave(const spilling *work, int32_t expert, int32_t count)
{
    const layer_problem *problem = work->problem;
    double here = origin_at(problem, expert, work->area[expert]);
    if ((double)(count - spilled_of(work, expert) - 1) >= here * count)
        return true;
    for (int32_t n = 0; n < problem->num_nodes; n++) {
        if (origin_at(problem, expert, n) < here * (1.0 - ROUNDING))
            return false;
    }
    return true;
}

/* The expert of a node that gives the largest piece more; -1: none. */
static int32_t largest_piece(const spilling *work, int32_t node)
{
    int32_t best = -1;
    double most = 0.0;
    for (int32_t e = 0; e < work->problem->num_experts; e++) {
        if (work->area[e] != node || (double)work->problem->load[e] <= most)
            continue;
        int32_t count = fewest_replicas(work, e);
        double piece = (double)work->problem->load[e] / count;
        if (piece > most && spilled_of(work, e) < count && may_leave(work, e, count)) {
            most = piece;
            best = e;
        }
    }
    return best;
}

/* Gives the expert so many replicas; pieces of it take their part along. */
static void set_count(spilling *work, int32_t expert, int32_t count)
{
    spill_nodes *spill = &work->spill;
    double before =
        spill->count[expert] > 0 ? (double)work->problem->load[expert] / spill->count[expert] : 0.0;
    double after = (double)work->problem->load[expert] / count;
    for (int32_t i = 0; i < spill->num_spilled; i++) {
        if (spill->spill_expert[i] != expert)
            continue;
        work->node_load[work->area[expert]] -= after - before;
        work->node_load[spill->spill_node[i]] += after - before;
    }
    spill->count[expert] = count;
}

/* One piece more from a node to another; false: there is none. */
static bool add_piece(spilling *work, int32_t from, int32_t to)
{
    spill_nodes *spill = &work->spill;
    int32_t expert = to >= 0 && to != from ? largest_piece(work, from) : -1;
    if (expert < 0)
        return false;
    int32_t count = fewest_replicas(work, expert);
    double piece = (double)work->problem->load[expert] / count;
    spill->spill_expert[spill->num_spilled] = expert;
    spill->spill_node[spill->num_spilled++] = to;
    spill->count[expert] = count;
    work->node_load[from] -= piece;
    work->node_load[to] += piece;
    work->need[from] -= piece;
    return true;
}

/* The node with least load per speed; -1: none has ranks. */
static int32_t emptiest(const spilling *work)
{
    const level_node *node = work->floor.levels->node;
    int32_t best = -1;
    for (int32_t n = 0; n < work->problem->num_nodes; n++) {
        if (node[n].num_ranks > 0 &&
            (best < 0 || work->node_load[n] * node[best].speed < work->node_load[best] * node[n].speed))
            best = n;
    }
    return best;
}

/* More replicas of the spilled experts of a node, the largest piece first, as long as enough leaves it. */
static void raise_counts(spilling *work, int32_t node)
{
    const spill_nodes *spill = &work->spill;
    for (;;) {
        int32_t best = -1;
        double largest = 0.0, given = 0.0;
        for (int32_t i = 0; i < spill->num_spilled; i++) {
            int32_t e = spill->spill_expert[i], spilled = spilled_of(work, e), count = spill->count[e];
            double piece = (double)work->problem->load[e] / count;
            double less = spilled * (piece - (double)work->problem->load[e] / (count + 1));
            if (work->area[e] == node && work->need[node] + less <= 0.0 && piece > largest &&
                count - spilled < work->floor.levels->node[node].num_ranks) {
                best = e;
                largest = piece;
                given = less;
            }
        }
        if (best < 0)
            return;
        work->need[node] += given;
        set_count(work, best, spill->count[best] + 1);
    }
}

static void start_pieces(spilling *work, const spill_homes *homes, int32_t num_pieces)
{
    const layer_problem *problem = work->problem;
    int32_t size = problem->num_experts / problem->num_groups;
    work->spill.group_node = homes->group_node;
    work->spill.num_spilled = 0;
    for (int32_t n = 0; n < problem->num_nodes; n++)
        work->node_load[n] = work->need[n] = 0.0;
    for (int32_t e = 0; e < problem->num_experts; e++) {
        work->area[e] = homes->group_node[e / size];
        work->node_load[work->area[e]] += (double)problem->load[e];
        work->spill.count[e] = 0;
    }
    for (int32_t i = 0; i < num_pieces; i++)
        work->need[work->flow[i].from] += work->flow[i].tokens * (1.0 - ROUNDING);
}

/* Pieces as they flow, more where they are too small; false if there are none. */
static bool choose_pieces(spilling *work, const spill_homes *homes, int32_t num_pieces)
{
    const layer_problem *problem = work->problem;
    start_pieces(work, homes, num_pieces);
    for (int32_t i = 0; i < num_pieces; i++) {
        if (!add_piece(work, work->flow[i].from, work->flow[i].to))
            return false;
    }
    for (int32_t n = 0; n < problem->num_nodes; n++) {
        while (work->need[n] > 0.0 && work->spill.num_spilled < problem->max_spill &&
               add_piece(work, n, emptiest(work)))
            continue;
        raise_counts(work, n);
    }
    return true;
}

/* --- the whole --- */

/* The expert for an empty slot: of those of its node that its rank lacks the hottest that leaves the rank
 * below `hottest`, else the coldest; -1: the rank has all. */
static int32_t expert_for(const spilling *work, int32_t rank, double hottest)
{
    const layout *seats = &work->seats;
    int32_t best = -1, coldest = -1;
    for (int32_t e = 0; e < seats->num_experts; e++) {
        if (work->area[e] != work->problem->rank_node[rank] || layout_holds(seats, rank, e) ||
            seats->count[e] >= seats->max_count)
            continue;
        double more = seats->more_load[e];
        if ((seats->rank_load[rank] + more) * seats->inverse_speed[rank] < hottest &&
            (best < 0 || more > seats->more_load[best]))
            best = e;
        if (coldest < 0 || more < seats->more_load[coldest])
            coldest = e;
    }
    return best >= 0 ? best : coldest;
}

/* No slot stays empty: engines' formats know none. */
static void fill_empty(spilling *work)
{
    layout *seats = &work->seats;
    int32_t hot;
    double hottest = layout_hottest(seats, &hot);
    for (int32_t p = 0; p < seats->num_slots; p++) {
        int32_t expert = seats->expert[p] < 0 ? expert_for(work, seats->slot_rank[p], hottest) : -1;
        if (expert >= 0)
            layout_reassign(seats, p, expert);
    }
}

/* Whether every expert found a slot: more pieces than flow may be too many for a node. */
static bool is_complete(const layout *seats)
{
    for (int32_t e = 0; e < seats->num_experts; e++) {
        if (seats->count[e] == 0)
            return false;
    }
    return true;
}

/* Places the pieces and the rest, and searches; the best of all goes to `expert`. */
static eplb_status try_pieces(spilling *work, double level, int32_t *expert, double *reached, arena *scratch,
                              eplb_error *error)
{
    const layer_problem *problem = work->problem;
    double hottest;
    eplb_status status =
        spill_nodes_place(&work->spill, problem, LARGE * work->rank, work->expert, scratch, error);
    if (status != EPLB_OK)
        return status;
    layout_set(&work->seats, work->expert);
    if (!is_complete(&work->seats))
        return EPLB_OK;
    work->around.rank_area = problem->rank_node;
    work->around.expert_area = work->area;
    equal_search_limits limits = {work->time * work->floor.level, work->time * level, SEARCH_WORK, 0,
                                  INT64_MAX};
    fill_empty(work);
    status = equal_search(&work->around, problem, &limits, &hottest, scratch, error);
    *reached = hottest / work->time;
    if (status != EPLB_OK || *reached >= work->best)
        return status;
    work->best = *reached;
    memcpy(expert, work->seats.expert, (size_t)problem->num_slots * sizeof *expert);
    return EPLB_OK;
}

static eplb_status try_homes(spilling *work, const spill_homes *homes, int32_t *expert, arena *scratch,
                             eplb_error *error)
{
    static const double parts[] = {1.0, 0.93, 0.86, 0.8};
    int32_t num_pieces;
    double reached = INFINITY, level = spill_floor_pieces(&work->floor, homes, work->scarce, homes->level,
                                                          work->best, work->flow, &num_pieces);
    eplb_status status = EPLB_OK;
    for (size_t i = 0; status == EPLB_OK && i < sizeof parts / sizeof *parts; i++) {
        if (level >= work->best || reached <= level * ENOUGH || work->tries == 0)
            return EPLB_OK;
        work->rank = level * work->mean;
        work->part = parts[i];
        if (!choose_pieces(work, homes, num_pieces))
            continue;
        work->tries--;
        arena_mark mark = arena_position(scratch);
        status = try_pieces(work, level, expert, &reached, scratch, error);
        arena_rewind(scratch, mark);
    }
    return status;
}

eplb_status equal_spill_plan(const layer_problem *problem, const replica_work *work, int32_t *expert,
                             bool *found, double *floor, arena *scratch, eplb_error *error)
{
    arena_mark mark = arena_position(scratch);
    double speed = problem->uniform_speed ? (double)problem->num_ranks : (double)problem->total_speed;
    spilling state = {.problem = problem,
                      .mean = (double)problem->total / (double)problem->total_speed,
                      .time = work->least_total / speed,
                      .best = (double)problem->total_speed,
                      .tries = TRIES};
    *found = false;
    eplb_status status = spill_floor_find(&state.floor, problem, scratch, error);
    if (status == EPLB_OK && !take(&state, scratch))
        status = error_memory(error, (size_t)problem->num_slots * sizeof *expert, "spilled replicas");
    if (status == EPLB_OK)
        status = layout_init(&state.seats, problem, work, scratch, error);
    if (status == EPLB_OK)
        status = neighbourhood_init(&state.around, &state.seats, problem, scratch, error);
    for (int32_t i = 0; status == EPLB_OK && i < state.floor.num_homes; i++)
        status = try_homes(&state, &state.floor.homes[i], expert, scratch, error);
    *found = status == EPLB_OK && state.best < (double)problem->total_speed;
    *floor = status == EPLB_OK ? state.floor.level : 1.0;
    arena_rewind(scratch, mark);
    return status;
}
