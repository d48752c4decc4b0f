/* What is generated from the option tables: --help, man pages, docs/command-line.md, shell completion. */
#ifndef TOOLS_MANUAL_H
#define TOOLS_MANUAL_H

#include <stdio.h>

#include "command.h"

/* `eplb --help`: every command with its line. */
void manual_overview(FILE *out, const command *const *list);
/* `eplb COMMAND --help`. */
void manual_help(FILE *out, const command *self);
/* Page of one command, or of eplb itself when `self` is NULL, as troff. */
void manual_man(FILE *out, const command *self, const command *const *list);
/* Writes eplb.1 and eplb-COMMAND.1 into an existing folder; an exit status. */
int manual_write_pages(const char *folder, const command *const *list);
/* docs/command-line.md. */
void manual_markdown(FILE *out, const command *const *list);
/* Completion for "bash", "zsh" or "fish"; false for another shell. */
bool manual_completion(FILE *out, const char *shell, const command *const *list);

/* "-o, --output FILE" of a row into buffer. */
const char *manual_option(const option_row *row, char *buffer, size_t size);
/* Prints words of `text` up to an empty line or its end, wrapped at `width` after `indent` spaces; the cursor
 * stands at column `column`. Returns where the next paragraph starts, or NULL. */
const char *manual_paragraph(FILE *out, const char *text, int indent, int width, int column);

#endif
