/* Writing a placement in the format that was asked for, or that its file's name tells. */
#ifndef TOOLS_PLACEMENT_OUTPUT_H
#define TOOLS_PLACEMENT_OUTPUT_H

#include "command.h"
#include "io/placement.h"

/* `wished` is a choice of --format, or -1: then .npz, .yaml and .yml tell, and all else is json. */
io_format placement_format(int wished, const char *path);

/* Refuses --first-layer (-1: not given) with a format that has no place for it. PARSED or an exit status. */
int placement_check_first_layer(const command *self, io_format format, int64_t first_layer);

/* Writes the document to path (NULL or "-": standard output); warns where the format drops unequal shares.
 * PARSED or an exit status. */
int placement_write(const command *self, const io_document *document, io_format format, const char *path,
                    int64_t first_layer);

#endif
