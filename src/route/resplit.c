/* Re-split: the exact min-max split of one batch over a given placement, as a public object.
 *
 * The flow itself is plan/min_max_split; this file checks counts, translates between slots and live replicas,
 * and keeps every array a solve needs, so that solves never allocate. O(S + E) around the solve. */
#include "route/resplit.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "route/replicas.h"
#include "route/source_part.h"

static bool take_memory(eplb_resplit *resplit)
{
    const eplb_allocator *allocator = &resplit->allocator;
    size_t ranks = (size_t)resplit->num_ranks, slots = (size_t)resplit->num_slots;
    size_t experts = (size_t)resplit->num_experts;
    int32_t *narrow = memory_take(allocator, 4 * ranks + experts + 1 + 3 * slots, sizeof *narrow);
    int64_t *tokens = memory_take(allocator, 2 * slots + 2 * ranks + experts, sizeof *tokens);
    resplit->dense_rank = narrow;
    resplit->quota = tokens;
    resplit->tight = memory_take(allocator, ranks + slots, sizeof *resplit->tight);
    if (narrow == NULL || tokens == NULL || resplit->tight == NULL)
        return false;
    resplit->slot_live = resplit->tight + ranks;
    resplit->live_rank = resplit->dense_rank + ranks;
    resplit->live_node = resplit->live_rank + ranks;
    resplit->live_speed = resplit->live_node + ranks;
    resplit->first = resplit->live_speed + ranks;
    resplit->slot = resplit->first + experts + 1;
    resplit->replica_rank = resplit->slot + slots;
    resplit->public_rank = resplit->replica_rank + slots;
    resplit->left = resplit->quota + slots;
    resplit->rank_load = resplit->left + slots;
    resplit->supply = resplit->rank_load + ranks;
    resplit->load = resplit->supply + ranks;
    return true;
}

/* Numbers the live ranks; true if their speeds differ. */
static bool number_ranks(eplb_resplit *resplit)
{
    const eplb_topology *topology = resplit->topology;
    bool differ = false;
    for (int32_t g = 0; g < resplit->num_ranks; g++) {
        resplit->dense_rank[g] = -1;
        if (!eplb_topology_rank_alive(topology)[g])
            continue;
        int32_t n = resplit->num_live++;
        resplit->dense_rank[g] = n;
        resplit->live_rank[n] = g;
        resplit->live_node[n] = eplb_topology_rank_node(topology)[g];
        resplit->live_speed[n] = eplb_topology_rank_speed(topology)[g];
        differ |= resplit->live_speed[n] != resplit->live_speed[0];
    }
    return differ;
}

/* Solves once without tokens, so that the arena holds all that later solves take. */
static bool warm_arena(eplb_resplit *resplit, const int64_t *no_sources)
{
    min_max_result result = {
        .quota = resplit->quota, .rank_load = resplit->rank_load, .tight_rank = resplit->tight};
    return min_max_split(&resplit->graph, resplit->load, NULL, true, &resplit->scratch, &result) &&
           local_split(resplit, no_sources, &result);
}

static eplb_status build(eplb_resplit *resplit, const eplb_placement *placement, eplb_error *error)
{
    if (!take_memory(resplit))
        return error_memory(error, (size_t)resplit->num_slots * sizeof(int64_t), "a re-split");
    replicas_list(placement, resplit->layer, resplit->first, resplit->slot);
    bool differ = number_ranks(resplit);
    for (int32_t i = 0; i < resplit->first[resplit->num_experts]; i++) {
        resplit->slot_live[resplit->slot[i]] = 1;
        resplit->public_rank[i] = eplb_topology_slot_rank(resplit->topology)[resplit->slot[i]];
        resplit->replica_rank[i] = resplit->dense_rank[resplit->public_rank[i]];
    }
    if (!min_max_graph_init(&resplit->graph, resplit->num_experts, resplit->num_live, resplit->first,
                            resplit->replica_rank, differ ? resplit->live_speed : NULL, &resplit->scratch))
        return error_memory(error, (size_t)resplit->num_slots * sizeof(int32_t), "the graph of a re-split");
    size_t cells = (size_t)resplit->num_ranks * (size_t)resplit->num_experts;
    int64_t *no_sources = memory_take(&resplit->allocator, cells, sizeof *no_sources);
    bool ready = no_sources != NULL && warm_arena(resplit, no_sources);
    memory_give(&resplit->allocator, no_sources);
    return ready ? EPLB_OK : error_memory(error, cells * sizeof(int64_t), "the scratch of a re-split");
}

eplb_status eplb_resplit_create(eplb_resplit **out, const eplb_placement *placement, int32_t layer,
                                const eplb_allocator *given, eplb_error *error)
{
    *out = NULL;
    if (layer < 0 || layer >= eplb_placement_num_layers(placement))
        return error_text(error, EPLB_ERROR_INVALID, "layer %d: the placement has %d", layer,
                          eplb_placement_num_layers(placement));
    eplb_allocator allocator = memory_allocator(given);
    eplb_resplit *resplit = memory_take(&allocator, 1, sizeof *resplit);
    if (resplit == NULL)
        return error_memory(error, sizeof *resplit, "a re-split");
    resplit->allocator = allocator;
    arena_init(&resplit->scratch, given);
    resplit->layer = layer;
    resplit->num_experts = eplb_placement_num_experts(placement);
    resplit->num_slots = eplb_placement_num_slots(placement);
    resplit->num_ranks = eplb_topology_num_ranks(eplb_placement_topology(placement));
    eplb_status status =
        eplb_topology_copy(&resplit->topology, eplb_placement_topology(placement), given, error);
    if (status == EPLB_OK)
        status = build(resplit, placement, error);
    if (status != EPLB_OK) {
        eplb_resplit_destroy(resplit);
        return status;
    }
    *out = resplit;
    return EPLB_OK;
}

void eplb_resplit_destroy(eplb_resplit *resplit)
{
    if (resplit == NULL)
        return;
    eplb_allocator allocator = resplit->allocator;
    arena_destroy(&resplit->scratch);
    eplb_topology_destroy(resplit->topology);
    memory_give(&allocator, resplit->dense_rank);
    memory_give(&allocator, resplit->quota);
    memory_give(&allocator, resplit->tight);
    memory_give(&allocator, resplit);
}

bool eplb_resplit_is_valid(const eplb_resplit *resplit)
{
    if (resplit == NULL || !eplb_topology_is_valid(resplit->topology) ||
        resplit->num_live != eplb_topology_num_live_ranks(resplit->topology))
        return false;
    for (int32_t i = 0; i < resplit->first[resplit->num_experts]; i++) {
        if (resplit->slot[i] < 0 || resplit->slot[i] >= resplit->num_slots || resplit->quota[i] < 0)
            return false;
    }
    return true;
}

/* --- solving ----------------------------------------------------------------------------------------- */

eplb_status resplit_check_load(const eplb_resplit *resplit, const int64_t *load, eplb_error *error)
{
    int64_t total = 0;
    for (int32_t e = 0; e < resplit->num_experts; e++) {
        error_place place = {resplit->layer, e, -1, -1, load[e]};
        if (load[e] < 0)
            return error_set(error, EPLB_ERROR_INVALID, place, "layer %d, expert %d: %lld tokens",
                             resplit->layer, e, (long long)load[e]);
        if (load[e] > 0 && resplit->first[e] == resplit->first[e + 1])
            return error_set(error, EPLB_ERROR_INVALID, place,
                             "layer %d, expert %d: %lld tokens but no replica on a live rank", resplit->layer,
                             e, (long long)load[e]);
        if (!checked_add(total, load[e], &total))
            return error_set(error, EPLB_ERROR_OVERFLOW, place, "layer %d: the tokens do not fit int64",
                             resplit->layer);
    }
    return EPLB_OK;
}

/* Quotas of live replicas to slots, and the figures of the solve. */
static void write_answer(const eplb_resplit *resplit, const min_max_result *solved, int64_t *quota,
                         eplb_resplit_result *result)
{
    memset(quota, 0, (size_t)resplit->num_slots * sizeof *quota);
    for (int32_t i = 0; i < resplit->first[resplit->num_experts]; i++)
        quota[resplit->slot[i]] = resplit->quota[i];
    if (result == NULL)
        return;
    int32_t worst = 0;
    for (int32_t n = 1; n < resplit->num_live; n++) {
        if (fraction_compare(resplit->rank_load[n], resplit->live_speed[n], resplit->rank_load[worst],
                             resplit->live_speed[worst]) > 0)
            worst = n;
    }
    const int32_t *speed = resplit->graph.rank_speed; /* NULL: all the same */
    *result = (eplb_resplit_result){.max_load = resplit->num_live > 0 ? resplit->rank_load[worst] : 0,
                                    .max_speed = speed != NULL ? speed[worst] : 1,
                                    .bound_load = solved->bound_load,
                                    .bound_speed = solved->bound_speed};
}

static eplb_status solve(eplb_resplit *resplit, const int64_t *load, bool warm, min_max_result *solved,
                         eplb_error *error)
{
    eplb_status status = resplit_check_load(resplit, load, error);
    if (status != EPLB_OK)
        return status;
    *solved = (min_max_result){
        .quota = resplit->quota, .rank_load = resplit->rank_load, .tight_rank = resplit->tight};
    const int64_t *start = warm && resplit->solved ? resplit->quota : NULL;
    if (!min_max_split(&resplit->graph, load, start, true, &resplit->scratch, solved))
        return error_memory(error, (size_t)resplit->num_slots * sizeof(int64_t), "a solve");
    resplit->solved = true;
    return EPLB_OK;
}

eplb_status eplb_resplit_solve(eplb_resplit *resplit, const int64_t *load, bool warm, int64_t *quota,
                               eplb_resplit_result *result, eplb_error *error)
{
    min_max_result solved;
    eplb_status status = solve(resplit, load, warm, &solved, error);
    if (status == EPLB_OK)
        write_answer(resplit, &solved, quota, result);
    return status;
}

static eplb_status sum_sources(eplb_resplit *resplit, const int64_t *source_load, eplb_error *error)
{
    size_t experts = (size_t)resplit->num_experts;
    memset(resplit->load, 0, experts * sizeof *resplit->load);
    for (int32_t g = 0; g < resplit->num_ranks; g++) {
        for (size_t e = 0; e < experts; e++) {
            int64_t tokens = source_load[(size_t)g * experts + e];
            error_place place = {resplit->layer, (int32_t)e, g, -1, tokens};
            if (tokens < 0)
                return error_set(error, EPLB_ERROR_INVALID, place,
                                 "layer %d, rank %d, expert %zu: %lld tokens", resplit->layer, g, e,
                                 (long long)tokens);
            if (!checked_add(resplit->load[e], tokens, &resplit->load[e]))
                return error_set(error, EPLB_ERROR_OVERFLOW, place,
                                 "layer %d, expert %zu: the tokens do not fit int64", resplit->layer, e);
        }
    }
    return EPLB_OK;
}

eplb_status eplb_resplit_solve_local(eplb_resplit *resplit, const int64_t *source_load, int64_t *quota,
                                     eplb_resplit_result *result, eplb_error *error)
{
    min_max_result solved;
    eplb_status status = sum_sources(resplit, source_load, error);
    if (status == EPLB_OK)
        status = solve(resplit, resplit->load, false, &solved, error);
    if (status != EPLB_OK)
        return status;
    if (!local_split(resplit, source_load, &solved))
        return error_memory(error, (size_t)resplit->num_slots * sizeof(int64_t), "a local solve");
    write_answer(resplit, &solved, quota, result);
    if (result != NULL)
        local_count(resplit, source_load, &result->cross_rank, &result->cross_node);
    return EPLB_OK;
}

/* INVALID if a slot without a live replica has a quota. */
static eplb_status check_idle_slots(const eplb_resplit *resplit, const int64_t *quota, eplb_error *error)
{
    for (int32_t p = 0; p < resplit->num_slots; p++) {
        if (!resplit->slot_live[p] && quota[p] != 0)
            return error_set(error, EPLB_ERROR_INVALID, (error_place){resplit->layer, -1, -1, p, quota[p]},
                             "layer %d, slot %d: quota %lld, but it holds no live replica", resplit->layer, p,
                             (long long)quota[p]);
    }
    return EPLB_OK;
}

/* Quotas of one expert's replicas to resplit->left; INVALID unless they sum to its tokens. */
static eplb_status read_quotas(eplb_resplit *resplit, int32_t expert, const int64_t *quota, eplb_error *error)
{
    int64_t missing = resplit->load[expert];
    for (int32_t i = resplit->first[expert]; i < resplit->first[expert + 1]; i++) {
        int64_t here = quota[resplit->slot[i]];
        if (here < 0 || here > missing)
            return error_set(error, EPLB_ERROR_INVALID,
                             (error_place){resplit->layer, expert, -1, resplit->slot[i], here},
                             "layer %d, expert %d, slot %d: quota %lld, expected 0 to %lld", resplit->layer,
                             expert, resplit->slot[i], (long long)here, (long long)missing);
        resplit->left[i] = here;
        missing -= here;
    }
    if (missing != 0)
        return error_set(error, EPLB_ERROR_INVALID, (error_place){resplit->layer, expert, -1, -1, missing},
                         "layer %d, expert %d: the quotas miss %lld of %lld tokens", resplit->layer, expert,
                         (long long)missing, (long long)resplit->load[expert]);
    return EPLB_OK;
}

eplb_status eplb_resplit_by_source(eplb_resplit *resplit, const int64_t *source_load, const int64_t *quota,
                                   int64_t *part, eplb_error *error)
{
    size_t experts = (size_t)resplit->num_experts, ranks = (size_t)resplit->num_ranks;
    eplb_status status = sum_sources(resplit, source_load, error);
    if (status == EPLB_OK)
        status = check_idle_slots(resplit, quota, error);
    for (int32_t e = 0; e < resplit->num_experts && status == EPLB_OK; e++)
        status = read_quotas(resplit, e, quota, error);
    if (status != EPLB_OK)
        return status;
    memset(part, 0, ranks * (size_t)resplit->num_slots * sizeof *part);
    for (size_t e = 0; e < experts; e++) {
        int32_t begin = resplit->first[e], count = resplit->first[e + 1] - begin;
        source_part_output output = {
            .part = part, .stride = resplit->num_slots, .column = resplit->slot + begin, .only = -1};
        for (size_t g = 0; g < ranks; g++)
            resplit->supply[g] = source_load[g * experts + e];
        source_part(resplit->num_ranks, eplb_topology_rank_node(resplit->topology),
                    resplit->public_rank + begin, count, resplit->supply, resplit->left + begin, &output);
    }
    return EPLB_OK;
}

void eplb_resplit_tight_experts(const eplb_resplit *resplit, uint8_t *tight)
{
    min_max_tight_experts(&resplit->graph, resplit->tight, tight);
}

void eplb_resplit_tight_ranks(const eplb_resplit *resplit, uint8_t *tight)
{
    for (int32_t g = 0; g < resplit->num_ranks; g++)
        tight[g] = resplit->dense_rank[g] >= 0 ? resplit->tight[resplit->dense_rank[g]] : 0;
}
