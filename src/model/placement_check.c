/* Invariants of a placement, checked on raw slots before any side effect: ids in range, every expert with a
 * live replica, nothing on dead ranks, no expert twice on a rank while it has no more replicas than live
 * ranks. Every finding is reported, so that a tool can list them all. O(L (S + E)) time, O(E) memory. */
#include <eplb/placement.h>

#include "base/error.h"
#include "base/memory.h"

/* One pass over one layer. */
typedef struct layer_check {
    const eplb_topology *topology;
    int32_t num_experts;
    int32_t num_slots;
    int32_t layer;
    const int32_t *held; /* [S] of this layer */
    int32_t *replicas;   /* [E] live replicas */
    int32_t *last_rank;  /* [E] 1 + last rank seen to hold it */
    eplb_problem_function report;
    void *context;
    bool stopped;
    bool found; /* a serious problem was found */
    eplb_problem first;
} layer_check;

const char *eplb_problem_name(eplb_problem_kind kind)
{
    switch (kind) {
    case EPLB_PROBLEM_EXPERT_RANGE:
        return "expert-range";
    case EPLB_PROBLEM_EXPERT_MISSING:
        return "expert-missing";
    case EPLB_PROBLEM_DEAD_SLOT:
        return "dead-slot";
    case EPLB_PROBLEM_DUPLICATE:
        return "duplicate";
    case EPLB_PROBLEM_EMPTY_SLOT:
        return "empty-slot";
    }
    return "unknown";
}

static void found(layer_check *check, eplb_problem_kind kind, int32_t expert, int32_t slot)
{
    int32_t rank = slot >= 0 ? eplb_topology_slot_rank(check->topology)[slot] : -1;
    eplb_problem problem = {kind, check->layer, expert, rank, slot};
    if (kind != EPLB_PROBLEM_EMPTY_SLOT && !check->found) {
        check->found = true;
        check->first = problem;
    }
    if (check->report != NULL && !check->stopped)
        check->stopped = !check->report(check->context, &problem);
}

static bool in_range(const layer_check *check, int32_t expert)
{
    return expert >= 0 && expert < check->num_experts;
}

static bool is_live(const layer_check *check, int32_t slot)
{
    return eplb_topology_rank_alive(check->topology)[eplb_topology_slot_rank(check->topology)[slot]] != 0;
}

/* One quick pass that finds nothing in most layers: true if every slot of a live rank holds an expert, every
 * expert is held and none twice in a row on a rank. Anything else is for the slow checks to name. */
static bool is_plain(const layer_check *check)
{
    const int32_t *held = check->held, *slot_rank = eplb_topology_slot_rank(check->topology);
    const uint8_t *alive = eplb_topology_rank_alive(check->topology);
    int32_t *last_rank = check->last_rank, missing = check->num_experts;
    for (int32_t e = 0; e < check->num_experts; e++)
        last_rank[e] = 0;
    for (int32_t p = 0; p < check->num_slots; p++) {
        int32_t e = held[p], rank = slot_rank[p];
        if (e == -1 && !alive[rank])
            continue;
        if (!in_range(check, e) || !alive[rank] || last_rank[e] == rank + 1)
            return false;
        missing -= last_rank[e] == 0;
        last_rank[e] = rank + 1;
    }
    return missing == 0;
}

static void check_ranges(layer_check *check)
{
    for (int32_t e = 0; e < check->num_experts; e++)
        check->replicas[e] = check->last_rank[e] = 0;
    for (int32_t p = 0; p < check->num_slots; p++) {
        int32_t e = check->held[p];
        if (e < -1 || e >= check->num_experts)
            found(check, EPLB_PROBLEM_EXPERT_RANGE, e, p);
        else if (e >= 0 && is_live(check, p))
            check->replicas[e]++;
    }
}

static void check_missing(layer_check *check)
{
    for (int32_t e = 0; e < check->num_experts; e++) {
        if (check->replicas[e] == 0)
            found(check, EPLB_PROBLEM_EXPERT_MISSING, e, -1);
    }
}

static void check_dead(layer_check *check)
{
    for (int32_t p = 0; p < check->num_slots; p++) {
        if (check->held[p] != -1 && !is_live(check, p))
            found(check, EPLB_PROBLEM_DEAD_SLOT, check->held[p], p);
    }
}

/* Slots are numbered rank by rank, so a second copy on a rank shows as the same last rank. */
static void check_duplicates(layer_check *check)
{
    int32_t live_ranks = eplb_topology_num_live_ranks(check->topology);
    const int32_t *slot_rank = eplb_topology_slot_rank(check->topology);
    for (int32_t p = 0; p < check->num_slots; p++) {
        int32_t e = check->held[p];
        if (!in_range(check, e) || !is_live(check, p))
            continue;
        if (check->last_rank[e] == slot_rank[p] + 1 && check->replicas[e] <= live_ranks)
            found(check, EPLB_PROBLEM_DUPLICATE, e, p);
        check->last_rank[e] = slot_rank[p] + 1;
    }
}

static void check_empty(layer_check *check)
{
    for (int32_t p = 0; p < check->num_slots; p++) {
        if (check->held[p] == -1 && is_live(check, p))
            found(check, EPLB_PROBLEM_EMPTY_SLOT, -1, p);
    }
}

/* The first serious finding as a status with a sentence. */
static eplb_status verdict(const layer_check *check, eplb_error *error)
{
    if (!check->found)
        return EPLB_OK;
    const eplb_problem *first = &check->first;
    error_place place = {first->layer, first->expert, first->rank, first->slot, first->expert};
    switch (first->kind) {
    case EPLB_PROBLEM_EXPERT_RANGE:
        return error_set(error, EPLB_ERROR_INVALID, place,
                         "layer %d, slot %d holds expert %d: expected -1 to %d", first->layer, first->slot,
                         first->expert, check->num_experts - 1);
    case EPLB_PROBLEM_EXPERT_MISSING:
        return error_set(error, EPLB_ERROR_INVALID, place,
                         "layer %d: expert %d has no replica on a live rank", first->layer, first->expert);
    case EPLB_PROBLEM_DEAD_SLOT:
        return error_set(error, EPLB_ERROR_INVALID, place,
                         "layer %d: slot %d of dead rank %d holds expert %d: expected -1", first->layer,
                         first->slot, first->rank, first->expert);
    case EPLB_PROBLEM_DUPLICATE:
    case EPLB_PROBLEM_EMPTY_SLOT:
        break;
    }
    return error_set(
        error, EPLB_ERROR_INVALID, place,
        "layer %d: rank %d holds expert %d twice (again in slot %d) although it has no more replicas "
        "than there are live ranks",
        first->layer, first->rank, first->expert, first->slot);
}

eplb_status eplb_placement_check(const eplb_topology *topology, int32_t num_layers, int32_t num_experts,
                                 const int32_t *physical_to_logical, eplb_problem_function report,
                                 void *context, const eplb_allocator *allocator, eplb_error *error)
{
    if (num_layers < 1 || num_layers > EPLB_MAX_LAYERS || num_experts < 1 || num_experts > EPLB_MAX_EXPERTS)
        return error_text(error, EPLB_ERROR_INVALID, "%d layers of %d experts: expected 1 to %d and 1 to %d",
                          num_layers, num_experts, EPLB_MAX_LAYERS, EPLB_MAX_EXPERTS);
    eplb_allocator chosen = memory_allocator(allocator);
    size_t experts = (size_t)num_experts;
    int32_t *counts = memory_take(&chosen, 2 * experts, sizeof *counts);
    if (counts == NULL)
        return error_memory(error, 2 * experts * sizeof *counts, "the check of a placement");
    layer_check check = {.topology = topology,
                         .num_experts = num_experts,
                         .num_slots = eplb_topology_num_slots(topology),
                         .replicas = counts,
                         .last_rank = counts + experts,
                         .report = report,
                         .context = context};
    for (int32_t l = 0; l < num_layers && !check.stopped; l++) {
        check.layer = l;
        check.held = physical_to_logical + (size_t)l * (size_t)check.num_slots;
        if (is_plain(&check))
            continue;
        check_ranges(&check);
        check_missing(&check);
        check_dead(&check);
        check_duplicates(&check);
        if (report != NULL)
            check_empty(&check);
    }
    memory_give(&chosen, counts);
    return verdict(&check, error);
}
