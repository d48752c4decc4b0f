/* What a host holds beside a piece of another node's expert.
 *
 * A piece is worth most if its rank serves little else, but every expert of the node needs a slot. The slots
 * of hosts get whole experts, the coldest, as many as there is room for: slots that stay empty are spare
 * slots that the other ranks then lack for shared experts. If the other ranks would have too much, warmer
 * ones; or the hottest in part, which makes both sides exact. With pieces from one node a host that has too
 * much gives tokens of its piece to another; with pieces from several it cannot, and contents are exchanged
 * until they suit. Cost: some hundred steps per spare slot. Source: docs/planning/nodes.md. */
#include "plan/weighted_hosts.h"

#include <math.h>
#include <string.h>

enum { EXCHANGES = 8 };

#define NEGLIGIBLE 2e-4 /* of a rank, that a side has too much */

bool weighted_hosts_init(weighted_hosts *hosts, const layer_problem *problem, const int32_t *order,
                         layer_answer *answer, arena *scratch)
{
    size_t experts = (size_t)problem->num_experts, ranks = (size_t)problem->num_ranks;
    *hosts = (weighted_hosts){.problem = problem, .order = order, .answer = answer};
    hosts->piece = arena_take(scratch, (size_t)problem->max_spill, sizeof *hosts->piece);
    hosts->kept = arena_take(scratch, experts, sizeof *hosts->kept);
    hosts->area = arena_take(scratch, experts, sizeof *hosts->area);
    hosts->rank_area = arena_take(scratch, ranks, sizeof *hosts->rank_area);
    hosts->room = arena_take(scratch, ranks, sizeof *hosts->room);
    hosts->count = arena_take(scratch, ranks, sizeof *hosts->count);
    hosts->own = arena_take(scratch, experts, sizeof *hosts->own);
    hosts->chosen = arena_take(scratch, experts, sizeof *hosts->chosen);
    return hosts->piece != NULL && hosts->kept != NULL && hosts->area != NULL && hosts->rank_area != NULL &&
           hosts->room != NULL && hosts->count != NULL && hosts->own != NULL && hosts->chosen != NULL;
}

static int32_t rank_slots(const layer_problem *problem, int32_t rank)
{
    return problem->first_slot[rank + 1] - problem->first_slot[rank];
}

/* Tokens that the rank takes in all. */
static double rank_takes(const weighted_hosts *hosts, int32_t rank)
{
    return hosts->rank_tokens * (double)hosts->problem->rank_speed[rank];
}

static double own_load(const weighted_hosts *hosts, int32_t i)
{
    return (double)hosts->problem->load[hosts->own[i]];
}

/* Exchanges one of the chosen for a smaller one, so that the sum comes nearest to `least` from above. */
static double exchange(weighted_hosts *hosts, int32_t own, double sum, double least)
{
    int32_t out = -1, in = -1;
    double best = 0.0;
    for (int32_t i = 0; i < own; i++) {
        for (int32_t j = i - 1;
             hosts->chosen[i] && j >= 0 && own_load(hosts, i) - own_load(hosts, j) <= sum - least; j--) {
            if (!hosts->chosen[j] && own_load(hosts, i) - own_load(hosts, j) > best) {
                best = own_load(hosts, i) - own_load(hosts, j);
                out = i;
                in = j;
            }
        }
    }
    if (out >= 0) {
        hosts->chosen[out] = 0;
        hosts->chosen[in] = 1;
    }
    return sum - best;
}

/* Chooses `count` of a node's experts, as cold ones as sum to `least` or little more. Returns the sum, which
 * is less if there are none. */
static double choose_cold(weighted_hosts *hosts, int32_t own, int32_t count, double least)
{
    double sum = 0.0;
    int32_t first = 0;
    for (int32_t i = 0; i < count; i++)
        sum += own_load(hosts, i);
    for (; sum < least && count > 0 && first + count < own; first++)
        sum += own_load(hosts, first + count) - own_load(hosts, first);
    memset(hosts->chosen, 0, (size_t)own);
    memset(hosts->chosen + first, 1, (size_t)count);
    for (double before = sum + 1.0; first > 0 && sum < before;) {
        before = sum;
        sum = exchange(hosts, own, sum, least);
    }
    return sum;
}

/* What the hosts of a node and its other ranks have. */
typedef struct host_sides {
    int32_t node;
    int32_t own;        /* experts of the node: hosts->own */
    int32_t hosts;      /* ranks */
    int32_t slots;      /* of hosts, beside the pieces */
    double room;        /* tokens that hosts take beside the pieces */
    double least;       /* tokens of the experts that other ranks cannot take */
    int32_t fewest;     /* experts that other ranks have no slots for */
    bool several_nodes; /* send the pieces: what one host has too much no other can take */
} host_sides;

static host_sides measure_sides(weighted_hosts *hosts, int32_t node)
{
    const layer_problem *problem = hosts->problem;
    host_sides sides = {.node = node};
    int32_t from = -1;
    for (int32_t i = 0; i < hosts->num_pieces; i++) {
        int32_t rank = hosts->piece[i].host, first = problem->first_slot[rank];
        if (hosts->piece[i].to != node)
            continue;
        hosts->answer->expert[first] = hosts->piece[i].expert;
        hosts->answer->quota[first] = -1; /* no more replicas of it here: weighted_expander.c */
        sides.hosts++;
        sides.slots += rank_slots(problem, rank) - 1;
        sides.room += rank_takes(hosts, rank) - hosts->piece[i].tokens;
        sides.several_nodes = sides.several_nodes || (from >= 0 && from != hosts->piece[i].from);
        from = hosts->piece[i].from;
    }
    for (int32_t i = 0; i < problem->num_experts; i++) {
        if (hosts->area[hosts->order[i]] != node)
            continue;
        hosts->own[sides.own++] = hosts->order[i];
        sides.least += (double)problem->load[hosts->order[i]];
    }
    sides.fewest = sides.own;
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        if (hosts->rank_area[g] != node)
            continue;
        sides.fewest -= rank_slots(problem, g);
        sides.least -= rank_takes(hosts, g);
    }
    sides.fewest = sides.fewest > 0 ? sides.fewest : 0;
    return sides;
}

/* The host of the node with most room that has a slot. */
static int32_t roomiest_host(const weighted_hosts *hosts, int32_t node)
{
    int32_t best = -1;
    for (int32_t i = 0; i < hosts->num_pieces; i++) {
        int32_t rank = hosts->piece[i].host;
        if (hosts->piece[i].to == node && hosts->count[rank] < rank_slots(hosts->problem, rank) &&
            (best < 0 || hosts->room[rank] > hosts->room[best]))
            best = rank;
    }
    return best;
}

static double amount_of(double tokens)
{
    return tokens < 0.0 ? -tokens : tokens;
}

/* Exchanges two experts of hosts of one node if that brings what both have left nearer to nothing. */
static bool exchange_between(weighted_hosts *hosts, int32_t a, int32_t b)
{
    const layer_problem *problem = hosts->problem;
    int32_t *held = hosts->answer->expert, out = -1, in = -1;
    double best = amount_of(hosts->room[a]) + amount_of(hosts->room[b]) - NEGLIGIBLE * hosts->rank_tokens,
           shift = 0.0;
    for (int32_t i = problem->first_slot[a] + 1; i < problem->first_slot[a] + hosts->count[a]; i++) {
        for (int32_t j = problem->first_slot[b] + 1; j < problem->first_slot[b] + hosts->count[b]; j++) {
            double more = (double)(problem->load[held[i]] - problem->load[held[j]]);
            double off = amount_of(hosts->room[a] + more) + amount_of(hosts->room[b] - more);
            if (off < best) {
                best = off;
                shift = more;
                out = i;
                in = j;
            }
        }
    }
    if (out < 0)
        return false;
    int32_t expert = held[out];
    held[out] = held[in];
    held[in] = expert;
    hosts->room[a] += shift;
    hosts->room[b] -= shift;
    return true;
}

/* Empty hosts of the node, but for the pieces. */
static void clear_hosts(weighted_hosts *hosts, int32_t node)
{
    const layer_problem *problem = hosts->problem;
    for (int32_t i = 0; i < hosts->num_pieces; i++) {
        int32_t rank = hosts->piece[i].host;
        if (hosts->piece[i].to != node)
            continue;
        hosts->room[rank] = rank_takes(hosts, rank) - hosts->piece[i].tokens;
        hosts->count[rank] = 1;
        for (int32_t s = problem->first_slot[rank] + 1; s < problem->first_slot[rank + 1]; s++)
            hosts->answer->expert[s] = -1;
    }
}

/* Exchanges until each host of the node suits its piece. */
static void suit_pieces(weighted_hosts *hosts, int32_t node)
{
    for (int32_t i = 0; i < hosts->num_pieces; i++) {
        for (int32_t j = 0; j < i && hosts->piece[i].to == node; j++) {
            int32_t most = hosts->piece[j].to == node ? EXCHANGES : 0;
            while (most-- > 0 && exchange_between(hosts, hosts->piece[i].host, hosts->piece[j].host))
                continue;
        }
    }
}

/* Divides the chosen experts among the hosts of the node, the hottest first. Returns the tokens that hosts
 * have too much. */
static double divide_chosen(weighted_hosts *hosts, const host_sides *sides)
{
    const layer_problem *problem = hosts->problem;
    double over = 0.0;
    clear_hosts(hosts, sides->node);
    for (int32_t i = sides->own - 1; i >= 0; i--) {
        int32_t rank = hosts->chosen[i] ? roomiest_host(hosts, sides->node) : -1;
        if (rank < 0)
            continue;
        hosts->answer->expert[problem->first_slot[rank] + hosts->count[rank]++] = hosts->own[i];
        hosts->room[rank] -= own_load(hosts, i);
    }
    if (sides->several_nodes)
        suit_pieces(hosts, sides->node);
    for (int32_t i = 0; i < hosts->num_pieces; i++) {
        double room = hosts->room[hosts->piece[i].host];
        over += hosts->piece[i].to == sides->node && room < 0.0 ? -room : 0.0;
    }
    return over;
}

/* The hottest of the node's experts that no host holds: its place in `own`; -1: none. */
static int32_t hottest_left(const weighted_hosts *hosts, const host_sides *sides)
{
    int32_t i = sides->own - 1;
    while (i >= 0 && hosts->chosen[i])
        i--;
    return i;
}

/* Ways to fill the hosts of a node: with `count` whole experts; `shared`: also with so much of the hottest
 * that is left as the other ranks have too much. */
typedef struct filling {
    int32_t count;
    bool shared;
} filling;

/* Fills them. Returns how many tokens too much they or the other ranks then have. */
static double fill_with(weighted_hosts *hosts, const host_sides *sides, filling way)
{
    double sum = choose_cold(hosts, sides->own, way.count, way.shared ? 0.0 : sides->least);
    double over = divide_chosen(hosts, sides), shared = sides->least - sum;
    if (way.shared) {
        int32_t hot = hottest_left(hosts, sides), rank = roomiest_host(hosts, sides->node);
        if (hot < 0 || rank < 0 || shared <= 0.0 || own_load(hosts, hot) < shared)
            return INFINITY;
        int32_t slot = hosts->problem->first_slot[rank] + hosts->count[rank]++;
        hosts->answer->expert[slot] = hosts->own[hot];
        double room = hosts->room[rank] > 0.0 ? hosts->room[rank] : 0.0;
        hosts->room[rank] -= shared;
        over += shared > room ? shared - room : 0.0;
        sum += shared;
    }
    if (!sides->several_nodes)
        over = sum > sides->room ? sum - sides->room : 0.0;
    return over > sides->least - sum ? over : sides->least - sum;
}

/* The way to fill with most whole experts that leaves all ranks at the level, or the best there is. */
static filling choose_filling(weighted_hosts *hosts, const host_sides *sides)
{
    filling best = {sides->fewest, false};
    double off = INFINITY;
    for (int32_t count = sides->slots < sides->own ? sides->slots : sides->own; count >= sides->fewest;
         count--) {
        for (int shared = 0; shared < (count < sides->slots ? 2 : 1) && off > NEGLIGIBLE * hosts->rank_tokens;
             shared++) {
            filling way = {count, shared != 0};
            double over = fill_with(hosts, sides, way);
            if (over < off) {
                off = over;
                best = way;
            }
        }
    }
    return best;
}

void weighted_hosts_fill(weighted_hosts *hosts, int32_t node)
{
    const layer_problem *problem = hosts->problem;
    host_sides sides = measure_sides(hosts, node);
    if (sides.hosts == 0)
        return;
    filling way = choose_filling(hosts, &sides);
    (void)fill_with(hosts, &sides, way);
    int32_t hot = way.shared ? hottest_left(hosts, &sides) : -1;
    int32_t partly = hot >= 0 ? hosts->own[hot] : -1;
    double shared = sides.least;
    for (int32_t i = 0; i < sides.own; i++) {
        if (!hosts->chosen[i])
            continue;
        hosts->area[hosts->own[i]] = problem->num_nodes;
        shared -= own_load(hosts, i);
    }
    if (partly >= 0)
        hosts->kept[partly] -= (int64_t)shared;
    for (int32_t i = 0; i < hosts->num_pieces; i++) {
        int32_t first = problem->first_slot[hosts->piece[i].host];
        for (int32_t s = 1; hosts->piece[i].to == node && s < hosts->count[hosts->piece[i].host]; s++) {
            int32_t expert = hosts->answer->expert[first + s];
            hosts->answer->quota[first + s] = expert == partly ? (int64_t)shared : problem->load[expert];
        }
    }
}
