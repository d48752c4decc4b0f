/* Every policy, split and limit together on random inputs, several layers and windows: what all plans
 * promise.
 *
 * EPLB_PROPERTY_CASES sets the number of cases (default 3,000); EPLB_PROPERTY_SEED runs the one that a
 * failure named. A call ends in a plan or in a documented refusal with a reason. Everything is checked from
 * slots and shares alone, by scans: live replicas, none twice, shares that add up, the imbalance that is
 * said, the bound below it, moves within the limit and never for the worse, replicas outside their group's
 * node, the same bytes with three threads. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <eplb/eplb.h>

#include "../nouns.h"
#include "base/random.h"

enum { MOST_RANKS = 8, MOST_EXPERTS = 24, MOST_SLOTS = MOST_RANKS * 6, MOST_LAYERS = 2, MOST_WINDOWS = 5 };

typedef struct random_case {
    random_state random;
    uint64_t seed;
    int32_t experts, ranks, nodes, slots, live_slots, live_ranks, layers, windows;
    int32_t rank_slots[MOST_RANKS], rank_speed[MOST_RANKS];
    uint8_t rank_alive[MOST_RANKS];
    bool even; /* all ranks alive, alike and the same number on each node */
    int64_t counts[MOST_WINDOWS][MOST_LAYERS][MOST_EXPERTS];
    bool reshaped; /* the current placement has other ranks or slots */
    int32_t was_ranks, was_slots[MOST_RANKS], was_total;
    eplb_topology *topology;
    eplb_load *load;
    eplb_placement *current;
    eplb_plan_params params;
} random_case;

static int32_t pick(random_case *c, int32_t least, int32_t most)
{
    return least + (int32_t)random_below(&c->random, (uint32_t)(most - least + 1));
}

static bool chance(random_case *c, int32_t percent)
{
    return pick(c, 1, 100) <= percent;
}

static void require(const random_case *c, bool holds, const char *what)
{
    if (!holds)
        fail_msg("seed %llu, policy %s, split %d: %s", (unsigned long long)c->seed, c->params.policy,
                 (int)c->params.split, what);
}

static void draw_topology(random_case *c)
{
    c->even = chance(c, 60);
    c->ranks = pick(c, 1, MOST_RANKS);
    c->nodes = pick(c, 1, c->ranks);
    if (c->even) {
        while (c->ranks % c->nodes != 0)
            c->nodes--;
    }
    int32_t k = pick(c, 1, 6);
    for (int32_t g = 0; g < c->ranks; g++) {
        c->rank_slots[g] = c->even ? k : pick(c, 0, 6);
        c->rank_speed[g] = c->even ? 1 : pick(c, 1, 4);
        c->rank_alive[g] = c->even || g == 0 || chance(c, 85);
        c->slots += c->rank_slots[g];
        c->live_ranks += c->rank_alive[g];
        c->live_slots += c->rank_alive[g] ? c->rank_slots[g] : 0;
    }
    if (c->live_slots == 0)
        return;
    eplb_topology_params params;
    eplb_topology_params_init(&params, sizeof params);
    params.num_ranks = c->ranks;
    params.num_nodes = c->nodes;
    params.rank_slots = c->rank_slots;
    params.rank_speed = c->rank_speed;
    params.rank_alive = c->rank_alive;
    assert_int_equal(eplb_topology_create(&c->topology, &params, NULL, NULL), EPLB_OK);
}

/* Windows that differ: some experts are hot together. */
static eplb_load *draw_load(random_case *c)
{
    int32_t kind = pick(c, 0, 4);
    for (int32_t t = 0; t < c->windows; t++) {
        for (int32_t l = 0; l < c->layers; l++) {
            int32_t topic = pick(c, 1, 3);
            for (int32_t e = 0; e < c->experts; e++) {
                int64_t base = pick(c, 0, 500);
                c->counts[t][l][e] = kind == 0            ? 0
                                     : kind == 1          ? base * base
                                     : e % topic == 0     ? 4 * base
                                     : kind == 2 && t > 0 ? 0
                                                          : base;
            }
        }
    }
    int64_t packed[MOST_WINDOWS * MOST_LAYERS * MOST_EXPERTS], *next = packed;
    for (int32_t t = 0; t < c->windows; t++) {
        for (int32_t l = 0; l < c->layers; l++, next += c->experts)
            memcpy(next, c->counts[t][l], (size_t)c->experts * sizeof *next);
    }
    return case_load(c->windows, c->layers, c->experts, packed);
}

static void draw_wishes(random_case *c)
{
    eplb_plan_params_init(&c->params, sizeof c->params);
    c->params.policy = eplb_policy_name(pick(c, 0, eplb_policy_count() - 1));
    c->params.split = (eplb_split)pick(c, EPLB_SPLIT_EQUAL, EPLB_SPLIT_BATCH);
    c->params.work_limit = pick(c, 1, 300);
    for (int32_t d = 2; d <= c->experts && c->nodes > 1; d++) {
        if (c->experts % d == 0 && chance(c, 40))
            c->params.num_groups = d;
    }
    if (chance(c, 40))
        c->params.max_spill = pick(c, 0, 4);
    if (chance(c, 10)) {
        c->params.cost.activated = pick(c, 1, 50);
        c->params.max_spill = 0; /* refused together */
    }
}

/* Other ranks and slots that hold all experts, or NULL: the same. */
static eplb_topology *draw_ranks_before(random_case *c)
{
    c->was_ranks = c->ranks;
    memcpy(c->was_slots, c->rank_slots, sizeof c->was_slots);
    c->was_total = c->slots;
    if (!chance(c, 40))
        return NULL;
    int32_t ranks = chance(c, 50) ? c->ranks : pick(c, 1, MOST_RANKS), slots[MOST_RANKS], total = 0;
    for (int32_t g = 0; g < ranks; g++)
        total += slots[g] = pick(c, 0, 6);
    if (total < c->experts)
        return NULL;
    c->reshaped = true;
    c->was_ranks = ranks;
    c->was_total = total;
    memcpy(c->was_slots, slots, (size_t)ranks * sizeof *slots);
    eplb_topology_params params;
    eplb_topology *was;
    eplb_topology_params_init(&params, sizeof params);
    params.num_ranks = ranks;
    params.rank_slots = slots;
    assert_int_equal(eplb_topology_create(&was, &params, NULL, NULL), EPLB_OK);
    return was;
}

/* Takes replicas that are not the only one out of a layer, or puts an expert of their rank in their place. */
static void damage(random_case *c, int32_t *slots)
{
    for (int32_t g = 0, first = 0; g < c->was_ranks; first += c->was_slots[g++]) {
        for (int32_t p = first; p < first + c->was_slots[g]; p++) {
            int32_t others = 0;
            for (int32_t q = 0; q < c->was_total; q++)
                others += q != p && slots[p] >= 0 && slots[q] == slots[p];
            if (others > 0 && chance(c, 40))
                slots[p] = chance(c, 50) ? -1 : slots[pick(c, first, first + c->was_slots[g] - 1)];
        }
    }
}

/* A plan for another load, so that it is whole, sometimes then damaged; the next starts from it. */
static void draw_current(random_case *c)
{
    if (!chance(c, 40))
        return;
    eplb_plan_params params;
    eplb_plan_params_init(&params, sizeof params);
    params.policy = "greedy";
    params.num_groups = c->params.num_groups;
    eplb_load *before = draw_load(c);
    eplb_topology *was = draw_ranks_before(c);
    const eplb_topology *ranks = was != NULL ? was : c->topology;
    params.num_groups = c->reshaped ? 1 : params.num_groups;
    eplb_plan *plan;
    assert_int_equal(eplb_plan_create(&plan, before, ranks, &params, NULL, NULL), EPLB_OK);
    int32_t slots[MOST_LAYERS * MOST_RANKS * 6];
    memcpy(slots, eplb_placement_physical_to_logical(eplb_plan_placement(plan)),
           (size_t)(c->layers * c->was_total) * sizeof *slots);
    for (int32_t l = 0; l < c->layers && chance(c, 50); l++)
        damage(c, slots + l * c->was_total);
    assert_int_equal(eplb_placement_create(&c->current, ranks, c->layers, c->experts, slots, NULL, NULL),
                     EPLB_OK);
    eplb_plan_destroy(plan);
    eplb_topology_destroy(was);
    eplb_load_destroy(before);
    c->params.current = c->current;
    if (chance(c, 60))
        c->params.max_moves_per_layer = pick(c, 0, 6);
    if (chance(c, 30))
        c->params.max_moves = pick(c, 0, 9);
}

static bool draw(random_case *c, uint64_t seed)
{
    memset(c, 0, sizeof *c);
    c->seed = seed;
    c->random = random_seed(seed);
    draw_topology(c);
    if (c->live_slots == 0)
        return false;
    c->experts = pick(c, 1, c->live_slots < MOST_EXPERTS ? c->live_slots : MOST_EXPERTS);
    c->layers = pick(c, 1, MOST_LAYERS);
    c->windows = chance(c, 50) ? 1 : pick(c, 2, MOST_WINDOWS);
    draw_wishes(c);
    draw_current(c);
    c->load = draw_load(c);
    return true;
}

static void undraw(random_case *c)
{
    eplb_placement_destroy(c->current);
    eplb_load_destroy(c->load);
    eplb_topology_destroy(c->topology);
}

static bool is_published(const random_case *c)
{
    return strcmp(c->params.policy, "deepseek") == 0 || strcmp(c->params.policy, "vllm") == 0;
}

/* Replicas of each expert on each rank of a layer. */
typedef struct census {
    int32_t held[MOST_RANKS][MOST_EXPERTS];
    int32_t replicas[MOST_EXPERTS];
} census;

static void count_replicas(const random_case *c, const int32_t *slots, census *out)
{
    memset(out, 0, sizeof *out);
    for (int32_t g = 0, p = 0; g < c->ranks; g++) {
        for (int32_t i = 0; i < c->rank_slots[g]; i++, p++) {
            require(c, c->rank_alive[g] || slots[p] == -1, "a dead rank holds something");
            require(c, slots[p] >= -1 && slots[p] < c->experts, "a slot holds no expert");
            if (slots[p] >= 0) {
                out->held[g][slots[p]]++;
                out->replicas[slots[p]]++;
            }
        }
    }
}

/* What the ranks that live on hold in a layer of the current placement, in whatever slot. */
static void count_before(const random_case *c, int32_t layer, census *out)
{
    const int32_t *slots =
        eplb_placement_physical_to_logical(c->params.current) + (size_t)layer * (size_t)c->was_total;
    memset(out, 0, sizeof *out);
    for (int32_t g = 0, p = 0; g < c->was_ranks; g++) {
        for (int32_t i = 0; i < c->was_slots[g]; i++, p++) {
            if (g >= c->ranks || !c->rank_alive[g] || slots[p] < 0)
                continue;
            out->held[g][slots[p]]++;
            out->replicas[slots[p]]++;
        }
    }
}

static void check_slots(const random_case *c, const census *now)
{
    for (int32_t e = 0; e < c->experts; e++) {
        require(c, now->replicas[e] > 0, "an expert has no replica");
        require(c, is_published(c) || now->replicas[e] <= c->live_ranks, "more replicas than ranks");
        for (int32_t g = 0; g < c->ranks; g++)
            require(c, is_published(c) || now->held[g][e] <= 1, "an expert twice on a rank");
    }
}

static int64_t sum_of(const random_case *c, int32_t layer, int32_t expert)
{
    int64_t sum = 0;
    for (int32_t t = 0; t < c->windows; t++)
        sum += c->counts[t][layer][expert];
    return sum;
}

/* Imbalance of the summed load under the plan's shares, and that shares of an expert add up to 1. */
static double imbalance_of(const random_case *c, int32_t layer, const int32_t *slots, const double *shares)
{
    double sum[MOST_EXPERTS] = {0}, most = 0.0, total = 0.0, speed = 0.0;
    for (int32_t g = 0, p = 0; g < c->ranks; g++) {
        double borne = 0.0;
        for (int32_t i = 0; i < c->rank_slots[g]; i++, p++) {
            if (slots[p] < 0)
                continue;
            require(c, shares[p] >= 0.0 && shares[p] <= 1.0, "a share is no share");
            sum[slots[p]] += shares[p];
            borne += shares[p] * (double)sum_of(c, layer, slots[p]);
        }
        most = fmax(most, borne / c->rank_speed[g]);
        total += borne;
        speed += c->rank_alive[g] ? c->rank_speed[g] : 0;
    }
    for (int32_t e = 0; e < c->experts; e++)
        require(c, fabs(sum[e] - 1.0) < 1e-12, "shares of an expert do not add up");
    return total > 0.0 ? most / (total / speed) : 1.0;
}

/* Where the split is batch, shares are one split among many: T* is what is said. */
static void check_imbalance(const random_case *c, int32_t layer, const eplb_plan *plan, const int32_t *slots)
{
    const double *shares = eplb_plan_shares(plan) + (size_t)layer * (size_t)c->slots;
    double said = eplb_plan_imbalance(plan)[layer], found = imbalance_of(c, layer, slots, shares);
    require(c, fabs(said - found) <= 1e-9 * found, "the imbalance is not what slots and shares give");
    require(c, eplb_plan_lower_bound(plan)[layer] <= said * (1 + 1e-9), "below its own bound");
    require(c, eplb_plan_lower_bound(plan)[layer] >= 1.0 - 1e-9, "a bound below the mean");
}

static int64_t received_of(const random_case *c, const census *before, const census *now)
{
    int64_t received = 0;
    for (int32_t g = 0; g < c->ranks; g++) {
        for (int32_t e = 0; e < c->experts; e++)
            received += now->held[g][e] > 0 && before->held[g][e] == 0;
    }
    return received;
}

/* True if a rank holds an expert twice: such a placement may not stay as it is. */
static bool is_doubled(const random_case *c, const census *now)
{
    for (int32_t g = 0; g < c->ranks; g++) {
        for (int32_t e = 0; e < c->experts; e++) {
            if (now->held[g][e] > 1)
                return true;
        }
    }
    return false;
}

/* True if a placement is legal as it is. */
static bool may_stay(const random_case *c, const census *now)
{
    for (int32_t e = 0; e < c->experts; e++) {
        if (now->replicas[e] == 0)
            return false;
    }
    return !is_doubled(c, now);
}

/* Ours keep the limits and never make the sum worse; windows and batch judge by windows instead. */
static void check_moves(const random_case *c, int32_t layer, const eplb_plan *plan, const census *now,
                        int64_t *received)
{
    census before;
    count_before(c, layer, &before);
    int64_t moved = received_of(c, &before, now);
    *received += moved;
    if (is_published(c))
        return;
    require(c, c->params.max_moves_per_layer < 0 || moved <= c->params.max_moves_per_layer,
            "more moves than allowed in a layer");
    if (c->windows > 1 || c->params.split != EPLB_SPLIT_EQUAL || c->params.cost.activated > 0)
        return;
    if (strcmp(c->params.policy, "greedy") == 0 || c->reshaped || is_doubled(c, &before))
        return;
    double all[MOST_LAYERS];
    assert_int_equal(eplb_imbalance_per_layer(c->load, c->params.current, NULL, all, NULL, NULL), EPLB_OK);
    require(c, eplb_plan_imbalance(plan)[layer] <= all[layer] * (1 + 1e-12), "worse than keeping");
}

static int32_t node_of_rank(const random_case *c, int32_t rank)
{
    return rank * c->nodes / c->ranks;
}

/* Replicas of a layer outside the node that holds most of their group. */
static int32_t outside(const random_case *c, const census *now)
{
    int32_t away = 0, size = c->experts / c->params.num_groups;
    for (int32_t q = 0; q < c->params.num_groups; q++) {
        int32_t inside[MOST_RANKS] = {0}, most = 0, all = 0;
        for (int32_t g = 0; g < c->ranks; g++) {
            for (int32_t e = q * size; e < (q + 1) * size; e++)
                inside[node_of_rank(c, g)] += now->held[g][e];
        }
        for (int32_t n = 0; n < c->nodes; n++) {
            most = inside[n] > most ? inside[n] : most;
            all += inside[n];
        }
        away += all - most;
    }
    return away;
}

/* The node where most replicas of an expert's group are, the first of several. */
static int32_t node_of_group(const random_case *c, const census *now, int32_t expert)
{
    int32_t size = c->experts / (c->params.num_groups > 1 ? c->params.num_groups : 1),
            inside[MOST_RANKS] = {0};
    for (int32_t g = 0; g < c->ranks; g++) {
        for (int32_t e = expert / size * size; e < expert / size * size + size; e++)
            inside[node_of_rank(c, g)] += now->held[g][e];
    }
    int32_t best = 0;
    for (int32_t n = 1; n < c->nodes; n++)
        best = inside[n] > inside[best] ? n : best;
    return best;
}

/* The hottest rank's time where every replica serves an equal part of the sum; one more of `extra` on `rank`
 * unless that is -1: of that rank alone. */
static double equal_time(const random_case *c, int32_t layer, const census *now, int32_t rank, int32_t extra)
{
    double most = 0.0;
    for (int32_t g = rank < 0 ? 0 : rank; g < (rank < 0 ? c->ranks : rank + 1); g++) {
        double borne = 0.0;
        for (int32_t e = 0; e < c->experts; e++) {
            bool more = rank >= 0 && e == extra;
            if (now->held[g][e] > 0 || more)
                borne += (double)sum_of(c, layer, e) / (now->replicas[e] + more) * (now->held[g][e] + more);
        }
        most = fmax(most, borne / c->rank_speed[g]);
    }
    return most;
}

static bool may_take(const random_case *c, const census *now, int32_t rank, int32_t expert)
{
    return now->held[rank][expert] == 0 && (c->nodes == 1 || c->params.num_groups <= 1 ||
                                            node_of_group(c, now, expert) == node_of_rank(c, rank));
}

/* Empty slots of every live rank; true if some of them cannot be filled whatever is done. */
static bool count_empty(const random_case *c, const int32_t *slots, const census *now, int32_t *empty)
{
    bool stuck = false;
    for (int32_t g = 0, p = 0; g < c->ranks; g++) {
        int32_t fitting = 0;
        empty[g] = 0;
        for (int32_t i = 0; i < c->rank_slots[g]; i++, p++)
            empty[g] += c->rank_alive[g] && slots[p] < 0;
        for (int32_t e = 0; e < c->experts; e++)
            fitting += may_take(c, now, g, e);
        stuck = stuck || empty[g] > fitting;
    }
    return stuck;
}

/* No empty slot could be filled, or with a time of its rank up to `limit`. */
static void check_empty(const random_case *c, int32_t layer, const census *now, const int32_t *empty,
                        double limit)
{
    for (int32_t g = 0; g < c->ranks; g++) {
        for (int32_t e = 0; e < c->experts && empty[g] > 0; e++)
            require(c, !may_take(c, now, g, e) || equal_time(c, layer, now, g, e) > limit,
                    "a slot is empty that could be filled");
    }
}

/* Ours leave a slot empty only for lack of moves, or, with equal shares, where filling it costs: a placement
 * that may stay is not made worse, and nothing is paid where other slots stay empty in any case. */
static void check_filled(const random_case *c, int32_t layer, const int32_t *slots, const census *now)
{
    census before;
    int32_t empty[MOST_RANKS];
    int64_t most = c->params.max_moves_per_layer;
    bool stuck = count_empty(c, slots, now, empty), kept = false;
    if (c->current != NULL) {
        count_before(c, layer, &before);
        kept = c->reshaped || may_stay(c, &before);
        if (most >= 0 && received_of(c, &before, now) >= most)
            return;
    }
    if (c->params.split != EPLB_SPLIT_EQUAL || (!kept && !stuck))
        check_empty(c, layer, now, empty, INFINITY);
    else if (c->windows == 1 && c->params.cost.activated == 0 && !c->reshaped)
        check_empty(c, layer, now, empty, equal_time(c, layer, kept ? &before : now, -1, -1) * (1 - 1e-9));
}

/* Node limits can be kept for certain where ranks are alike and groups divide by nodes. */
static bool is_limited(const random_case *c)
{
    return c->even && c->nodes > 1 && c->params.num_groups > 1 && c->params.num_groups % c->nodes == 0;
}

static void check_plan(const random_case *c, const eplb_plan *plan)
{
    eplb_error error;
    require(c, eplb_plan_is_valid(plan, &error) == EPLB_OK, "not valid");
    int64_t received = 0;
    for (int32_t l = 0; l < c->layers; l++) {
        const int32_t *slots =
            eplb_placement_physical_to_logical(eplb_plan_placement(plan)) + (size_t)l * (size_t)c->slots;
        census now;
        count_replicas(c, slots, &now);
        check_slots(c, &now);
        check_imbalance(c, l, plan, slots);
        if (!is_published(c) && c->params.max_moves < 0)
            check_filled(c, l, slots, &now);
        if (c->current != NULL)
            check_moves(c, l, plan, &now, &received);
        if (is_limited(c) && c->current == NULL)
            require(c, outside(c, &now) <= (is_published(c) ? 0 : c->params.max_spill),
                    "too many replicas outside");
    }
    if (c->current == NULL)
        return;
    require(c, eplb_plan_moves(plan).received == received, "moves are miscounted");
    require(c, is_published(c) || c->params.max_moves < 0 || received <= c->params.max_moves,
            "more moves than allowed");
}

static void check_threads(random_case *c, const eplb_plan *plan)
{
    eplb_plan *again;
    c->params.num_threads = 3;
    assert_int_equal(eplb_plan_create(&again, c->load, c->topology, &c->params, NULL, NULL), EPLB_OK);
    require(c, eplb_plan_equal(plan, again) && eplb_plan_hash(plan) == eplb_plan_hash(again),
            "three threads plan otherwise");
    eplb_plan_destroy(again);
}

/* Finds a rank with a slot for the expert among those that hold it; others give way (Kuhn's recursion). */
static bool keep(const random_case *c, const census *before, int32_t expert, int32_t used[MOST_RANKS],
                 int32_t *owner, bool *tried)
{
    for (int32_t g = 0; g < c->ranks; g++) {
        if (tried[g] || before->held[g][expert] == 0)
            continue;
        tried[g] = true;
        bool room = used[g] < c->rank_slots[g];
        for (int32_t e = 0; e < c->experts && !room; e++)
            room = owner[e] == g && keep(c, before, e, used, owner, tried);
        if (!room)
            continue;
        if (owner[expert] >= 0)
            used[owner[expert]]--;
        owner[expert] = g;
        used[g]++;
        return true;
    }
    return false;
}

/* Experts that any plan must receive in a layer. */
static int64_t need_of(const random_case *c, int32_t layer)
{
    census before;
    int32_t used[MOST_RANKS] = {0}, owner[MOST_EXPERTS];
    int64_t need = 0;
    count_before(c, layer, &before);
    memset(owner, -1, sizeof owner);
    for (int32_t e = 0; e < c->experts; e++) {
        bool tried[MOST_RANKS] = {false};
        need += !keep(c, &before, e, used, owner, tried);
    }
    return need;
}

/* A limit of moves is refused only where no plan keeps it; policies without a frontier divide a total
 * evenly. */
static bool is_too_tight(const random_case *c)
{
    int64_t all = 0;
    bool refused = false;
    for (int32_t l = 0; l < c->layers && c->current != NULL; l++) {
        int64_t need = need_of(c, l);
        all += need;
        refused |= c->params.max_moves_per_layer >= 0 && need > c->params.max_moves_per_layer;
        refused |= c->params.max_moves >= 0 && need > c->params.max_moves / c->layers &&
                   strcmp(c->params.policy, "auto") != 0 && strcmp(c->params.policy, "equal") != 0 &&
                   strcmp(c->params.policy, "weighted") != 0;
    }
    return refused || (c->params.max_moves >= 0 && all > c->params.max_moves);
}

/* What may be refused: a wish that the policy cannot grant. auto grants all. */
static void check_refusal(const random_case *c, eplb_status status, const eplb_error *error)
{
    require(c, error->text[0] != '\0', "refused without a reason");
    if (status == EPLB_ERROR_INFEASIBLE) {
        require(c, is_too_tight(c), error->text);
        return;
    }
    require(c, status == EPLB_ERROR_UNSUPPORTED || status == EPLB_ERROR_INVALID, error->text);
    require(c, strcmp(c->params.policy, "auto") != 0 || c->params.split != EPLB_SPLIT_EQUAL, error->text);
}

static int check_case(uint64_t seed)
{
    random_case c;
    int planned = 0;
    if (draw(&c, seed)) {
        eplb_plan *plan;
        eplb_error error;
        eplb_status status = eplb_plan_create(&plan, c.load, c.topology, &c.params, NULL, &error);
        if (status == EPLB_OK) {
            planned = 1;
            check_plan(&c, plan);
            if (seed % 5 == 0)
                check_threads(&c, plan);
        } else {
            check_refusal(&c, status, &error);
        }
        eplb_plan_destroy(plan);
    }
    undraw(&c);
    return planned;
}

static void every_policy_keeps_its_promises(void **state)
{
    (void)state;
    const char *text = getenv("EPLB_PROPERTY_CASES"), *seed = getenv("EPLB_PROPERTY_SEED");
    if (seed != NULL) {
        (void)check_case((uint64_t)strtoull(seed, NULL, 10));
        return;
    }
    long cases = text != NULL ? atol(text) : 3000, planned = 0;
    for (long i = 0; i < cases; i++)
        planned += check_case((uint64_t)i * 104729 + 5);
    /* A generator that only draws what is refused would test nothing. */
    assert_true(planned > cases / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_policy_keeps_its_promises)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
