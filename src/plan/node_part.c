/* Cutting a layer into nodes: the same nouns with fewer of each, so that a construction for a whole layer
 * serves for a node unchanged. O(E + S + G) per node. */
#include "plan/node_part.h"

#include "base/error.h"

typedef struct part_arrays {
    int64_t *load;
    int32_t *first_slot;
    int32_t *slot_rank;
    int32_t *rank_node;
    int32_t *rank_speed;
} part_arrays;

static bool take_arrays(node_part *part, part_arrays *arrays, const layer_problem *whole, arena *scratch)
{
    size_t experts = (size_t)whole->num_experts, slots = (size_t)whole->num_slots;
    size_t ranks = (size_t)whole->num_ranks;
    part->expert = arena_take(scratch, experts, sizeof *part->expert);
    part->slot = arena_take(scratch, slots, sizeof *part->slot);
    arrays->load = arena_take(scratch, experts, sizeof *arrays->load);
    arrays->first_slot = arena_take(scratch, ranks + 1, sizeof *arrays->first_slot);
    arrays->slot_rank = arena_take(scratch, slots, sizeof *arrays->slot_rank);
    arrays->rank_node = arena_take_zero(scratch, ranks, sizeof *arrays->rank_node);
    arrays->rank_speed = arena_take(scratch, ranks, sizeof *arrays->rank_speed);
    return part->expert != NULL && part->slot != NULL && arrays->load != NULL && arrays->first_slot != NULL &&
           arrays->slot_rank != NULL && arrays->rank_node != NULL && arrays->rank_speed != NULL;
}

static void copy_experts(node_part *part, part_arrays *arrays, const layer_problem *whole, int32_t node,
                         const int32_t *expert_area)
{
    layer_problem *problem = &part->problem;
    for (int32_t e = 0; e < whole->num_experts; e++) {
        if (expert_area[e] != node)
            continue;
        part->expert[problem->num_experts] = e;
        arrays->load[problem->num_experts++] = whole->load[e];
        problem->total += whole->load[e];
    }
}

static void copy_ranks(node_part *part, part_arrays *arrays, const layer_problem *whole, int32_t node)
{
    layer_problem *problem = &part->problem;
    arrays->first_slot[0] = 0;
    for (int32_t g = 0; g < whole->num_ranks; g++) {
        if (whole->rank_node[g] != node)
            continue;
        for (int32_t p = whole->first_slot[g]; p < whole->first_slot[g + 1]; p++) {
            part->slot[problem->num_slots] = p;
            arrays->slot_rank[problem->num_slots++] = problem->num_ranks;
        }
        arrays->rank_speed[problem->num_ranks] = whole->rank_speed[g];
        problem->total_speed += whole->rank_speed[g];
        arrays->first_slot[++problem->num_ranks] = problem->num_slots;
    }
}

eplb_status node_part_make(node_part *part, const layer_problem *whole, int32_t node,
                           const int32_t *expert_area, arena *scratch, eplb_error *error)
{
    part_arrays arrays;
    if (!take_arrays(part, &arrays, whole, scratch))
        return error_memory(error, (size_t)whole->num_slots * sizeof(int32_t), "part of a node");
    part->problem = *whole;
    layer_problem *problem = &part->problem;
    problem->num_experts = problem->num_ranks = problem->num_slots = 0;
    problem->total = problem->total_speed = 0;
    problem->num_nodes = problem->num_groups = problem->num_windows = 1;
    problem->num_sources = 0;
    problem->source_load = NULL;
    problem->current = NULL;
    copy_experts(part, &arrays, whole, node, expert_area);
    copy_ranks(part, &arrays, whole, node);
    problem->load = problem->window_load = arrays.load;
    problem->first_slot = arrays.first_slot;
    problem->slot_rank = arrays.slot_rank;
    problem->rank_node = arrays.rank_node;
    problem->rank_speed = arrays.rank_speed;
    return EPLB_OK;
}
