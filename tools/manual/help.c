/* --help, from the option tables: usage, text, aligned options, examples. */
#include "manual/manual.h"

#include <string.h>

enum { WIDTH = 96, OPTION_COLUMN = 30 };

const char *manual_option(const option_row *row, char *buffer, size_t size)
{
    char letter[8] = "";
    if (row->letter != 0)
        (void)snprintf(letter, sizeof letter, "-%c, ", row->letter);
    (void)snprintf(buffer, size, "%s--%s%s%s", letter, row->name, row->value != NULL ? " " : "",
                   row->value != NULL ? row->value : "");
    return buffer;
}

const char *manual_paragraph(FILE *out, const char *text, int indent, int width, int column)
{
    if (column < indent)
        (void)fprintf(out, "%*s", indent - column, "");
    column = indent;
    while (*text != '\0') {
        text += strspn(text, " ");
        int length = (int)strcspn(text, " \n");
        if (column > indent && column + 1 + length > width) {
            (void)fprintf(out, "\n%*s", indent, "");
            column = indent;
        }
        column += fprintf(out, "%s%.*s", column > indent ? " " : "", length, text);
        text += length;
        if (text[0] == '\n' && text[1] == '\n')
            break;
        text += *text == '\n';
    }
    (void)fputc('\n', out);
    return *text == '\0' ? NULL : text + 2;
}

static void print_row(FILE *out, const option_row *row)
{
    char name[160];
    int column = fprintf(out, "  %s", manual_option(row, name, sizeof name));
    if (column > OPTION_COLUMN - 2) {
        (void)fputc('\n', out);
        column = 0;
    }
    (void)manual_paragraph(out, row->help, OPTION_COLUMN, WIDTH, column);
}

static void print_names(FILE *out, const listing *names)
{
    (void)fprintf(out, "\n%s:\n", names->title);
    for (int32_t i = 0; names->name(i) != NULL; i++) {
        int column = fprintf(out, "  %s", names->name(i));
        (void)manual_paragraph(out, names->summary(i), 16, WIDTH, column);
    }
}

static void print_examples(FILE *out, const char *examples)
{
    (void)fputs("\nExamples:\n", out);
    while (*examples != '\0') {
        int length = (int)strcspn(examples, "\n");
        (void)fprintf(out, "  %.*s\n", length, examples);
        examples += length + (examples[length] == '\n');
    }
}

void manual_help(FILE *out, const command *self)
{
    (void)fprintf(out, "Usage: eplb %s%s%s [options]\n\n", self->name, *self->operands != '\0' ? " " : "",
                  self->operands);
    for (const char *text = self->text; text != NULL;) {
        text = manual_paragraph(out, text, 0, WIDTH, 0);
        (void)fputc('\n', out);
    }
    (void)fputs("Options:\n", out);
    for (const option_row *row = self->options; row->name != NULL; row++)
        print_row(out, row);
    const option_row help = {"help", 'h', OPTION_FLAG, NULL, 0, 0, 0, "Print this text"};
    print_row(out, &help);
    if (self->names != NULL)
        print_names(out, self->names);
    if (self->json != NULL) {
        (void)fputs("\nJSON: ", out);
        (void)manual_paragraph(out, self->json, 6, WIDTH, 6);
    }
    if (self->exit_no != NULL) {
        (void)fputs("\nExit 1: ", out);
        (void)manual_paragraph(out, self->exit_no, 8, WIDTH, 8);
    }
    if (self->examples != NULL)
        print_examples(out, self->examples);
}

void manual_overview(FILE *out, const command *const *list)
{
    (void)fputs("Usage: eplb COMMAND [options]\n\n"
                "Expert-parallel load balancing for Mixture-of-Experts serving: from a file of loads to a\n"
                "verified placement.\n\n"
                "Commands:\n",
                out);
    for (; *list != NULL; list++)
        (void)fprintf(out, "  %-10s %s\n", (*list)->name, (*list)->summary);
    (void)fputs("\n"
                "eplb COMMAND --help tells more. Also:\n"
                "  --version              Print the version\n"
                "  --completion SHELL     Print completion for bash, zsh or fish\n"
                "  --man DIR              Write the man pages into DIR\n"
                "  --markdown             Print the reference, docs/command-line.md\n\n"
                "Files: loads are .npy, .npz, .json, .csv; `-` is standard input. Lists are 0,3,8-11.\n"
                "Exit: 0 ok, 1 the check failed or no gain, 2 bad usage or input, 3 internal.\n",
                out);
}
