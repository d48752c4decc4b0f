/* Planning layer after layer, on one thread or several.
 *
 * Layers are handed out in order under one lock, which also serialises the progress callback; each thread has
 * an arena that it rewinds after every layer. Which thread plans a layer does not change its answer. When a
 * layer fails no later one is started, and the lowest failure is reported: the one that a single thread
 * meets. */
#include "plan/layer_loop.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/error.h"

typedef struct layer_loop {
    const plan_request *request;
    const int64_t *move_limit;
    plan_answers *answers;
    eplb_allocator allocator;
    double deadline;      /* 0: none */
    pthread_mutex_t lock; /* what follows */
    int32_t next;         /* layer to hand out */
    int32_t finished;     /* layers planned */
    bool cancelled;
    int32_t failed_layer; /* lowest so far; num_layers: none */
    eplb_status status;
    eplb_error error;
} layer_loop;

double plan_clock(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Tells the caller how far it is; the lock is held. */
static void report(layer_loop *loop)
{
    const eplb_plan_params *params = &loop->request->params;
    if (params->progress == NULL || loop->cancelled)
        return;
    if (!params->progress(params->progress_context, loop->finished, loop->request->num_layers))
        loop->cancelled = true;
}

/* Polled by searches: cancelled, or the time is up. */
static bool should_stop(void *context)
{
    layer_loop *loop = context;
    if (loop->deadline > 0.0 && plan_clock() >= loop->deadline)
        return true;
    if (loop->request->params.progress == NULL)
        return false;
    (void)pthread_mutex_lock(&loop->lock);
    report(loop);
    bool cancelled = loop->cancelled;
    (void)pthread_mutex_unlock(&loop->lock);
    return cancelled;
}

/* The next layer to plan; -1: none. */
static int32_t hand_out(layer_loop *loop)
{
    (void)pthread_mutex_lock(&loop->lock);
    bool going = loop->status == EPLB_OK && !loop->cancelled && loop->next < loop->request->num_layers;
    int32_t layer = going ? loop->next++ : -1;
    (void)pthread_mutex_unlock(&loop->lock);
    return layer;
}

static void hand_in(layer_loop *loop, int32_t layer, eplb_status status, const eplb_error *error)
{
    (void)pthread_mutex_lock(&loop->lock);
    if (status == EPLB_OK) {
        loop->finished++;
        report(loop);
    } else if (layer < loop->failed_layer) {
        loop->failed_layer = layer;
        loop->status = status;
        loop->error = *error;
    }
    (void)pthread_mutex_unlock(&loop->lock);
}

/* Fractions from quotas: quota / sum over the expert's replicas, equal where all are 0. */
static eplb_status write_shares(const layer_problem *problem, const layer_answer *answer,
                                const live_ranks *live, arena *scratch, double *shares, eplb_error *error)
{
    size_t experts = (size_t)problem->num_experts;
    int64_t *sum = arena_take_zero(scratch, experts, sizeof *sum);
    int32_t *count = arena_take_zero(scratch, experts, sizeof *count);
    if (sum == NULL || count == NULL)
        return error_memory(error, experts * sizeof *sum, "the shares of a layer");
    for (int32_t p = 0; p < problem->num_slots; p++) {
        int32_t e = answer->expert[p];
        if (e < 0 || e >= problem->num_experts)
            continue;
        count[e]++;
        sum[e] += answer->quota[p];
    }
    for (int32_t p = 0; p < problem->num_slots; p++) {
        int32_t e = answer->expert[p];
        if (e < 0 || e >= problem->num_experts)
            continue;
        shares[live->slot[p]] =
            sum[e] > 0 ? (double)answer->quota[p] / (double)sum[e] : 1.0 / (double)count[e];
    }
    return EPLB_OK;
}

/* Copies a layer's answer to its place, by the topology's slot numbers. */
static eplb_status store(layer_loop *loop, const layer_problem *problem, const layer_answer *answer,
                         arena *scratch, eplb_error *error)
{
    const live_ranks *live = loop->request->live;
    size_t layer = (size_t)problem->layer, slots = (size_t)eplb_topology_num_slots(loop->request->topology);
    int32_t *row = loop->answers->expert + layer * slots;
    for (int32_t p = 0; row != answer->expert && p < live->num_slots; p++)
        row[live->slot[p]] = answer->expert[p];
    loop->answers->bound[layer] = answer->bound;
    loop->answers->reason[layer] = answer->reason;
    if (loop->answers->shares == NULL)
        return EPLB_OK;
    return write_shares(problem, answer, live, scratch, loop->answers->shares + layer * slots, error);
}

static eplb_status plan_one(layer_loop *loop, int32_t layer, arena *scratch, eplb_error *error)
{
    const plan_request *request = loop->request;
    layer_problem problem;
    eplb_status status = layer_problem_create(&problem, request, layer, scratch, error);
    if (status != EPLB_OK)
        return status;
    problem.should_stop = should_stop;
    problem.stop_context = loop;
    if (loop->move_limit != NULL)
        problem.max_moves = loop->move_limit[layer];
    size_t slots = (size_t)problem.num_slots;
    layer_answer answer = {.bound = 1.0, .quota = arena_take_zero(scratch, slots, sizeof(int64_t))};
    if (request->live->all)
        answer.expert = loop->answers->expert + (size_t)layer * slots;
    else
        answer.expert = arena_take(scratch, slots, sizeof(int32_t));
    if (answer.expert == NULL || answer.quota == NULL)
        return error_memory(error, slots * sizeof(int64_t), "the answer of a layer");
    for (size_t p = 0; p < slots; p++)
        answer.expert[p] = -1;
    status = request->policy->plan_layer(&problem, scratch, &answer, error);
    return status == EPLB_OK ? store(loop, &problem, &answer, scratch, error) : status;
}

static void *work(void *context)
{
    layer_loop *loop = context;
    arena scratch;
    arena_init(&scratch, &loop->allocator);
    arena_mark start = arena_position(&scratch);
    for (int32_t layer = hand_out(loop); layer >= 0; layer = hand_out(loop)) {
        eplb_error error = {0};
        eplb_status status = plan_one(loop, layer, &scratch, &error);
        hand_in(loop, layer, status, &error);
        arena_rewind(&scratch, start);
    }
    arena_destroy(&scratch);
    return NULL;
}

/* Runs `work` on this thread and on up to num_threads - 1 others. A refused thread is no failure: the others
 * do its part. */
static eplb_status run(layer_loop *loop, eplb_error *error)
{
    int32_t wanted = loop->request->params.num_threads;
    wanted = (wanted < loop->request->num_layers ? wanted : loop->request->num_layers) - 1;
    if (wanted == 0) {
        (void)work(loop);
        return EPLB_OK;
    }
    pthread_t *threads = memory_take(&loop->allocator, (size_t)wanted, sizeof *threads);
    if (threads == NULL)
        return error_memory(error, (size_t)wanted * sizeof *threads, "the planning threads");
    int32_t started = 0;
    while (started < wanted && pthread_create(&threads[started], NULL, work, loop) == 0)
        started++;
    (void)work(loop);
    for (int32_t i = 0; i < started; i++)
        (void)pthread_join(threads[i], NULL);
    memory_give(&loop->allocator, threads);
    return EPLB_OK;
}

eplb_status plan_layers(const plan_request *request, const int64_t *move_limit, double started,
                        plan_answers *answers, const eplb_allocator *allocator, eplb_error *error)
{
    double limit = request->params.time_limit_seconds;
    layer_loop loop = {.request = request,
                       .move_limit = move_limit,
                       .answers = answers,
                       .allocator = memory_allocator(allocator),
                       .deadline = limit > 0.0 ? started + limit : 0.0,
                       .failed_layer = request->num_layers,
                       .status = EPLB_OK};
    if (pthread_mutex_init(&loop.lock, NULL) != 0)
        return error_text(error, EPLB_ERROR_SYSTEM, "the system refuses a lock");
    eplb_status status = run(&loop, error);
    (void)pthread_mutex_destroy(&loop.lock);
    if (status != EPLB_OK)
        return status;
    if (loop.cancelled)
        return error_text(error, EPLB_ERROR_CANCELLED, "cancelled after %d of %d layers", loop.finished,
                          request->num_layers);
    if (loop.status != EPLB_OK && error != NULL)
        *error = loop.error;
    return loop.status;
}
