/* Dividing a total of moves over the layers: where a move gains most, it goes.
 *
 * Each layer's frontier (imbalance against moves) is reduced to its lower convex hull; hull steps of all
 * layers are granted in order of gain per move, ties to the lowest layer, so that the sum of imbalances is
 * least among divisions at hull points. Moves that serve a lost expert come first, then those that fill an
 * empty slot. Policies without a frontier get even parts, the remainder to the first layers. O(L) per granted
 * step beside the frontiers. */
#include "plan/move_budget.h"

#include "base/error.h"
#include "plan/fill_slots.h"

#define MOST_POINTS 256 /* of one layer's frontier */

typedef struct budget {
    const plan_request *request;
    int32_t num_layers;
    int32_t capacity;      /* points of a layer's frontier */
    int64_t left;          /* moves not yet granted */
    frontier_point *point; /* [L, capacity] hulls; NULL: the policy has no frontiers */
    int32_t *num_points;   /* [L] */
    int32_t *at;           /* [L] point granted so far */
    int64_t *lost;         /* [L] experts without a live replica */
    int64_t *fill;         /* [L] moves that fill empty slots, lost experts first */
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

/* A pass over the layers: reads each one's frontier, if the policy has one, and what fills its slots. */
static eplb_status read_layer(void *context, layer_problem *problem, arena *scratch, eplb_error *error)
{
    budget *b = context;
    const plan_policy *policy = b->request->policy;
    int32_t layer = problem->layer;
    if (problem->max_moves > b->left)
        problem->max_moves = b->left;
    eplb_status status = EPLB_OK;
    if (!policy->may_duplicate)
        status = fill_slots_count(problem, &b->lost[layer], &b->fill[layer], scratch, error);
    if (b->point == NULL && b->lost[layer] > problem->max_moves)
        b->lost[layer] = problem->max_moves;
    if (b->fill[layer] > problem->max_moves)
        b->fill[layer] = problem->max_moves;
    if (status != EPLB_OK || policy->frontier == NULL)
        return status;
    return fill_slots_frontier(policy, problem, scratch, b->point + (size_t)layer * (size_t)b->capacity,
                               b->capacity, &b->num_points[layer], error);
}

static int64_t first_moves(const budget *b, int32_t layer)
{
    return b->point[(size_t)layer * (size_t)b->capacity].moves;
}

/* Grants what serves lost experts, layer after layer: where frontiers start, or just a move for each if that
 * is too much for all. */
static eplb_status grant_needs(budget *b, eplb_error *error)
{
    int64_t all = 0;
    for (int32_t l = 0; l < b->num_layers; l++)
        all += first_moves(b, l);
    bool scarce = all > b->left;
    for (int32_t l = 0; l < b->num_layers; l++) {
        int64_t need = scarce ? b->lost[l] : first_moves(b, l);
        if (b->num_points[l] < 1 || need > b->left)
            return error_set(error, EPLB_ERROR_INFEASIBLE, (error_place){l, -1, -1, -1, need},
                             "layer %d: experts without a live replica need %lld moves, %lld of the limit "
                             "are left",
                             l, (long long)need, (long long)b->left);
        b->limit[l] = need;
        b->left -= need;
    }
    return EPLB_OK;
}

/* Raises layer after layer to what it wants, as far as moves are left. */
static void grant_up_to(budget *b, const int64_t *want)
{
    for (int32_t l = 0; l < b->num_layers; l++) {
        int64_t wanted = want[l] - b->limit[l], given = wanted < b->left ? wanted : b->left;
        if (given <= 0)
            continue;
        b->limit[l] += given;
        b->left -= given;
    }
}

/* Cuts a layer's frontier off at what is granted already; the rest becomes its hull. */
static void start_steps(budget *b, int32_t layer)
{
    frontier_point *point = b->point + (size_t)layer * (size_t)b->capacity;
    int32_t first = 0, count = b->num_points[layer];
    while (first + 1 < count && point[first + 1].moves <= b->limit[layer])
        first++;
    for (int32_t i = first; i < count; i++)
        point[i - first] = point[i];
    point[0].moves = b->limit[layer];
    b->num_points[layer] = reduce_to_hull(point, count - first);
}

/* Equal parts of what is left, the remainder to the first layers. */
static void grant_evenly(budget *b)
{
    int64_t most = b->request->params.max_moves_per_layer, layers = b->num_layers;
    for (int64_t l = 0; l < layers; l++) {
        b->limit[l] += b->left / layers + (l < b->left % layers ? 1 : 0);
        if (most != EPLB_UNLIMITED && b->limit[l] > most)
            b->limit[l] = most;
    }
}

static eplb_status grant(budget *b, eplb_error *error)
{
    for (int32_t l = 0; l < b->num_layers; l++)
        b->limit[l] = 0;
    if (b->point == NULL) {
        grant_up_to(b, b->lost);
        grant_up_to(b, b->fill);
        grant_evenly(b);
        return EPLB_OK;
    }
    eplb_status status = grant_needs(b, error);
    if (status != EPLB_OK)
        return status;
    grant_up_to(b, b->fill); /* a plan with an empty slot is of no use to most engines */
    for (int32_t l = 0; l < b->num_layers; l++)
        start_steps(b, l);
    grant_steps(b);
    return EPLB_OK;
}

bool move_budget_visits(const plan_request *request)
{
    return request->params.max_moves != EPLB_UNLIMITED && request->params.current != NULL;
}

/* The arrays of a budget; those of frontiers where the policy has them. */
static bool take_budget(budget *b, arena *memory)
{
    size_t layers = (size_t)b->num_layers;
    b->lost = arena_take_zero(memory, layers, sizeof *b->lost);
    b->fill = arena_take_zero(memory, layers, sizeof *b->fill);
    if (b->lost == NULL || b->fill == NULL)
        return false;
    if (b->request->policy->frontier == NULL || b->request->params.current == NULL)
        return true;
    b->capacity = (int32_t)(b->left < MOST_POINTS ? b->left + 1 : MOST_POINTS);
    b->point = arena_take_zero(memory, layers * (size_t)b->capacity, sizeof *b->point);
    b->num_points = arena_take_zero(memory, layers, sizeof *b->num_points);
    b->at = arena_take_zero(memory, layers, sizeof *b->at);
    return b->point != NULL && b->num_points != NULL && b->at != NULL;
}

eplb_status move_budget_divide(const plan_request *request, int64_t *limit, plan_progress *progress,
                               const eplb_allocator *allocator, eplb_error *error)
{
    arena memory;
    arena_init(&memory, allocator);
    budget b = {.request = request,
                .num_layers = request->num_layers,
                .left = request->params.max_moves,
                .limit = limit};
    eplb_status status = EPLB_OK;
    if (!take_budget(&b, &memory))
        status = error_memory(error, (size_t)b.num_layers * MOST_POINTS * sizeof *b.point, "the frontiers");
    else if (move_budget_visits(request))
        status = visit_layers(request, read_layer, &b, progress, allocator, error);
    if (status == EPLB_OK)
        status = grant(&b, error);
    arena_destroy(&memory);
    return status;
}
