/* Experts that no rank can keep, against the limit of moves: each costs one received expert, whatever the
 * policy, so a limit below their number cannot be met by any plan that serves every expert. Either no rank
 * that lives and stays holds them, or those that do have too few slots left. The error names them: who runs
 * the engine must know what to load. O(S + E) a layer. */
#include "plan/lost_experts.h"

#include <stdio.h>

#include "base/error.h"
#include "plan/layer_loop.h"

#define MOST_LISTED 8 /* of each kind */

typedef enum expert_state { STATE_LOST, STATE_CUT_OFF, STATE_KEPT } expert_state;

/* What becomes of each expert of a layer, and how many there are of each. */
typedef struct needs {
    uint8_t *state; /* [E] */
    int32_t num_experts;
    int64_t count[STATE_KEPT + 1];
} needs;

static int64_t must_receive(const needs *need)
{
    return need->count[STATE_LOST] + need->count[STATE_CUT_OFF];
}

static bool read_needs(needs *need, const layer_problem *problem, arena *scratch)
{
    *need = (needs){.state = arena_take_zero(scratch, (size_t)problem->num_experts, sizeof *need->state),
                    .num_experts = problem->num_experts};
    if (need->state == NULL)
        return false;
    for (int32_t e = 0; e < problem->num_experts && problem->cut_off != NULL; e++) {
        for (int32_t g = 0; g < problem->num_ranks && need->state[e] == STATE_LOST; g++) {
            if (layer_is_cut_off(problem, problem->cut_off, g, e))
                need->state[e] = STATE_CUT_OFF;
        }
    }
    for (int32_t s = 0; s < problem->num_slots; s++) {
        if (problem->current[s] >= 0)
            need->state[problem->current[s]] = STATE_KEPT;
    }
    for (int32_t e = 0; e < problem->num_experts; e++)
        need->count[need->state[e]]++;
    return true;
}

/* Appends "what 3, 17, 20 and 4 more" to text[used..bytes); returns the new end. */
static size_t list(const needs *need, expert_state state, const char *what, char *text, size_t used,
                   size_t bytes)
{
    int64_t told = 0;
    for (int32_t e = 0; e < need->num_experts && told < MOST_LISTED && used < bytes; e++) {
        if (need->state[e] != state)
            continue;
        int written = snprintf(text + used, bytes - used, "%s%d", told > 0 ? ", " : what, (int)e);
        used += written > 0 ? (size_t)written : 0;
        told++;
    }
    if (told < need->count[state] && used < bytes) {
        int written =
            snprintf(text + used, bytes - used, " and %lld more", (long long)(need->count[state] - told));
        used += written > 0 ? (size_t)written : 0;
    }
    return used;
}

/* "experts 3, 17 are on no rank that lives and stays; ranks with fewer slots cannot keep 5, 6" */
static void describe(const needs *need, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    if (need->count[STATE_LOST] > 0)
        used = list(need, STATE_LOST, "no rank that lives and stays holds ", text, used, bytes);
    if (need->count[STATE_CUT_OFF] > 0)
        (void)list(need, STATE_CUT_OFF,
                   used > 0 ? "; ranks with fewer slots cannot keep " : "ranks with fewer slots cannot keep ",
                   text, used, bytes);
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

#define TOO_MANY "layer %d: %lld move%s allowed, but %lld expert%s must be received: %s"

static int32_t first_of(const needs *need)
{
    int32_t e = 0;
    while (need->state[e] == STATE_KEPT)
        e++;
    return e;
}

eplb_status lost_experts_check(const layer_problem *problem, arena *scratch, eplb_error *error)
{
    if (problem->current == NULL || problem->max_moves >= problem->num_experts)
        return EPLB_OK;
    arena_mark mark = arena_position(scratch);
    needs need;
    if (!read_needs(&need, problem, scratch))
        return error_memory(error, (size_t)problem->num_experts, "experts that are held");
    int64_t count = must_receive(&need);
    eplb_status status = EPLB_OK;
    if (count > problem->max_moves) {
        char text[120];
        describe(&need, text, sizeof text);
        status = error_set(error, EPLB_ERROR_INFEASIBLE,
                           (error_place){problem->layer, first_of(&need), -1, -1, count}, TOO_MANY,
                           (int)problem->layer, (long long)problem->max_moves, plural(problem->max_moves),
                           (long long)count, plural(count), text);
    }
    arena_rewind(scratch, mark);
    return status;
}

/* What all layers need. */
typedef struct all_needs {
    const int64_t *limit; /* [L] received experts allowed in each layer, or NULL: as the request says */
    int64_t count;        /* experts that must be received */
    int64_t beyond;       /* of them, in other layers than the first that may not receive what it needs */
    int32_t layers;       /* that need some */
    int32_t others;       /* with `beyond` */
    int32_t first;        /* that may not receive what it needs, else the first that needs some; -1: none */
    bool refused;         /* the former */
    int64_t first_limit, first_count;
    int32_t first_expert;
    char text[120]; /* which those of the first layer are */
} all_needs;

static void take_first(all_needs *all, const needs *need, const layer_problem *problem, bool refused)
{
    all->first = problem->layer;
    all->refused = refused;
    all->first_limit = problem->max_moves;
    all->first_count = must_receive(need);
    all->first_expert = first_of(need);
    describe(need, all->text, sizeof all->text);
}

static eplb_status add_layer(all_needs *all, const plan_request *request, int32_t layer, arena *scratch,
                             eplb_error *error)
{
    layer_problem problem;
    needs need;
    eplb_status status = layer_problem_create(&problem, request, layer, scratch, error);
    if (status != EPLB_OK)
        return status;
    if (!read_needs(&need, &problem, scratch))
        return error_memory(error, (size_t)problem.num_experts, "experts that are held");
    if (all->limit != NULL)
        problem.max_moves = all->limit[layer];
    int64_t count = must_receive(&need);
    bool refused = count > problem.max_moves;
    if (count > 0 && (all->first < 0 || (refused && !all->refused))) {
        take_first(all, &need, &problem, refused);
    } else if (refused) {
        all->beyond += count;
        all->others++;
    }
    all->count += count;
    all->layers += count > 0;
    return EPLB_OK;
}

static eplb_status tell(const all_needs *all, const plan_request *request, eplb_error *error)
{
    char others[64] = "";
    int64_t most = request->params.max_moves;
    error_place place = {all->first, all->first_expert, -1, -1, all->first_count};
    if (most != EPLB_UNLIMITED && all->count > most) {
        place.value = all->count;
        return error_set(error, EPLB_ERROR_INFEASIBLE, place,
                         "%lld move%s allowed in total, but %lld expert%s must be received in %d layer%s; "
                         "layer %d: %s",
                         (long long)most, plural(most), (long long)all->count, plural(all->count),
                         (int)all->layers, plural(all->layers), (int)all->first, all->text);
    }
    if (all->others > 0)
        (void)snprintf(others, sizeof others, "; %lld more in %d other layer%s", (long long)all->beyond,
                       (int)all->others, plural(all->others));
    return error_set(error, EPLB_ERROR_INFEASIBLE, place, TOO_MANY "%s", (int)all->first,
                     (long long)all->first_limit, plural(all->first_limit), (long long)all->first_count,
                     plural(all->first_count), all->text, others);
}

eplb_status lost_experts_explain(const plan_request *request, const int64_t *limit,
                                 const eplb_allocator *allocator, eplb_error *error)
{
    all_needs all = {.limit = limit, .first = -1};
    eplb_error ours;
    eplb_status status = request->params.current == NULL ? EPLB_ERROR_INFEASIBLE : EPLB_OK;
    arena scratch;
    arena_init(&scratch, allocator);
    for (int32_t l = 0; status == EPLB_OK && l < request->num_layers; l++) {
        arena_mark mark = arena_position(&scratch);
        status = add_layer(&all, request, l, &scratch, &ours);
        arena_rewind(&scratch, mark);
    }
    arena_destroy(&scratch);
    bool total = request->params.max_moves != EPLB_UNLIMITED && all.count > request->params.max_moves;
    if (status != EPLB_OK || (!all.refused && !total))
        return EPLB_ERROR_INFEASIBLE; /* as it was told */
    return tell(&all, request, error);
}
