/* Keeping slots: an expert that stays on its rank stays in its slot, so that no weight is copied inside a
 * rank.
 *
 * Old slots are visited in order; each takes the first unused new entry of its rank with the same expert.
 * What is left fills the free slots in order. Chains per expert make it O(S + E). Source:
 * preserve_intragpu_slots of vLLM. */
#include "plan/keep_slots.h"

#include <string.h>

#include "base/error.h"

#define NONE (-1)

/* Working arrays, indexed from the rank's first slot. */
typedef struct rank_entries {
    int32_t *head; /* [E] first unused entry that holds the expert; NONE between ranks */
    int32_t *next; /* [k] the following entry with the same expert */
    int32_t *kept; /* [k] expert that stays in a slot; NONE: free */
    bool *used;    /* [k] */
} rank_entries;

static void keep_rank(const rank_entries *entries, const int32_t *current, int32_t *expert, int32_t count)
{
    for (int32_t i = count - 1; i >= 0; i--) {
        entries->used[i] = expert[i] == NONE;
        if (expert[i] == NONE)
            continue;
        entries->next[i] = entries->head[expert[i]];
        entries->head[expert[i]] = i;
    }
    for (int32_t s = 0; s < count; s++) {
        int32_t entry = current[s] == NONE ? NONE : entries->head[current[s]];
        entries->kept[s] = entry == NONE ? NONE : current[s];
        if (entry != NONE) {
            entries->used[entry] = true;
            entries->head[current[s]] = entries->next[entry];
        }
    }
    for (int32_t i = 0, s = 0; i < count; i++) {
        if (expert[i] != NONE)
            entries->head[expert[i]] = NONE;
        if (entries->used[i])
            continue;
        while (entries->kept[s] != NONE)
            s++;
        entries->kept[s++] = expert[i];
    }
    memcpy(expert, entries->kept, (size_t)count * sizeof *expert);
}

eplb_status keep_slots(const int32_t *first_slot, int32_t num_ranks, int32_t num_experts,
                       const int32_t *current, int32_t *expert, arena *scratch, eplb_error *error)
{
    arena_mark mark = arena_position(scratch);
    size_t most = 0;
    for (int32_t g = 0; g < num_ranks; g++) {
        size_t count = (size_t)(first_slot[g + 1] - first_slot[g]);
        most = count > most ? count : most;
    }
    rank_entries entries = {
        .head = arena_take(scratch, (size_t)num_experts, sizeof(int32_t)),
        .next = arena_take(scratch, most, sizeof(int32_t)),
        .kept = arena_take(scratch, most, sizeof(int32_t)),
        .used = arena_take(scratch, most, sizeof(bool)),
    };
    if (entries.head == NULL || entries.next == NULL || entries.kept == NULL || entries.used == NULL)
        return error_memory(error, ((size_t)num_experts + 3 * most) * sizeof(int32_t), "keeping slots");
    for (int32_t e = 0; e < num_experts; e++)
        entries.head[e] = NONE;
    for (int32_t g = 0; g < num_ranks; g++) {
        int32_t first = first_slot[g];
        keep_rank(&entries, current + first, expert + first, first_slot[g + 1] - first);
    }
    arena_rewind(scratch, mark);
    return EPLB_OK;
}
