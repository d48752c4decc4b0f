/* A placement file beside a load or token routing. */
#include "placement_input.h"

#include <stdlib.h>

#include "failure.h"
#include "list.h"

void placement_adopt_experts(io_document *document, int32_t num_experts)
{
    bool guessed = document->format == IO_FORMAT_SGLANG || document->format == IO_FORMAT_ASCEND ||
                   document->format == IO_FORMAT_TRTLLM;
    if (guessed && document->num_experts < num_experts)
        document->num_experts = num_experts;
}

int placement_match(const command *self, io_document *document, const char *path, const char *other,
                    int32_t num_layers, int32_t num_experts)
{
    placement_adopt_experts(document, num_experts);
    if (document->num_layers == num_layers && document->num_experts == num_experts)
        return PARSED;
    return complain(self, "%s is for %d layers of %d experts, but %s has %d layers of %d experts", path,
                    (int)document->num_layers, (int)document->num_experts, other, (int)num_layers,
                    (int)num_experts);
}

/* Replaces *topology by one whose dead ranks are those of the list. */
static int bury(const command *self, const char *list, eplb_topology **topology)
{
    int32_t *dead, count;
    char message[160];
    eplb_error error;
    eplb_topology *buried = NULL;
    list_rule rule = {0, eplb_topology_num_ranks(*topology) - 1, EPLB_MAX_RANKS, false};
    if (!list_parse(list, rule, &dead, &count, message, sizeof message))
        return complain(self, "--dead is '%s': %s", list, message);
    eplb_status status = eplb_topology_with_dead(&buried, *topology, dead, count, NULL, &error);
    free(dead);
    if (status != EPLB_OK)
        return fail_library(self, &error);
    eplb_topology_destroy(*topology);
    *topology = buried;
    return PARSED;
}

int placement_topology(const command *self, const io_document *document, const char *path, const char *dead,
                       eplb_topology **topology)
{
    io_error error;
    if (io_document_topology(document, path, topology, &error) != EPLB_OK)
        return fail_io(self, &error);
    return dead != NULL ? bury(self, dead, topology) : PARSED;
}
