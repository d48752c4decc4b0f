/* What every placement file must satisfy, whatever the bytes: it is refused with a text, or its document can
 * be written in every format that holds it, and checked by the library. */
#ifndef FUZZ_DOCUMENT_TARGET_H
#define FUZZ_DOCUMENT_TARGET_H

#include "input_file.h"
#include "io/placement.h"
#include "require.h"

static void check_document(const uint8_t *data, size_t size)
{
    io_document document;
    io_error error = {0};
    if (io_document_read(input_file(data, size), NULL, &document, &error) != EPLB_OK) {
        require(error.status != EPLB_OK && error.text[0] != '\0');
        require(document.physical_to_logical == NULL);
        return;
    }
    require(document.num_layers >= 1 && document.num_slots >= 1 && document.num_experts >= 1);
    /* The dense form is L * E * width: leave the few inputs that would make it large to the unit tests. */
    int small = (int64_t)document.num_layers * document.num_experts * document.num_slots < 1 << 20;
    for (int i = 0; i < IO_FORMAT_COUNT && small; i++)
        (void)io_document_write(&document, (io_format)i, "/dev/null", 0, &error);
    eplb_topology *topology;
    if (io_document_topology(&document, "input", &topology, &error) == EPLB_OK) {
        (void)eplb_placement_check(topology, document.num_layers, document.num_experts,
                                   document.physical_to_logical, NULL, NULL, NULL, NULL);
        eplb_topology_destroy(topology);
    }
    eplb_placement *placement;
    if (io_document_placement(&document, "input", &placement, &error) == EPLB_OK)
        eplb_placement_destroy(placement);
    io_document_clear(&document);
}

#endif
