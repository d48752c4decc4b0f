/* Dividing a total of moves over the layers: where a move gains most, it goes.
 *
 * Each layer's frontier (imbalance against moves) is reduced to its lower convex hull; hull steps of all
 * layers are granted in order of gain per move, ties to the lowest layer, so that the sum of imbalances is
 * least among divisions at hull points. Moves that serve a lost expert come first. Policies without a
 * frontier get even parts, the remainder to the first layers. O(L) per granted step beside the frontiers. */
#include "plan/move_budget.h"

#include "base/error.h"
#include "plan/layer_loop.h"

#define MOST_POINTS 256 /* of one layer's frontier */

typedef struct budget {
    int32_t num_layers;
    int64_t left;          /* moves not yet granted */
    frontier_point *point; /* [L, MOST_POINTS] hulls */
    int32_t *num_points;   /* [L] */
    int32_t *at;           /* [L] point granted so far */
    int64_t *limit;        /* [L] */
} budget;

/* Gain per move of the step from a to b. */
static double slope(const frontier_point *a, const frontier_point *b)
{
    return (a->imbalance - b->imbalance) / (double)(b->moves - a->moves);
}

/* Keeps the points of the lower convex hull, where each step gains less per move than the one before. */
static int32_t reduce_to_hull(frontier_point *point, int32_t count)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < count; i++) {
        if (kept > 0 && point[i].imbalance >= point[kept - 1].imbalance)
            continue;
        while (kept >= 2 && slope(&point[kept - 2], &point[kept - 1]) <= slope(&point[kept - 1], &point[i]))
            kept--;
        point[kept++] = point[i];
    }
    return kept;
}

/* Gain per move of a layer's next step, -1 when it has none that fits. */
static double next_gain(const budget *b, int32_t layer)
{
    int32_t at = b->at[layer];
    if (at + 1 >= b->num_points[layer])
        return -1.0;
    const frontier_point *point = b->point + (size_t)layer * MOST_POINTS + at;
    return point[1].moves - point[0].moves <= b->left ? slope(&point[0], &point[1]) : -1.0;
}

/* Grants steps while one fits. A step that no longer fits is passed over; shorter ones of other layers go on.
 */
static void grant_steps(budget *b)
{
    for (;;) {
        int32_t best = -1;
        double most = 0.0;
        for (int32_t l = 0; l < b->num_layers; l++) {
            double gain = next_gain(b, l);
            if (gain > most) {
                most = gain;
                best = l;
            }
        }
        if (best < 0)
            return;
        const frontier_point *point = b->point + (size_t)best * MOST_POINTS + b->at[best]++;
        b->left -= point[1].moves - point[0].moves;
        b->limit[best] = point[1].moves;
    }
}

static eplb_status read_frontier(budget *b, const plan_request *request, int32_t layer, arena *scratch,
                                 eplb_error *error)
{
    layer_problem problem;
    arena_mark mark = arena_position(scratch);
    eplb_status status = layer_problem_create(&problem, request, layer, scratch, error);
    if (status != EPLB_OK)
        return status;
    if (problem.max_moves > b->left)
        problem.max_moves = b->left;
    frontier_point *point = b->point + (size_t)layer * MOST_POINTS;
    status = request->policy->frontier(&problem, scratch, point, MOST_POINTS, &b->num_points[layer], error);
    arena_rewind(scratch, mark);
    if (status != EPLB_OK)
        return status;
    if (b->num_points[layer] < 1 || point[0].moves > b->left)
        return error_set(
            error, EPLB_ERROR_INFEASIBLE, (error_place){layer, -1, -1, -1, point[0].moves},
            "layer %d: experts without a live replica need %lld moves, %lld of the limit are left", layer,
            (long long)point[0].moves, (long long)b->left);
    b->limit[layer] = point[0].moves;
    b->left -= point[0].moves;
    b->num_points[layer] = reduce_to_hull(point, b->num_points[layer]);
    return EPLB_OK;
}

static void divide_evenly(const plan_request *request, int64_t *limit)
{
    int64_t most = request->params.max_moves_per_layer, layers = request->num_layers;
    for (int64_t l = 0; l < layers; l++) {
        limit[l] = request->params.max_moves / layers + (l < request->params.max_moves % layers ? 1 : 0);
        if (most != EPLB_UNLIMITED && limit[l] > most)
            limit[l] = most;
    }
}

eplb_status move_budget_divide(const plan_request *request, int64_t *limit, const eplb_allocator *allocator,
                               eplb_error *error)
{
    if (request->policy->frontier == NULL || request->params.current == NULL) {
        divide_evenly(request, limit);
        return EPLB_OK;
    }
    arena memory;
    arena_init(&memory, allocator);
    size_t layers = (size_t)request->num_layers;
    budget b = {.num_layers = request->num_layers,
                .left = request->params.max_moves,
                .point = arena_take(&memory, layers * MOST_POINTS, sizeof(frontier_point)),
                .num_points = arena_take_zero(&memory, layers, sizeof(int32_t)),
                .at = arena_take_zero(&memory, layers, sizeof(int32_t)),
                .limit = limit};
    eplb_status status = EPLB_OK;
    if (b.point == NULL || b.num_points == NULL || b.at == NULL)
        status = error_memory(error, layers * MOST_POINTS * sizeof(frontier_point), "the frontiers");
    for (int32_t l = 0; status == EPLB_OK && l < request->num_layers; l++)
        status = read_frontier(&b, request, l, &memory, error);
    if (status == EPLB_OK)
        grant_steps(&b);
    arena_destroy(&memory);
    return status;
}
