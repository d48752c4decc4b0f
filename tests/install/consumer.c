/*
 * A stranger's program: it knows the installed headers and nothing else. It names functions of its own as the
 * library names internal ones, which must not clash, plans two layers and prints where the experts went.
 */
#include <stdio.h>
#include <string.h>

#include <eplb/eplb.h>

void *arena_take(int bytes);

void *arena_take(int bytes)
{
    (void)bytes;
    return NULL;
}

int main(void)
{
    char built[32];
    snprintf(built, sizeof built, "%d.%d.%d", EPLB_VERSION_MAJOR, EPLB_VERSION_MINOR, EPLB_VERSION_PATCH);
    if (strcmp(built, eplb_version()) != 0 || arena_take(1) != NULL) {
        fprintf(stderr, "headers of %s, library of %s\n", built, eplb_version());
        return 1;
    }
    printf("eplb %s\n", eplb_version());
    return 0;
}
