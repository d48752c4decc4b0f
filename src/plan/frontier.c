/* The public frontier: the policy's curve of every layer, put together.
 *
 * Layers are explored one after the other into one buffer, then copied to arrays of exact size.
 * O(sum of points) beside the policy. */
#include <eplb/frontier.h>

#include <string.h>

#include "base/error.h"
#include "plan/fill_slots.h"
#include "plan/layer_loop.h"

#define MOST_POINTS 4096 /* of one layer */

struct eplb_frontier {
    eplb_allocator allocator;
    int32_t num_layers;
    int32_t *first;    /* [L + 1] */
    int64_t *moves;    /* [first[L]] */
    double *imbalance; /* [first[L]] */
};

/* Points of all layers while they are collected. */
typedef struct collection {
    frontier_point **point; /* [L] */
    int32_t *count;         /* [L] */
} collection;

static eplb_status explore_layer(const plan_request *request, int32_t layer, collection *found, arena *kept,
                                 arena *scratch, eplb_error *error)
{
    layer_problem problem;
    arena_mark mark = arena_position(scratch);
    frontier_point *point = arena_take(scratch, MOST_POINTS, sizeof *point);
    if (point == NULL)
        return error_memory(error, MOST_POINTS * sizeof *point, "a frontier");
    int32_t count = 0;
    eplb_status status = layer_problem_create(&problem, request, layer, scratch, error);
    if (status == EPLB_OK)
        status = fill_slots_frontier(request->policy, &problem, scratch, point, MOST_POINTS, &count, error);
    if (status != EPLB_OK)
        return status;
    found->count[layer] = count;
    found->point[layer] = arena_take(kept, (size_t)count, sizeof *point);
    if (found->point[layer] == NULL)
        return error_memory(error, (size_t)count * sizeof *point, "a frontier");
    if (count > 0)
        memcpy(found->point[layer], point, (size_t)count * sizeof *point);
    arena_rewind(scratch, mark);
    return EPLB_OK;
}

static eplb_status put_together(eplb_frontier **frontier, const collection *found, int32_t num_layers,
                                const eplb_allocator *allocator, eplb_error *error)
{
    size_t points = 0;
    for (int32_t l = 0; l < num_layers; l++)
        points += (size_t)found->count[l];
    eplb_allocator memory = memory_allocator(allocator);
    eplb_frontier *made = memory_take(&memory, 1, sizeof *made);
    if (made == NULL)
        return error_memory(error, sizeof *made, "a frontier");
    made->allocator = memory;
    made->num_layers = num_layers;
    made->first = memory_take(&memory, (size_t)num_layers + 1, sizeof *made->first);
    made->moves = memory_take(&memory, points, sizeof *made->moves);
    made->imbalance = memory_take(&memory, points, sizeof *made->imbalance);
    if (made->first == NULL || made->moves == NULL || made->imbalance == NULL) {
        eplb_frontier_destroy(made);
        return error_memory(error, points * sizeof *made->moves, "a frontier");
    }
    for (int32_t l = 0; l < num_layers; l++) {
        int32_t start = made->first[l];
        for (int32_t i = 0; i < found->count[l]; i++) {
            made->moves[start + i] = found->point[l][i].moves;
            made->imbalance[start + i] = found->point[l][i].imbalance;
        }
        made->first[l + 1] = start + found->count[l];
    }
    *frontier = made;
    return EPLB_OK;
}

static eplb_status explore(eplb_frontier **frontier, const plan_request *request,
                           const eplb_allocator *allocator, arena *kept, arena *scratch, eplb_error *error)
{
    size_t layers = (size_t)request->num_layers;
    collection found = {arena_take(kept, layers, sizeof *found.point),
                        arena_take(kept, layers, sizeof *found.count)};
    if (found.point == NULL || found.count == NULL)
        return error_memory(error, layers * sizeof *found.point, "frontiers");
    for (int32_t l = 0; l < request->num_layers; l++) {
        eplb_status status = explore_layer(request, l, &found, kept, scratch, error);
        if (status != EPLB_OK)
            return status;
    }
    return put_together(frontier, &found, request->num_layers, allocator, error);
}

eplb_status eplb_frontier_create(eplb_frontier **frontier, const eplb_load *load,
                                 const eplb_topology *topology, const eplb_plan_params *params,
                                 const eplb_allocator *allocator, eplb_error *error)
{
    *frontier = NULL;
    plan_request request;
    eplb_status status = request_check(&request, load, topology, params, error);
    if (status != EPLB_OK)
        return status;
    if (request.params.current == NULL)
        return error_text(error, EPLB_ERROR_INVALID, "a frontier starts from a current placement: give one");
    if (request.policy->frontier == NULL)
        return error_text(error, EPLB_ERROR_UNSUPPORTED,
                          "policy %s plans from nothing and has no frontier; policy auto has",
                          request.policy->name);
    arena kept, scratch;
    live_ranks live;
    arena_init(&kept, allocator);
    arena_init(&scratch, allocator);
    status = live_ranks_create(&live, topology, &kept, error);
    request.live = &live;
    if (status == EPLB_OK)
        status = explore(frontier, &request, allocator, &kept, &scratch, error);
    arena_destroy(&scratch);
    arena_destroy(&kept);
    return status;
}

void eplb_frontier_destroy(eplb_frontier *frontier)
{
    if (frontier == NULL)
        return;
    eplb_allocator memory = frontier->allocator;
    memory_give(&memory, frontier->first);
    memory_give(&memory, frontier->moves);
    memory_give(&memory, frontier->imbalance);
    memory_give(&memory, frontier);
}

int32_t eplb_frontier_num_layers(const eplb_frontier *frontier)
{
    return frontier->num_layers;
}

const int32_t *eplb_frontier_first(const eplb_frontier *frontier)
{
    return frontier->first;
}

const int64_t *eplb_frontier_moves(const eplb_frontier *frontier)
{
    return frontier->moves;
}

const double *eplb_frontier_imbalance(const eplb_frontier *frontier)
{
    return frontier->imbalance;
}
