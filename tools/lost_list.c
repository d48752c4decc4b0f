/* Experts without a source. The library counts receives from storage (eplb_move_count.lost: an expert that
 * two ranks receive counts twice); people need the names, each once. One flag per expert and layer. */
#include "lost_list.h"

#include <stdlib.h>
#include <string.h>

#include "failure.h"

/* Marks the experts that some rank held and can send: it lived before, and lives after or leaves. */
static void mark_sources(const eplb_placement *before, const eplb_topology *now, int32_t layer,
                         uint8_t *found)
{
    const eplb_topology *was = eplb_placement_topology(before);
    const int32_t *first = eplb_topology_first_slot(was);
    const int32_t *slots =
        eplb_placement_physical_to_logical(before) + (size_t)layer * (size_t)eplb_placement_num_slots(before);
    memset(found, 0, (size_t)eplb_placement_num_experts(before));
    for (int32_t g = 0; g < eplb_topology_num_ranks(was); g++) {
        bool stays = g < eplb_topology_num_ranks(now);
        if (!eplb_topology_rank_alive(was)[g] || (stays && !eplb_topology_rank_alive(now)[g]))
            continue;
        for (int32_t p = first[g]; p < first[g + 1]; p++)
            if (slots[p] >= 0)
                found[slots[p]] = 1;
    }
}

/* Experts not found; `list` gets them unless it is NULL. */
static int32_t not_found(const uint8_t *found, int32_t num_experts, int32_t *list)
{
    int32_t count = 0;
    for (int32_t e = 0; e < num_experts; e++)
        if (!found[e]) {
            if (list != NULL)
                list[count] = e;
            count++;
        }
    return count;
}

int lost_list(const command *self, const eplb_placement *before, const eplb_placement *after,
              io_document *document)
{
    const eplb_topology *now = eplb_placement_topology(after);
    int32_t layers = eplb_placement_num_layers(before), experts = eplb_placement_num_experts(before);
    int64_t total = 0;
    uint8_t *found = malloc((size_t)experts);
    int64_t *first = calloc((size_t)layers + 1, sizeof *first);
    int32_t *list = NULL;
    bool good = found != NULL && first != NULL;
    for (int32_t l = 0; good && l < layers; l++) {
        mark_sources(before, now, l, found);
        total += not_found(found, experts, NULL);
        first[l + 1] = total;
    }
    if (good && total > 0) {
        list = malloc((size_t)total * sizeof *list);
        good = list != NULL;
    }
    for (int32_t l = 0; list != NULL && l < layers; l++) {
        mark_sources(before, now, l, found);
        (void)not_found(found, experts, list + first[l]);
    }
    free(found);
    if (list == NULL) {
        free(first);
        first = NULL;
    }
    document->lost_first = first;
    document->lost_experts = list;
    return good ? PARSED : fail_memory(self);
}
