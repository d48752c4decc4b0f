/* From a status of the library or of a reader to a message and an exit status. */
#ifndef TOOLS_FAILURE_H
#define TOOLS_FAILURE_H

#include <eplb/status.h>

#include "command.h"
#include "io/error.h"

/* Prints what a call of the library left in `error`. */
int fail_library(const command *self, const eplb_error *error);
/* Prints what a call of io/ left in `error`. */
int fail_io(const command *self, const io_error *error);
/* Out of memory. */
int fail_memory(const command *self);

/* The error that the library would leave when memory is out, for functions that are called like its own.
 * Returns EPLB_ERROR_MEMORY. */
eplb_status no_memory(eplb_error *error);

#endif
