/* Dividing a total of moves over the layers: where a move gains most, it goes.
 *
 * Each layer's frontier (imbalance against moves) is reduced to its lower convex hull; hull steps of all
 * layers are granted in order of gain per move, ties to the lowest layer, so that the sum of imbalances is
 * least among divisions at hull points. Moves that serve a lost expert come first. Policies without a
 * frontier get even parts, the remainder to the first layers. O(L) per granted step beside the frontiers. */
#include "plan/move_budget.h"

#include "base/error.h"
#define MOST_POINTS 256 /* of one layer's frontier */

typedef struct budget {
    const plan_request *request;
    int32_t num_layers;
    int32_t capacity;      /* points of a layer's frontier */
    int64_t left;          /* moves not yet granted */
    frontier_point *point; /* [L, capacity] hulls */
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
    const frontier_point *point = b->point + (size_t)layer * (size_t)b->capacity + at;
    return point[1].moves - point[0].moves <= b->left ? slope(&point[0], &point[1]) : -1.0;
}

/* Grants steps while one fits. A step that no longer fits is passed over; shorter ones of other layers go
 * on. */
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
        const frontier_point *point = b->point + (size_t)best * (size_t)b->capacity + b->at[best]++;
        b->left -= point[1].moves - point[0].moves;
        b->limit[best] = point[1].moves;
    }
}

/* A pass over the layers: reads each one's frontier. */
static eplb_status read_frontier(void *context, layer_problem *problem, arena *scratch, eplb_error *error)
{
    budget *b = context;
    if (problem->max_moves > b->left)
        problem->max_moves = b->left;
    frontier_point *point = b->point + (size_t)problem->layer * (size_t)b->capacity;
    return b->request->policy->frontier(problem, scratch, point, b->capacity, &b->num_points[problem->layer],
                                        error);
}

/* Grants what serves lost experts, layer after layer, and reduces the rest to hulls. */
static eplb_status grant_needs(budget *b, eplb_error *error)
{
    for (int32_t l = 0; l < b->num_layers; l++) {
        frontier_point *point = b->point + (size_t)l * (size_t)b->capacity;
        if (b->num_points[l] < 1 || point[0].moves > b->left)
            return error_set(error, EPLB_ERROR_INFEASIBLE, (error_place){l, -1, -1, -1, point[0].moves},
                             "layer %d: experts without a live replica need %lld moves, %lld of the limit "
                             "are left",
                             l, (long long)point[0].moves, (long long)b->left);
        b->limit[l] = point[0].moves;
        b->left -= point[0].moves;
        b->num_points[l] = reduce_to_hull(point, b->num_points[l]);
    }
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

bool move_budget_visits(const plan_request *request)
{
    return request->params.max_moves != EPLB_UNLIMITED && request->policy->frontier != NULL &&
           request->params.current != NULL;
}

eplb_status move_budget_divide(const plan_request *request, int64_t *limit, plan_progress *progress,
                               const eplb_allocator *allocator, eplb_error *error)
{
    if (!move_budget_visits(request)) {
        divide_evenly(request, limit);
        return EPLB_OK;
    }
    arena memory;
    arena_init(&memory, allocator);
    int64_t most = request->params.max_moves;
    size_t layers = (size_t)request->num_layers, points = most < MOST_POINTS ? (size_t)most + 1 : MOST_POINTS;
    budget b = {.request = request,
                .num_layers = request->num_layers,
                .capacity = (int32_t)points,
                .left = most,
                .point = arena_take_zero(&memory, layers * points, sizeof(frontier_point)),
                .num_points = arena_take_zero(&memory, layers, sizeof(int32_t)),
                .at = arena_take_zero(&memory, layers, sizeof(int32_t)),
                .limit = limit};
    eplb_status status;
    if (b.point == NULL || b.num_points == NULL || b.at == NULL)
        status = error_memory(error, layers * points * sizeof(frontier_point), "the frontiers");
    else
        status = visit_layers(request, read_frontier, &b, progress, allocator, error);
    if (status == EPLB_OK)
        status = grant_needs(&b, error);
    if (status == EPLB_OK)
        grant_steps(&b);
    arena_destroy(&memory);
    return status;
}
