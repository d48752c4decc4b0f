/* Checking a planning request: every argument against every other, before any work is done.
 *
 * What is refused here no policy could plan, or a policy would pass over; what a policy sees and cannot plan
 * it refuses itself. */
#include "plan/request.h"

#include <string.h>

#include "base/error.h"
#include "base/params.h"
#include "plan/policies.h"

void eplb_plan_params_init(eplb_plan_params *params, size_t size)
{
    eplb_plan_params defaults = {
        .size = sizeof defaults,
        .split = EPLB_SPLIT_EQUAL,
        .cost = {.tokens = 1, .tile_tokens = 128},
        .max_moves_per_layer = EPLB_UNLIMITED,
        .max_moves = EPLB_UNLIMITED,
        .num_threads = 1,
    };
    params_init(params, size, &defaults, sizeof defaults);
}

static eplb_status invalid(eplb_error *error, const char *what, long long value, const char *expected)
{
    return error_set(error, EPLB_ERROR_INVALID, (error_place){-1, -1, -1, -1, value},
                     "%s is %lld: expected %s", what, value, expected);
}

static eplb_status check_cost(const eplb_cost *cost, eplb_error *error)
{
    if (cost->tokens < 0)
        return invalid(error, "the cost of a token", cost->tokens, "0 or more");
    if (cost->tiles < 0)
        return invalid(error, "the cost of a token of a tile", cost->tiles, "0 or more");
    if (cost->activated < 0)
        return invalid(error, "the cost of an activated replica", cost->activated, "0 or more");
    if (cost->tile_tokens < 1)
        return invalid(error, "the number of tokens of a tile", cost->tile_tokens, "1 or more");
    if (cost->tokens == 0 && cost->tiles == 0 && cost->activated == 0)
        return error_text(error, EPLB_ERROR_INVALID, "all costs are 0: nothing to balance");
    return EPLB_OK;
}

static eplb_status check_limits(const eplb_plan_params *params, eplb_error *error)
{
    if (params->max_moves_per_layer < EPLB_UNLIMITED)
        return invalid(error, "the limit of moves per layer", params->max_moves_per_layer,
                       "-1 (unlimited) or more");
    if (params->max_moves < EPLB_UNLIMITED)
        return invalid(error, "the limit of moves", params->max_moves, "-1 (unlimited) or more");
    if (!(params->target_imbalance == 0.0 ||
          (params->target_imbalance >= 1.0 && params->target_imbalance <= 1e9)))
        return error_text(error, EPLB_ERROR_INVALID,
                          "the target imbalance is %g: expected 0 (none) or 1 to 1e9",
                          params->target_imbalance);
    if (!(params->time_limit_seconds >= 0.0 && params->time_limit_seconds <= 1e9))
        return error_text(error, EPLB_ERROR_INVALID, "the time limit is %g seconds: expected 0 (none) to 1e9",
                          params->time_limit_seconds);
    if (params->max_spill < 0)
        return invalid(error, "the number of replicas outside their node", params->max_spill, "0 or more");
    if (params->num_threads < 1 || params->num_threads > MAX_THREADS)
        return invalid(error, "the number of threads", params->num_threads, "1 to 1024");
    if (params->work_limit < 0)
        return invalid(error, "the work limit", params->work_limit, "0 (the policy's default) or more");
    return EPLB_OK;
}

static eplb_status check_choices(plan_request *request, eplb_error *error)
{
    eplb_plan_params *params = &request->params;
    request->policy = policy_find(params->policy);
    if (request->policy == NULL) {
        char names[160];
        policy_list_names(names, sizeof names);
        return error_text(error, EPLB_ERROR_INVALID, "no policy is called \"%.40s\": expected one of %s",
                          params->policy, names);
    }
    if (params->split != EPLB_SPLIT_EQUAL && params->split != EPLB_SPLIT_WEIGHTED &&
        params->split != EPLB_SPLIT_BATCH)
        return invalid(error, "the split", (long long)params->split, "equal (0), weighted (1) or batch (2)");
    if (params->num_groups < 0)
        return invalid(error, "the number of groups", params->num_groups, "0 or 1 (none) or more");
    if (params->num_groups == 0)
        params->num_groups = 1;
    if (request->num_experts % params->num_groups != 0)
        return error_set(error, EPLB_ERROR_INVALID, (error_place){-1, -1, -1, -1, params->num_groups},
                         "%d experts do not divide into %d groups", request->num_experts, params->num_groups);
    return EPLB_OK;
}

/* What is asked for beside the load must have an effect: a limit that a policy does not know would be broken
 * without a word. */
static eplb_status check_honours(const plan_request *request, eplb_error *error)
{
    const eplb_plan_params *params = &request->params;
    const struct {
        bool asked;
        unsigned honour;
        const char *refusal;
    } rules[] = {
        {params->target_imbalance > 0.0, HONOURS_TARGET, "it does not stop at a target imbalance"},
        {params->max_spill > 0, HONOURS_SPILL, "it puts no replica outside its group's node"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i].asked && (request->policy->honours & rules[i].honour) == 0)
            return error_text(error, EPLB_ERROR_UNSUPPORTED, "policy %s: %s; policy auto has no such limit",
                              request->policy->name, rules[i].refusal);
    }
    if (params->max_spill > 0 && (params->cost.tiles > 0 || params->cost.activated > 0))
        return error_text(
            error, EPLB_ERROR_UNSUPPORTED,
            "policy %s: replicas leave their group's node to even out tokens only, not tiles or "
            "activated replicas",
            request->policy->name);
    return EPLB_OK;
}

static eplb_status check_current(const plan_request *request, eplb_error *error)
{
    const eplb_placement *current = request->params.current;
    if (current == NULL)
        return EPLB_OK;
    if (eplb_placement_num_layers(current) != request->num_layers)
        return invalid(error, "the number of layers of the current placement",
                       eplb_placement_num_layers(current), "that of the load");
    if (eplb_placement_num_experts(current) != request->num_experts)
        return invalid(error, "the number of experts of the current placement",
                       eplb_placement_num_experts(current), "that of the load");
    return EPLB_OK;
}

static eplb_status check_sources(const plan_request *request, eplb_error *error)
{
    const eplb_load *sources = request->params.sources;
    if (sources == NULL)
        return EPLB_OK;
    int32_t ranks = eplb_topology_num_ranks(request->topology);
    if (eplb_load_num_windows(sources) != ranks || eplb_load_num_layers(sources) != request->num_layers ||
        eplb_load_num_experts(sources) != request->num_experts)
        return error_text(error, EPLB_ERROR_INVALID,
                          "tokens by source rank have shape [%d, %d, %d]: expected [%d, %d, %d]",
                          eplb_load_num_windows(sources), eplb_load_num_layers(sources),
                          eplb_load_num_experts(sources), ranks, request->num_layers, request->num_experts);
    return EPLB_OK;
}

/* Every expert needs a live slot; those beyond the last, by number, are named. */
static eplb_status check_room(const plan_request *request, eplb_error *error)
{
    int32_t slots = eplb_topology_num_live_slots(request->topology), experts = request->num_experts;
    if (slots >= experts)
        return EPLB_OK;
    error_place place = {-1, slots, -1, -1, slots};
    if (slots == experts - 1)
        return error_set(error, EPLB_ERROR_INFEASIBLE, place,
                         "%d slots on live ranks for %d experts: no room for the last of them, %d", slots,
                         experts, slots);
    return error_set(error, EPLB_ERROR_INFEASIBLE, place,
                     "%d slots on live ranks for %d experts: no room for the last %d of them, %d to %d",
                     slots, experts, experts - slots, slots, experts - 1);
}

/* Reads parameters of the caller's size over the defaults. */
static eplb_status read_params(eplb_plan_params *out, const eplb_plan_params *params, eplb_error *error)
{
    eplb_plan_params_init(out, sizeof *out);
    if (params == NULL)
        return EPLB_OK;
    eplb_status status = params_check(params->size, sizeof *out, "plan", error);
    if (status == EPLB_OK)
        *out = *params;
    return status;
}

eplb_status request_check(plan_request *request, const eplb_load *load, const eplb_topology *topology,
                          const eplb_plan_params *params, eplb_error *error)
{
    if (load == NULL || topology == NULL)
        return error_text(error, EPLB_ERROR_INVALID, "the %s is NULL", load == NULL ? "load" : "topology");
    *request = (plan_request){.load = load,
                              .topology = topology,
                              .num_layers = eplb_load_num_layers(load),
                              .num_experts = eplb_load_num_experts(load)};
    eplb_status status = read_params(&request->params, params, error);
    if (status == EPLB_OK)
        status = check_choices(request, error);
    if (status == EPLB_OK)
        status = check_cost(&request->params.cost, error);
    if (status == EPLB_OK)
        status = check_limits(&request->params, error);
    if (status == EPLB_OK)
        status = check_current(request, error);
    if (status == EPLB_OK)
        status = check_sources(request, error);
    if (status == EPLB_OK)
        status = check_honours(request, error);
    if (status == EPLB_OK)
        status = check_room(request, error);
    return status;
}
