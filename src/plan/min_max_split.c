/* The exact min-max split of given loads over a given placement.
 *
 * The optimum is T* = max over sets U of ranks of (load of experts that live only on U) / (speed of U). Start
 * from a level T that some U proves, fill the experts level, then push tokens from ranks above the level to
 * ranks below it along shortest paths of shared experts (blocking flow); ranks that cannot get rid of their
 * excess form the next U, which raises T (Newton's method on a piecewise linear cut function). Integer
 * capacities floor(T * speed) make it exact. Source: max-flow min-cut (Dinic 1970), discrete Newton method
 * (Dinkelbach 1967, Radzik 1998). */
#include "plan/min_max_split.h"

#include <string.h>

#include "base/checked.h"

/* The moving part of a solve, on the movable experts alone. */
typedef struct split_flow {
    const min_max_graph *graph;
    int64_t *quota;        /* [edges] */
    int64_t *load;         /* [G] */
    int64_t *capacity;     /* [G] */
    int32_t *level;        /* [G] steps to a rank with room; -1: none */
    int32_t *expert_level; /* [movable] level of the nearest rank that the expert reaches; -1: none */
    int32_t *rank_arc;     /* [G] next edge to try */
    int32_t *expert_arc;   /* [movable] next edge to try */
    int32_t *queue;        /* [G] */
    int32_t *path_out;     /* [G] edge that gives tokens away, by depth */
    int32_t *path_in;      /* [G] edge that takes them */
    uint8_t *member;       /* [G] the set U */
    uint8_t *seen;         /* [movable] */
    int64_t *rest;         /* [movable] tokens not yet given in a warm start */
    int64_t *saved_quota;  /* [edges] */
    int64_t *saved_load;   /* [G] */
} split_flow;

/* --- the level T ------------------------------------------------------------------------------------- */

static int64_t speed_of(const min_max_graph *graph, int32_t rank)
{
    return graph->rank_speed != NULL ? graph->rank_speed[rank] : 1;
}

/* floor(load * speed / speed_sum), INT64_MAX when it does not fit: no total is larger, so a rank with that
 * capacity is never above it. speed_sum < 2^36 and speed <= 2^20 keep the remainder's product inside 56
 * bits. */
int64_t min_max_capacity(int64_t load, int64_t speed, int64_t speed_sum)
{
    int64_t whole;
    if (!checked_multiply(load / speed_sum, speed, &whole))
        return INT64_MAX;
    int64_t rest = load % speed_sum * speed / speed_sum;
    return whole > INT64_MAX - rest ? INT64_MAX : whole + rest;
}

static void set_capacities(split_flow *flow, int64_t load, int64_t speed)
{
    for (int32_t g = 0; g < flow->graph->num_ranks; g++)
        flow->capacity[g] = min_max_capacity(load, speed_of(flow->graph, g), speed);
}

/* The least level at which U (flow->member) takes `load` tokens in whole numbers. With equal speeds that is
 * ceil(load / |U|); else the capacities at the fractional level are raised one token at a time, in the order
 * of the levels at which the ranks gain one: fewer than |U| are missing. */
static void raise_level(split_flow *flow, int64_t load, int64_t speed, min_max_result *result)
{
    const min_max_graph *graph = flow->graph;
    result->bound_load = load;
    result->bound_speed = speed;
    if (graph->rank_speed == NULL) {
        result->max_load = load / speed + (load % speed != 0);
        result->max_speed = 1;
        set_capacities(flow, result->max_load, 1);
        return;
    }
    set_capacities(flow, load, speed);
    result->max_load = load;
    result->max_speed = speed;
    int64_t missing = load;
    for (int32_t g = 0; g < graph->num_ranks; g++)
        missing -= flow->member[g] ? flow->capacity[g] : 0;
    for (; missing > 0; missing--) {
        int32_t next = -1;
        for (int32_t g = 0; g < graph->num_ranks; g++) {
            if (flow->member[g] &&
                (next < 0 || fraction_compare(flow->capacity[g] + 1, graph->rank_speed[g],
                                              flow->capacity[next] + 1, graph->rank_speed[next]) < 0))
                next = g;
        }
        result->max_load = ++flow->capacity[next];
        result->max_speed = graph->rank_speed[next];
    }
    set_capacities(flow, result->max_load, result->max_speed);
}

/* The best level that a simple set proves: all ranks, one rank with its fixed experts, or the ranks of one
 * movable expert with their fixed experts. rank_load holds the fixed experts alone. */
static void first_level(split_flow *flow, const int64_t *load, int64_t total, min_max_result *result)
{
    const min_max_graph *graph = flow->graph;
    int64_t best_load = total, best_speed = graph->total_speed;
    int32_t best_rank = -1, best_movable = -1;
    for (int32_t g = 0; g < graph->num_ranks; g++) {
        if (fraction_compare(flow->load[g], speed_of(graph, g), best_load, best_speed) > 0) {
            best_load = flow->load[g];
            best_speed = speed_of(graph, g);
            best_rank = g;
        }
    }
    for (int32_t m = 0; m < graph->num_movable; m++) {
        int64_t sum = load[graph->movable_expert[m]], speed = 0;
        for (int32_t i = graph->edge_first[m]; i < graph->edge_first[m + 1]; i++) {
            sum += flow->load[graph->edge_rank[i]];
            speed += speed_of(graph, graph->edge_rank[i]);
        }
        if (fraction_compare(sum, speed, best_load, best_speed) > 0) {
            best_load = sum;
            best_speed = speed;
            best_movable = m;
        }
    }
    memset(flow->member, best_rank < 0 && best_movable < 0, (size_t)graph->num_ranks);
    if (best_movable >= 0) {
        for (int32_t i = graph->edge_first[best_movable]; i < graph->edge_first[best_movable + 1]; i++)
            flow->member[graph->edge_rank[i]] = 1;
    } else if (best_rank >= 0) {
        flow->member[best_rank] = 1;
    }
    raise_level(flow, best_load, best_speed, result);
}

/* --- the start --------------------------------------------------------------------------------------- */

/* Spreads `tokens` of one expert so that the room left on its ranks becomes as equal as it can: the level
 * sinks from the largest room over the next smaller ones until the tokens are used up. Quotas already there
 * stay. Differences of rooms are taken unsigned: they fit 64 bits without a sign. */
static void fill_expert(split_flow *flow, int32_t movable, uint64_t tokens)
{
    const int32_t *rank = flow->graph->edge_rank;
    int32_t begin = flow->graph->edge_first[movable], end = flow->graph->edge_first[movable + 1];
    int64_t level = INT64_MAX;
    uint64_t count = 0;
    for (;;) {
        int64_t next = INT64_MIN;
        uint64_t at_next = 0;
        for (int32_t i = begin; i < end; i++) {
            int64_t room = flow->capacity[rank[i]] - flow->load[rank[i]];
            if ((count == 0 || room < level) && room >= next) {
                at_next = room > next ? 1 : at_next + 1;
                next = room;
            }
        }
        if (count > 0) {
            uint64_t drop = (uint64_t)level - (uint64_t)next;
            if (at_next == 0 || drop > tokens / count)
                break;
            tokens -= drop * count;
        }
        level = next;
        count += at_next;
    }
    uint64_t each = tokens / count, extra = tokens % count;
    for (int32_t i = begin; i < end; i++) {
        int64_t room = flow->capacity[rank[i]] - flow->load[rank[i]];
        if (room < level)
            continue;
        int64_t given = (int64_t)((uint64_t)room - (uint64_t)level + each + (extra > 0));
        extra -= extra > 0;
        flow->quota[i] += given;
        flow->load[rank[i]] += given;
    }
}

/* Takes over what an earlier solve gave one expert, scaled down if it was more than `tokens`; returns what is
 * left to be given. */
static int64_t keep_warm(split_flow *flow, int32_t movable, int64_t tokens, const int64_t *warm)
{
    const min_max_graph *graph = flow->graph;
    int32_t begin = graph->edge_first[movable], end = graph->edge_first[movable + 1];
    int64_t sum = 0;
    for (int32_t i = begin; i < end; i++) {
        if (!checked_add(sum, warm[graph->edge_replica[i]], &sum))
            return tokens;
    }
    double scale = sum > tokens ? (double)tokens / (double)sum : 1.0;
    for (int32_t i = begin; i < end; i++) {
        int64_t kept = warm[graph->edge_replica[i]];
        double scaled = (double)kept * scale;
        if (sum > tokens) /* rounding may lift it to what no int64 holds */
            kept = scaled < (double)tokens ? (int64_t)scaled : tokens;
        kept = kept < tokens ? kept : tokens;
        flow->quota[i] = kept;
        flow->load[graph->edge_rank[i]] += kept;
        tokens -= kept;
    }
    return tokens;
}

static void fill_all(split_flow *flow, const int64_t *load, const int64_t *warm)
{
    const min_max_graph *graph = flow->graph;
    memset(flow->quota, 0, (size_t)graph->edge_first[graph->num_movable] * sizeof *flow->quota);
    if (warm == NULL) {
        for (int32_t m = 0; m < graph->num_movable; m++)
            fill_expert(flow, m, (uint64_t)load[graph->movable_expert[m]]);
        return;
    }
    /* First what is known of all, so that the rest is filled knowing it. */
    for (int32_t m = 0; m < graph->num_movable; m++)
        flow->rest[m] = keep_warm(flow, m, load[graph->movable_expert[m]], warm);
    for (int32_t m = 0; m < graph->num_movable; m++)
        fill_expert(flow, m, (uint64_t)flow->rest[m]);
}

/* --- the flow ---------------------------------------------------------------------------------------- */

/* Distance of every rank to a rank with room, backwards: a rank reaches what the experts it serves reach.
 * True if a rank above its capacity reaches room. */
static bool measure_levels(split_flow *flow)
{
    const min_max_graph *graph = flow->graph;
    int32_t head = 0, tail = 0;
    bool reached = false;
    for (int32_t g = 0; g < graph->num_ranks; g++) {
        bool has_room = flow->load[g] < flow->capacity[g];
        flow->level[g] = has_room ? 0 : -1;
        if (has_room)
            flow->queue[tail++] = g;
    }
    for (int32_t m = 0; m < graph->num_movable; m++)
        flow->expert_level[m] = -1;
    while (head < tail) {
        int32_t to = flow->queue[head++];
        for (int32_t k = graph->rank_first[to]; k < graph->rank_first[to + 1]; k++) {
            int32_t m = graph->edge_movable[graph->rank_edge[k]];
            if (flow->expert_level[m] >= 0)
                continue;
            flow->expert_level[m] = flow->level[to];
            for (int32_t i = graph->edge_first[m]; i < graph->edge_first[m + 1]; i++) {
                int32_t from = graph->edge_rank[i];
                if (flow->level[from] >= 0 || flow->quota[i] == 0)
                    continue;
                flow->level[from] = flow->level[to] + 1;
                flow->queue[tail++] = from;
                reached |= flow->load[from] > flow->capacity[from];
            }
        }
    }
    return reached;
}

/* Steps from `rank` one level down: the edge it gives from in *out, the edge that takes in *in. False when
 * every way is used up. Arcs only move forward within one measuring of levels. */
static bool advance(split_flow *flow, int32_t rank, int32_t *out, int32_t *in)
{
    const min_max_graph *graph = flow->graph;
    for (; flow->rank_arc[rank] < graph->rank_first[rank + 1]; flow->rank_arc[rank]++) {
        int32_t edge = graph->rank_edge[flow->rank_arc[rank]], m = graph->edge_movable[edge];
        if (flow->quota[edge] == 0 || flow->expert_level[m] != flow->level[rank] - 1)
            continue;
        for (; flow->expert_arc[m] < graph->edge_first[m + 1]; flow->expert_arc[m]++) {
            int32_t to = graph->edge_rank[flow->expert_arc[m]];
            if (flow->level[to] != flow->expert_level[m])
                continue;
            if (flow->level[to] == 0 && flow->load[to] >= flow->capacity[to])
                continue; /* filled meanwhile */
            *out = edge;
            *in = flow->expert_arc[m];
            return true;
        }
    }
    return false;
}

/* Moves what the path from `source` (depth steps, ending on a rank with room) can take. */
static void push(split_flow *flow, int32_t source, int32_t depth)
{
    int32_t sink = flow->graph->edge_rank[flow->path_in[depth - 1]];
    int64_t amount = flow->load[source] - flow->capacity[source];
    int64_t room = flow->capacity[sink] - flow->load[sink];
    amount = room < amount ? room : amount;
    for (int32_t d = 0; d < depth; d++) {
        int64_t quota = flow->quota[flow->path_out[d]];
        amount = quota < amount ? quota : amount;
    }
    for (int32_t d = 0; d < depth; d++) {
        flow->quota[flow->path_out[d]] -= amount;
        flow->quota[flow->path_in[d]] += amount;
    }
    flow->load[source] -= amount;
    flow->load[sink] += amount;
}

/* Sends the excess of one rank down the levels until it is gone or no way is left. */
static void drain(split_flow *flow, int32_t source)
{
    const int32_t *edge_rank = flow->graph->edge_rank;
    while (flow->load[source] > flow->capacity[source]) {
        int32_t depth = 0, rank = source;
        while (flow->level[rank] > 0) {
            if (advance(flow, rank, &flow->path_out[depth], &flow->path_in[depth])) {
                rank = edge_rank[flow->path_in[depth++]];
                continue;
            }
            flow->level[rank] = -1; /* a dead end for this measuring */
            if (depth == 0)
                return;
            depth--;
            rank = depth > 0 ? edge_rank[flow->path_in[depth - 1]] : source;
        }
        push(flow, source, depth);
    }
}

/* Pushes excess until none is left (true) or none can move (false). */
static bool level_out(split_flow *flow)
{
    const min_max_graph *graph = flow->graph;
    for (;;) {
        if (!measure_levels(flow)) {
            for (int32_t g = 0; g < graph->num_ranks; g++) {
                if (flow->load[g] > flow->capacity[g])
                    return false;
            }
            return true;
        }
        memcpy(flow->rank_arc, graph->rank_first, (size_t)graph->num_ranks * sizeof *flow->rank_arc);
        memcpy(flow->expert_arc, graph->edge_first, (size_t)graph->num_movable * sizeof *flow->expert_arc);
        for (int32_t g = 0; g < graph->num_ranks; g++) {
            if (flow->level[g] > 0 && flow->load[g] > flow->capacity[g])
                drain(flow, g);
        }
    }
}

/* The set U: ranks above capacity and all that they could still give to, which is full. Returns its load and
 * speed. */
static void find_cut(split_flow *flow, int64_t *cut_load, int64_t *cut_speed)
{
    const min_max_graph *graph = flow->graph;
    int32_t head = 0, tail = 0;
    for (int32_t g = 0; g < graph->num_ranks; g++) {
        flow->member[g] = flow->load[g] > flow->capacity[g];
        if (flow->member[g])
            flow->queue[tail++] = g;
    }
    memset(flow->seen, 0, (size_t)graph->num_movable);
    *cut_load = *cut_speed = 0;
    while (head < tail) {
        int32_t from = flow->queue[head++];
        *cut_load += flow->load[from];
        *cut_speed += speed_of(graph, from);
        for (int32_t k = graph->rank_first[from]; k < graph->rank_first[from + 1]; k++) {
            int32_t edge = graph->rank_edge[k], m = graph->edge_movable[edge];
            if (flow->seen[m] || flow->quota[edge] == 0)
                continue;
            flow->seen[m] = 1;
            for (int32_t i = graph->edge_first[m]; i < graph->edge_first[m + 1]; i++) {
                int32_t to = graph->edge_rank[i];
                if (!flow->member[to]) {
                    flow->member[to] = 1;
                    flow->queue[tail++] = to;
                }
            }
        }
    }
}

/* --- the fractional optimum -------------------------------------------------------------------------- */

/* Newton's method on the fraction itself: with all tokens multiplied by bound_speed, the level bound_load /
 * bound_speed is a whole number. Starts from the integer flow and leaves it as it was. False if a product
 * does not fit int64 (the bound then stays within one token of the optimum). */
static bool prove_fraction(split_flow *flow, int64_t total, min_max_result *result)
{
    const min_max_graph *graph = flow->graph;
    size_t edges = (size_t)graph->edge_first[graph->num_movable], ranks = (size_t)graph->num_ranks;
    int64_t most;
    if (!checked_multiply(total, graph->total_speed, &most))
        return result->bound_load % result->bound_speed == 0 && graph->rank_speed == NULL;
    memcpy(flow->saved_quota, flow->quota, edges * sizeof *flow->quota);
    memcpy(flow->saved_load, flow->load, ranks * sizeof *flow->load);
    for (;;) {
        int64_t scale = result->bound_speed;
        for (size_t i = 0; i < edges; i++)
            flow->quota[i] = flow->saved_quota[i] * scale;
        for (size_t g = 0; g < ranks; g++) {
            flow->load[g] = flow->saved_load[g] * scale;
            flow->capacity[g] = result->bound_load * speed_of(graph, (int32_t)g);
        }
        if (level_out(flow))
            break;
        int64_t cut_load, cut_speed;
        find_cut(flow, &cut_load, &cut_speed);
        result->bound_load = cut_load / scale;
        result->bound_speed = cut_speed;
    }
    memcpy(flow->quota, flow->saved_quota, edges * sizeof *flow->quota);
    memcpy(flow->load, flow->saved_load, ranks * sizeof *flow->load);
    return true;
}

/* --- the whole --------------------------------------------------------------------------------------- */

static bool take_flow(split_flow *flow, const min_max_graph *graph, arena *scratch)
{
    size_t ranks = (size_t)graph->num_ranks, movable = (size_t)graph->num_movable;
    size_t edges = (size_t)graph->edge_first[movable];
    int64_t *tokens = arena_take(scratch, 2 * edges + 3 * ranks + movable, sizeof *tokens);
    int32_t *narrow = arena_take(scratch, 5 * ranks + 2 * movable, sizeof *narrow);
    uint8_t *flags = arena_take(scratch, ranks + movable, sizeof *flags);
    if (tokens == NULL || narrow == NULL || flags == NULL)
        return false;
    *flow = (split_flow){.graph = graph, .quota = tokens};
    flow->saved_quota = flow->quota + edges;
    flow->load = flow->saved_quota + edges;
    flow->saved_load = flow->load + ranks;
    flow->capacity = flow->saved_load + ranks;
    flow->rest = flow->capacity + ranks;
    flow->level = narrow;
    flow->rank_arc = flow->level + ranks;
    flow->queue = flow->rank_arc + ranks;
    flow->path_out = flow->queue + ranks;
    flow->path_in = flow->path_out + ranks;
    flow->expert_level = flow->path_in + ranks;
    flow->expert_arc = flow->expert_level + movable;
    flow->member = flags;
    flow->seen = flags + ranks;
    return true;
}

/* Loads of the fixed experts to their ranks; returns the total of all that is served. */
static int64_t place_fixed(split_flow *flow, const int64_t *load)
{
    const min_max_graph *graph = flow->graph;
    int64_t total = 0;
    memset(flow->load, 0, (size_t)graph->num_ranks * sizeof *flow->load);
    for (int32_t n = 0; n < graph->num_fixed; n++) {
        int64_t tokens = load[graph->fixed_expert[n]];
        flow->load[graph->fixed_rank[n]] += tokens;
        total += tokens;
    }
    for (int32_t m = 0; m < graph->num_movable; m++)
        total += load[graph->movable_expert[m]];
    return total;
}

static void write_result(const split_flow *flow, const int64_t *load, min_max_result *result)
{
    const min_max_graph *graph = flow->graph;
    memset(result->quota, 0, (size_t)graph->num_replicas * sizeof *result->quota);
    for (int32_t n = 0; n < graph->num_fixed; n++)
        result->quota[graph->fixed_replica[n]] = load[graph->fixed_expert[n]];
    for (int32_t i = 0; i < graph->edge_first[graph->num_movable]; i++)
        result->quota[graph->edge_replica[i]] = flow->quota[i];
    memcpy(result->rank_load, flow->load, (size_t)graph->num_ranks * sizeof *flow->load);
    if (result->tight_rank != NULL)
        memcpy(result->tight_rank, flow->member, (size_t)graph->num_ranks);
}

bool min_max_split(const min_max_graph *graph, const int64_t *load, const int64_t *warm,
                   bool want_exact_bound, arena *scratch, min_max_result *result)
{
    split_flow flow;
    arena_mark mark = arena_position(scratch);
    if (!take_flow(&flow, graph, scratch))
        return false;
    int64_t total = place_fixed(&flow, load);
    first_level(&flow, load, total, result);
    fill_all(&flow, load, warm);
    while (!level_out(&flow)) {
        int64_t cut_load, cut_speed;
        find_cut(&flow, &cut_load, &cut_speed);
        raise_level(&flow, cut_load, cut_speed, result);
    }
    result->bound_exact = want_exact_bound && prove_fraction(&flow, total, result);
    write_result(&flow, load, result);
    arena_rewind(scratch, mark);
    return true;
}
