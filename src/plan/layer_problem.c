/* From load, topology and current placement to the dense problem of one layer. O(T E + S) per layer. */
#include <string.h>

#include "base/error.h"
#include "plan/carry_over.h"
#include "plan/layer_loop.h"

/* Rows of live source ranks. */
static bool read_sources(layer_problem *problem, const plan_request *request, arena *scratch)
{
    const eplb_load *sources = request->params.sources;
    if (sources == NULL)
        return true;
    const live_ranks *live = request->live;
    size_t experts = (size_t)request->num_experts, all = (size_t)eplb_load_num_windows(sources);
    int64_t *rows = arena_take(scratch, all * experts, sizeof *rows);
    if (rows == NULL)
        return false;
    eplb_load_windows(sources, problem->layer, rows);
    for (size_t g = 0; g < (size_t)live->num_ranks; g++) {
        size_t from = (size_t)live->rank[g] * experts, to = g * experts;
        for (size_t e = 0; e < experts && from != to; e++)
            rows[to + e] = rows[from + e];
    }
    problem->source_load = rows;
    problem->num_sources = live->num_ranks;
    return true;
}

static bool read_load(layer_problem *problem, const plan_request *request, arena *scratch)
{
    size_t experts = (size_t)request->num_experts, windows = (size_t)problem->num_windows;
    int64_t *sum = arena_take(scratch, experts, sizeof *sum);
    if (sum == NULL)
        return false;
    eplb_load_sum(request->load, problem->layer, sum);
    problem->load = problem->window_load = sum;
    for (size_t e = 0; e < experts; e++)
        problem->total += sum[e];
    if (problem->num_windows == 1)
        return true;
    int64_t *counts = arena_take(scratch, windows * experts, sizeof *counts);
    if (counts == NULL)
        return false;
    eplb_load_windows(request->load, problem->layer, counts);
    problem->window_load = counts;
    return true;
}

static void copy_ranks(layer_problem *problem, const live_ranks *live)
{
    problem->num_ranks = live->num_ranks;
    problem->num_slots = live->num_slots;
    problem->num_nodes = live->num_nodes;
    problem->first_slot = live->first_slot;
    problem->slot_rank = live->slot_rank;
    problem->rank_node = live->rank_node;
    problem->rank_speed = live->rank_speed;
    problem->total_speed = live->total_speed;
    problem->uniform_speed = live->uniform_speed;
    problem->uniform_slots = live->uniform_slots;
}

static void copy_wishes(layer_problem *problem, const eplb_plan_params *params)
{
    problem->split = params->split;
    problem->cost = params->cost;
    problem->plain_cost = params->cost.tiles == 0 && params->cost.activated == 0;
    problem->max_moves =
        params->max_moves_per_layer == EPLB_UNLIMITED ? INT64_MAX : params->max_moves_per_layer;
    problem->target_imbalance = params->target_imbalance;
    problem->max_spill = params->max_spill;
    problem->work_limit = params->work_limit;
}

/* Fewer groups than nodes would leave nodes without experts: then groups bind nothing. */
static int32_t binding_groups(const plan_request *request)
{
    int32_t groups = request->params.num_groups;
    return groups < request->live->num_serving_nodes ? 1 : groups;
}

static bool never_stop(void *context)
{
    (void)context;
    return false;
}

eplb_status layer_problem_create(layer_problem *problem, const plan_request *request, int32_t layer,
                                 arena *scratch, eplb_error *error)
{
    bool sums = request->policy->sums_windows;
    *problem = (layer_problem){.layer = layer,
                               .num_experts = request->num_experts,
                               .should_stop = never_stop,
                               .num_windows = sums ? 1 : eplb_load_num_windows(request->load)};
    copy_ranks(problem, request->live);
    copy_wishes(problem, &request->params);
    problem->num_groups = binding_groups(request);
    if (!read_load(problem, request, scratch) || !read_sources(problem, request, scratch) ||
        (request->params.current != NULL && !carry_over(problem, request, scratch)))
        return error_memory(error, (size_t)request->num_experts * sizeof(int64_t), "the load of a layer");
    return EPLB_OK;
}

int64_t layer_window_total(const layer_problem *problem, int32_t window)
{
    const int64_t *load = layer_window(problem, window);
    int64_t total = 0;
    for (int32_t e = 0; e < problem->num_experts; e++)
        total += load[e];
    return total;
}

void layer_read_home(const layer_problem *problem, uint64_t *home)
{
    int32_t words = expert_bits_words(problem->num_experts);
    size_t bytes = (size_t)problem->num_ranks * (size_t)words * sizeof *home;
    if (problem->cut_off != NULL)
        memcpy(home, problem->cut_off, bytes);
    else
        memset(home, 0, bytes);
    for (int32_t p = 0; p < problem->num_slots; p++) {
        if (problem->current[p] >= 0)
            expert_bits_add(home, words, problem->slot_rank[p], problem->current[p]);
    }
}
