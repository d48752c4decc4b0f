/* Weighted split from a current placement, and what it reaches with how many moves.
 *
 * Shares first, which moves nothing, then repair (weighted_repair.c), and a plan from nothing, with ranks
 * relabelled, only where repair falls short and the moves allow it. The frontier is what repair passes on its
 * way. Never worse than keeping, unless node limits have to be mended. Source: docs/planning/weighted.md. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "plan/keep_slots.h"
#include "plan/lost_experts.h"
#include "plan/policies.h"
#include "plan/relabel.h"
#include "plan/weighted_equal_repair.h"
#include "plan/weighted_plan.h"

/* A plan from nothing must be better than repair by this much to be worth its moves; by more where nothing
 * limits them. */
#define WORTH_REPLANNING     1e-4
#define WORTH_RELOADING_MOST 1e-3
/* Slots of layers whose repair is tried with fewer moves, too. */
#define STEPWISE_SLOTS 160
#define TINY_SLOTS     64

/* The node on which the current placement has most replicas of each group. *outside: replicas that are
 * elsewhere, or a large number if a group is nowhere. False when memory is out. */
static bool current_homes(const layer_problem *problem, int32_t *node_of_expert, int64_t *outside,
                          arena *scratch)
{
    arena_mark mark = arena_position(scratch);
    int32_t size = problem->num_experts / problem->num_groups, nodes = problem->num_nodes;
    int32_t *held = arena_take_zero(scratch, (size_t)problem->num_groups * (size_t)nodes, sizeof *held);
    if (held == NULL)
        return false;
    *outside = 0;
    for (int32_t s = 0; s < problem->num_slots; s++) {
        if (problem->current[s] >= 0)
            held[problem->current[s] / size * nodes + problem->rank_node[problem->slot_rank[s]]]++;
    }
    for (int32_t group = 0; group < problem->num_groups; group++) {
        int32_t home = 0, sum = 0;
        for (int32_t n = 0; n < nodes; n++) {
            sum += held[group * nodes + n];
            home = held[group * nodes + n] > held[group * nodes + home] ? n : home;
        }
        *outside += sum > 0 ? sum - held[group * nodes + home] : INT32_MAX;
        for (int32_t e = group * size; e < (group + 1) * size; e++)
            node_of_expert[e] = home;
    }
    arena_rewind(scratch, mark);
    return true;
}

static int64_t count_received(const layer_problem *problem, const int32_t *expert)
{
    int64_t received = 0;
    for (int32_t s = 0; s < problem->num_slots; s++) {
        int32_t rank = problem->slot_rank[s];
        if (expert[s] >= 0 && !layer_holds(problem, problem->current, rank, expert[s]) &&
            !layer_is_cut_off(problem, problem->cut_off, rank, expert[s]))
            received++;
    }
    return received;
}

/* Gives the ranks of a plan from nothing the labels that receive least, and experts that stay on a rank their
 * slot; then the shares are computed anew for the slots. */
static eplb_status settle(const layer_problem *problem, bool node_limited, arena *scratch,
                          layer_answer *answer, eplb_error *error)
{
    arena_mark mark = arena_position(scratch);
    int32_t words = expert_bits_words(problem->num_experts);
    uint64_t *home = arena_take(scratch, (size_t)problem->num_ranks * (size_t)words, sizeof *home);
    if (home == NULL)
        return weighted_memory(problem, error);
    layer_read_home(problem, home);
    eplb_status status = relabel_ranks(problem, node_limited ? problem->rank_node : NULL, home, words,
                                       answer->expert, scratch, error);
    if (status == EPLB_OK)
        status = keep_slots(problem->first_slot, problem->num_ranks, problem->num_experts, problem->current,
                            answer->expert, scratch, error);
    double imbalance;
    if (status == EPLB_OK && !weighted_improve(problem, HUGE_VAL, 0, scratch, answer, &imbalance))
        status = weighted_memory(problem, error);
    arena_rewind(scratch, mark);
    return status;
}

typedef struct repaired_plan {
    layer_answer answer;
    weighted_repair_result result;
    bool complete; /* every expert has a slot */
} repaired_plan;

static bool is_complete(const layer_problem *problem, const int32_t *expert, arena *scratch, bool *complete)
{
    uint8_t *seen = arena_take_zero(scratch, (size_t)problem->num_experts, sizeof *seen);
    if (seen == NULL)
        return false;
    for (int32_t s = 0; s < problem->num_slots; s++) {
        if (expert[s] >= 0)
            seen[expert[s]] = 1;
    }
    *complete = true;
    for (int32_t e = 0; e < problem->num_experts; e++)
        *complete = *complete && seen[e];
    return true;
}

static bool take_repair(const layer_problem *problem, repaired_plan *plan, arena *scratch)
{
    size_t slots = (size_t)problem->num_slots;
    plan->answer = (layer_answer){.expert = arena_take(scratch, slots, sizeof(int32_t)),
                                  .quota = arena_take_zero(scratch, slots, sizeof(int64_t)),
                                  .bound = 1.0};
    return plan->answer.expert != NULL && plan->answer.quota != NULL;
}

/* Takes the repair by way of policy equal where that is better; of tiny layers also with a part of the moves.
 */
static eplb_status compare_equal_repair(const layer_problem *problem, const weighted_repair_limits *limits,
                                        arena *scratch, repaired_plan *plan, eplb_error *error)
{
    int64_t most = limits->max_moves;
    bool tiny = problem->num_slots <= TINY_SLOTS && most <= problem->num_slots;
    for (int64_t moves = tiny ? most / 2 : most;; moves += 1 + moves / 8) {
        bool found;
        repaired_plan other = {.complete = true};
        moves = moves < most ? moves : most;
        if (!take_repair(problem, &other, scratch))
            return weighted_memory(problem, error);
        eplb_status status = weighted_equal_repair(problem, limits, moves, scratch, &other.answer,
                                                   &other.result, &found, error);
        if (status != EPLB_OK)
            return status;
        if (found &&
            (!plan->complete || other.result.imbalance < plan->result.imbalance - WEIGHTED_NEGLIGIBLE))
            *plan = other;
        if (moves == most)
            return EPLB_OK;
    }
}

static eplb_status repair_once(const layer_problem *problem, const weighted_repair_limits *limits,
                               arena *scratch, repaired_plan *plan, eplb_error *error)
{
    if (!take_repair(problem, plan, scratch))
        return weighted_memory(problem, error);
    memcpy(plan->answer.expert, problem->current, (size_t)problem->num_slots * sizeof(int32_t));
    if (!weighted_repair(problem, limits, scratch, &plan->answer, &plan->result) ||
        !is_complete(problem, plan->answer.expert, scratch, &plan->complete))
        return weighted_memory(problem, error);
    return EPLB_OK;
}

/* In small layers a dear move may look best and leave less to gain than cheap ones: fewer moves, from half of
 * them on, are tried as well. */
static eplb_status compare_fewer_moves(const layer_problem *problem, const weighted_repair_limits *limits,
                                       arena *scratch, repaired_plan *plan, eplb_error *error)
{
    int64_t most = limits->max_moves;
    if (problem->num_slots > STEPWISE_SLOTS || most > problem->num_slots)
        return EPLB_OK;
    for (int64_t moves = most / 2; moves < most; moves += 1 + moves / 8) {
        repaired_plan fewer;
        weighted_repair_limits less = *limits;
        less.max_moves = moves;
        eplb_status status = repair_once(problem, &less, scratch, &fewer, error);
        if (status != EPLB_OK)
            return status;
        if (fewer.complete && fewer.result.received <= moves &&
            fewer.result.imbalance < plan->result.imbalance * (1.0 - WEIGHTED_NEGLIGIBLE))
            *plan = fewer;
    }
    return EPLB_OK;
}

static eplb_status plan_repair(const layer_problem *problem, const int32_t *homes, double goal,
                               const weighted_trail *trail, arena *scratch, repaired_plan *plan,
                               eplb_error *error)
{
    weighted_repair_limits limits = {.origin = problem->current,
                                     .cut_off = problem->cut_off,
                                     .node_of_expert = homes,
                                     .goal = goal,
                                     .max_moves = problem->max_moves,
                                     .trail = trail};
    eplb_status status = repair_once(problem, &limits, scratch, plan, error);
    if (status != EPLB_OK)
        return status;
    bool bound_to = homes != NULL || !layer_binds_groups(problem);
    bool limited = problem->max_moves < INT64_MAX || problem->target_imbalance > 0.0;
    if (!limited || !bound_to || trail != NULL ||
        plan->result.imbalance <= goal * (1.0 + WEIGHTED_NEGLIGIBLE))
        return EPLB_OK;
    if (plan->complete)
        status = compare_fewer_moves(problem, &limits, scratch, plan, error);
    return status == EPLB_OK ? compare_equal_repair(problem, &limits, scratch, plan, error) : status;
}

/* Limits experts to the nodes where they are, if the current placement keeps groups together but for the
 * replicas that may be spilled; else *homes is NULL. False when memory is out. */
static bool repair_homes(const layer_problem *problem, const int32_t **homes, arena *scratch)
{
    *homes = NULL;
    if (!layer_binds_groups(problem))
        return true;
    int64_t outside;
    int32_t *node_of_expert = arena_take(scratch, (size_t)problem->num_experts, sizeof *node_of_expert);
    if (node_of_expert == NULL || !current_homes(problem, node_of_expert, &outside, scratch))
        return false;
    if (outside <= problem->max_spill)
        *homes = node_of_expert;
    return true;
}

static const char *repair_reason(const weighted_repair_result *result, double goal)
{
    if (result->received > 0)
        return "shares first, then the moves that gain most";
    return result->imbalance > goal * (1.0 + WEIGHTED_NEGLIGIBLE)
               ? "shares only: no moves that lower the maximum were found"
               : "shares of the current placement are enough: nothing moves";
}

/* The floor of nodes binds only who keeps all groups together, but for what may be spilled. */
static double bound_for_repair(const weighted_fresh *fresh, const int32_t *homes, double bound)
{
    return fresh->node_limited && homes == NULL ? 1.0 : bound;
}

static void take_repaired(const layer_problem *problem, const repaired_plan *repaired, double bound,
                          double goal, layer_answer *answer)
{
    size_t slots = (size_t)problem->num_slots;
    memcpy(answer->expert, repaired->answer.expert, slots * sizeof *answer->expert);
    memcpy(answer->quota, repaired->answer.quota, slots * sizeof *answer->quota);
    answer->bound = bound;
    answer->reason = repair_reason(&repaired->result, goal);
}

/* Where experts may live from now on: lost ones must be within the limit of moves. */
static eplb_status read_current(const layer_problem *problem, const int32_t **homes, arena *scratch,
                                eplb_error *error)
{
    eplb_status status = lost_experts_check(problem, scratch, error);
    if (status == EPLB_OK && !repair_homes(problem, homes, scratch))
        status = weighted_memory(problem, error);
    return status;
}

/* A target that the repair has missed: few moves may go another way, so limits are worked through, 1, 2, 3,
 * 4, 6, 8, 12 ..., as long as a plan from nothing would receive much more. */
static eplb_status reach_target(const layer_problem *problem, const int32_t *homes, double goal,
                                arena *scratch, repaired_plan *plan, eplb_error *error)
{
    layer_problem limited = *problem;
    int64_t most = problem->num_slots / 4;
    limited.target_imbalance = 0.0;
    for (int64_t moves = 1; moves <= most && moves < problem->max_moves && !layer_is_stopped(problem);
         moves = moves < 4                    ? moves + 1
                 : (moves & (moves - 1)) == 0 ? moves + moves / 2
                                              : moves / 3 * 4) {
        repaired_plan other;
        limited.max_moves = moves;
        eplb_status status = plan_repair(&limited, homes, goal, NULL, scratch, &other, error);
        if (status != EPLB_OK)
            return status;
        if (!other.complete || other.result.imbalance > goal * (1.0 + WEIGHTED_NEGLIGIBLE))
            continue;
        *plan = other;
        return EPLB_OK;
    }
    return EPLB_OK;
}

static eplb_status repair_current(const layer_problem *problem, const int32_t *homes, double goal,
                                  arena *scratch, repaired_plan *plan, eplb_error *error)
{
    eplb_status status = plan_repair(problem, homes, goal, NULL, scratch, plan, error);
    if (status != EPLB_OK)
        return status;
    bool missed = problem->target_imbalance > 0.0 && plan->complete &&
                  plan->result.imbalance > goal * (1.0 + WEIGHTED_NEGLIGIBLE);
    return missed ? reach_target(problem, homes, goal, scratch, plan, error) : EPLB_OK;
}

eplb_status weighted_plan_current(const layer_problem *problem, arena *scratch, layer_answer *answer,
                                  eplb_error *error)
{
    weighted_fresh fresh;
    repaired_plan repaired;
    const int32_t *homes;
    eplb_status status = read_current(problem, &homes, scratch, error);
    if (status == EPLB_OK)
        status = weighted_plan_fresh(problem, scratch, answer, &fresh, error);
    if (status != EPLB_OK)
        return status;
    double bound = bound_for_repair(&fresh, homes, answer->bound);
    double goal = problem->target_imbalance > bound ? problem->target_imbalance : bound;
    status = repair_current(problem, homes, goal, scratch, &repaired, error);
    if (status != EPLB_OK)
        return status;
    bool scattered = fresh.node_limited && homes == NULL;
    double worth = problem->max_moves == INT64_MAX ? WORTH_RELOADING_MOST : WORTH_REPLANNING;
    bool falls_short = repaired.result.imbalance > goal * (1.0 + WEIGHTED_NEGLIGIBLE) &&
                       repaired.result.imbalance > fresh.imbalance + worth;
    if (falls_short || scattered || !repaired.complete) {
        status = settle(problem, fresh.node_limited, scratch, answer, error);
        if (status != EPLB_OK || count_received(problem, answer->expert) <= problem->max_moves)
            return status;
    }
    /* a lost expert found no slot on its node, and no plan from nothing is allowed */
    if (!repaired.complete) {
        bound = 1.0;
        status = plan_repair(problem, NULL, goal, NULL, scratch, &repaired, error);
        if (status != EPLB_OK)
            return status;
    }
    take_repaired(problem, &repaired, bound, goal, answer);
    return EPLB_OK;
}

/* --- the frontier ------------------------------------------------------------------------------------ */

typedef struct frontier {
    frontier_point *points;
    int32_t capacity;
    int32_t count;
} frontier;

/* Moves ascend and imbalance falls: a state that is no better is passed over, a cheaper and better one
 * replaces. */
static void note_point(void *context, int64_t received, double imbalance)
{
    frontier *line = context;
    while (line->count > 1 && line->points[line->count - 1].moves >= received &&
           line->points[line->count - 1].imbalance > imbalance)
        line->count--;
    if (line->count > 0) {
        frontier_point *last = &line->points[line->count - 1];
        if (imbalance >= last->imbalance)
            return;
        if (received <= last->moves) {
            last->imbalance = imbalance;
            return;
        }
        if (line->count == line->capacity) {
            *last = (frontier_point){received, imbalance};
            return;
        }
    }
    line->points[line->count++] = (frontier_point){received, imbalance};
}

/* With few spare slots repair goes by way of policy equal (weighted_equal_repair.h), whose shares are shares,
 * too: of both frontiers what is lower. */
static eplb_status join_equal(const layer_problem *problem, frontier *line, arena *scratch, eplb_error *error)
{
    size_t capacity = (size_t)line->capacity;
    frontier_point *own = arena_take(scratch, capacity, sizeof *own);
    frontier_point *other = arena_take(scratch, capacity, sizeof *other);
    int32_t num_own = line->count, num_other = 0;
    layer_problem equal = *problem;
    eplb_error refused;
    if (own == NULL || other == NULL)
        return error_memory(error, capacity * sizeof *own, "frontiers");
    equal.split = EPLB_SPLIT_EQUAL;
    equal.num_windows = 1;
    equal.window_load = equal.load;
    eplb_status status = plan_frontier_equal(&equal, scratch, other, line->capacity, &num_other, &refused);
    if (status == EPLB_ERROR_MEMORY)
        return error_memory(error, capacity * sizeof *own, "frontiers");
    if (status != EPLB_OK)
        return EPLB_OK; /* it has none */
    memcpy(own, line->points, (size_t)num_own * sizeof *own);
    line->count = 0;
    for (int32_t i = 0, j = 0; i < num_own || j < num_other;) {
        bool mine = j == num_other || (i < num_own && own[i].moves <= other[j].moves);
        const frontier_point *next = mine ? &own[i++] : &other[j++];
        note_point(line, next->moves, next->imbalance);
    }
    return EPLB_OK;
}

eplb_status plan_frontier_weighted(const layer_problem *problem, arena *scratch, frontier_point *points,
                                   int32_t capacity, int32_t *num_points, eplb_error *error)
{
    frontier line = {points, capacity, 0};
    *num_points = 0;
    const int32_t *homes;
    eplb_status status = read_current(problem, &homes, scratch, error);
    if (status != EPLB_OK)
        return status;
    repaired_plan plan;
    weighted_trail trail = {note_point, &line};
    double goal = problem->target_imbalance > 1.0 ? problem->target_imbalance : 1.0;
    status = plan_repair(problem, homes, goal, &trail, scratch, &plan, error);
    bool few_spare = problem->num_slots - problem->num_experts < problem->num_ranks - 1;
    if (status == EPLB_OK && few_spare && line.count > 0 && (homes != NULL || !layer_binds_groups(problem)))
        status = join_equal(problem, &line, scratch, error);
    *num_points = line.count;
    return status;
}
