/* Policy `weighted`: placement and shares with every rank at its target where that is possible, and a proof
 * of how near it is where it is not. Ranks that are alike and spare slots enough: the tree (weighted_tree.c),
 * exact for every load. Fewer spare slots: components (weighted_components.c). Speeds or scarce uneven slots:
 * the uneven form (weighted_uneven.c), else a greedy placement improved by repair (weighted_repair.c). Groups
 * on nodes: weighted_nodes.c, then the same inside each. Spare slots: weighted_expander.c. What is not proved
 * best is compared with the placements of DeepSeek and of policy equal under the best shares, so it is never
 * worse than those. With a current placement: shares first, then repair, and a plan from nothing only where
 * repair falls short and the moves allow it. Cost: O(E + S) and one sort for the exact cases, microseconds a
 * layer. Source: docs/planning/weighted.md. */
#include "plan/weighted.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "plan/keep_slots.h"
#include "plan/lost_experts.h"
#include "plan/policies.h"
#include "plan/relabel.h"
#include "plan/sort_loads.h"
#include "plan/weighted_equal_repair.h"
#include "plan/weighted_nodes.h"
#include "plan/weighted_repair.h"
#include "plan/weighted_spill.h"

/* Below this a difference of imbalances is rounding. */
#define NEGLIGIBLE 1e-12
/* Another policy's placement is improved by moves if it is farther than this from the bound. */
#define WORTH_SEARCHING 1e-3
/* Slots of layers whose repair is tried with fewer moves, too. */
#define STEPWISE_SLOTS 160
#define TINY_SLOTS     64
/* A plan from nothing must be better than repair by this much to be worth its moves; by more where nothing
 * limits them. */
#define WORTH_REPLANNING     1e-4
#define WORTH_RELOADING_MOST 1e-3

static eplb_status out_of_memory(const layer_problem *problem, eplb_error *error)
{
    return error_memory(error, (size_t)problem->num_slots * sizeof(int64_t), "the weighted planner");
}

/* --- one area, from nothing -------------------------------------------------------------------------- */

/* All ranks that have slots, all experts; false when memory is out. */
static bool whole_part(const layer_problem *problem, weighted_part *part, arena *scratch)
{
    int32_t *ranks = arena_take(scratch, (size_t)problem->num_ranks, sizeof *ranks);
    int32_t *experts = arena_take(scratch, (size_t)problem->num_experts, sizeof *experts);
    if (ranks == NULL || experts == NULL ||
        !sort_loads(problem->load, NULL, problem->num_experts, experts, scratch))
        return false;
    *part = (weighted_part){.ranks = ranks,
                            .num_experts = problem->num_experts,
                            .experts = experts,
                            .total = problem->total,
                            .min_slots = problem->num_slots,
                            .num_slots = problem->num_slots};
    for (int32_t g = 0; g < problem->num_ranks; g++) {
        int32_t slots = problem->first_slot[g + 1] - problem->first_slot[g];
        if (slots == 0)
            continue;
        ranks[part->num_ranks++] = g;
        part->min_slots = slots < part->min_slots ? slots : part->min_slots;
    }
    return true;
}

/* Ranks without slots count in the mean of the layer but cannot serve: the layer's figures per part's
 * figures. */
static double idle_factor(const layer_problem *problem, const weighted_part *part)
{
    if (part->num_ranks == problem->num_ranks || problem->total == 0)
        return 1.0;
    int64_t speed = 0;
    for (int32_t i = 0; i < part->num_ranks; i++)
        speed += problem->rank_speed[part->ranks[i]];
    return (double)problem->total_speed / (double)speed;
}

bool weighted_floor(const layer_problem *problem, double *bound, arena *scratch)
{
    arena_mark mark = arena_position(scratch);
    weighted_part part;
    double floor;
    if (!whole_part(problem, &part, scratch) || !weighted_bound(problem, &part, scratch, &floor))
        return false;
    floor = floor * idle_factor(problem, &part) * (1.0 - 0x1p-50);
    *bound = floor > 1.0 ? floor : 1.0;
    arena_rewind(scratch, mark);
    return true;
}

static void clear(const layer_problem *problem, layer_answer *answer)
{
    for (int32_t s = 0; s < problem->num_slots; s++) {
        answer->expert[s] = -1;
        answer->quota[s] = 0;
    }
}

/* Best shares, and moves as far as they help: a plan from nothing may make any number of them. */
static bool improve(const layer_problem *problem, double goal, int64_t max_moves, arena *scratch,
                    layer_answer *answer, double *imbalance)
{
    arena_mark mark = arena_position(scratch);
    size_t slots = (size_t)problem->num_slots;
    int32_t *origin = arena_take(scratch, slots, sizeof *origin);
    if (origin == NULL)
        return false;
    memcpy(origin, answer->expert, slots * sizeof *origin);
    weighted_repair_limits limits = {.origin = origin, .goal = goal, .max_moves = max_moves};
    weighted_repair_result result;
    if (!weighted_repair(problem, &limits, scratch, answer, &result))
        return false;
    *imbalance = result.imbalance;
    arena_rewind(scratch, mark);
    return true;
}

/* Sets *stay if every group of experts lives on one node only. False when memory is out. */
static bool groups_stay(const layer_problem *problem, const int32_t *expert, bool *stay, arena *scratch)
{
    int32_t size = problem->num_experts / problem->num_groups;
    int32_t *seen = arena_take_zero(scratch, (size_t)problem->num_groups, sizeof *seen); /* node + 1 */
    if (seen == NULL)
        return false;
    *stay = true;
    for (int32_t s = 0; s < problem->num_slots; s++) {
        if (expert[s] < 0)
            continue;
        int32_t *home = &seen[expert[s] / size], node = problem->rank_node[problem->slot_rank[s]] + 1;
        *stay = *stay && (*home == 0 || *home == node);
        *home = node;
    }
    return true;
}

/* Best shares for another policy's placement, and moves where it is far from the bound. *imbalance stays
 * unless the placement may be used. False when memory is out. */
static bool adopt(const layer_problem *problem, double bound, bool node_limited, arena *scratch,
                  layer_answer *other, double *imbalance)
{
    bool stay = true;
    if (node_limited && !groups_stay(problem, other->expert, &stay, scratch))
        return false;
    if (!stay)
        return true;
    if (!improve(problem, bound, 0, scratch, other, imbalance))
        return false;
    bool far = *imbalance > bound * (1.0 + WORTH_SEARCHING) && !node_limited; /* moves look at no node */
    return !far || improve(problem, bound, INT64_MAX, scratch, other, imbalance);
}

/* Another policy's placement, an expert once per rank, under the best shares; taken if better than the
 * answer. A policy that cannot plan this input is passed over. */
static eplb_status compare_with(const layer_problem *problem, layer_planner plan, bool node_limited,
                                arena *scratch, layer_answer *answer, double *imbalance, eplb_error *error)
{
    arena_mark mark = arena_position(scratch);
    size_t slots = (size_t)problem->num_slots;
    layer_problem plain = *problem;
    plain.split = EPLB_SPLIT_EQUAL;
    plain.max_moves = INT64_MAX;
    plain.current = NULL;
    layer_answer other = {.expert = arena_take(scratch, slots, sizeof(int32_t)),
                          .quota = arena_take_zero(scratch, slots, sizeof(int64_t)),
                          .bound = 1.0};
    if (other.expert == NULL || other.quota == NULL)
        return out_of_memory(problem, error);
    clear(problem, &other);
    eplb_error refused;
    eplb_status status = plan(&plain, scratch, &other, &refused);
    if (status != EPLB_OK && status != EPLB_ERROR_UNSUPPORTED) {
        if (error != NULL)
            *error = refused;
        return status;
    }
    double reached = *imbalance;
    if (status == EPLB_OK && !adopt(problem, answer->bound, node_limited, scratch, &other, &reached))
        return out_of_memory(problem, error);
    if (reached < *imbalance - NEGLIGIBLE) {
        memcpy(answer->expert, other.expert, slots * sizeof *answer->expert);
        memcpy(answer->quota, other.quota, slots * sizeof *answer->quota);
        *imbalance = reached;
    }
    arena_rewind(scratch, mark);
    return EPLB_OK;
}

/* While the proved bound is not reached: DeepSeek's placement, then that for equal split, whose shares the
 * best ones can only improve on. */
static eplb_status compare_with_others(const layer_problem *problem, bool node_limited, arena *scratch,
                                       layer_answer *answer, double *imbalance, eplb_error *error)
{
    static const layer_planner others[] = {plan_layer_deepseek, plan_layer_equal};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (*imbalance <= answer->bound * (1.0 + NEGLIGIBLE))
            return EPLB_OK;
        eplb_status status =
            compare_with(problem, others[i], node_limited, scratch, answer, imbalance, error);
        if (status != EPLB_OK)
            return status;
    }
    return EPLB_OK;
}

/* No construction applies: greedy placement, then repair. */
static eplb_status plan_by_search(const layer_problem *problem, arena *scratch, layer_answer *answer,
                                  double *imbalance, eplb_error *error)
{
    layer_problem plain = *problem;
    plain.max_moves = INT64_MAX;
    plain.num_groups = plain.num_nodes = 1;
    arena_mark mark = arena_position(scratch);
    clear(problem, answer);
    eplb_status status = plan_layer_greedy(&plain, scratch, answer, error);
    arena_rewind(scratch, mark);
    if (status != EPLB_OK)
        return status;
    return improve(problem, answer->bound, INT64_MAX, scratch, answer, imbalance)
               ? EPLB_OK
               : out_of_memory(problem, error);
}

/* The exact constructions; *exact tells if one of them applied. */
static bool plan_exactly(const layer_problem *problem, const weighted_part *part, arena *scratch,
                         layer_answer *answer, bool *exact)
{
    *exact = problem->uniform_speed && weighted_tree_fits(part);
    if (*exact) {
        int64_t unit = weighted_unit(part->total, part->num_ranks);
        if (!weighted_tree(problem, part, unit, scratch, answer))
            return false;
    } else if (part->num_slots >= part->num_experts + part->num_ranks - 1) {
        int64_t speed = 0;
        for (int32_t i = 0; i < part->num_ranks; i++)
            speed += problem->rank_speed[part->ranks[i]];
        if (!weighted_uneven(problem, part, weighted_unit(part->total, speed), scratch, answer, exact))
            return false;
    }
    return !*exact || weighted_expander(problem, part, scratch, answer);
}

/* What a construction reaches; *found false: none applies. */
static eplb_status construct(const layer_problem *problem, const weighted_part *part, arena *scratch,
                             layer_answer *answer, double *imbalance, bool *found, eplb_error *error)
{
    bool exact;
    *found = true;
    if (!plan_exactly(problem, part, scratch, answer, &exact))
        return out_of_memory(problem, error);
    double idle = idle_factor(problem, part);
    answer->bound = idle * (1.0 - 0x1p-50) > 1.0 ? idle * (1.0 - 0x1p-50) : 1.0;
    *imbalance = idle;
    if (exact)
        return EPLB_OK;
    double bound;
    if (!weighted_bound(problem, part, scratch, &bound))
        return out_of_memory(problem, error);
    answer->bound = bound * answer->bound;
    *found = weighted_components_fit(problem, part);
    if (*found && (!weighted_components(problem, part, scratch, answer) ||
                   !improve(problem, answer->bound, 0, scratch, answer, imbalance)))
        return out_of_memory(problem, error);
    return EPLB_OK;
}

/* Plans without regard to nodes; `*imbalance` is what is reached, answer->bound what is proved. */
static eplb_status plan_area(const layer_problem *problem, arena *scratch, layer_answer *answer,
                             double *imbalance, eplb_error *error)
{
    weighted_part part;
    bool found;
    if (!whole_part(problem, &part, scratch))
        return out_of_memory(problem, error);
    eplb_status status = construct(problem, &part, scratch, answer, imbalance, &found, error);
    if (status == EPLB_OK && !found)
        status = plan_by_search(problem, scratch, answer, imbalance, error);
    if (status == EPLB_OK)
        status = compare_with_others(problem, false, scratch, answer, imbalance, error);
    if (status != EPLB_OK)
        return status;
    if (!weighted_components_fit(problem, &part) &&
        !weighted_kicks(problem, answer->bound * (1.0 + NEGLIGIBLE), scratch, answer, imbalance))
        return out_of_memory(problem, error);
    return weighted_expander(problem, &part, scratch, answer) ? EPLB_OK : out_of_memory(problem, error);
}

/* The same where a construction will do. */
static eplb_status plan_area_quickly(const layer_problem *problem, arena *scratch, layer_answer *answer,
                                     double *imbalance, eplb_error *error)
{
    weighted_part part;
    bool found;
    if (!whole_part(problem, &part, scratch))
        return out_of_memory(problem, error);
    eplb_status status = construct(problem, &part, scratch, answer, imbalance, &found, error);
    return status == EPLB_OK && !found ? plan_area(problem, scratch, answer, imbalance, error) : status;
}

/* --- the layer, from nothing ------------------------------------------------------------------------- */

typedef struct fresh_plan {
    double imbalance;
    bool node_limited;
    bool spilled;
    weighted_homes homes;
} fresh_plan;

static const char *fresh_reason(const layer_problem *problem, const fresh_plan *plan, double bound)
{
    if (problem->total == 0)
        return "no load: replicas spread evenly";
    if (weighted_nodes_apply(problem) && !plan->homes.fits)
        return "groups do not fit on the live nodes: experts placed without regard to nodes";
    if (plan->spilled)
        return "weighted shares: groups on nodes, some replicas elsewhere to level the nodes";
    if (plan->imbalance <= bound * (1.0 + NEGLIGIBLE))
        return plan->node_limited ? "weighted shares: the least that groups on nodes allow"
                                  : "weighted shares: proved best";
    return plan->node_limited
               ? "weighted shares: groups balanced over nodes, then ranks inside each"
               : "weighted shares: spare slots are too few for exact balance, components balanced";
}

/* Replicas outside their node, as many as allowed, if they lower the maximum. */
static eplb_status try_spill(const layer_problem *problem, arena *scratch, layer_answer *answer,
                             fresh_plan *plan, eplb_error *error)
{
    return weighted_spill_plan(problem, plan_area_quickly, scratch, answer, &plan->imbalance, &answer->bound,
                               &plan->spilled, error);
}

static eplb_status plan_on_nodes(const layer_problem *problem, arena *scratch, layer_answer *answer,
                                 fresh_plan *plan, eplb_error *error)
{
    double *height = arena_take(scratch, (size_t)problem->num_nodes, sizeof *height);
    if (height == NULL)
        return out_of_memory(problem, error);
    eplb_status status =
        weighted_nodes_plan(problem, plan->homes.node_of_expert, plan_area, scratch, answer, height, error);
    plan->imbalance = 1.0;
    for (int32_t n = 0; n < problem->num_nodes; n++)
        plan->imbalance = height[n] > plan->imbalance ? height[n] : plan->imbalance;
    answer->bound = plan->homes.floor;
    if (status == EPLB_OK)
        status = compare_with_others(problem, true, scratch, answer, &plan->imbalance, error);
    if (problem->max_spill > 0)
        answer->bound = 1.0; /* the floor of nodes binds only without spill */
    if (status == EPLB_OK && problem->max_spill > 0 && plan->imbalance > 1.0 + NEGLIGIBLE)
        status = try_spill(problem, scratch, answer, plan, error);
    return status;
}

static eplb_status plan_fresh(const layer_problem *problem, arena *scratch, layer_answer *answer,
                              fresh_plan *plan, eplb_error *error)
{
    *plan = (fresh_plan){.node_limited = false, .homes = {.floor = 1.0}};
    eplb_status status;
    if (weighted_nodes_apply(problem)) {
        plan->homes.node_of_expert = arena_take(scratch, (size_t)problem->num_experts, sizeof(int32_t));
        if (plan->homes.node_of_expert == NULL)
            return out_of_memory(problem, error);
        status = weighted_nodes_assign(problem, scratch, &plan->homes, error);
        if (status != EPLB_OK)
            return status;
        plan->node_limited = plan->homes.fits;
    }
    status = plan->node_limited ? plan_on_nodes(problem, scratch, answer, plan, error)
                                : plan_area(problem, scratch, answer, &plan->imbalance, error);
    if (status == EPLB_OK)
        answer->reason = fresh_reason(problem, plan, answer->bound);
    return status;
}

/* --- the layer, from a current placement ------------------------------------------------------------- */

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

/* What each rank holds now: bit e of a row is expert e. */
static uint64_t *current_bits(const layer_problem *problem, int32_t words, arena *scratch)
{
    uint64_t *home = arena_take_zero(scratch, (size_t)problem->num_ranks * (size_t)words, sizeof *home);
    if (home != NULL && problem->cut_off != NULL)
        memcpy(home, problem->cut_off, (size_t)problem->num_ranks * (size_t)words * sizeof *home);
    for (int32_t s = 0; home != NULL && s < problem->num_slots; s++) {
        int32_t e = problem->current[s];
        if (e >= 0)
            home[(size_t)problem->slot_rank[s] * (size_t)words + (size_t)(e >> 6)] |= UINT64_C(1) << (e & 63);
    }
    return home;
}

/* Gives the ranks of a plan from nothing the labels that receive least, and experts that stay on a rank their
 * slot; then the shares are computed anew for the slots. */
static eplb_status settle(const layer_problem *problem, bool node_limited, arena *scratch,
                          layer_answer *answer, eplb_error *error)
{
    arena_mark mark = arena_position(scratch);
    int32_t words = (problem->num_experts + 63) / 64;
    uint64_t *home = current_bits(problem, words, scratch);
    if (home == NULL)
        return out_of_memory(problem, error);
    eplb_status status = relabel_ranks(problem, node_limited ? problem->rank_node : NULL, home, words,
                                       answer->expert, scratch, error);
    if (status == EPLB_OK)
        status = keep_slots(problem->first_slot, problem->num_ranks, problem->num_experts, problem->current,
                            answer->expert, scratch, error);
    double imbalance;
    if (status == EPLB_OK && !improve(problem, HUGE_VAL, 0, scratch, answer, &imbalance))
        status = out_of_memory(problem, error);
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
            return out_of_memory(problem, error);
        eplb_status status = weighted_equal_repair(problem, limits, moves, scratch, &other.answer,
                                                   &other.result, &found, error);
        if (status != EPLB_OK)
            return status;
        if (found && (!plan->complete || other.result.imbalance < plan->result.imbalance - NEGLIGIBLE))
            *plan = other;
        if (moves == most)
            return EPLB_OK;
    }
}

static eplb_status repair_once(const layer_problem *problem, const weighted_repair_limits *limits,
                               arena *scratch, repaired_plan *plan, eplb_error *error)
{
    if (!take_repair(problem, plan, scratch))
        return out_of_memory(problem, error);
    memcpy(plan->answer.expert, problem->current, (size_t)problem->num_slots * sizeof(int32_t));
    if (!weighted_repair(problem, limits, scratch, &plan->answer, &plan->result) ||
        !is_complete(problem, plan->answer.expert, scratch, &plan->complete))
        return out_of_memory(problem, error);
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
            fewer.result.imbalance < plan->result.imbalance * (1.0 - NEGLIGIBLE))
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
    bool bound_to = homes != NULL || !weighted_nodes_apply(problem);
    bool limited = problem->max_moves < INT64_MAX || problem->target_imbalance > 0.0;
    if (!limited || !bound_to || plan->result.imbalance <= goal * (1.0 + NEGLIGIBLE))
        return EPLB_OK;
    limits.trail = NULL;
    if (plan->complete)
        status = compare_fewer_moves(problem, &limits, scratch, plan, error);
    return status == EPLB_OK ? compare_equal_repair(problem, &limits, scratch, plan, error) : status;
}

/* Limits experts to the nodes where they are, if the current placement keeps groups together but for the
 * replicas that may be spilled; else *homes is NULL. False when memory is out. */
static bool repair_homes(const layer_problem *problem, const int32_t **homes, arena *scratch)
{
    *homes = NULL;
    if (!weighted_nodes_apply(problem))
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
    return result->imbalance > goal * (1.0 + NEGLIGIBLE)
               ? "shares only: no moves that lower the maximum were found"
               : "shares of the current placement are enough: nothing moves";
}

/* The floor of nodes binds only who keeps all groups together, but for what may be spilled. */
static double bound_for_repair(const fresh_plan *fresh, const int32_t *homes, double bound)
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
        status = out_of_memory(problem, error);
    return status;
}

static bool stopped(const layer_problem *problem)
{
    return problem->should_stop != NULL && problem->should_stop(problem->stop_context);
}

/* A target that the repair has missed: few moves may go another way, so limits are worked through, 1, 2, 3,
 * 4, 6, 8, 12 ..., as long as a plan from nothing would receive much more. */
static eplb_status reach_target(const layer_problem *problem, const int32_t *homes, double goal,
                                arena *scratch, repaired_plan *plan, eplb_error *error)
{
    layer_problem limited = *problem;
    int64_t most = problem->num_slots / 4;
    limited.target_imbalance = 0.0;
    for (int64_t moves = 1; moves <= most && moves < problem->max_moves && !stopped(problem);
         moves = moves < 4                    ? moves + 1
                 : (moves & (moves - 1)) == 0 ? moves + moves / 2
                                              : moves / 3 * 4) {
        repaired_plan other;
        limited.max_moves = moves;
        eplb_status status = plan_repair(&limited, homes, goal, NULL, scratch, &other, error);
        if (status != EPLB_OK)
            return status;
        if (!other.complete || other.result.imbalance > goal * (1.0 + NEGLIGIBLE))
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
                  plan->result.imbalance > goal * (1.0 + NEGLIGIBLE);
    return missed ? reach_target(problem, homes, goal, scratch, plan, error) : EPLB_OK;
}

static eplb_status plan_from_current(const layer_problem *problem, arena *scratch, layer_answer *answer,
                                     eplb_error *error)
{
    fresh_plan fresh;
    repaired_plan repaired;
    const int32_t *homes;
    eplb_status status = read_current(problem, &homes, scratch, error);
    if (status == EPLB_OK)
        status = plan_fresh(problem, scratch, answer, &fresh, error);
    if (status != EPLB_OK)
        return status;
    double bound = bound_for_repair(&fresh, homes, answer->bound);
    double goal = problem->target_imbalance > bound ? problem->target_imbalance : bound;
    status = repair_current(problem, homes, goal, scratch, &repaired, error);
    if (status != EPLB_OK)
        return status;
    bool scattered = fresh.node_limited && homes == NULL;
    double worth = problem->max_moves == INT64_MAX ? WORTH_RELOADING_MOST : WORTH_REPLANNING;
    bool falls_short = repaired.result.imbalance > goal * (1.0 + NEGLIGIBLE) &&
                       repaired.result.imbalance > fresh.imbalance + worth;
    if (falls_short || scattered || !repaired.complete) {
        status = settle(problem, fresh.node_limited, scratch, answer, error);
        if (status != EPLB_OK || count_received(problem, answer->expert) <= problem->max_moves)
            return status;
    }
    if (!repaired
             .complete) { /* a lost expert found no slot on its node, and no plan from nothing is allowed */
        bound = 1.0;
        status = plan_repair(problem, NULL, goal, NULL, scratch, &repaired, error);
        if (status != EPLB_OK)
            return status;
    }
    take_repaired(problem, &repaired, bound, goal, answer);
    return EPLB_OK;
}

eplb_status plan_layer_weighted(const layer_problem *problem, arena *scratch, layer_answer *answer,
                                eplb_error *error)
{
    if (problem->split == EPLB_SPLIT_EQUAL)
        return error_text(error, EPLB_ERROR_UNSUPPORTED,
                          "policy weighted needs unequal shares: ask for split weighted or batch");
    if (!problem->plain_cost)
        return error_text(
            error, EPLB_ERROR_UNSUPPORTED,
            "policy weighted balances tokens; costs of tiles and activated replicas are not linear in "
            "shares");
    if (problem->current != NULL)
        return plan_from_current(problem, scratch, answer, error);
    fresh_plan plan;
    return plan_fresh(problem, scratch, answer, &plan, error);
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
    *num_points = line.count;
    return status;
}
