/* Which level groups on nodes can reach with max_spill replicas elsewhere, whatever placement and shares.
 *
 * At level T a rank of speed s takes c = T s mean. A node over its ranks' capacity exports the excess; a
 * piece is a replica elsewhere, on a host. Cut experts into chunks, one slot each: with chosen shares c and
 * what is left, with equal shares the fewest equal ones of c at most.
 * - q pieces export at most the q largest chunks of a node's experts, and a node with more chunks than slots
 *   needs as many pieces.
 * - The ranks that are no hosts have too few slots for all chunks of their node: the smallest stay on hosts.
 * So h hosts take at most h c less those, nor more than the node lacks; what one more adds falls with h. T is
 * impossible if pieces or hosts are too few for all, or, where several nodes export, if for each way to
 * divide the pieces among pairs of nodes some nodes export more than their hosts take: a cut, which is exact
 * (polymatroidal flow). Source: Lawler and Martel 1982; docs/planning/nodes.md. */
#include "plan/spill_level.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "plan/sort_loads.h"

enum { BISECTIONS = 40, MOST_PAIRS = 8, MOST_DIVISIONS = 400, PIECE_STEPS = 500 };

#define ROUNDING    1e-11 /* of the total */
#define MOST_UNITS  0x1p50
#define NEAR_ENOUGH 1e-9 /* levels */

/* --- one node ---------------------------------------------------------------------------------------- */

static double whole_units(double units)
{
    return (double)(int64_t)units;
}

/* The chunks of a node's experts at capacity c: load[0 .. whole) are one each, rest[0 .. rests) are of larger
 * ones, both ascending, and `full` chunks more have c. */
typedef struct chunks {
    const double *load, *rest;
    int32_t whole, rests, full;
    double capacity;
} chunks;

static void add_rest(chunks *cut, double *rest, double size)
{
    int32_t i = cut->rests++;
    for (; i > 0 && rest[i - 1] > size; i--)
        rest[i] = rest[i - 1];
    rest[i] = size;
}

/* At a level of 1 and more there are no more than two such chunks for each rank. */
static chunks cut_chunks(const spill_level *work, const level_node *node, double capacity)
{
    chunks cut = {.load = node->load, .rest = work->rest, .capacity = capacity, .whole = node->num_experts};
    while (cut.whole > 0 && node->load[cut.whole - 1] > capacity) {
        double load = node->load[--cut.whole], parts = whole_units(load / capacity),
               left = load - parts * capacity;
        if (work->problem->split != EPLB_SPLIT_EQUAL) {
            cut.full += (int32_t)parts;
            if (left > 0.0)
                add_rest(&cut, work->rest, left);
            continue;
        }
        parts += left > 0.0 ? 1.0 : 0.0;
        for (double part = 0.0; part < parts; part++)
            add_rest(&cut, work->rest, whole_units(load / parts));
    }
    return cut;
}

/* chunk[q]: the q largest chunks together. */
static void sum_largest(const chunks *cut, double *chunk, int32_t most)
{
    int32_t full = cut->full, i = cut->whole, j = cut->rests;
    chunk[0] = 0.0;
    for (int32_t q = 1; q <= most; q++) {
        double next = 0.0;
        if (full > 0) {
            full--;
            next = cut->capacity;
        } else if (j > 0 && (i == 0 || cut->rest[j - 1] > cut->load[i - 1])) {
            next = cut->rest[--j];
        } else if (i > 0) {
            next = cut->load[--i];
        }
        chunk[q] = chunk[q - 1] + next;
    }
}

/* take[h]: what h hosts take beside the chunks that find no slot on other ranks; `scarce` slots are not
 * used. */
static void sum_hosts(level_node *node, const chunks *cut, double rank, int32_t scarce)
{
    int32_t i = 0, j = 0, dropped = 0, spare = node->num_slots - scarce;
    double least = 0.0;
    node->take[0] = 0.0;
    for (int32_t h = 1; h <= node->num_ranks; h++) {
        int32_t drop = cut->whole + cut->rests + cut->full - (spare - node->host_slots[h]);
        for (; dropped < drop; dropped++) {
            if (j < cut->rests && (i == cut->whole || cut->rest[j] < cut->load[i]))
                least += cut->rest[j++];
            else
                least += i < cut->whole ? cut->load[i++] : cut->capacity;
        }
        double taken = whole_units(rank * node->host_speed[h]) - least;
        node->take[h] = taken > node->take[h - 1] ? taken : node->take[h - 1];
    }
}

/* Takes back all pieces and measures the node at the level. */
static void measure_node(spill_level *work, int32_t n, double level)
{
    level_node *node = &work->node[n];
    double above = node->total - whole_units(level * work->mean * node->speed);
    node->need = above > work->rounding ? above : 0.0;
    node->room = above < -work->rounding ? -above : 0.0;
    node->sent = node->hosts = 0;
    node->exported = node->imported = 0.0;
    chunks cut = cut_chunks(work, node, whole_units(level * work->mean * work->fastest));
    node->crowd = cut.whole + cut.rests + cut.full - node->num_slots;
    if (node->need > 0.0)
        sum_largest(&cut, node->chunk, work->problem->max_spill);
    else if (node->room > 0.0)
        sum_hosts(node, &cut, level * work->mean, work->scarce[n]);
}

/* --- all nodes --------------------------------------------------------------------------------------- */

/* Keeps the max_spill largest of what hosts add, falling. */
static void note_gain(spill_level *work, double gain)
{
    int32_t most = work->problem->max_spill, i = work->num_gains;
    if (i == most && gain <= work->gain[most - 1])
        return;
    i = i == most ? most - 1 : i;
    work->num_gains = i + 1;
    for (; i > 0 && work->gain[i - 1] < gain; i--)
        work->gain[i] = work->gain[i - 1];
    work->gain[i] = gain;
}

static double hosted(const level_node *node, int32_t hosts)
{
    return node->take[hosts] < node->room ? node->take[hosts] : node->room;
}

/* Pieces enough for what each node exports, and hosts enough for what all do. */
static bool has_pieces(spill_level *work)
{
    const layer_problem *problem = work->problem;
    double excess = 0.0, taken = 0.0;
    int32_t pieces = 0;
    work->num_gains = 0;
    for (int32_t n = 0; n < problem->num_nodes; n++) {
        const level_node *node = &work->node[n];
        int32_t least = 0;
        while (least < problem->max_spill && node->need > 0.0 &&
               node->chunk[least] < node->need - work->rounding)
            least++;
        if (node->need > 0.0 && node->chunk[least] < node->need - work->rounding)
            return false;
        excess += node->need;
        least = least > node->crowd ? least : node->crowd;
        pieces += least > 0 ? least : 0;
        for (int32_t h = 1; node->room > 0.0 && h <= node->num_ranks; h++) {
            double gain = hosted(node, h) - hosted(node, h - 1);
            if (gain <= 0.0)
                break;
            note_gain(work, gain);
        }
    }
    for (int32_t i = 0; i < work->num_gains; i++)
        taken += work->gain[i];
    return pieces <= problem->max_spill && taken >= excess - work->rounding * problem->num_nodes;
}

/* Ways to divide the pieces among pairs of an exporting and a lacking node. */
typedef struct divisions {
    int32_t from[MOST_PAIRS], to[MOST_PAIRS], count[MOST_PAIRS];
    int32_t num_pairs;
    int32_t senders[MOST_PAIRS];
    int32_t num_senders;
    int32_t left; /* that may still be looked at */
} divisions;

/* False: too many to look at, or one node alone exports, for which has_pieces has said all. */
static bool list_pairs(const spill_level *work, divisions *ways)
{
    *ways = (divisions){.left = MOST_DIVISIONS};
    for (int32_t n = 0; n < work->problem->num_nodes; n++) {
        if (work->node[n].need <= 0.0)
            continue;
        if (ways->num_senders == MOST_PAIRS)
            return false;
        ways->senders[ways->num_senders++] = n;
        for (int32_t m = 0; m < work->problem->num_nodes; m++) {
            if (work->node[m].room <= 0.0)
                continue;
            if (ways->num_pairs == MOST_PAIRS)
                return false;
            ways->from[ways->num_pairs] = n;
            ways->to[ways->num_pairs++] = m;
        }
    }
    return ways->num_senders > 1 && ways->num_pairs > 0;
}

/* Whether hosts of the nodes take what the senders in the set export. */
static bool hosts_take(const spill_level *work, const divisions *ways, uint32_t set)
{
    double need = 0.0, taken = 0.0;
    for (int32_t i = 0; i < ways->num_senders; i++)
        need += (set >> i & 1) != 0 ? work->node[ways->senders[i]].need : 0.0;
    for (int32_t m = 0; m < work->problem->num_nodes; m++) {
        int32_t hosts = 0;
        for (int32_t p = 0; p < ways->num_pairs; p++) {
            for (int32_t i = 0; i < ways->num_senders && ways->to[p] == m; i++)
                hosts += (set >> i & 1) != 0 && ways->senders[i] == ways->from[p] ? ways->count[p] : 0;
        }
        if (hosts > 0)
            taken +=
                hosted(&work->node[m], hosts < work->node[m].num_ranks ? hosts : work->node[m].num_ranks);
    }
    return taken >= need - work->rounding * work->problem->num_nodes;
}

/* Divides `pieces` among the pairs from `pair` on; false if no division is possible. */
static bool can_divide(const spill_level *work, divisions *ways, int32_t pair, int32_t pieces)
{
    if (pair == ways->num_pairs - 1) {
        ways->count[pair] = pieces;
        bool possible = true;
        for (uint32_t set = 1; set < UINT32_C(1) << ways->num_senders && possible; set++)
            possible = hosts_take(work, ways, set);
        return possible || --ways->left <= 0;
    }
    for (ways->count[pair] = pieces; ways->count[pair] >= 0; ways->count[pair]--) {
        if (can_divide(work, ways, pair + 1, pieces - ways->count[pair]))
            return true;
    }
    return false;
}

/* --- pieces ------------------------------------------------------------------------------------------ */

/* What one more piece could carry: by what both nodes have left, what the exporting experts have and a host
 * takes. */
static double next_piece(const spill_level *work, int32_t from, int32_t to)
{
    const level_node *source = &work->node[from], *host = &work->node[to];
    if (source->need <= 0.0 || host->room <= 0.0 || host->hosts == host->num_ranks ||
        host->hosts + host->crowd >= 0)
        return 0.0;
    double tokens = source->need - source->exported, room = hosted(host, host->hosts + 1) - host->imported;
    double most = source->chunk[source->sent + 1] - source->exported;
    most = most < host->take[1] ? most : host->take[1];
    tokens = tokens < room ? tokens : room;
    return tokens < most ? tokens : most;
}

static void put_piece(spill_level *work, const spill_piece *piece, int32_t sign)
{
    level_node *source = &work->node[piece->from], *host = &work->node[piece->to];
    source->sent += sign;
    source->exported += sign * piece->tokens;
    host->hosts += sign;
    host->imported += sign * piece->tokens;
}

/* The piece after `last` (tokens < 0: the first) in order of tokens, most first; false: there is none. */
static bool next_choice(const spill_level *work, const spill_piece *last, spill_piece *next)
{
    int32_t nodes = work->problem->num_nodes, before = last->from * nodes + last->to, best = -1;
    double most = 0.0;
    for (int32_t i = 0; i < nodes * nodes; i++) {
        double tokens = next_piece(work, i / nodes, i % nodes);
        bool later = last->tokens < 0.0 || tokens < last->tokens || (tokens == last->tokens && i > before);
        if (tokens > work->rounding && later && tokens > most) {
            best = i;
            most = tokens;
        }
    }
    *next = (spill_piece){best / nodes, best % nodes, most};
    return best >= 0;
}

/* Pieces that are certainly still needed. */
static int32_t pieces_needed(const spill_level *work)
{
    double largest = 0.0;
    int32_t pieces = 0;
    for (int32_t n = 0; n < work->problem->num_nodes; n++) {
        const level_node *node = &work->node[n];
        if (node->room > 0.0 && node->num_ranks > 0 && node->take[1] > largest)
            largest = node->take[1];
    }
    for (int32_t n = 0; n < work->problem->num_nodes; n++) {
        double left = work->node[n].need - work->node[n].exported - work->rounding;
        if (left <= 0.0 && work->node[n].crowd > work->node[n].sent)
            pieces += work->node[n].crowd - work->node[n].sent;
        if (left > 0.0)
            pieces += left < largest * work->problem->max_spill ? 1 + (int32_t)(left / largest) : SHRT_MAX;
    }
    return pieces;
}

/* Chooses pieces one after the other, each as large as can be, the largest first, in other orders if that
 * does not do. */
static bool choose_pieces(spill_level *work)
{
    int32_t depth = 0, most = work->problem->max_spill;
    work->piece[0] = (spill_piece){0, 0, -1.0};
    for (int32_t steps = 0; steps < PIECE_STEPS; steps++) {
        int32_t needed = pieces_needed(work);
        work->num_pieces = depth;
        if (needed == 0)
            return true;
        if (depth + needed <= most && next_choice(work, &work->piece[depth], &work->piece[depth])) {
            put_piece(work, &work->piece[depth++], 1);
            if (depth < most)
                work->piece[depth] = (spill_piece){0, 0, -1.0};
        } else {
            if (depth == 0)
                return false;
            put_piece(work, &work->piece[--depth], -1);
        }
    }
    return false;
}

/* Whether the level is not proved impossible; `strict`: whether there are pieces for it. */
static bool is_possible(spill_level *work, double level, bool strict)
{
    divisions ways;
    for (int32_t n = 0; n < work->problem->num_nodes; n++)
        measure_node(work, n, level);
    if (!has_pieces(work))
        return false;
    if (strict)
        return choose_pieces(work);
    return !list_pairs(work, &ways) || can_divide(work, &ways, 0, work->problem->max_spill);
}

double spill_level_least(spill_level *work, double low, double high, bool strict, double *proved)
{
    *proved = low;
    if (is_possible(work, low, strict))
        return low;
    *proved = high;
    if (!is_possible(work, high, strict))
        return INFINITY;
    for (int step = 0; step < BISECTIONS && high - low > NEAR_ENOUGH; step++) {
        double middle = 0.5 * (low + high);
        if (is_possible(work, middle, strict))
            high = middle;
        else
            low = middle;
    }
    *proved = low;
    return is_possible(work, high, strict) ? high : INFINITY;
}

double spill_level_excess(const spill_level *work, double level)
{
    double excess = 0.0;
    for (int32_t n = 0; n < work->problem->num_nodes; n++) {
        double above = work->node[n].total - level * work->mean * work->node[n].speed;
        excess += above > 0.0 ? above : 0.0;
    }
    return excess;
}

void spill_level_read(spill_level *work, const int32_t *group_node)
{
    const layer_problem *problem = work->problem;
    for (int32_t n = 0; n < problem->num_nodes; n++) {
        work->node[n].num_experts = 0;
        work->node[n].total = 0.0;
    }
    for (int32_t i = 0; i < problem->num_experts; i++) {
        int32_t e = work->order[i];
        level_node *node = &work->node[group_node[e / work->size]];
        node->load[node->num_experts++] = spill_level_load(work, e);
        node->total += spill_level_load(work, e);
    }
}

/* --- the problem ------------------------------------------------------------------------------------- */

static bool take_nodes(spill_level *work, arena *scratch)
{
    const layer_problem *problem = work->problem;
    size_t experts = (size_t)problem->num_experts, ranks = (size_t)problem->num_ranks;
    size_t nodes = (size_t)problem->num_nodes;
    work->node = arena_take_zero(scratch, nodes, sizeof *work->node);
    double *load = arena_take(scratch, nodes * experts, sizeof *load);
    double *speed = arena_take_zero(scratch, 2 * (ranks + nodes), sizeof *speed);
    size_t pieces = (size_t)problem->max_spill + 1;
    double *chunk = arena_take(scratch, nodes * pieces, sizeof *chunk);
    int32_t *slots = arena_take_zero(scratch, ranks + nodes, sizeof *slots);
    if (work->node == NULL || load == NULL || chunk == NULL || speed == NULL || slots == NULL)
        return false;
    for (int32_t g = 0; g < problem->num_ranks; g++)
        work->node[problem->rank_node[g]].num_ranks += problem->first_slot[g + 1] > problem->first_slot[g];
    size_t at = 0;
    for (size_t n = 0; n < nodes; n++) {
        level_node *node = &work->node[n];
        *node = (level_node){.num_ranks = node->num_ranks,
                             .load = load + n * experts,
                             .host_speed = speed + at,
                             .take = speed + ranks + nodes + at,
                             .chunk = chunk + n * pieces,
                             .host_slots = slots + at};
        at += (size_t)node->num_ranks + 1;
        node->num_ranks = 0;
    }
    return true;
}

static bool take(spill_level *work, arena *scratch)
{
    const layer_problem *problem = work->problem;
    size_t experts = (size_t)problem->num_experts, slots = (size_t)problem->num_slots;
    size_t spill = (size_t)problem->max_spill;
    work->order = arena_take(scratch, experts, sizeof *work->order);
    work->rest = arena_take(scratch, experts + 2 * slots, sizeof *work->rest);
    work->gain = arena_take(scratch, spill, sizeof *work->gain);
    work->piece = arena_take(scratch, spill, sizeof *work->piece);
    work->scarce = arena_take_zero(scratch, (size_t)problem->num_nodes, sizeof *work->scarce);
    return work->order != NULL && work->rest != NULL && work->gain != NULL && work->piece != NULL &&
           work->scarce != NULL && take_nodes(work, scratch) &&
           sort_loads(problem->load, NULL, problem->num_experts, work->order, scratch);
}

/* Speeds fall and slots rise from rank to rank of a node; entry h is put last. */
static void add_rank(level_node *node, double speed, int32_t slots)
{
    int32_t h = ++node->num_ranks, i = h, j = h;
    for (; i > 1 && node->host_speed[i - 1] < speed; i--)
        node->host_speed[i] = node->host_speed[i - 1];
    for (; j > 1 && node->host_slots[j - 1] > slots; j--)
        node->host_slots[j] = node->host_slots[j - 1];
    node->host_speed[i] = speed;
    node->host_slots[j] = slots;
    node->speed += speed;
    node->num_slots += slots;
}

static bool are_alike(const level_node *a, const level_node *b)
{
    size_t ranks = (size_t)a->num_ranks + 1;
    return a->num_ranks == b->num_ranks && a->num_slots == b->num_slots &&
           memcmp(a->host_speed, b->host_speed, ranks * sizeof *a->host_speed) == 0 &&
           memcmp(a->host_slots, b->host_slots, ranks * sizeof *a->host_slots) == 0;
}

static void read_nodes(spill_level *work)
{
    const layer_problem *problem = work->problem;
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        int32_t slots = problem->first_slot[g + 1] - problem->first_slot[g];
        if (slots > 0)
            add_rank(&work->node[problem->rank_node[g]], (double)problem->rank_speed[g], slots);
    }
    for (int32_t n = 0; n < problem->num_nodes; n++) {
        level_node *node = &work->node[n];
        if (node->num_ranks > 0 && node->host_speed[1] > work->fastest)
            work->fastest = node->host_speed[1];
        for (int32_t h = 2; h <= node->num_ranks; h++) {
            node->host_speed[h] += node->host_speed[h - 1];
            node->host_slots[h] += node->host_slots[h - 1];
        }
        while (node->like < n && !are_alike(&work->node[node->like], node))
            node->like++;
    }
}

bool spill_level_init(spill_level *work, const layer_problem *problem, arena *scratch)
{
    *work =
        (spill_level){.problem = problem, .size = problem->num_experts / problem->num_groups, .unit = 1.0};
    if (!take(work, scratch))
        return false;
    read_nodes(work);
    while ((double)(problem->total >> work->shift) > MOST_UNITS)
        work->shift++;
    while (problem->total > 0 && work->unit * 2.0 * (double)problem->total <= MOST_UNITS)
        work->unit *= 2.0;
    double total = 0.0;
    for (int32_t e = 0; e < problem->num_experts; e++)
        total += spill_level_load(work, e);
    work->mean = total / (double)problem->total_speed;
    work->rounding = ROUNDING * total;
    return true;
}
