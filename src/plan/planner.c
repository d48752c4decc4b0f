/* eplb_plan_create: from a request to a plan that has passed its own checks.
 *
 * Checks the arguments, takes dead ranks out, runs the policy layer by layer (layer_loop.c), puts the answers
 * together, and then treats them as a stranger's: the placement is validated, the imbalance recomputed from
 * loads and slots, the moves counted. A policy's mistake is an INTERNAL error, never a plan. O(L (S + E))
 * beside the policy. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "model/plan_parts.h"
#include "plan/layer_loop.h"
#include "plan/lost_experts.h"
#include "plan/move_budget.h"

#define MOST_REASONS     3 /* told one by one */
#define EMPTY_NOTE_BYTES 144

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* One line from the layers' reasons: the only one, or each with its number of layers. */
static void join_reasons(const char **reason, int32_t num_layers, char *text, size_t bytes)
{
    const char *told[MOST_REASONS] = {NULL};
    int32_t layers[MOST_REASONS] = {0}, num_told = 0, others = 0;
    for (int32_t l = 0; l < num_layers; l++) {
        int32_t i = 0;
        while (i < num_told && !same_text(told[i], reason[l]))
            i++;
        if (i == num_told && num_told < MOST_REASONS)
            told[num_told++] = reason[l];
        if (i < num_told)
            layers[i]++;
        else
            others++;
    }
    size_t used = 0;
    for (int32_t i = 0; i < num_told && used < bytes; i++) {
        const char *words = told[i] != NULL ? told[i] : "planned";
        int written = layers[i] == num_layers ? snprintf(text + used, bytes - used, "%s", words)
                                              : snprintf(text + used, bytes - used, "%s%s (%d of %d layers)",
                                                         i > 0 ? "; " : "", words, layers[i], num_layers);
        used += written > 0 ? (size_t)written : 0;
    }
    if (others > 0 && used < bytes)
        (void)snprintf(text + used, bytes - used, "; other reasons (%d of %d layers)", others, num_layers);
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* What became of empty slots: how many were filled, and how many moves would fill the rest. */
static void note_empty_slots(const plan_request *request, const plan_answers *answers, char *text,
                             size_t bytes)
{
    int64_t filled = 0, empty = 0, most = 0, total = request->params.max_moves;
    int32_t used = 0;
    for (int32_t l = 0; l < request->num_layers; l++) {
        int64_t lacking = answers->lacking[l];
        filled += answers->filled[l];
        empty += lacking;
        if (lacking > 0 && answers->most_moves[l] + lacking > most)
            most = answers->most_moves[l] + lacking;
    }
    if (filled > 0)
        used = snprintf(text, bytes, "; first of all %lld empty slot%s filled", (long long)filled,
                        plural(filled));
    if (empty > 0 && used >= 0)
        (void)snprintf(text + used, bytes - (size_t)used,
                       "; %lld slot%s left empty for lack of moves, %lld %s would fill all", (long long)empty,
                       plural(empty), total == EPLB_UNLIMITED ? (long long)most : (long long)(total + empty),
                       total == EPLB_UNLIMITED ? "a layer" : "in total");
}

/* A plan that fails its own check is a defect of the policy. */
static eplb_status as_defect(eplb_status status, const char *policy, eplb_error *error)
{
    if (status != EPLB_ERROR_INVALID)
        return status;
    if (error != NULL) {
        char text[sizeof error->text];
        memcpy(text, error->text, sizeof text);
        error->status = EPLB_ERROR_INTERNAL;
        (void)snprintf(error->text, sizeof error->text, "policy %s: %.200s", policy, text);
    }
    return EPLB_ERROR_INTERNAL;
}

static bool take_answers(plan_answers *answers, const plan_request *request, arena *memory)
{
    size_t layers = (size_t)request->num_layers, slots = (size_t)eplb_topology_num_slots(request->topology);
    bool equal = request->params.split == EPLB_SPLIT_EQUAL;
    answers->expert = arena_take(memory, layers * slots, sizeof(int32_t));
    answers->shares = equal ? NULL : arena_take_zero(memory, layers * slots, sizeof(double));
    answers->bound = arena_take(memory, layers, sizeof(double));
    answers->reason = arena_take(memory, layers, sizeof(const char *));
    answers->filled = arena_take(memory, layers, sizeof(int64_t));
    answers->lacking = arena_take(memory, layers, sizeof(int64_t));
    answers->most_moves = arena_take(memory, layers, sizeof(int64_t));
    if (answers->filled == NULL || answers->lacking == NULL || answers->most_moves == NULL ||
        answers->expert == NULL || answers->bound == NULL || answers->reason == NULL ||
        (!equal && answers->shares == NULL))
        return false;
    if (!request->live->all) {
        for (size_t i = 0; i < layers * slots; i++)
            answers->expert[i] = -1;
    }
    return true;
}

/* Puts the answers into a plan, checks and measures it. */
static eplb_status assemble(eplb_plan **plan, const plan_request *request, const plan_answers *answers,
                            const eplb_allocator *allocator, eplb_error *error)
{
    char reason[PLAN_REASON_BYTES], note[EMPTY_NOTE_BYTES] = "";
    note_empty_slots(request, answers, note, sizeof note);
    join_reasons(answers->reason, request->num_layers, reason, sizeof reason - strlen(note));
    (void)snprintf(reason + strlen(reason), sizeof reason - strlen(reason), "%s", note);
    plan_parts parts = {.topology = request->topology,
                        .num_layers = request->num_layers,
                        .num_experts = request->num_experts,
                        .physical_to_logical = answers->expert,
                        .shares = answers->shares,
                        .lower_bound = answers->bound,
                        .split = request->params.split,
                        .policy = request->policy->name,
                        .reason = reason,
                        .num_groups = request->params.num_groups,
                        .may_duplicate = request->policy->may_duplicate};
    eplb_plan *created = NULL;
    eplb_status status = plan_from_parts(&created, &parts, allocator, error);
    if (status == EPLB_OK)
        status = plan_measure(created, request->load, error);
    if (status == EPLB_OK)
        status = eplb_plan_is_valid(created, error);
    status = as_defect(status, request->policy->name, error);
    if (status == EPLB_OK)
        status = plan_count_moves(created, request->params.current, error);
    if (status == EPLB_OK)
        status = plan_count_spilled(created, error);
    if (status != EPLB_OK) {
        eplb_plan_destroy(created);
        return status;
    }
    *plan = created;
    return EPLB_OK;
}

/* Runs the policy on every layer within the limits of moves. */
static eplb_status run_policy(const plan_request *request, double started, plan_answers *answers,
                              arena *memory, const eplb_allocator *allocator, eplb_error *error)
{
    int64_t *limit = NULL;
    eplb_status status = EPLB_OK;
    double seconds = request->params.time_limit_seconds;
    plan_progress progress = {.deadline = seconds > 0.0 ? started + seconds : 0.0,
                              .total = (move_budget_visits(request) ? 2 : 1) * (int64_t)request->num_layers};
    if (request->params.max_moves != EPLB_UNLIMITED) {
        size_t layers = (size_t)request->num_layers;
        limit = arena_take(memory, layers, sizeof *limit);
        if (limit == NULL)
            return error_memory(error, layers * sizeof *limit, "the limits of moves");
        status = move_budget_divide(request, limit, &progress, allocator, error);
        if (status != EPLB_OK)
            limit = NULL; /* not known */
    }
    if (status == EPLB_OK)
        status = plan_layers(request, limit, &progress, answers, allocator, error);
    return status == EPLB_ERROR_INFEASIBLE ? lost_experts_explain(request, limit, allocator, error) : status;
}

eplb_status eplb_plan_create(eplb_plan **plan, const eplb_load *load, const eplb_topology *topology,
                             const eplb_plan_params *params, const eplb_allocator *allocator,
                             eplb_error *error)
{
    double started = plan_clock();
    *plan = NULL;
    plan_request request;
    eplb_status status = request_check(&request, load, topology, params, error);
    if (status != EPLB_OK)
        return status;
    arena memory;
    arena_init(&memory, allocator);
    live_ranks live;
    plan_answers answers;
    status = live_ranks_create(&live, topology, &memory, error);
    if (status != EPLB_OK)
        goto destroy_memory;
    request.live = &live;
    if (!take_answers(&answers, &request, &memory)) {
        status = error_memory(error, (size_t)live.num_slots * (size_t)request.num_layers * sizeof(int32_t),
                              "the answers of a plan");
        goto destroy_memory;
    }
    status = run_policy(&request, started, &answers, &memory, allocator, error);
    if (status == EPLB_OK)
        status = assemble(plan, &request, &answers, allocator, error);
    if (status == EPLB_OK)
        plan_set_seconds(*plan, plan_clock() - started);
destroy_memory:
    arena_destroy(&memory);
    return status;
}
