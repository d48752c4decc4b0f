/* Trying the search on windows that it has not seen.
 *
 * A search over few windows of a near-static load fits their noise. Where counting alone explains how windows
 * differ (window_noise.c) there is nothing to search for, and fewer than four windows are told apart by the
 * size of what differs only. Of more, three quarters of the windows are planned, by search and on the sum,
 * and the other quarter judges; this twice, with different quarters. The search has to win clearly, the more
 * so the fewer windows there are; less so where windows share so much variation that they surely differ.
 * Cost: two searches with a third of the steps. */
#include "base/error.h"
#include "plan/window_course.h"
#include "plan/window_noise.h"

#define SUM_WORK      INT64_C(20000) /* for the plan on the sum */
#define FOLDS         4
#define STEPS_PART    3    /* a trial's search takes 1 / STEPS_PART of the steps */
#define TIME_PARTS    5    /* and, where that is limited, 1 / TIME_PARTS of the time */
#define MARGIN        0.04 /* over the number of windows: what the mean has to gain */
#define LENIENCE      0.03 /* what it may lose where windows surely differ, for a trial of few is chance */
#define FEW           16   /* windows; of more the trial is less chance */
#define SURELY_STATIC 3.0  /* up to so large a product of windows and variation they share */
#define SURELY_DRIFTS 4.5
#define SLIGHT        0.125 /* a variation of shares: experts wander so far each for itself */
#define STRONG        0.2   /* with so much windows surely differ */

/* Every fourth window from `first` on, or all others, as a layer of their own. */
static eplb_status take_part(const layer_problem *problem, int32_t first, bool others, layer_problem *part,
                             arena *scratch, eplb_error *error)
{
    size_t experts = (size_t)problem->num_experts, windows = (size_t)problem->num_windows;
    int64_t *window = arena_take(scratch, windows * experts, sizeof *window);
    int64_t *sum = arena_take_zero(scratch, experts, sizeof *sum);
    if (window == NULL || sum == NULL)
        return error_memory(error, windows * experts * sizeof *window, "a part of the windows");
    *part = *problem;
    part->num_windows = 0;
    part->window_load = window;
    part->load = sum;
    part->total = 0;
    part->current = NULL;
    part->max_moves = INT64_MAX;
    part->work_limit = SUM_WORK;
    for (int32_t t = 0; t < problem->num_windows; t++) {
        if ((t % FOLDS == first) == others)
            continue;
        const int64_t *from = problem->window_load + (size_t)t * experts;
        int64_t *to = window + (size_t)part->num_windows++ * experts;
        for (size_t e = 0; e < experts; e++) {
            to[e] = from[e];
            sum[e] += from[e];
            part->total += from[e];
        }
    }
    return EPLB_OK;
}

/* What the windows not seen reach, summed over the parts. */
typedef struct trial_sums {
    const window_aim *aim;
    int64_t steps;
    double on_sum;
    double searched;
    double drift; /* windows * unexplained, summed: about 2.5 for pure noise however many they are */
    int32_t parts;
    bool cut; /* a search ran out of time: it proves little */
} trial_sums;

/* Plans one part both ways; the windows of the other judge. */
static eplb_status try_part(trial_sums *trial, const layer_problem *seen, const layer_problem *unseen,
                            arena *scratch, eplb_error *error)
{
    window_course course = {.problem = seen, .aim = trial->aim, .kept_empty = seen->num_slots};
    window_course_share_time(&course, TIME_PARTS - trial->parts);
    double on_sum, searched;
    eplb_status status = window_course_init(&course, scratch, error);
    course.steps = trial->steps / STEPS_PART;
    if (status == EPLB_OK)
        status = window_course_on_sum(&course, trial->aim->any_share, scratch, error);
    if (status == EPLB_OK)
        status = trial->aim->score(unseen, course.best, &on_sum, scratch, error);
    if (status == EPLB_OK)
        status = window_course_aim(&course, scratch, error);
    if (status == EPLB_OK)
        status = window_course_search(&course, scratch, error);
    if (status == EPLB_OK)
        status = trial->aim->score(unseen, course.found, &searched, scratch, error);
    if (status != EPLB_OK)
        return status;
    trial->on_sum += on_sum;
    trial->searched += searched;
    trial->drift += course.risk.unexplained * (double)course.risk.num_windows;
    trial->parts++;
    trial->cut = trial->cut || layer_time_used(course.problem) >= course.until;
    return EPLB_OK;
}

static bool is_won(const trial_sums *trial, int32_t num_windows, double variation)
{
    if (trial->parts == 0)
        return true;
    double gain = (trial->on_sum - trial->searched) / (double)trial->parts;
    double sure = (trial->drift / (double)trial->parts - SURELY_STATIC) / (SURELY_DRIFTS - SURELY_STATIC);
    double strong = (variation - SLIGHT) / (STRONG - SLIGHT);
    sure = strong < sure ? strong : sure;
    sure = sure < 0.0 ? 0.0 : sure > 1.0 ? 1.0 : sure;
    double windows = (double)num_windows, lenience = num_windows > FEW ? LENIENCE * FEW / windows : LENIENCE;
    return gain > (1.0 - sure) * MARGIN / windows - sure * lenience;
}

/* What can be told without a trial: chance alone, or windows too few to spare one. *decided false: try. */
static bool judge_noise(const layer_problem *problem, const window_aim *aim, const window_noise *noise,
                        bool *decided)
{
    bool few = problem->num_windows < WINDOW_TRIAL_LEAST, chance = window_noise_explains(noise);
    *decided = few || chance;
    return !chance && (!few || aim->any_share || noise->variation >= SLIGHT);
}

eplb_status window_trial(const layer_problem *problem, const window_aim *aim, int64_t steps, bool *wins,
                         arena *scratch, eplb_error *error)
{
    arena_mark mark = arena_position(scratch);
    trial_sums trial = {.aim = aim, .steps = steps};
    eplb_status status = EPLB_OK;
    bool decided;
    *wins = true;
    if (problem->num_windows < 2)
        return EPLB_OK;
    window_noise noise = window_noise_measure(problem);
    *wins = judge_noise(problem, aim, &noise, &decided);
    if (decided)
        return EPLB_OK;
    for (int32_t first = 1; status == EPLB_OK && first < FOLDS && !trial.cut; first += 2) {
        layer_problem seen, unseen;
        status = take_part(problem, first, true, &seen, scratch, error);
        if (status == EPLB_OK)
            status = take_part(problem, first, false, &unseen, scratch, error);
        if (status == EPLB_OK && seen.total > 0 && unseen.total > 0)
            status = try_part(&trial, &seen, &unseen, scratch, error);
        arena_rewind(scratch, mark);
    }
    *wins = is_won(&trial, problem->num_windows, noise.variation) || (trial.cut && noise.variation >= STRONG);
    return status;
}
