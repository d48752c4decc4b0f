/* The maps of a document: taking them with their sizes, inverting them, and checking inverses that a file
 * gives. O(L (S + E width)). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/placement_formats.h"

eplb_status document_take_map(io_document *document, const char *name, int32_t *map, int64_t layers,
                              int64_t slots, io_error *error)
{
    document->physical_to_logical = map;
    if (layers < 1 || layers > EPLB_MAX_LAYERS || slots < 1 || slots > EPLB_MAX_SLOTS)
        return io_fail(error, EPLB_ERROR_INVALID,
                       "%s: %" PRId64 " layers of %" PRId64 " slots; 1 to %d and 1 to %d are possible", name,
                       layers, slots, EPLB_MAX_LAYERS, EPLB_MAX_SLOTS);
    document->num_layers = (int32_t)layers;
    document->num_slots = (int32_t)slots;
    return EPLB_OK;
}

static bool in_expert_range(const io_document *document, int32_t expert)
{
    return expert >= 0 && expert < document->num_experts;
}

static int32_t *count_replicas(const io_document *document, int64_t *most)
{
    size_t layers = (size_t)document->num_layers, experts = (size_t)document->num_experts;
    size_t slots = (size_t)document->num_slots;
    int32_t *count = calloc(layers * experts, sizeof *count);
    *most = 1;
    for (size_t i = 0; count != NULL && i < layers * slots; i++) {
        int32_t expert = document->physical_to_logical[i];
        if (!in_expert_range(document, expert))
            continue;
        int32_t replicas = ++count[i / slots * experts + (size_t)expert];
        *most = replicas > *most ? replicas : *most;
    }
    return count;
}

eplb_status document_inverse(const io_document *document, const char *name, int32_t **count, int32_t **slots,
                             int64_t *width, io_error *error)
{
    size_t experts = (size_t)document->num_experts, row_slots = (size_t)document->num_slots;
    *slots = NULL;
    *count = count_replicas(document, width);
    size_t cells = (size_t)document->num_layers * experts;
    if (*count != NULL)
        *slots = malloc(cells * (size_t)*width * sizeof **slots);
    int32_t *next = calloc(experts, sizeof *next);
    if (*slots == NULL || next == NULL) {
        free(next);
        free(*slots);
        free(*count);
        *slots = *count = NULL;
        return io_fail_memory(error, name, "the inverse maps");
    }
    for (size_t i = 0; i < cells * (size_t)*width; i++)
        (*slots)[i] = -1;
    for (size_t layer = 0; layer < (size_t)document->num_layers; layer++) {
        memset(next, 0, experts * sizeof *next);
        for (size_t slot = 0; slot < row_slots; slot++) {
            int32_t expert = document->physical_to_logical[layer * row_slots + slot];
            if (!in_expert_range(document, expert))
                continue;
            size_t cell = layer * experts + (size_t)expert;
            (*slots)[cell * (size_t)*width + (size_t)next[expert]++] = (int32_t)slot;
        }
    }
    free(next);
    return EPLB_OK;
}

static eplb_status check_counts(const io_document *document, const char *name, const int32_t *given,
                                const int32_t *count, io_error *error)
{
    int64_t experts = document->num_experts;
    for (int64_t i = 0; i < document->num_layers * experts; i++)
        if (given[i] != count[i])
            return io_fail(error, EPLB_ERROR_INVALID,
                           "%s: layer %" PRId64 ", expert %" PRId64
                           ": the file counts %d replicas, its slots hold %d",
                           name, i / experts, i % experts, given[i], count[i]);
    return EPLB_OK;
}

/* The slots of one expert: each holds it, none twice, all of them. `seen` [S] is zero and stays so. */
static bool check_slots(const io_document *document, int64_t layer, int32_t expert, const int32_t *row,
                        int64_t width, int32_t count, unsigned char *seen)
{
    const int32_t *map = document->physical_to_logical + layer * document->num_slots;
    int64_t listed = 0;
    bool good = true;
    for (; listed < width && row[listed] != -1 && good; listed++) {
        int32_t slot = row[listed];
        good = slot >= 0 && slot < document->num_slots && map[slot] == expert && !seen[slot];
        if (good)
            seen[slot] = 1;
    }
    for (int64_t i = listed; i < width && good; i++)
        good = row[i] == -1;
    for (int64_t i = 0; i < listed; i++)
        if (row[i] >= 0 && row[i] < document->num_slots)
            seen[row[i]] = 0;
    return good && listed == count;
}

static eplb_status check_all_slots(const io_document *document, const char *name, const int32_t *count,
                                   const int32_t *slots, int64_t width, io_error *error)
{
    unsigned char *seen = calloc((size_t)document->num_slots, 1);
    if (seen == NULL)
        return io_fail_memory(error, name, "a check of its maps");
    int64_t experts = document->num_experts;
    eplb_status status = EPLB_OK;
    for (int64_t i = 0; i < document->num_layers * experts && status == EPLB_OK; i++)
        if (!check_slots(document, i / experts, (int32_t)(i % experts), slots + i * width, width, count[i],
                         seen))
            status =
                io_fail(error, EPLB_ERROR_INVALID,
                        "%s: layer %" PRId64 ", expert %" PRId64
                        ": logical_to_physical_map does not list exactly the slots that hold it, then -1",
                        name, i / experts, i % experts);
    free(seen);
    return status;
}

eplb_status document_check_inverse(const io_document *document, const char *name, const int32_t *count,
                                   const int32_t *slots, int64_t width, io_error *error)
{
    int64_t most;
    int32_t *counted = count_replicas(document, &most);
    if (counted == NULL)
        return io_fail_memory(error, name, "a check of its maps");
    eplb_status status = EPLB_OK;
    if (count != NULL)
        status = check_counts(document, name, count, counted, error);
    if (status == EPLB_OK && slots != NULL)
        status = check_all_slots(document, name, counted, slots, width, error);
    free(counted);
    return status;
}
