/* Equal split with one or two slots a rank: a search over replica counts alone.
 *
 * For given counts the best places are known: the heaviest replicas alone on the ranks with one slot, then
 * heaviest with lightest, second heaviest with second lightest, and so on inwards (exchange argument; an
 * expert that meets itself there is put right afterwards).
 * So places need no search, and a change of counts is judged with all ranks paired anew, where a search over
 * counts and places sees the two experts' own ranks get worse. Annealing (Kirkpatrick et al. 1983): a
 * step takes a replica from one expert and gives it to another; what counts is the excess over an aim halfway
 * between the floor and the best so far. O(S) a step. */
#include "plan/pair_counts.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/random.h"
#include "plan/sort_loads.h"

#define SEED UINT64_C(20240602)
#define HEAT 3e-4 /* of the squared floor, at the start */
#define AIM  0.5  /* of the way from the floor to the best */
#define LOOK 8    /* pairs between two looks at the bar */
#define POLL 1024

/* Ranks with one and two slots; false if one has more. */
static bool count_ranks(const layer_problem *problem, int32_t *singles, int32_t *doubles)
{
    *singles = *doubles = 0;
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        int32_t slots = problem->first_slot[g + 1] - problem->first_slot[g];
        if (slots > 2)
            return false;
        *singles += slots == 1;
        *doubles += slots == 2;
    }
    return true;
}

bool pair_counts_apply(const layer_problem *problem)
{
    int32_t singles, doubles;
    return problem->uniform_speed && count_ranks(problem, &singles, &doubles) && doubles > 0 &&
           singles + doubles > 1 && problem->num_slots > problem->num_experts &&
           (int64_t)problem->num_experts * (singles + doubles) >= problem->num_slots;
}

typedef struct pairing {
    const replica_work *work;
    int32_t *count; /* [E] */
    int32_t *many;  /* [num_many] experts with more than one replica */
    int32_t *place; /* [E] where in many; not looked at for others */
    int32_t num_many;
    int32_t *best;       /* [E] counts of the least hottest rank so far */
    double *load;        /* [S] of all replicas, ascending */
    double *trial;       /* [S] the same after a change */
    int32_t num_slots;   /* S */
    int32_t num_pairs;   /* ranks with two slots; the others have one */
    int32_t num_experts; /* E */
    int32_t most;        /* replicas of an expert: ranks that have a slot */
    double floor;
    double aim;     /* moves with the best */
    double excess;  /* sum over pairs of max(0, load - aim)^2 */
    double hottest; /* of best */
} pairing;

/* First place in ascending load[n] whose value is not below `value`. */
static int32_t first_not_below(const double *load, int32_t n, double value)
{
    int32_t low = 0;
    while (n > 0) {
        int32_t half = n / 2;
        if (load[low + half] < value) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}

static void take_run(double *load, int32_t *n, double value, int32_t count)
{
    int32_t at = first_not_below(load, *n, value);
    *n -= count;
    memmove(load + at, load + at + count, (size_t)(*n - at) * sizeof *load);
}

static void put_run(double *load, int32_t *n, double value, int32_t count)
{
    int32_t at = first_not_below(load, *n, value);
    memmove(load + at + count, load + at, (size_t)(*n - at) * sizeof *load);
    for (int32_t i = at; i < at + count; i++)
        load[i] = value;
    *n += count;
}

/* Excess over the aim when load[num_slots] is dealt out, or some value above `bar` if it is above; *hottest:
 * the hottest rank. */
static double fold(const pairing *pairs, const double *load, double bar, double *hottest)
{
    int32_t n = pairs->num_pairs, last = 2 * n - 1;
    double sum = 0, most = load[pairs->num_slots - 1], aim = pairs->aim;
    for (int32_t i = pairs->num_slots - 1; i > last && load[i] > aim; i--)
        sum += (load[i] - aim) * (load[i] - aim);
    for (int32_t i = 0; i < n && sum <= bar; i += LOOK) {
        int32_t end = i + LOOK < n ? i + LOOK : n;
        for (int32_t j = i; j < end; j++) {
            double pair = load[j] + load[last - j];
            double over = pair > aim ? pair - aim : 0;
            most = pair > most ? pair : most;
            sum += over * over;
        }
    }
    *hottest = most;
    return sum;
}

static void join_many(pairing *pairs, int32_t expert)
{
    pairs->place[expert] = pairs->num_many;
    pairs->many[pairs->num_many++] = expert;
}

static void leave_many(pairing *pairs, int32_t expert)
{
    int32_t last = pairs->many[--pairs->num_many], at = pairs->place[expert];
    pairs->many[at] = last;
    pairs->place[last] = at;
}

/* The replicas as they are become the best; the aim falls. */
static void keep_best(pairing *pairs, double hottest)
{
    double same;
    pairs->hottest = hottest;
    pairs->aim = pairs->floor + (hottest - pairs->floor) * AIM;
    pairs->excess = fold(pairs, pairs->load, INFINITY, &same);
    memcpy(pairs->best, pairs->count, (size_t)pairs->num_experts * sizeof *pairs->best);
}

/* Gives one of `from`'s replicas to `to`, unless that leaves more excess than `bar`. */
static void try_change(pairing *pairs, int32_t from, int32_t to, double bar)
{
    const replica_work *work = pairs->work;
    int32_t n = pairs->num_slots, less = pairs->count[from], more = pairs->count[to];
    double hottest;
    memcpy(pairs->trial, pairs->load, (size_t)n * sizeof *pairs->trial);
    take_run(pairs->trial, &n, replica_work_at(work, from, less), less);
    put_run(pairs->trial, &n, replica_work_at(work, from, less - 1), less - 1);
    take_run(pairs->trial, &n, replica_work_at(work, to, more), more);
    put_run(pairs->trial, &n, replica_work_at(work, to, more + 1), more + 1);
    double excess = fold(pairs, pairs->trial, bar, &hottest);
    if (excess > bar)
        return;
    double *load = pairs->load;
    pairs->load = pairs->trial;
    pairs->trial = load;
    pairs->excess = excess;
    if (--pairs->count[from] == 1)
        leave_many(pairs, from);
    if (++pairs->count[to] == 2)
        join_many(pairs, to);
    if (hottest < pairs->hottest)
        keep_best(pairs, hottest);
}

static eplb_status pairing_init(pairing *pairs, const layer_problem *problem, const replica_work *work,
                                double floor, int32_t *count, arena *scratch, eplb_error *error)
{
    size_t slots = (size_t)problem->num_slots, experts = (size_t)problem->num_experts;
    int32_t singles;
    *pairs = (pairing){.work = work,
                       .count = count,
                       .many = arena_take(scratch, experts, sizeof *pairs->many),
                       .place = arena_take(scratch, experts, sizeof *pairs->place),
                       .best = arena_take(scratch, experts, sizeof *pairs->best),
                       .load = arena_take(scratch, slots, sizeof *pairs->load),
                       .trial = arena_take(scratch, slots, sizeof *pairs->trial),
                       .num_slots = problem->num_slots,
                       .num_experts = problem->num_experts,
                       .floor = floor,
                       .aim = floor};
    (void)count_ranks(problem, &singles, &pairs->num_pairs);
    pairs->most = singles + pairs->num_pairs;
    if (pairs->many == NULL || pairs->place == NULL || pairs->best == NULL || pairs->load == NULL ||
        pairs->trial == NULL)
        return error_memory(error, slots * sizeof *pairs->load, "replica counts");
    int32_t n = 0;
    for (int32_t e = 0; e < problem->num_experts; e++) {
        if (count[e] > 1)
            join_many(pairs, e);
        put_run(pairs->load, &n, replica_work_at(work, e, count[e]), count[e]);
    }
    double hottest;
    (void)fold(pairs, pairs->load, INFINITY, &hottest);
    keep_best(pairs, hottest);
    return EPLB_OK;
}

eplb_status pair_counts_anneal(const layer_problem *problem, const replica_work *work,
                               const pair_limits *limits, int32_t *count, arena *scratch, eplb_error *error)
{
    pairing pairs;
    random_state random = random_seed(SEED);
    uint32_t experts = (uint32_t)problem->num_experts;
    double heat = HEAT * limits->floor * limits->floor;
    eplb_status status = pairing_init(&pairs, problem, work, limits->floor, count, scratch, error);
    if (status != EPLB_OK)
        return status;
    for (int64_t step = 0; step < limits->steps && pairs.hottest > limits->goal; step++) {
        int32_t from = pairs.many[random_below(&random, (uint32_t)pairs.num_many)];
        int32_t to = (int32_t)random_below(&random, experts);
        double left = 1 - (double)step / (double)limits->steps;
        double bar = pairs.excess + heat * left * left * random_unit(&random);
        if (from != to && pairs.count[to] < pairs.most)
            try_change(&pairs, from, to, bar);
        if (step % POLL == 0 && layer_is_stopped(problem))
            break;
    }
    memcpy(count, pairs.best, (size_t)experts * sizeof *count);
    return EPLB_OK;
}

/* Replaces the lighter replica of a pair that is of one expert by that of the nearest pair where both are
 * welcome. */
static bool part(int32_t *pair, int32_t num_pairs, int32_t at)
{
    int32_t twice = pair[2 * at];
    for (int32_t far = 1; far < num_pairs; far++) {
        for (int32_t other = at - far; other <= at + far; other += 2 * far) {
            if (other < 0 || other >= num_pairs || pair[2 * other] == twice || pair[2 * other + 1] == twice)
                continue;
            pair[2 * at + 1] = pair[2 * other + 1];
            pair[2 * other + 1] = twice;
            return true;
        }
    }
    return false;
}

/* Hands the pairs, and behind them what lives alone, to the ranks. */
static void write_ranks(const layer_problem *problem, const int32_t *pair, int32_t num_pairs, int32_t *expert)
{
    const int32_t *alone = pair + 2 * (size_t)num_pairs;
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        int32_t slot = problem->first_slot[g], slots = problem->first_slot[g + 1] - slot;
        if (slots == 1)
            expert[slot] = *alone++;
        for (int32_t i = 0; slots == 2 && i < 2; i++)
            expert[slot + i] = *pair++;
    }
}

eplb_status pair_counts_place(const layer_problem *problem, const replica_work *work, const int32_t *count,
                              int32_t *expert, bool *legal, arena *scratch, eplb_error *error)
{
    size_t experts = (size_t)problem->num_experts, slots = (size_t)problem->num_slots;
    int32_t singles, pairs, n = 0;
    int64_t *load = arena_take(scratch, experts, sizeof *load);
    int32_t *order = arena_take(scratch, experts, sizeof *order);
    int32_t *pair = arena_take(scratch, slots, sizeof *pair);
    if (load == NULL || order == NULL || pair == NULL)
        return error_memory(error, experts * sizeof *load, "replica counts");
    (void)count_ranks(problem, &singles, &pairs);
    for (int32_t e = 0; e < problem->num_experts; e++)
        load[e] = (int64_t)replica_work_at(work, e, count[e]);
    if (!sort_loads(load, NULL, problem->num_experts, order, scratch))
        return error_memory(error, experts * sizeof *load, "replica counts");
    for (int32_t i = 0; i < problem->num_experts; i++) {
        for (int32_t c = 0; c < count[order[i]]; c++, n++)
            pair[n < pairs ? 2 * n + 1 : n < 2 * pairs ? 2 * (2 * pairs - 1 - n) : n] = order[i];
    }
    *legal = true;
    for (int32_t i = 0; i < pairs && *legal; i++) {
        if (pair[2 * i] == pair[2 * i + 1])
            *legal = part(pair, pairs, i);
    }
    write_ranks(problem, pair, pairs, expert);
    return EPLB_OK;
}
