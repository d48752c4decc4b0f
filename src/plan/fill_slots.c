/* Filling empty slots: what no policy has to think of, since most engines cannot load a plan with one.
 *
 * Slots are empty where ranks join, where someone left them so, and where a placement of a published planner
 * has an expert twice on a rank. Filling comes before balance: a plan that cannot be loaded balances nothing.
 * The coldest rank with an empty slot is next; of the experts that it lacks (of its node's groups where
 * groups are bound to nodes) it takes the one that raises the hottest rank least, then the one that lowers
 * sum (time/mean)^16 over ranks and windows most, the bar for repairs; at the end each choice is made again.
 * A placement that may stay as it is, empty slots and all, is never made worse: there a slot that only costs
 * stays empty, as it does where others cannot be filled in any case. Cost: fill_slots.h. */
#include "plan/fill_slots.h"

#include <string.h>

#include "base/error.h"
#include "plan/group_nodes.h"
#include "plan/layout.h"

#define MOST_WINDOWS     16 /* more are summed to so many */
#define MOST_PASSES      4
#define FEW_RANKS        8
#define FRONTIER_SAMPLES 32 /* of the moves that fill */

typedef struct filling {
    const layer_problem *problem;
    int32_t num_windows;
    replica_work *work;         /* [W] */
    layout *seats;              /* [W] the placement, in each window */
    double *mean;               /* [W] time of a rank at the mean; 0 without load */
    double *hottest;            /* [W] of the placement now */
    double *ceiling;            /* [W] what no optional slot may raise the hottest rank above */
    const uint64_t *home;       /* [G, words] what each rank holds: receives nothing */
    const int32_t *expert_area; /* [E] node of each expert, NULL: any */
    uint8_t *closed;            /* [G] no empty slot left that can be filled */
    uint8_t *filled_here;       /* [S] */
    bool may_rise;              /* the split serves nothing by a new replica, or the slots must be filled */
    const int32_t *kept;        /* [S] a placement that may stay as it is; NULL: it may not */
    int64_t left;               /* moves */
    int64_t moves, filled, lacking;
} filling;

static double power_16(double x)
{
    x *= x;
    x *= x;
    x *= x;
    return x * x;
}

/* What each rank holds now, with what it is to lose; nothing without a current placement. */
static uint64_t *read_home(const layer_problem *problem, arena *scratch)
{
    size_t words = (size_t)expert_bits_words(problem->num_experts);
    uint64_t *home = arena_take_zero(scratch, (size_t)problem->num_ranks * words, sizeof *home);
    if (home != NULL && problem->current != NULL)
        layer_read_home(problem, home);
    return home;
}

/* Copies the current placement without second replicas on a rank; *empty slots it then has. */
static eplb_status read_current(const layer_problem *problem, int32_t *expert, int64_t *empty,
                                int64_t *doubles, arena *scratch, eplb_error *error)
{
    arena_mark mark = arena_position(scratch);
    int32_t *seen = arena_take_zero(scratch, (size_t)problem->num_experts, sizeof *seen);
    if (seen == NULL)
        return error_memory(error, (size_t)problem->num_experts * sizeof *seen, "the current placement");
    *empty = *doubles = 0;
    for (int32_t p = 0; p < problem->num_slots; p++) {
        int32_t e = problem->current[p], stamp = problem->slot_rank[p] + 1;
        bool twice = e >= 0 && seen[e] == stamp;
        expert[p] = twice ? -1 : e;
        *doubles += twice;
        *empty += expert[p] < 0;
        if (e >= 0)
            seen[e] = stamp;
    }
    arena_rewind(scratch, mark);
    return EPLB_OK;
}

/* The load of one of W windows, each the sum of neighbouring ones. */
static void read_window(const filling *f, int32_t window, int64_t *load, layer_problem *part)
{
    const layer_problem *problem = f->problem;
    int64_t all = problem->num_windows, experts = problem->num_experts;
    *part = *problem;
    part->load = load;
    part->total = 0;
    memset(load, 0, (size_t)experts * sizeof *load);
    for (int64_t t = window * all / f->num_windows; t < (window + 1) * all / f->num_windows; t++) {
        for (int64_t e = 0; e < experts; e++)
            load[e] += problem->window_load[t * experts + e];
    }
    for (int64_t e = 0; e < experts; e++)
        part->total += load[e];
}

/* Experts stay on their group's node where the placement has all groups on nodes with room for them, and
 * where replicas elsewhere are counted. */
static eplb_status read_areas(filling *f, const int32_t *expert, arena *scratch, eplb_error *error)
{
    layer_problem placed = *f->problem;
    if (!layer_binds_groups(&placed))
        return EPLB_OK;
    int32_t *node = arena_take(scratch, (size_t)placed.num_groups, sizeof *node);
    int32_t *area = arena_take(scratch, (size_t)placed.num_experts, sizeof *area);
    if (node == NULL || area == NULL)
        return error_memory(error, (size_t)placed.num_experts * sizeof *area, "groups on nodes");
    bool fits = false;
    placed.current = expert;
    eplb_status status = group_nodes_read(&placed, node, &fits, scratch, error);
    for (int32_t e = 0; status == EPLB_OK && e < placed.num_experts; e++)
        area[e] = node[e / (placed.num_experts / placed.num_groups)];
    f->expert_area = fits || placed.max_spill > 0 ? area : NULL;
    return status;
}

/* The hottest rank in each window; `most`, too, where that is lower. */
static void measure(const filling *f, double *most)
{
    int32_t rank;
    for (int32_t w = 0; w < f->num_windows; w++) {
        double now = f->mean[w] > 0 ? layout_hottest(&f->seats[w], &rank) / f->mean[w] : 0;
        most[w] = now > most[w] ? now : most[w];
    }
}

static void measure_now(const filling *f)
{
    memset(f->hottest, 0, (size_t)f->num_windows * sizeof *f->hottest);
    measure(f, f->hottest);
}

/* A placement under the load of one window. */
static eplb_status seat_window(filling *f, int32_t window, int64_t *load, const int32_t *expert,
                               arena *scratch, eplb_error *error)
{
    layer_problem part;
    read_window(f, window, load, &part);
    eplb_status status = replica_work_init(&f->work[window], &part, scratch, error);
    if (status == EPLB_OK)
        status = layout_init(&f->seats[window], &part, &f->work[window], scratch, error);
    if (status != EPLB_OK)
        return status;
    f->mean[window] = f->work[window].least_total / (double)part.total_speed;
    layout_set(&f->seats[window], expert);
    return EPLB_OK;
}

static bool take_arrays(filling *f, const layer_problem *problem, arena *scratch)
{
    int32_t most = problem->num_windows < MOST_WINDOWS ? problem->num_windows : MOST_WINDOWS;
    size_t windows = (size_t)most;
    *f =
        (filling){.problem = problem,
                  .num_windows = most,
                  .work = arena_take(scratch, windows, sizeof *f->work),
                  .seats = arena_take(scratch, windows, sizeof *f->seats),
                  .mean = arena_take(scratch, windows, sizeof *f->mean),
                  .hottest = arena_take(scratch, windows, sizeof *f->hottest),
                  .ceiling = arena_take_zero(scratch, windows, sizeof *f->ceiling),
                  .home = read_home(problem, scratch),
                  .closed = arena_take_zero(scratch, (size_t)problem->num_ranks, sizeof *f->closed),
                  .filled_here = arena_take_zero(scratch, (size_t)problem->num_slots, sizeof *f->filled_here),
                  .left = problem->max_moves};
    return f->work != NULL && f->seats != NULL && f->mean != NULL && f->hottest != NULL &&
           f->ceiling != NULL && f->home != NULL && f->closed != NULL && f->filled_here != NULL;
}

/* Starts from a placement; `kept` is one that may stay as it is, or NULL. */
static eplb_status filling_init(filling *f, const layer_problem *problem, const int32_t *expert,
                                const int32_t *kept, arena *scratch, eplb_error *error)
{
    size_t experts = (size_t)problem->num_experts;
    bool taken = take_arrays(f, problem, scratch);
    int64_t *load = arena_take(scratch, (size_t)f->num_windows * experts, sizeof *load);
    if (!taken || load == NULL)
        return error_memory(error, (size_t)f->num_windows * experts * sizeof *load, "filling slots");
    f->kept = kept;
    f->may_rise = kept == NULL || problem->split != EPLB_SPLIT_EQUAL;
    eplb_status status = read_areas(f, expert, scratch, error);
    for (int32_t w = 0; status == EPLB_OK && w < f->num_windows; w++)
        status = seat_window(f, w, load + (size_t)w * experts, kept != NULL ? kept : expert, scratch, error);
    if (status != EPLB_OK)
        return status;
    measure(f, f->ceiling);
    for (int32_t w = 0; kept != NULL && w < f->num_windows; w++)
        layout_set(&f->seats[w], expert);
    measure(f, f->ceiling);
    return EPLB_OK;
}

/* Time of a rank over the mean, summed over windows. */
static double heat(const filling *f, int32_t rank)
{
    double sum = 0;
    for (int32_t w = 0; w < f->num_windows; w++) {
        if (f->mean[w] > 0)
            sum += f->seats[w].rank_load[rank] * f->seats[w].inverse_speed[rank] / f->mean[w];
    }
    return sum;
}

/* The first empty slot of a rank, -1 if there is none. */
static int32_t empty_slot(const filling *f, int32_t rank)
{
    const layout *seats = f->seats;
    for (int32_t p = seats->first_slot[rank]; p < seats->first_slot[rank + 1]; p++) {
        if (seats->expert[p] < 0)
            return p;
    }
    return -1;
}

static bool is_open(const filling *f, int32_t rank)
{
    return !f->closed[rank] && empty_slot(f, rank) >= 0;
}

static bool may_hold(const filling *f, int32_t rank, int32_t expert)
{
    return !layout_holds(f->seats, rank, expert) &&
           (f->expert_area == NULL || f->expert_area[expert] == f->problem->rank_node[rank]);
}

static bool receives(const filling *f, int32_t rank, int32_t expert)
{
    return !expert_bits_has(f->home, f->seats->words, rank, expert);
}

/* What one more replica of an expert does. */
typedef struct effect {
    int32_t expert;
    double above;  /* its rank rises above the hottest one now, summed over windows */
    double change; /* of the sum of (time/mean)^16 */
    bool too_hot;  /* above the ceiling in a window */
} effect;

/* The change in one window at the ranks that hold the expert already, each of which gets colder. */
static double relief(const layout *seats, int32_t expert, double per_mean)
{
    double drop = seats->replica_load[expert] - seats->more_load[expert], sum = 0;
    for (int32_t p = seats->first[expert]; p >= 0 && drop > 0; p = seats->next[p]) {
        int32_t g = seats->slot_rank[p];
        double unit = seats->inverse_speed[g] * per_mean;
        sum += power_16(seats->rank_load[g] * unit) - power_16((seats->rank_load[g] - drop) * unit);
    }
    return sum;
}

static effect weigh(const filling *f, int32_t rank, int32_t expert)
{
    effect found = {.expert = expert};
    for (int32_t w = 0; w < f->num_windows; w++) {
        const layout *seats = &f->seats[w];
        if (!(f->mean[w] > 0))
            continue;
        double load = seats->rank_load[rank], unit = seats->inverse_speed[rank] / f->mean[w];
        double time = (load + seats->more_load[expert]) * seats->inverse_speed[rank] / f->mean[w];
        found.above += time > f->hottest[w] ? time - f->hottest[w] : 0;
        found.too_hot = found.too_hot || time > f->ceiling[w];
        found.change += power_16(time) - power_16(load * unit) - relief(seats, expert, 1 / f->mean[w]);
    }
    return found;
}

static bool is_better(const filling *f, const effect *a, const effect *b)
{
    if (a->above < b->above || a->above > b->above)
        return a->above < b->above;
    if (a->change < b->change || a->change > b->change)
        return a->change < b->change;
    return f->seats->count[a->expert] < f->seats->count[b->expert];
}

/* The best expert for a rank, which may have to be received or not; expert -1: none. */
static effect choose(const filling *f, int32_t rank, bool may_receive)
{
    effect best = {.expert = -1};
    for (int32_t e = 0; e < f->problem->num_experts; e++) {
        if (!may_hold(f, rank, e) || (!may_receive && receives(f, rank, e)))
            continue;
        effect found = weigh(f, rank, e);
        if (best.expert < 0 || is_better(f, &found, &best))
            best = found;
    }
    return best;
}

/* Gives a slot that is empty in what the filling started from to an expert, or to another one than before. */
static void seat(filling *f, int32_t slot, int32_t expert)
{
    int32_t rank = f->problem->slot_rank[slot], old = f->seats->expert[slot];
    int32_t price = (int32_t)receives(f, rank, expert) - (old >= 0 && receives(f, rank, old));
    f->moves += price;
    f->filled += !f->filled_here[slot];
    f->filled_here[slot] = 1;
    if (f->left != INT64_MAX)
        f->left -= price;
    for (int32_t w = 0; w < f->num_windows; w++)
        layout_reassign(&f->seats[w], slot, expert);
    measure_now(f);
}

static void empty(filling *f, int32_t slot)
{
    for (int32_t w = 0; w < f->num_windows; w++)
        layout_reassign(&f->seats[w], slot, -1);
    measure_now(f);
}

/* Chooses again what a filled slot takes, now that the others are filled. True if that is another expert. */
static bool rethink(filling *f, int32_t slot)
{
    int32_t rank = f->problem->slot_rank[slot], old = f->seats->expert[slot];
    if (f->seats->count[old] < 2)
        return false;
    empty(f, slot);
    effect best = choose(f, rank, receives(f, rank, old) || f->left > 0), stay = weigh(f, rank, old);
    bool other = best.expert >= 0 && best.expert != old && is_better(f, &best, &stay);
    for (int32_t w = 0; w < f->num_windows; w++)
        layout_reassign(&f->seats[w], slot, old);
    if (other)
        seat(f, slot, best.expert);
    else
        measure_now(f);
    return other;
}

/* What is received into filled slots is free to choose: again and again the best for each. */
static void refine(filling *f)
{
    bool better = f->filled > 1;
    for (int32_t pass = 0; pass < MOST_PASSES && better; pass++) {
        better = false;
        for (int32_t p = 0; p < f->problem->num_slots; p++)
            better |= f->filled_here[p] && rethink(f, p);
    }
}

static int64_t empty_slots(const filling *f, const int32_t *expert, int32_t rank)
{
    int64_t empty = 0;
    for (int32_t p = f->seats->first_slot[rank]; p < f->seats->first_slot[rank + 1]; p++)
        empty += expert[p] < 0;
    return empty;
}

/* Whether a slot of a rank has to be filled at any cost: its empty slots are more than those that may stay.
 */
static bool must_fill(const filling *f, int32_t rank)
{
    return f->may_rise || empty_slots(f, f->seats->expert, rank) > empty_slots(f, f->kept, rank);
}

/* Moves that would fill a rank. */
static int64_t lacking(const filling *f, int32_t rank, bool must)
{
    effect best = choose(f, rank, true);
    if (best.expert < 0 || (best.too_hot && !must))
        return 0;
    int64_t empty = empty_slots(f, f->seats->expert, rank), fitting = 0;
    for (int32_t e = 0; e < f->problem->num_experts; e++)
        fitting += may_hold(f, rank, e);
    return empty < fitting ? empty : fitting;
}

/* The rank to fill next, -1 if none is open: where few are, the one that gains most by it, else the coldest.
 * *best is what it takes, expert -1 if there is nothing for it. */
static int32_t next_rank(const filling *f, effect *best)
{
    int32_t open = 0, coldest = -1, chosen = -1;
    double least = 0;
    for (int32_t g = 0; g < f->problem->num_ranks; g++) {
        if (!is_open(f, g))
            continue;
        double now = heat(f, g);
        if (open++ == 0 || now < least) {
            coldest = g;
            least = now;
        }
    }
    if (coldest < 0)
        return -1;
    *best = choose(f, coldest, f->left > 0);
    for (int32_t g = 0; g < f->problem->num_ranks && open <= FEW_RANKS; g++) {
        effect found;
        if (g == coldest || !is_open(f, g))
            continue;
        found = choose(f, g, f->left > 0);
        if (found.expert >= 0 && (best->expert < 0 || is_better(f, &found, best))) {
            *best = found;
            chosen = g;
        }
    }
    return chosen < 0 ? coldest : chosen;
}

/* Fills while moves are left; then counts how many more the rest would take. */
static void fill(filling *f)
{
    effect best;
    measure_now(f);
    for (int32_t rank = next_rank(f, &best); rank >= 0; rank = next_rank(f, &best)) {
        bool must = must_fill(f, rank);
        if (best.expert >= 0 && (must || !best.too_hot)) {
            seat(f, empty_slot(f, rank), best.expert);
            continue;
        }
        f->closed[rank] = 1;
        if (f->left <= 0)
            f->lacking += lacking(f, rank, must);
    }
    refine(f);
}

/* The heaviest expert without a replica that some rank with an empty slot may hold, and the slot whose rank
 * is done first with it; false if there is none. `passed` [E] marks those that found no slot. */
static bool next_lost(const filling *f, uint8_t *passed, int32_t *expert, int32_t *slot)
{
    const layout *seats = f->seats;
    for (;;) {
        *expert = *slot = -1;
        for (int32_t e = 0; e < f->problem->num_experts; e++) {
            if (seats->count[e] == 0 && !passed[e] &&
                (*expert < 0 || f->problem->load[e] > f->problem->load[*expert]))
                *expert = e;
        }
        if (*expert < 0)
            return false;
        effect least = {.expert = -1};
        for (int32_t g = 0; g < f->problem->num_ranks; g++) {
            int32_t p = empty_slot(f, g);
            if (p < 0 || !may_hold(f, g, *expert))
                continue;
            effect found = weigh(f, g, *expert);
            if (least.expert < 0 || is_better(f, &found, &least)) {
                least = found;
                *slot = p;
            }
        }
        if (*slot >= 0)
            return true;
        passed[*expert] = 1;
    }
}

/* Experts with a replica. `seen` [E]. */
static int32_t count_served(const layer_problem *problem, const int32_t *expert, uint8_t *seen)
{
    int32_t served = 0;
    memset(seen, 0, (size_t)problem->num_experts);
    for (int32_t p = 0; p < problem->num_slots; p++) {
        if (expert[p] >= 0 && !seen[expert[p]]) {
            seen[expert[p]] = 1;
            served++;
        }
    }
    return served;
}

/* True if the placement may stay as it is: every expert served, none twice on a rank. `seen` [E]. */
static bool may_stay(const layer_problem *problem, const int32_t *expert, int64_t doubles, uint8_t *seen)
{
    return doubles == 0 && count_served(problem, expert, seen) == problem->num_experts;
}

static int64_t count_lost(const layout *seats)
{
    int64_t lost = 0;
    for (int32_t e = 0; e < seats->num_experts; e++)
        lost += seats->count[e] == 0;
    return lost;
}

/* Lost experts into empty slots, within moves that are set apart for them. */
static void seat_lost(filling *f, uint8_t *passed)
{
    int32_t expert, slot;
    measure_now(f);
    while (next_lost(f, passed, &expert, &slot)) {
        if (f->left != INT64_MAX)
            f->left++;
        seat(f, slot, expert);
    }
}

/* Policy equal plans the layer: it alone takes replicas outside their group's node out, and looks at
 * problem->fresh, what counts as received and not as what ranks hold. */
static bool is_for_equal(const layer_problem *problem)
{
    return problem->split == EPLB_SPLIT_EQUAL && problem->num_windows == 1 && problem->max_spill == 0;
}

static bool is_outside(const layer_problem *problem, const int32_t *group_node, int32_t slot, int32_t expert)
{
    int32_t size = problem->num_experts / problem->num_groups;
    return expert >= 0 && group_node[expert / size] != problem->rank_node[problem->slot_rank[slot]];
}

/* Takes replicas outside their group's node out of a placement with `lost` experts, as policy equal does, if
 * the moves allowed can fill all slots that are then empty. Those taken out are added to *empty. */
static eplb_status mend_areas(const layer_problem *problem, int32_t *expert, int64_t lost, int64_t *empty,
                              arena *scratch, eplb_error *error)
{
    bool fits;
    int64_t outside = 0;
    if (!layer_binds_groups(problem) || !is_for_equal(problem))
        return EPLB_OK;
    int32_t *node = arena_take(scratch, (size_t)problem->num_groups, sizeof *node);
    if (node == NULL)
        return error_memory(error, (size_t)problem->num_groups * sizeof *node, "groups on nodes");
    eplb_status status = group_nodes_read(problem, node, &fits, scratch, error);
    if (status != EPLB_OK || !fits)
        return status;
    for (int32_t p = 0; p < problem->num_slots; p++)
        outside += is_outside(problem, node, p, expert[p]);
    if (outside == 0 || outside + *empty > problem->max_moves - lost)
        return EPLB_OK;
    for (int32_t p = 0; p < problem->num_slots; p++) {
        if (is_outside(problem, node, p, expert[p]))
            expert[p] = -1;
    }
    *empty += outside;
    return EPLB_OK;
}

/* What ranks receive into filled slots. */
static uint64_t *list_fresh(const filling *f, arena *scratch)
{
    int32_t words = f->seats->words;
    uint64_t *fresh = arena_take_zero(scratch, (size_t)f->problem->num_ranks * (size_t)words, sizeof *fresh);
    for (int32_t p = 0; p < f->problem->num_slots && fresh != NULL; p++) {
        int32_t rank = f->problem->slot_rank[p], expert = f->seats->expert[p];
        if (f->filled_here[p] && receives(f, rank, expert))
            expert_bits_add(fresh, words, rank, expert);
    }
    return fresh;
}

/* Makes what was filled the current placement of the problem; `expert` [S] is to hold it. */
static eplb_status take_over(layer_problem *problem, const filling *f, int32_t *expert, arena *scratch,
                             eplb_error *error)
{
    if (is_for_equal(problem)) {
        problem->fresh = list_fresh(f, scratch);
        if (problem->fresh == NULL)
            return error_memory(error, (size_t)problem->num_slots * sizeof *expert, "filled slots");
    }
    memcpy(expert, f->seats->expert, (size_t)problem->num_slots * sizeof *expert);
    problem->current = expert;
    problem->max_moves -= problem->max_moves != INT64_MAX ? f->moves : 0;
    return EPLB_OK;
}

/* fill_slots_before; *moves is what it takes from max_moves. */
static eplb_status fill_current(layer_problem *problem, bool mends, int64_t *moves, int64_t *filled,
                                arena *scratch, eplb_error *error)
{
    int64_t empty, doubles, before;
    int32_t *expert = arena_take(scratch, (size_t)problem->num_slots, sizeof *expert);
    uint8_t *seen = arena_take(scratch, (size_t)problem->num_experts, sizeof *seen);
    *moves = *filled = 0;
    if (expert == NULL || seen == NULL)
        return error_memory(error, (size_t)problem->num_slots * sizeof *expert, "the current placement");
    eplb_status status = read_current(problem, expert, &empty, &doubles, scratch, error);
    before = empty;
    if (status == EPLB_OK && mends)
        status = mend_areas(problem, expert, problem->num_experts - count_served(problem, expert, seen),
                            &empty, scratch, error);
    if (status != EPLB_OK || empty == 0 || problem->max_moves == 0)
        return status;
    filling f;
    bool stays = empty == before && may_stay(problem, expert, doubles, seen);
    const int32_t *kept = stays ? problem->current : NULL;
    status = filling_init(&f, problem, expert, kept, scratch, error);
    if (status != EPLB_OK)
        return status;
    int64_t lost = count_lost(f.seats);
    if (lost > problem->max_moves)
        return EPLB_OK;
    if (f.left != INT64_MAX)
        f.left -= lost;
    memset(seen, 0, (size_t)problem->num_experts);
    seat_lost(&f, seen);
    fill(&f);
    *moves = f.moves;
    *filled = f.filled;
    return f.filled > 0 ? take_over(problem, &f, expert, scratch, error) : EPLB_OK;
}

eplb_status fill_slots_before(layer_problem *problem, int64_t *filled, arena *scratch, eplb_error *error)
{
    int64_t moves;
    *filled = 0;
    bool later = problem->split != EPLB_SPLIT_EQUAL && problem->max_moves == INT64_MAX;
    return problem->current == NULL || later ? EPLB_OK
                                             : fill_current(problem, true, &moves, filled, scratch, error);
}

static int64_t count_received(const filling *f)
{
    int64_t received = 0;
    for (int32_t p = 0; p < f->problem->num_slots; p++) {
        int32_t e = f->seats->expert[p];
        received += e >= 0 && receives(f, f->problem->slot_rank[p], e);
    }
    return received;
}

/* Fills the answer with the moves that its received experts leave. */
static eplb_status fill_answer(filling *f, const layer_problem *problem, const int32_t *expert,
                               const int32_t *kept, arena *scratch, eplb_error *error)
{
    eplb_status status = filling_init(f, problem, expert, kept, scratch, error);
    if (status != EPLB_OK)
        return status;
    if (problem->current == NULL)
        f->left = INT64_MAX;
    else if (f->left != INT64_MAX)
        f->left -= count_received(f);
    fill(f);
    return EPLB_OK;
}

/* True if the hottest rank of a window is now above what it was at the start. */
static bool has_risen(const filling *f)
{
    for (int32_t w = 0; w < f->num_windows; w++) {
        if (f->hottest[w] > f->ceiling[w])
            return true;
    }
    return false;
}

static int64_t count_empty(const int32_t *expert, int32_t num_slots)
{
    int64_t empty = 0;
    for (int32_t p = 0; p < num_slots; p++)
        empty += expert[p] < 0;
    return empty;
}

/* The current placement if it may stay as it is, else NULL. */
static eplb_status find_kept(const layer_problem *problem, const int32_t **kept, arena *scratch,
                             eplb_error *error)
{
    int64_t empty, doubles;
    *kept = NULL;
    if (problem->current == NULL)
        return EPLB_OK;
    int32_t *now = arena_take(scratch, (size_t)problem->num_slots, sizeof *now);
    uint8_t *seen = arena_take(scratch, (size_t)problem->num_experts, sizeof *seen);
    if (now == NULL || seen == NULL)
        return error_memory(error, (size_t)problem->num_slots * sizeof *now, "the current placement");
    eplb_status status = read_current(problem, now, &empty, &doubles, scratch, error);
    if (status == EPLB_OK && may_stay(problem, now, doubles, seen))
        *kept = problem->current;
    return status;
}

eplb_status fill_slots_after(const layer_problem *problem, layer_answer *answer, int64_t *lacking_moves,
                             arena *scratch, eplb_error *error)
{
    filling f;
    const int32_t *kept;
    *lacking_moves = 0;
    if (count_empty(answer->expert, problem->num_slots) == 0)
        return EPLB_OK;
    eplb_status status = find_kept(problem, &kept, scratch, error);
    if (status == EPLB_OK)
        status = fill_answer(&f, problem, answer->expert, kept, scratch, error);
    if (status == EPLB_OK && problem->split == EPLB_SPLIT_EQUAL && f.lacking == 0 && has_risen(&f) &&
        count_empty(f.seats->expert, problem->num_slots) > 0) /* in vain: others cannot be filled */
        status = fill_answer(&f, problem, answer->expert, answer->expert, scratch, error);
    if (status != EPLB_OK)
        return status;
    memcpy(answer->expert, f.seats->expert, (size_t)problem->num_slots * sizeof *answer->expert);
    *lacking_moves = f.lacking;
    return EPLB_OK;
}

eplb_status fill_slots_count(const layer_problem *problem, int64_t *lost, int64_t *empty, arena *scratch,
                             eplb_error *error)
{
    int64_t doubles;
    arena_mark mark = arena_position(scratch);
    int32_t *expert = arena_take(scratch, (size_t)problem->num_slots, sizeof *expert);
    uint8_t *seen = arena_take(scratch, (size_t)problem->num_experts, sizeof *seen);
    if (expert == NULL || seen == NULL)
        return error_memory(error, (size_t)problem->num_slots * sizeof *expert, "the current placement");
    eplb_status status = read_current(problem, expert, empty, &doubles, scratch, error);
    if (status == EPLB_OK)
        *lost = problem->num_experts - count_served(problem, expert, seen);
    arena_rewind(scratch, mark);
    return status;
}

/* Points while they are put together. */
typedef struct curve {
    frontier_point *points;
    int32_t capacity;
    int32_t count;
} curve;

static void append(curve *c, frontier_point point)
{
    if (c->count > 0 && (point.imbalance >= c->points[c->count - 1].imbalance ||
                         point.moves <= c->points[c->count - 1].moves))
        return;
    if (c->count < c->capacity)
        c->points[c->count++] = point;
}

/* The points of the policy after the first moves have filled slots. */
static eplb_status explore(const plan_policy *policy, const layer_problem *problem, int64_t max_moves,
                           curve *c, arena *scratch, eplb_error *error)
{
    arena_mark mark = arena_position(scratch);
    layer_problem filled = *problem;
    int64_t moves, slots;
    int32_t found = 0;
    frontier_point *points = arena_take(scratch, (size_t)c->capacity, sizeof *points);
    if (points == NULL)
        return error_memory(error, (size_t)c->capacity * sizeof *points, "a frontier");
    filled.max_moves = max_moves;
    eplb_status status = fill_current(&filled, false, &moves, &slots, scratch, error);
    if (status == EPLB_OK)
        status = policy->frontier(&filled, scratch, points, c->capacity, &found, error);
    for (int32_t i = 0; status == EPLB_OK && i < found; i++)
        append(c,
               (frontier_point){points[i].moves + (filled.fresh == NULL ? moves : 0), points[i].imbalance});
    arena_rewind(scratch, mark);
    return status;
}

eplb_status fill_slots_frontier(const plan_policy *policy, const layer_problem *problem, arena *scratch,
                                frontier_point *points, int32_t capacity, int32_t *num_points,
                                eplb_error *error)
{
    int64_t most = 0, lost = 0;
    curve c = {points, capacity, 0};
    eplb_status status = fill_slots_count(problem, &lost, &most, scratch, error);
    most = most < problem->max_moves ? most : problem->max_moves;
    int64_t step = most / FRONTIER_SAMPLES + 1;
    for (int64_t m = lost; status == EPLB_OK && m < most; m += step)
        status = explore(policy, problem, m, &c, scratch, error);
    if (status == EPLB_OK)
        status = explore(policy, problem, problem->max_moves, &c, scratch, error);
    *num_points = c.count;
    return status;
}
