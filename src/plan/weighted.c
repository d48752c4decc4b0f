/* Policy `weighted`: placement and shares with every rank at its target where that is possible, and a proof
 * of how near it is where it is not.
 *
 * Ranks that are alike and spare slots enough: the tree (weighted_tree.c), exact for every load. Fewer spare
 * slots: components (weighted_components.c). Speeds or scarce uneven slots: the uneven form
 * (weighted_uneven.c), else a greedy placement improved by repair (weighted_repair.c) and disturbed
 * (weighted_kicks.c). Groups on nodes: weighted_nodes.c, then the same inside each. Spare slots:
 * weighted_expander.c. What is not proved best is compared with the placements of DeepSeek and of policy
 * equal under the best shares, so it is never worse than those. With a current placement:
 * weighted_current.c. Cost: O(E + S) and one sort for the exact cases, microseconds a layer. Source:
 * docs/planning/weighted.md. */
#include "plan/weighted_plan.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "plan/policies.h"
#include "plan/sort_loads.h"
#include "plan/weighted_repair.h"
#include "plan/weighted_spill.h"

/* Another policy's placement is improved by moves if it is farther than this from the bound. */
#define WORTH_SEARCHING 1e-3

eplb_status weighted_memory(const layer_problem *problem, eplb_error *error)
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

bool weighted_improve(const layer_problem *problem, double goal, int64_t max_moves, arena *scratch,
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
    if (!weighted_improve(problem, bound, 0, scratch, other, imbalance))
        return false;
    bool far = *imbalance > bound * (1.0 + WORTH_SEARCHING) && !node_limited; /* moves look at no node */
    return !far || weighted_improve(problem, bound, INT64_MAX, scratch, other, imbalance);
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
        return weighted_memory(problem, error);
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
        return weighted_memory(problem, error);
    if (reached < *imbalance - WEIGHTED_NEGLIGIBLE) {
        memcpy(answer->expert, other.expert, slots * sizeof *answer->expert);
        memcpy(answer->quota, other.quota, slots * sizeof *answer->quota);
        *imbalance = reached;
    }
    arena_rewind(scratch, mark);
    return EPLB_OK;
}

/* While the proved bound is not reached: DeepSeek's placement, then that for equal split, whose shares the
 * best ones can only weighted_improve on. */
static eplb_status compare_with_others(const layer_problem *problem, bool node_limited, arena *scratch,
                                       layer_answer *answer, double *imbalance, eplb_error *error)
{
    static const layer_planner others[] = {plan_layer_deepseek, plan_layer_equal};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (*imbalance <= answer->bound * (1.0 + WEIGHTED_NEGLIGIBLE))
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
    return weighted_improve(problem, answer->bound, INT64_MAX, scratch, answer, imbalance)
               ? EPLB_OK
               : weighted_memory(problem, error);
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
        return weighted_memory(problem, error);
    double idle = idle_factor(problem, part);
    answer->bound = idle * (1.0 - 0x1p-50) > 1.0 ? idle * (1.0 - 0x1p-50) : 1.0;
    *imbalance = idle;
    if (exact)
        return EPLB_OK;
    double bound;
    if (!weighted_bound(problem, part, scratch, &bound))
        return weighted_memory(problem, error);
    answer->bound = bound * answer->bound;
    *found = weighted_components_fit(problem, part);
    if (*found && (!weighted_components(problem, part, scratch, answer) ||
                   !weighted_improve(problem, answer->bound, 0, scratch, answer, imbalance)))
        return weighted_memory(problem, error);
    return EPLB_OK;
}

/* Plans without regard to nodes; `*imbalance` is what is reached, answer->bound what is proved. `quickly`: a
 * construction will do where one applies. */
static eplb_status plan_whole(const layer_problem *problem, bool quickly, arena *scratch,
                              layer_answer *answer, double *imbalance, eplb_error *error)
{
    weighted_part part;
    bool found;
    if (!whole_part(problem, &part, scratch))
        return weighted_memory(problem, error);
    eplb_status status = construct(problem, &part, scratch, answer, imbalance, &found, error);
    if (status != EPLB_OK || (found && quickly))
        return status;
    if (!found)
        status = plan_by_search(problem, scratch, answer, imbalance, error);
    if (status == EPLB_OK)
        status = compare_with_others(problem, false, scratch, answer, imbalance, error);
    if (status != EPLB_OK)
        return status;
    if (!weighted_components_fit(problem, &part) &&
        !weighted_kicks(problem, answer->bound * (1.0 + WEIGHTED_NEGLIGIBLE), scratch, answer, imbalance))
        return weighted_memory(problem, error);
    return weighted_expander(problem, &part, scratch, answer) ? EPLB_OK : weighted_memory(problem, error);
}

static eplb_status plan_area(const layer_problem *problem, arena *scratch, layer_answer *answer,
                             double *imbalance, eplb_error *error)
{
    return plan_whole(problem, false, scratch, answer, imbalance, error);
}

static eplb_status plan_area_quickly(const layer_problem *problem, arena *scratch, layer_answer *answer,
                                     double *imbalance, eplb_error *error)
{
    return plan_whole(problem, true, scratch, answer, imbalance, error);
}

/* --- the layer, from nothing ------------------------------------------------------------------------- */

static const char *fresh_reason(const layer_problem *problem, const weighted_fresh *plan, double bound)
{
    if (problem->total == 0)
        return "no load: replicas spread evenly";
    if (layer_binds_groups(problem) && !plan->homes.fits)
        return "groups do not fit on the live nodes: experts placed without regard to nodes";
    if (plan->spilled)
        return "weighted shares: groups on nodes, some replicas elsewhere to level the nodes";
    if (plan->imbalance <= bound * (1.0 + WEIGHTED_NEGLIGIBLE))
        return plan->node_limited ? "weighted shares: the least that groups on nodes allow"
                                  : "weighted shares: proved best";
    return plan->node_limited
               ? "weighted shares: groups balanced over nodes, then ranks inside each"
               : "weighted shares: spare slots are too few for exact balance, components balanced";
}

/* Replicas outside their node, as many as allowed, if they lower the maximum. */
static eplb_status try_spill(const layer_problem *problem, arena *scratch, layer_answer *answer,
                             weighted_fresh *plan, eplb_error *error)
{
    return weighted_spill_plan(problem, plan_area_quickly, scratch, answer, &plan->imbalance, &answer->bound,
                               &plan->spilled, error);
}

static eplb_status plan_on_nodes(const layer_problem *problem, arena *scratch, layer_answer *answer,
                                 weighted_fresh *plan, eplb_error *error)
{
    double *height = arena_take(scratch, (size_t)problem->num_nodes, sizeof *height);
    if (height == NULL)
        return weighted_memory(problem, error);
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
    if (status == EPLB_OK && problem->max_spill > 0 && plan->imbalance > 1.0 + WEIGHTED_NEGLIGIBLE)
        status = try_spill(problem, scratch, answer, plan, error);
    return status;
}

eplb_status weighted_plan_fresh(const layer_problem *problem, arena *scratch, layer_answer *answer,
                                weighted_fresh *plan, eplb_error *error)
{
    *plan = (weighted_fresh){.node_limited = false, .homes = {.floor = 1.0}};
    eplb_status status;
    if (layer_binds_groups(problem)) {
        plan->homes.node_of_expert = arena_take(scratch, (size_t)problem->num_experts, sizeof(int32_t));
        if (plan->homes.node_of_expert == NULL)
            return weighted_memory(problem, error);
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
        return weighted_plan_current(problem, scratch, answer, error);
    weighted_fresh plan;
    return weighted_plan_fresh(problem, scratch, answer, &plan, error);
}
