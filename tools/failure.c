/* From a status to a message and an exit status: 2 when the input or the usage is to blame, 3 otherwise. */
#include "failure.h"

int fail_library(const command *self, const eplb_error *error)
{
    (void)complain(self, "%s", error->text);
    switch (error->status) {
    case EPLB_ERROR_MEMORY:
    case EPLB_ERROR_SYSTEM:
    case EPLB_ERROR_INTERNAL:
        return EXIT_INTERNAL;
    default:
        return EXIT_BAD;
    }
}

int fail_io(const command *self, const io_error *error)
{
    (void)complain(self, "%s", error->text);
    return error->status == EPLB_ERROR_MEMORY || error->status == EPLB_ERROR_INTERNAL ? EXIT_INTERNAL
                                                                                      : EXIT_BAD;
}

int fail_memory(const command *self)
{
    (void)complain(self, "out of memory");
    return EXIT_INTERNAL;
}

eplb_status no_memory(eplb_error *error)
{
    if (error != NULL)
        *error = (eplb_error){EPLB_ERROR_MEMORY, -1, -1, -1, -1, -1, "out of memory"};
    return EPLB_ERROR_MEMORY;
}
