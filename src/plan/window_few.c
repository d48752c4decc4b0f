/* Small layers: every placement, judged on the recorded windows.
 *
 * Annealing makes single changes, and on a layer of a few slots no path of them may lead to the best. There
 * are so few placements that all can be judged (few_placements.c): up to TRIED of them, fewer where there are
 * many windows. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "plan/few_placements.h"
#include "plan/window_course.h"

#define TRIED 32768 /* placements times windows */

typedef struct judge {
    window_course *course;
    int32_t *best; /* [S] */
    double least;
    arena *scratch;
    eplb_error *error;
    eplb_status status;
} judge;

static bool judge_one(void *context, const int32_t *expert)
{
    judge *state = context;
    const layer_problem *problem = state->course->problem;
    double score;
    arena_mark mark = arena_position(state->scratch);
    state->status = state->course->aim->score(problem, expert, &score, state->scratch, state->error);
    arena_rewind(state->scratch, mark);
    if (state->status != EPLB_OK)
        return false;
    if (score < state->least) {
        state->least = score;
        memcpy(state->best, expert, (size_t)problem->num_slots * sizeof *state->best);
    }
    return !layer_is_stopped(problem);
}

static bool count_one(void *context, const int32_t *expert)
{
    (void)context;
    (void)expert;
    return true;
}

eplb_status window_course_all(window_course *course, bool *all, arena *scratch, eplb_error *error)
{
    const layer_problem *problem = course->problem;
    size_t slots = (size_t)problem->num_slots;
    int64_t most = TRIED / problem->num_windows;
    judge state = {.course = course,
                   .best = arena_take(scratch, slots, sizeof(int32_t)),
                   .least = INFINITY,
                   .scratch = scratch,
                   .error = error};
    if (state.best == NULL || !few_placements(problem, most, count_one, NULL, all, scratch))
        return error_memory(error, slots * sizeof(int32_t), "all placements");
    if (!*all)
        return EPLB_OK;
    if (!few_placements(problem, most, judge_one, &state, all, scratch))
        return error_memory(error, slots * sizeof(int32_t), "all placements");
    memcpy(course->found, state.best, slots * sizeof *course->found);
    *all = true; /* or stopped: what there is stays */
    return state.status;
}
