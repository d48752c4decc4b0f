/* docs/command-line.md, from the option tables. */
#include "manual/manual.h"

#include <string.h>

/* A table cell: a bar would end it. */
static void put_cell(FILE *out, const char *text)
{
    for (; *text != '\0'; text++)
        (void)fprintf(out, *text == '|' ? "\\|" : "%c", *text);
}

static void put_command(FILE *out, const command *self)
{
    char name[160];
    (void)fprintf(
        out, "\n## eplb %s\n\n%s.\n\n    eplb %s%s%s [options]\n\n%s\n\n| option | meaning |\n|---|---|\n",
        self->name, self->summary, self->name, *self->operands != '\0' ? " " : "", self->operands,
        self->text);
    for (const option_row *row = self->options; row->name != NULL; row++) {
        (void)fputs("| `", out);
        put_cell(out, manual_option(row, name, sizeof name));
        (void)fputs("` | ", out);
        put_cell(out, row->help);
        (void)fputs(" |\n", out);
    }
    if (self->names != NULL) {
        (void)fprintf(out, "\n%s:\n\n", self->names->title);
        for (int32_t i = 0; self->names->name(i) != NULL; i++)
            (void)fprintf(out, "- `%s`: %s\n", self->names->name(i), self->names->summary(i));
    }
    if (self->json != NULL)
        (void)fprintf(out, "\nJSON: %s\n", self->json);
    if (self->exit_no != NULL)
        (void)fprintf(out, "\nExit 1: %s\n", self->exit_no);
    if (self->examples != NULL)
        (void)fprintf(out, "\n```sh\n%s\n```\n", self->examples);
}

void manual_markdown(FILE *out, const command *const *list)
{
    (void)fputs(
        "# Command line\n\n"
        "<!-- written by `eplb --markdown`; scripts/check-command-line holds it current -->\n\n"
        "`eplb COMMAND [options]`. Every command has `--help`; long options take their value as `--name "
        "value` or `--name=value`.\n"
        "Loads are `.npy`, `.npz`, `.json` or `.csv` files of shape [L,E] (layers, experts) or [T,L,E] "
        "(windows first), integers or floats; `-` is standard input.\n"
        "Lists are written `0,3,8-11`; in lists with one value per rank `9x31` stands for 31 times 9.\n\n"
        "Tables are for people; `--json` prints one JSON document on standard output and nothing else. "
        "Messages go to standard error.\n"
        "Exit status: 0 ok, 1 the check failed or no gain, 2 bad usage or input, 3 internal. An output file "
        "is either whole or absent.\n\n"
        "| command | does |\n"
        "|---|---|\n",
        out);
    for (const command *const *one = list; *one != NULL; one++)
        (void)fprintf(out, "| [`%s`](#eplb-%s) | %s |\n", (*one)->name, (*one)->name, (*one)->summary);
    for (; *list != NULL; list++)
        put_command(out, *list);
}
