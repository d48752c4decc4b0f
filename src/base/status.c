/* Names of statuses and the version string. */
#include <eplb/status.h>

#define TEXT_OF(number)       #number
#define VERSION_TEXT(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)

const char *eplb_status_name(eplb_status status)
{
    switch (status) {
    case EPLB_OK:
        return "ok";
    case EPLB_ERROR_INVALID:
        return "invalid";
    case EPLB_ERROR_MEMORY:
        return "memory";
    case EPLB_ERROR_OVERFLOW:
        return "overflow";
    case EPLB_ERROR_INFEASIBLE:
        return "infeasible";
    case EPLB_ERROR_UNSUPPORTED:
        return "unsupported";
    case EPLB_ERROR_CANCELLED:
        return "cancelled";
    case EPLB_ERROR_SYSTEM:
        return "system";
    case EPLB_ERROR_INTERNAL:
        return "internal";
    case EPLB_ERROR_BUSY:
        return "busy";
    }
    return "unknown";
}

const char *eplb_version(void)
{
    return VERSION_TEXT(EPLB_VERSION_MAJOR, EPLB_VERSION_MINOR, EPLB_VERSION_PATCH);
}
