/* Man pages, from the option tables. */
#include "manual/manual.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include <eplb/status.h>

/* Text with what troff would read as its own escaped. */
static void put_escaped(FILE *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length && text[i] != '\0'; i++) {
        if (text[i] == '\\')
            (void)fputs("\\e", out);
        else if (text[i] == '-')
            (void)fputs("\\-", out);
        else if ((text[i] == '.' || text[i] == '\'') && (i == 0 || text[i - 1] == '\n'))
            (void)fprintf(out, "\\&%c", text[i]);
        else
            (void)fputc(text[i], out);
    }
}

static void put_text(FILE *out, const char *text)
{
    put_escaped(out, text, strlen(text));
    (void)fputc('\n', out);
}

static void put_paragraphs(FILE *out, const char *text)
{
    const char *end;
    while ((end = strstr(text, "\n\n")) != NULL) {
        put_escaped(out, text, (size_t)(end - text));
        (void)fputs("\n.PP\n", out);
        text = end + 2;
    }
    put_text(out, text);
}

static void put_row(FILE *out, const option_row *row)
{
    (void)fputs(".TP\n", out);
    if (row->letter != 0)
        (void)fprintf(out, "\\fB\\-%c\\fR, ", row->letter);
    (void)fputs("\\fB\\-\\-", out);
    put_escaped(out, row->name, strlen(row->name));
    (void)fputs("\\fR", out);
    if (row->value != NULL)
        (void)fprintf(out, " \\fI%s\\fR", row->value);
    (void)fputc('\n', out);
    put_text(out, row->help);
}

static void put_names(FILE *out, const listing *names)
{
    (void)fprintf(out, ".SH %s\n", names->title);
    for (int32_t i = 0; names->name(i) != NULL; i++) {
        (void)fprintf(out, ".TP\n\\fB%s\\fR\n", names->name(i));
        put_text(out, names->summary(i));
    }
}

static void put_exit(FILE *out, const char *no)
{
    (void)fputs(".SH EXIT STATUS\n.TP\n0\nDone.\n", out);
    if (no != NULL) {
        (void)fputs(".TP\n1\n", out);
        put_text(out, no);
    }
    (void)fputs(".TP\n"
                "2\n"
                "Bad usage, bad input, or output that could not be written.\n"
                ".TP\n"
                "3\n"
                "Internal: out of memory, or a defect.\n",
                out);
}

static void put_command(FILE *out, const command *self)
{
    (void)fputs(".TH EPLB\\-", out);
    for (const char *c = self->name; *c != '\0'; c++)
        (void)fputc(toupper((unsigned char)*c), out);
    (void)fprintf(out, " 1 \"\" \"eplb %s\" \"User commands\"\n.SH NAME\neplb\\-%s \\- ", eplb_version(),
                  self->name);
    put_text(out, self->summary);
    (void)fprintf(out, ".SH SYNOPSIS\n\\fBeplb %s\\fR \\fI%s\\fR [options]\n.SH DESCRIPTION\n", self->name,
                  self->operands);
    put_paragraphs(out, self->text);
    (void)fputs(".SH OPTIONS\n", out);
    for (const option_row *row = self->options; row->name != NULL; row++)
        put_row(out, row);
    if (self->names != NULL)
        put_names(out, self->names);
    if (self->json != NULL) {
        (void)fputs(".SH JSON\n", out);
        put_paragraphs(out, self->json);
    }
    put_exit(out, self->exit_no);
    if (self->examples != NULL) {
        (void)fputs(".SH EXAMPLES\n.nf\n", out);
        put_text(out, self->examples);
        (void)fputs(".fi\n", out);
    }
    (void)fputs(".SH SEE ALSO\n\\fBeplb\\fR(1)\n", out);
}

void manual_man(FILE *out, const command *self, const command *const *list)
{
    if (self != NULL) {
        put_command(out, self);
        return;
    }
    (void)fprintf(out,
                  ".TH EPLB 1 \"\" \"eplb %s\" \"User commands\"\n"
                  ".SH NAME\n"
                  "eplb \\- expert\\-parallel load balancing for Mixture\\-of\\-Experts serving\n"
                  ".SH SYNOPSIS\n"
                  "\\fBeplb\\fR \\fICOMMAND\\fR [options]\n"
                  ".SH DESCRIPTION\n",
                  eplb_version());
    put_paragraphs(
        out, "Plans how many replicas each expert gets and where they live, looks at loads and placements, "
             "checks them and converts them between serving engines.\n\n"
             "Loads are .npy, .npz, .json or .csv files of shape [L,E] or [T,L,E]; - is standard input. "
             "Lists are written 0,3,8-11.");
    (void)fputs(".SH COMMANDS\n", out);
    for (; *list != NULL; list++) {
        (void)fprintf(out, ".TP\n\\fBeplb\\-%s\\fR(1)\n", (*list)->name);
        put_text(out, (*list)->summary);
    }
    put_exit(out, "The check failed, or there is nothing to gain.");
}

static int write_page(const char *folder, const command *self, const command *const *list)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/eplb%s%s.1", folder, self != NULL ? "-" : "",
                          self != NULL ? self->name : "");
    if (length < 0 || (size_t)length >= sizeof path)
        return complain(NULL, "--man: the name of the folder is too long");
    FILE *out = fopen(path, "w");
    if (out == NULL)
        return complain(NULL, "cannot write %s: %s", path, strerror(errno));
    manual_man(out, self, list);
    bool whole = !ferror(out);
    if (fclose(out) != 0 || !whole) {
        (void)remove(path);
        return complain(NULL, "cannot write %s: %s", path, strerror(errno));
    }
    return EXIT_OK;
}

int manual_write_pages(const char *folder, const command *const *list)
{
    int status = write_page(folder, NULL, list);
    for (const command *const *one = list; status == EXIT_OK && *one != NULL; one++)
        status = write_page(folder, *one, list);
    return status;
}
