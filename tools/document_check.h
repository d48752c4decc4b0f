/* What a placement file must keep to be served from: shared by verify, which tells all that is wrong, and by
 * convert, which writes nothing that is. */
#ifndef TOOLS_DOCUMENT_CHECK_H
#define TOOLS_DOCUMENT_CHECK_H

#include <stddef.h>

#include <eplb/topology.h>

#include "command.h"
#include "io/placement.h"

/* One thing that is wrong. `layer` is -1 where the whole file is meant; `what` is a short name of static
 * storage, `where` says the place, the value and the rule. */
typedef void (*document_finding)(void *context, int32_t layer, const char *what, const char *where);

/* What is legal, but worth a word. */
typedef struct document_notes {
    size_t empty_slots;       /* on live ranks */
    size_t published_doubles; /* in plans of deepseek and vllm: an expert a second time on its rank */
} document_notes;

/* Checks slots, shares, groups, metrics and hash. The ranks are `topology`'s, which has the document's slots.
 * PARSED, also when something is wrong, or an exit status after a message. O(L (S + E)). */
int document_check(const command *self, const io_document *document, const eplb_topology *topology,
                   document_finding found, void *context, document_notes *notes);

/* Tells the notes as warnings. */
void document_warn_notes(const command *self, const document_notes *notes);

/* True unless the document has a hash that is not that of its content. *hash is the content's, or 0 where it
 * cannot be told: without the shares of a split that has them. */
bool document_hash_agrees(const io_document *document, const eplb_topology *topology, uint64_t *hash);

/* Warns where it does not agree; for commands that read a placement to work with it. */
void document_warn_hash(const command *self, const io_document *document, const char *path);

#endif
