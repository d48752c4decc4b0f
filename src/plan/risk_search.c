/* Annealing on the risk of every rank.
 *
 * A high power of a rank's risk makes the largest ranks count and still tells two placements with the same
 * largest rank apart. Changes are the two of layout.h; a swap costs two sums of squares over the directions
 * of the risk. Acceptance as Metropolis', with the exponential deviate read off the bits of a seeded stream
 * (its logarithm piecewise linear), so that no libm decides. Sources: Kirkpatrick, Gelatt, Vecchi 1983; the
 * risk of a device as FlashLB's (vllm-ascend), who place greedily. */
#include "plan/risk_search.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/random.h"

#define SEED          UINT64_C(5)
#define COUNT_STEPS   8    /* one step in so many changes a count */
#define POLL_STEPS    4096 /* steps between questions whether to stop */
#define CLOCK_STEPS   256  /* steps between looks at the clock, where time is limited */
#define REFRESH_STEPS 1024 /* changes between fresh sums */

static size_t at(const risk_search *search, int32_t row)
{
    return (size_t)row * (size_t)search->stride;
}

/* Fraction of the expert that each of its `count` ranks carries in the risk. */
static double coefficient(const risk_search *search, int32_t expert, int32_t count)
{
    if (count == 1)
        return 1.0;
    double stays = search->aim.floating;
    double mean = (double)search->whole[at(search, expert) + (size_t)search->width];
    double replica = mean * (double)search->seats->num_ranks / (double)count; /* in means of a rank */
    if (search->aim.room > 0.0 && replica - search->aim.room > stays * replica)
        stays = 1.0 - search->aim.room / replica;
    return stays / (double)count;
}

static double power_of(double x, int32_t power)
{
    double result = 1.0;
    for (; power > 0; power >>= 1) {
        if ((power & 1) != 0)
            result *= x;
        x *= x;
    }
    return result;
}

static double cost_of(const risk_search *search, int32_t rank, float square, float mean, float noise)
{
    float variance = square + noise;
    double deviation = variance > 0.0f ? sqrt((double)variance) : 0.0;
    double risk = search->factor[rank] * ((double)mean + deviation);
    return power_of(risk > 0.0 ? risk : 0.0, search->aim.power);
}

/* Cost of a rank if it gives one replica row away and gets another. */
static double cost_with(const risk_search *search, int32_t rank, const float *gives, const float *gets)
{
    const float *has = search->carried + at(search, rank);
    int32_t width = search->width;
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int32_t i = 0; i < width; i += 4) {
        for (int32_t j = 0; j < 4; j++) {
            float x = has[i + j] - gives[i + j] + gets[i + j];
            sum[j] += x * x;
        }
    }
    return cost_of(search, rank, (sum[0] + sum[1]) + (sum[2] + sum[3]),
                   has[width] - gives[width] + gets[width],
                   has[width + 1] - gives[width + 1] + gets[width + 1]);
}

/* Cost of a rank if its fractions of two experts change by x and y, and their squares by x2 and y2. */
static double cost_moved(const risk_search *search, int32_t rank, const float *a, const float x[2],
                         const float *b, const float y[2])
{
    const float *has = search->carried + at(search, rank);
    int32_t width = search->width;
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int32_t i = 0; i < width; i += 4) {
        for (int32_t j = 0; j < 4; j++) {
            float v = has[i + j] + x[0] * a[i + j] + y[0] * b[i + j];
            sum[j] += v * v;
        }
    }
    return cost_of(search, rank, (sum[0] + sum[1]) + (sum[2] + sum[3]),
                   has[width] + x[0] * a[width] + y[0] * b[width],
                   has[width + 1] + x[1] * a[width + 1] + y[1] * b[width + 1]);
}

/* The row of one replica at the expert's count. */
static void write_replica(risk_search *search, int32_t expert)
{
    int32_t count = search->seats->count[expert];
    float part = (float)coefficient(search, expert, count > 0 ? count : 1);
    const float *whole = search->whole + at(search, expert);
    float *replica = search->replica + at(search, expert);
    for (int32_t i = 0; i < search->stride; i++)
        replica[i] = part * whole[i];
    replica[search->width + 1] = part * part * whole[search->width + 1];
}

static void add_row(float *to, const float *row, int32_t stride)
{
    for (int32_t i = 0; i < stride; i++)
        to[i] += row[i];
}

static void sum_rank(risk_search *search, int32_t rank)
{
    static const float nothing[2] = {0.0f, 0.0f};
    const layout *seats = search->seats;
    float *has = search->carried + at(search, rank);
    memset(has, 0, (size_t)search->stride * sizeof *has);
    for (int32_t p = seats->first_slot[rank]; p < seats->first_slot[rank + 1]; p++) {
        if (seats->expert[p] >= 0)
            add_row(has, search->replica + at(search, seats->expert[p]), search->stride);
    }
    search->cost[rank] = cost_moved(search, rank, search->whole, nothing, search->whole, nothing);
}

static void sum_everything(risk_search *search)
{
    search->total = 0.0;
    for (int32_t g = 0; g < search->seats->num_ranks; g++) {
        sum_rank(search, g);
        search->total += search->cost[g];
    }
    search->made = 0;
}

static bool is_outside(const risk_search *search, int32_t expert, int32_t rank)
{
    return search->rank_area != NULL && expert >= 0 && search->expert_area[expert] != search->rank_area[rank];
}

static bool is_received(const risk_search *search, int32_t expert, int32_t rank)
{
    if (search->home == NULL || expert < 0)
        return false;
    uint64_t word = search->home[(size_t)rank * (size_t)search->seats->words + (size_t)(expert >> 6)];
    return (word >> (expert & 63) & 1) == 0;
}

void risk_search_read(risk_search *search)
{
    const layout *seats = search->seats;
    for (int32_t e = 0; e < seats->num_experts; e++)
        write_replica(search, e);
    sum_everything(search);
    search->outside = 0;
    search->received = 0;
    for (int32_t p = 0; p < seats->num_slots; p++) {
        search->outside += is_outside(search, seats->expert[p], seats->slot_rank[p]);
        search->received += is_received(search, seats->expert[p], seats->slot_rank[p]);
    }
}

eplb_status risk_search_init(risk_search *search, const layer_problem *problem, layout *seats,
                             const window_risk *risk, const risk_aim *aim, arena *scratch, eplb_error *error)
{
    size_t experts = (size_t)problem->num_experts, ranks = (size_t)problem->num_ranks;
    *search =
        (risk_search){.problem = problem, .seats = seats, .aim = *aim, .width = risk->width, .until = 1.0};
    search->stride = search->width + 4;
    size_t stride = (size_t)search->stride;
    search->whole = arena_take_zero(scratch, experts * stride, sizeof(float));
    search->replica = arena_take_zero(scratch, experts * stride, sizeof(float));
    search->carried = arena_take_zero(scratch, ranks * stride, sizeof(float));
    search->factor = arena_take(scratch, ranks, sizeof(double));
    search->cost = arena_take(scratch, ranks, sizeof(double));
    search->touched = arena_take(scratch, 2 * ranks + 2, sizeof(int32_t));
    search->changed = arena_take(scratch, 2 * ranks + 2, sizeof(double));
    if (search->whole == NULL || search->replica == NULL || search->carried == NULL ||
        search->factor == NULL || search->cost == NULL || search->touched == NULL || search->changed == NULL)
        return error_memory(error, (experts + ranks) * stride * sizeof(float), "risk of the ranks");
    float caution = (float)aim->caution;
    for (int32_t e = 0; e < problem->num_experts; e++) {
        float *row = search->whole + at(search, e);
        for (int32_t i = 0; i < risk->width; i++)
            row[i] = caution * risk->spread[(size_t)e * (size_t)risk->width + (size_t)i];
        row[risk->width] = risk->mean[e];
        row[risk->width + 1] = caution * caution * risk->noise[e];
    }
    for (int32_t g = 0; g < problem->num_ranks; g++)
        search->factor[g] = (double)problem->total_speed / (double)problem->rank_speed[g];
    return EPLB_OK;
}

/* A change, its price and what it does. */
typedef struct risk_change {
    int32_t slot;
    int32_t other;  /* the slot to swap with, or -1 */
    int32_t expert; /* who gets the slot if there is no other */
    int32_t outside;
    int32_t received;
    double delta; /* of the total */
} risk_change;

/* True if the limits allow it; sets what it adds to both counts. */
static bool price(const risk_search *search, risk_change *change)
{
    const layout *seats = search->seats;
    int32_t g = seats->slot_rank[change->slot], leaves = seats->expert[change->slot], enters = change->expert;
    change->outside = is_outside(search, enters, g) - is_outside(search, leaves, g);
    change->received = is_received(search, enters, g) - is_received(search, leaves, g);
    if (change->other >= 0) {
        int32_t h = seats->slot_rank[change->other];
        change->outside += is_outside(search, leaves, h) - is_outside(search, enters, h);
        change->received += is_received(search, leaves, h) - is_received(search, enters, h);
    }
    if (change->outside > 0 && search->outside + change->outside > search->max_outside)
        return false;
    return change->received <= 0 || search->home == NULL ||
           search->received + change->received <= search->purse;
}

/* Looks at a swap; false if it is no change, not allowed or worse by more than `bar`. */
static bool look_at_swap(risk_search *search, risk_change *change, double bar)
{
    const layout *seats = search->seats;
    int32_t g = seats->slot_rank[change->slot], h = seats->slot_rank[change->other];
    int32_t a = seats->expert[change->slot], b = seats->expert[change->other];
    change->expert = b;
    if (g == h || a == b || a < 0 || b < 0 || layout_holds(seats, h, a) || layout_holds(seats, g, b) ||
        !price(search, change))
        return false;
    const float *row_a = search->replica + at(search, a), *row_b = search->replica + at(search, b);
    double at_g = cost_with(search, g, row_a, row_b);
    change->delta = at_g - search->cost[g] - search->cost[h];
    if (change->delta > bar)
        return false;
    double at_h = cost_with(search, h, row_b, row_a);
    change->delta += at_h;
    search->touched[0] = g;
    search->touched[1] = h;
    search->changed[0] = at_g;
    search->changed[1] = at_h;
    search->num_touched = 2;
    return change->delta <= bar;
}

static void touch(risk_search *search, risk_change *change, int32_t rank, double cost)
{
    search->touched[search->num_touched] = rank;
    search->changed[search->num_touched++] = cost;
    change->delta += cost - search->cost[rank];
}

/* Looks at giving `slot` to `expert`: everybody who holds the loser or the winner is concerned. */
static bool look_at_count(risk_search *search, risk_change *change, double bar)
{
    const layout *seats = search->seats;
    int32_t slot = change->slot, g = seats->slot_rank[slot], a = seats->expert[slot], b = change->expert;
    if (a == b || (a >= 0 && seats->count[a] < 2) || layout_holds(seats, g, b) || !price(search, change))
        return false;
    double had_b = coefficient(search, b, seats->count[b]),
           has_b = coefficient(search, b, seats->count[b] + 1);
    double had_a = a >= 0 ? coefficient(search, a, seats->count[a]) : 0.0;
    double has_a = a >= 0 ? coefficient(search, a, seats->count[a] - 1) : 0.0;
    const float none[2] = {0.0f, 0.0f};
    const float lost[2] = {(float)-had_a, (float)(-had_a * had_a)};
    const float more[2] = {(float)(has_a - had_a), (float)(has_a * has_a - had_a * had_a)};
    const float less[2] = {(float)(has_b - had_b), (float)(has_b * has_b - had_b * had_b)};
    const float won[2] = {(float)has_b, (float)(has_b * has_b)};
    const float *row_a = search->whole + at(search, a >= 0 ? a : b), *row_b = search->whole + at(search, b);
    change->delta = 0.0;
    search->num_touched = 0;
    touch(search, change, g, cost_moved(search, g, row_a, lost, row_b, won));
    for (int32_t p = a >= 0 ? seats->first[a] : -1; p >= 0; p = seats->next[p]) {
        int32_t h = seats->slot_rank[p];
        if (p != slot)
            touch(search, change, h,
                  cost_moved(search, h, row_a, more, row_b, layout_holds(seats, h, b) ? less : none));
    }
    for (int32_t p = seats->first[b]; p >= 0; p = seats->next[p]) {
        int32_t h = seats->slot_rank[p];
        if (!layout_holds(seats, h, a))
            touch(search, change, h, cost_moved(search, h, row_a, none, row_b, less));
    }
    return change->delta <= bar;
}

/* Sums of the ranks just touched, from their slots. */
static void settle(risk_search *search, const risk_change *change)
{
    search->outside += change->outside;
    search->received += change->received;
    for (int32_t i = 0; i < search->num_touched; i++)
        search->cost[search->touched[i]] = search->changed[i];
    search->total += change->delta;
    if (++search->made >= REFRESH_STEPS)
        sum_everything(search);
}

static void make_swap(risk_search *search, const risk_change *change)
{
    const layout *seats = search->seats;
    const float *a = search->replica + at(search, seats->expert[change->slot]);
    const float *b = search->replica + at(search, seats->expert[change->other]);
    float *g = search->carried + at(search, seats->slot_rank[change->slot]);
    float *h = search->carried + at(search, seats->slot_rank[change->other]);
    for (int32_t i = 0; i < search->stride; i++) {
        float d = b[i] - a[i];
        g[i] += d;
        h[i] -= d;
    }
    layout_swap(search->seats, change->slot, change->other);
    settle(search, change);
}

static void make_count(risk_search *search, const risk_change *change)
{
    int32_t loser = search->seats->expert[change->slot];
    layout_reassign(search->seats, change->slot, change->expert);
    write_replica(search, change->expert);
    if (loser >= 0)
        write_replica(search, loser);
    settle(search, change);
    for (int32_t i = 0; i < search->num_touched; i++)
        sum_rank(search, search->touched[i]);
}

/* Exponential deviate with mean 1, within 9 % of -log of a uniform one: the leading zeros are its octave. */
static double exponential(random_state *random)
{
    uint64_t bits = random_next(random) | 1;
    double octave = 1.0;
    for (; bits >> 63 == 0; bits <<= 1)
        octave += 1.0;
    return 0.6931471805599453 * (octave - (double)(bits << 1 >> 11) * 0x1p-53);
}

static void try_one(risk_search *search, random_state *random, bool count, double heat)
{
    uint32_t slots = (uint32_t)search->seats->num_slots, experts = (uint32_t)search->seats->num_experts;
    double bar = heat > 0.0 ? heat * search->total * exponential(random) : 0.0;
    risk_change change = {.slot = (int32_t)random_below(random, slots), .other = -1};
    if (count) {
        change.expert = (int32_t)random_below(random, experts);
        if (look_at_count(search, &change, bar))
            make_count(search, &change);
    } else {
        change.other = (int32_t)random_below(random, slots);
        if (look_at_swap(search, &change, bar))
            make_swap(search, &change);
    }
}

/* How a search cools down: with its steps, or with the clock where that is faster. */
typedef struct cooling {
    double heat;
    double start, time; /* part of the layer's time used before, and allowed */
    double gone;        /* of that time */
    double pace;        /* steps that the time allows, of all; fewer steps start less hot */
} cooling;

/* Looks at the clock. */
static void cool(cooling *c, const layer_problem *problem, int64_t step, int64_t steps)
{
    if (problem->time_used == NULL || step % CLOCK_STEPS != 0)
        return;
    c->gone = c->time > 0.0 ? (layer_time_used(problem) - c->start) / c->time : 1.0;
    double part = (double)step / (double)steps;
    c->pace = part < c->gone ? part / c->gone : 1.0;
}

static double heat_at(const cooling *c, int64_t step, int64_t steps)
{
    double left = 1.0 - (double)step / (double)steps;
    left = 1.0 - c->gone < left ? 1.0 - c->gone : left;
    return c->heat * c->pace * left * left;
}

void risk_search_anneal(risk_search *search, int64_t steps, double heat)
{
    random_state random = random_seed(SEED);
    const layer_problem *problem = search->problem;
    double start = layer_time_used(problem);
    cooling c = {.heat = heat, .start = start, .time = search->until - start, .pace = 1.0};
    for (int64_t step = 0; step < steps; step++) {
        if (step % POLL_STEPS == 0 && layer_is_stopped(problem))
            break;
        cool(&c, problem, step, steps);
        if (c.gone >= 1.0)
            break;
        try_one(search, &random, step % COUNT_STEPS == 0, heat_at(&c, step, steps));
    }
    sum_everything(search);
}

/* Takes `change` as the best if it saves more per received expert; one that costs nothing counts as a
 * quarter. */
static void compare(const risk_change *change, risk_change *best, double *best_score)
{
    double worth = change->received > 0 ? 1.0 / (double)change->received : 4.0;
    double score = -change->delta * worth;
    if (score > *best_score) {
        *best_score = score;
        *best = *change;
    }
}

/* The best change that concerns a rank; its `delta` is 0 if there is none. */
static risk_change best_around(risk_search *search, int32_t rank)
{
    const layout *seats = search->seats;
    risk_change best = {.slot = -1};
    double score = search->total * 1e-9;
    for (int32_t p = seats->first_slot[rank]; p < seats->first_slot[rank + 1]; p++) {
        for (int32_t q = 0; q < seats->num_slots; q++) {
            risk_change change = {.slot = p, .other = q};
            if (look_at_swap(search, &change, 0.0))
                compare(&change, &best, &score);
            change = (risk_change){.slot = q, .other = -1, .expert = seats->expert[p]};
            if (seats->expert[p] >= 0 && look_at_count(search, &change, 0.0))
                compare(&change, &best, &score);
        }
        for (int32_t e = 0; e < seats->num_experts; e++) {
            risk_change change = {.slot = p, .other = -1, .expert = e};
            if (look_at_count(search, &change, 0.0))
                compare(&change, &best, &score);
        }
    }
    return best;
}

static bool improve_around(risk_search *search, int32_t rank)
{
    risk_change best = best_around(search, rank);
    if (best.slot < 0)
        return false;
    if (best.other >= 0) {
        if (look_at_swap(search, &best, 0.0))
            make_swap(search, &best);
    } else if (look_at_count(search, &best, 0.0)) {
        make_count(search, &best);
    }
    return true;
}

/* The rank with the largest cost below that of `after` (-1: of all); ties to the lowest. -1: none. */
static int32_t next_riskiest(const risk_search *search, int32_t after)
{
    int32_t best = -1;
    for (int32_t g = 0; g < search->seats->num_ranks; g++) {
        bool behind = after < 0 || search->cost[g] < search->cost[after] ||
                      (search->cost[g] == search->cost[after] && g > after);
        if (behind && (best < 0 || search->cost[g] > search->cost[best]))
            best = g;
    }
    return best;
}

bool risk_search_improve(risk_search *search)
{
    int32_t rank = -1;
    for (int32_t tries = 0; tries < 4; tries++) {
        rank = next_riskiest(search, rank);
        if (rank < 0)
            return false;
        if (improve_around(search, rank))
            return true;
    }
    return false;
}
