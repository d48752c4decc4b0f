/* Which groups share a node, if max_spill replicas may live elsewhere.
 *
 * What an assignment of groups to nodes can reach is a bound (spill_level.c); the least of all assignments is
 * one of every plan. They are looked at depth first, the heaviest group first, each to the emptiest node
 * first, so that the first is the greedy one; a branch ends where its nodes have to send more than
 * max_spill pieces at the level of the worst assignment kept. Cost: one bisection for those that come near, a
 * single look for the rest; VISITS and LEAVES end it, and then nothing is proved. Source: branch and bound as
 * in number partitioning (Korf 2009). */
#include "plan/spill_floor.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

enum { VISITS = 20000, LEAVES = 3000 };

#define ALIKE 1e-9 /* levels nearer than this are equal: less excess decides */

typedef struct assigning {
    const layer_problem *problem;
    spill_floor *floor;
    spill_level *level;
    level_node *node;   /* of level */
    double highest;     /* level that any assignment reaches */
    double *group_load; /* [groups] units */
    int32_t *heavy;     /* [groups] heaviest first */
    int32_t *group_node;
} assigning;

static double worst_kept(const assigning *work)
{
    const spill_floor *floor = work->floor;
    return floor->num_homes == SPILL_HOMES ? floor->homes[SPILL_HOMES - 1].level : work->highest;
}

static bool has_slots(const assigning *work)
{
    for (int32_t n = 0; n < work->problem->num_nodes; n++) {
        if (work->node[n].num_experts > work->node[n].num_slots)
            return false;
    }
    return true;
}

/* A level that is alike, with less excess, or lower. */
static bool is_better(double level, double excess, const spill_homes *than)
{
    if (level > than->level - ALIKE && level < than->level + ALIKE)
        return excess < than->excess;
    return level < than->level;
}

static void keep_homes(assigning *work, double level, double excess)
{
    spill_floor *floor = work->floor;
    int32_t i = floor->num_homes;
    if (i == SPILL_HOMES && !is_better(level, excess, &floor->homes[--i]))
        return;
    floor->num_homes = i + 1;
    int32_t *group_node = floor->homes[i].group_node;
    memcpy(group_node, work->group_node, (size_t)work->problem->num_groups * sizeof *group_node);
    for (; i > 0 && is_better(level, excess, &floor->homes[i - 1]); i--)
        floor->homes[i] = floor->homes[i - 1];
    floor->homes[i] = (spill_homes){group_node, level, excess};
}

static void look_at(assigning *work)
{
    double proved, most = worst_kept(work);
    spill_level_read(work->level, work->group_node);
    double level = spill_level_least(work->level, 1.0, most, false, &proved);
    work->floor->level = proved < work->floor->level ? proved : work->floor->level;
    if (level <= most && has_slots(work))
        keep_homes(work, level, spill_level_excess(work->level, level));
}

/* Pieces that a node with so many tokens and experts has to send at least. */
static double least_pieces(const assigning *work, const level_node *node, double load, int32_t experts)
{
    double rank = worst_kept(work) * work->level->mean;
    double above = (load - rank * node->speed - work->level->rounding) / (rank * work->level->fastest);
    double crowd = (double)(experts - node->num_slots), whole = above > 0.0 ? (double)(int64_t)above : 0.0;
    whole += above > whole ? 1.0 : 0.0;
    return whole > crowd ? whole : crowd > 0.0 ? crowd : 0.0;
}

/* Whether the node may take a group of that load: max_spill pieces for what is above the level or has no
 * slot, and no earlier node like it that is as empty. */
static bool may_take(const assigning *work, int32_t node, double load)
{
    const level_node *wanted = &work->node[node];
    double pieces = least_pieces(work, wanted, wanted->total + load, wanted->num_experts + work->level->size);
    for (int32_t n = 0; n < work->problem->num_nodes; n++) {
        const level_node *other = &work->node[n];
        if (n != node)
            pieces += least_pieces(work, other, other->total, other->num_experts);
        if (n < node && other->num_experts == 0 && wanted->num_experts == 0 && other->like == wanted->like)
            return false;
    }
    return pieces <= (double)work->problem->max_spill;
}

/* The node after `last` (-1: the first) in order of load per speed. */
static int32_t next_by_load(const assigning *work, int32_t last)
{
    int32_t best = -1;
    double from = last >= 0 ? work->node[last].total / work->node[last].speed : 0.0, least = 0.0;
    for (int32_t n = 0; n < work->problem->num_nodes; n++) {
        if (work->node[n].num_ranks == 0)
            continue;
        double height = work->node[n].total / work->node[n].speed;
        bool later = last < 0 || height > from || (height == from && n > last);
        if (later && (best < 0 || height < least)) {
            best = n;
            least = height;
        }
    }
    return best;
}

static void put_group(assigning *work, int32_t node, double load, int32_t sign)
{
    work->node[node].total += sign * load;
    work->node[node].num_experts += sign * work->level->size;
}

/* True if all were looked at. */
static bool look_at_all(assigning *work)
{
    int32_t groups = work->problem->num_groups, depth = 0, leaves = 0;
    work->group_node[work->heavy[0]] = -1;
    for (int32_t visits = 0; depth >= 0; visits++) {
        int32_t group = work->heavy[depth], node = work->group_node[group];
        double load = work->group_load[group];
        if (visits == VISITS || leaves == LEAVES)
            return false;
        if (node >= 0)
            put_group(work, node, load, -1);
        do
            node = next_by_load(work, node);
        while (node >= 0 && !may_take(work, node, load));
        work->group_node[group] = node;
        if (node < 0) {
            depth--;
            continue;
        }
        put_group(work, node, load, 1);
        if (depth + 1 < groups) {
            work->group_node[work->heavy[++depth]] = -1;
            continue;
        }
        leaves++;
        look_at(work);
    }
    return true;
}

/* Insertion sort, heaviest first; groups are few. */
static void read_groups(assigning *work)
{
    const layer_problem *problem = work->problem;
    for (int32_t e = 0; e < problem->num_experts; e++)
        work->group_load[e / work->level->size] += spill_level_load(work->level, e);
    for (int32_t i = 0; i < problem->num_groups; i++) {
        int32_t j = i;
        for (; j > 0 && work->group_load[work->heavy[j - 1]] < work->group_load[i]; j--)
            work->heavy[j] = work->heavy[j - 1];
        work->heavy[j] = i;
    }
}

eplb_status spill_floor_find(spill_floor *floor, const layer_problem *problem, arena *scratch,
                             eplb_error *error)
{
    size_t groups = (size_t)problem->num_groups;
    assigning work = {.problem = problem, .floor = floor, .highest = (double)problem->total_speed};
    work.level = arena_take(scratch, 1, sizeof *work.level);
    work.group_load = arena_take_zero(scratch, groups, sizeof *work.group_load);
    work.heavy = arena_take(scratch, groups, sizeof *work.heavy);
    work.group_node = arena_take(scratch, groups, sizeof *work.group_node);
    int32_t *group_node = arena_take_zero(scratch, SPILL_HOMES * groups, sizeof *group_node);
    *floor = (spill_floor){.level = INFINITY, .levels = work.level};
    if (work.level == NULL || work.group_load == NULL || work.heavy == NULL || work.group_node == NULL ||
        group_node == NULL || !spill_level_init(work.level, problem, scratch))
        return error_memory(error, (size_t)problem->num_experts * sizeof(double), "groups on nodes");
    for (size_t i = 0; i < SPILL_HOMES; i++)
        floor->homes[i].group_node = group_node + i * groups;
    work.node = work.level->node;
    read_groups(&work);
    if (!look_at_all(&work) || floor->level == INFINITY)
        floor->level = 1.0;
    return EPLB_OK;
}

double spill_floor_pieces(const spill_floor *floor, const spill_homes *homes, const int32_t *scarce,
                          double low, double high, spill_piece *pieces, int32_t *count)
{
    spill_level *work = floor->levels;
    double proved, unit = (double)(INT64_C(1) << work->shift) / work->unit;
    spill_level_read(work, homes->group_node);
    memcpy(work->scarce, scarce, (size_t)work->problem->num_nodes * sizeof *scarce);
    double level = spill_level_least(work, low, high, true, &proved);
    *count = level < INFINITY ? work->num_pieces : 0;
    for (int32_t i = 0; i < *count; i++) {
        pieces[i] = work->piece[i];
        pieces[i].tokens *= unit;
    }
    return level;
}
