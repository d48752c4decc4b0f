/* Visiting layer after layer, on one thread or several.
 *
 * Layers are handed out in order under one lock, which also serialises the progress callback; each thread has
 * an arena that it rewinds after every layer. Which thread visits a layer does not change its answer. When a
 * layer fails no later one is started, and the lowest failure is reported: the one that a single thread
 * meets. A time limit is divided evenly over the layers that have not begun; what one leaves goes to the next
 * ones. */
#include "plan/layer_loop.h"

#include <pthread.h>
#include <time.h>

#include "base/error.h"

typedef struct layer_loop {
    const plan_request *request;
    layer_visitor visit;
    void *context;
    eplb_allocator allocator;
    plan_progress *progress; /* `done` is under the lock */
    pthread_mutex_t lock;    /* what follows */
    int32_t next;            /* layer to hand out */
    bool cancelled;
    int32_t failed_layer; /* lowest so far; num_layers: none */
    eplb_status status;
    eplb_error error;
} layer_loop;

/* One layer's time. */
typedef struct layer_watch {
    layer_loop *loop;
    double begun;
    double end; /* 0: no limit */
} layer_watch;

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
    if (!params->progress(params->progress_context, loop->progress->done, loop->progress->total))
        loop->cancelled = true;
}

/* Polled by searches: cancelled, or the layer's time is up. */
static bool should_stop(void *context)
{
    const layer_watch *watch = context;
    layer_loop *loop = watch->loop;
    if (watch->end > 0.0 && plan_clock() >= watch->end)
        return true;
    if (loop->request->params.progress == NULL)
        return false;
    (void)pthread_mutex_lock(&loop->lock);
    report(loop);
    bool cancelled = loop->cancelled;
    (void)pthread_mutex_unlock(&loop->lock);
    return cancelled;
}

static double time_used(void *context)
{
    const layer_watch *watch = context;
    double all = watch->end - watch->begun, used = plan_clock() - watch->begun;
    return used >= all ? 1.0 : used / all;
}

/* Starts the watch of a layer that is about to begin; the lock is held. Layers that have not begun are
 * divided among the threads. */
static void start_watch(layer_loop *loop, layer_watch *watch)
{
    plan_progress *progress = loop->progress;
    int64_t waiting = progress->total - progress->begun++, threads = loop->request->params.num_threads;
    *watch = (layer_watch){.loop = loop};
    if (!(progress->deadline > 0.0))
        return;
    watch->begun = plan_clock();
    double left = progress->deadline - watch->begun;
    watch->end =
        threads >= waiting ? progress->deadline : watch->begun + left * (double)threads / (double)waiting;
}

/* The next layer to plan; -1: none. */
static int32_t hand_out(layer_loop *loop, layer_watch *watch)
{
    (void)pthread_mutex_lock(&loop->lock);
    bool going = loop->status == EPLB_OK && !loop->cancelled && loop->next < loop->request->num_layers;
    int32_t layer = going ? loop->next++ : -1;
    if (going)
        start_watch(loop, watch);
    (void)pthread_mutex_unlock(&loop->lock);
    return layer;
}

static void hand_in(layer_loop *loop, int32_t layer, eplb_status status, const eplb_error *error)
{
    (void)pthread_mutex_lock(&loop->lock);
    if (status == EPLB_OK) {
        loop->progress->done++;
        report(loop);
    } else if (layer < loop->failed_layer) {
        loop->failed_layer = layer;
        loop->status = status;
        loop->error = *error;
    }
    (void)pthread_mutex_unlock(&loop->lock);
}

static eplb_status visit_one(layer_loop *loop, layer_watch *watch, int32_t layer, arena *scratch,
                             eplb_error *error)
{
    layer_problem problem;
    eplb_status status = layer_problem_create(&problem, loop->request, layer, scratch, error);
    if (status != EPLB_OK)
        return status;
    problem.should_stop = should_stop;
    problem.stop_context = watch;
    problem.time_used = watch->end > 0.0 ? time_used : NULL;
    return loop->visit(loop->context, &problem, scratch, error);
}

static void *work(void *context)
{
    layer_loop *loop = context;
    arena scratch;
    arena_init(&scratch, &loop->allocator);
    arena_mark start = arena_position(&scratch);
    layer_watch watch;
    for (int32_t layer = hand_out(loop, &watch); layer >= 0; layer = hand_out(loop, &watch)) {
        eplb_error error = {0};
        eplb_status status = visit_one(loop, &watch, layer, &scratch, &error);
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

eplb_status visit_layers(const plan_request *request, layer_visitor visit, void *context,
                         plan_progress *progress, const eplb_allocator *allocator, eplb_error *error)
{
    layer_loop loop = {.request = request,
                       .visit = visit,
                       .context = context,
                       .allocator = memory_allocator(allocator),
                       .progress = progress,
                       .failed_layer = request->num_layers,
                       .status = EPLB_OK};
    if (pthread_mutex_init(&loop.lock, NULL) != 0)
        return error_text(error, EPLB_ERROR_SYSTEM, "the system refuses a lock");
    eplb_status status = run(&loop, error);
    (void)pthread_mutex_destroy(&loop.lock);
    if (status != EPLB_OK)
        return status;
    if (loop.cancelled)
        return error_text(error, EPLB_ERROR_CANCELLED, "cancelled after %lld of %lld layers",
                          (long long)progress->done, (long long)progress->total);
    if (loop.status != EPLB_OK && error != NULL)
        *error = loop.error;
    return loop.status;
}
