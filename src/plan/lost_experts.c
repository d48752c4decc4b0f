/* Lost experts against the limit of moves: each costs one received expert, whatever the policy, so a limit
 * below their number cannot be met by any plan that serves every expert. The error names them: who runs the
 * engine must know what to load from storage. O(S + E). */
#include "plan/lost_experts.h"

#include <stdio.h>

#include "base/error.h"

#define MOST_LISTED 16

/* "3, 17, 20 and 4 more" */
static void list_lost(const uint8_t *held, int32_t num_experts, int64_t lost, char *text, size_t bytes)
{
    size_t used = 0;
    int64_t told = 0;
    text[0] = '\0';
    for (int32_t e = 0; e < num_experts && told < MOST_LISTED && used < bytes; e++) {
        if (held[e])
            continue;
        int written = snprintf(text + used, bytes - used, "%s%d", told > 0 ? ", " : "", (int)e);
        used += written > 0 ? (size_t)written : 0;
        told++;
    }
    if (told < lost && used < bytes)
        (void)snprintf(text + used, bytes - used, " and %lld more", (long long)(lost - told));
}

eplb_status lost_experts_check(const layer_problem *problem, arena *scratch, eplb_error *error)
{
    if (problem->current == NULL || problem->max_moves >= problem->num_experts)
        return EPLB_OK;
    arena_mark mark = arena_position(scratch);
    uint8_t *held = arena_take_zero(scratch, (size_t)problem->num_experts, sizeof *held);
    if (held == NULL)
        return error_memory(error, (size_t)problem->num_experts, "experts that are held");
    for (int32_t s = 0; s < problem->num_slots; s++) {
        if (problem->current[s] >= 0)
            held[problem->current[s]] = 1;
    }
    int64_t lost = 0;
    int32_t first = -1;
    for (int32_t e = problem->num_experts - 1; e >= 0; e--) {
        if (held[e])
            continue;
        lost++;
        first = e;
    }
    eplb_status status = EPLB_OK;
    if (lost > problem->max_moves) {
        char text[160];
        list_lost(held, problem->num_experts, lost, text, sizeof text);
        status = error_set(error, EPLB_ERROR_INFEASIBLE, (error_place){problem->layer, first, -1, -1, lost},
                           "layer %d: %lld moves allowed, but %lld experts have no live replica: %s",
                           (int)problem->layer, (long long)problem->max_moves, (long long)lost, text);
    }
    arena_rewind(scratch, mark);
    return status;
}
