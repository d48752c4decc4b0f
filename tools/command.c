/* Parsing of a command's options after its table: getopt_long does the splitting, the table the types and
 * ranges. Messages say which option, which value and what was expected. */
#include "command.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "manual/manual.h"
#include "visible_text.h"

enum { MAX_OPTIONS = 64, HELP = 1000 };

static void message(const command *self, const char *prefix, const char *format, va_list arguments)
{
    char text[2048], shown[4096];
    (void)vsnprintf(text, sizeof text, format, arguments);
    (void)fflush(stdout);
    (void)fprintf(stderr, self == NULL ? "eplb: %s%s" : "eplb %s: %s", self == NULL ? "" : self->name,
                  prefix);
    (void)fprintf(stderr, "%s\n", visible_text(text, shown, sizeof shown));
}

int complain(const command *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    message(self, "", format, arguments);
    va_end(arguments);
    return EXIT_BAD;
}

void warn(const command *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    message(self, "warning: ", format, arguments);
    va_end(arguments);
}

void inform(const command *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    message(self, "note: ", format, arguments);
    va_end(arguments);
}

static bool is_standard_input(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

int check_inputs(const command *self, const char *first, const char *first_path, const char *second,
                 const char *second_path)
{
    if (is_standard_input(first_path) && is_standard_input(second_path))
        return complain(self, "%s and %s are both standard input", first, second);
    return PARSED;
}

int finish_output(const command *self, int status)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    return complain(self, "cannot write to standard output: %s",
                    errno != 0 ? strerror(errno) : "write error");
}

/* Levenshtein distance, cut at words of 63 letters. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[64], m = strlen(b);
    if (m > 63)
        return m;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[m];
}

const char *nearest_name(const char *word, const char *const *names, size_t count)
{
    const char *best = NULL;
    size_t least = strlen(word) / 2 + 1; /* further away is no misspelling */
    for (size_t i = 0; i < count; i++) {
        size_t distance = edit_distance(word, names[i]);
        if (distance < least) {
            least = distance;
            best = names[i];
        }
    }
    return best;
}

const char *choice_word(const option_row *row, int index, char *buffer, size_t size)
{
    const char *word = row->value;
    for (; index > 0 && word != NULL; index--) {
        word = strchr(word, '|');
        word = word == NULL ? NULL : word + 1;
    }
    if (word == NULL)
        return NULL;
    (void)snprintf(buffer, size, "%.*s", (int)strcspn(word, "|"), word);
    return buffer;
}

static int store_integer(const command *self, const option_row *row, const char *text, int64_t *field)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || (double)value < row->least || (double)value > row->most)
        return complain(self, "--%s is '%s'; expected a whole number from %.0f to %.0f", row->name, text,
                        row->least, row->most);
    *field = value;
    return PARSED;
}

static int store_number(const command *self, const option_row *row, const char *text, double *field)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value) || value < row->least || value > row->most)
        return complain(self, "--%s is '%s'; expected a number from %g to %g", row->name, text, row->least,
                        row->most);
    *field = value;
    return PARSED;
}

static int store_choice(const command *self, const option_row *row, const char *text, int *field)
{
    char word[64];
    for (int i = 0; choice_word(row, i, word, sizeof word) != NULL; i++)
        if (strcmp(word, text) == 0) {
            *field = i;
            return PARSED;
        }
    return complain(self, "--%s is '%s'; expected one of %s", row->name, text, row->value);
}

static int store(const command *self, const option_row *row, char *text, void *values)
{
    void *field = (char *)values + row->offset;
    switch (row->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return PARSED;
    case OPTION_INTEGER:
        return store_integer(self, row, text, field);
    case OPTION_NUMBER:
        return store_number(self, row, text, field);
    case OPTION_CHOICE:
        return store_choice(self, row, text, field);
    case OPTION_TEXT:
    case OPTION_FILE:
        if (*text == '\0')
            return complain(self, "--%s has an empty value; expected %s", row->name, row->value);
        *(const char **)field = text;
        return PARSED;
    }
    return EXIT_INTERNAL;
}

/* A value given a second time would silently take the place of the first, as of a list of which more is
 * meant. */
static int store_once(const command *self, const option_row *row, char *text, void *values, bool *given)
{
    bool *seen = &given[row - self->options];
    if (row->kind != OPTION_FLAG && *seen)
        return complain(self, "--%s is given twice, at last as '%s'; expected one value", row->name, text);
    *seen = true;
    return store(self, row, text, values);
}

/* What getopt_long could not read. */
static int refuse(const command *self, int code, const char *word, size_t count)
{
    const char *names[MAX_OPTIONS + 1];
    for (size_t i = 0; i < count; i++)
        names[i] = self->options[i].name;
    names[count] = "help";
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    if (optopt > 0 && optopt < HELP)
        return complain(self,
                        code == ':' ? "option '-%c' needs a value; see eplb %s --help"
                                    : "there is no option '-%c'; see eplb %s --help",
                        optopt, self->name);
    if (code == ':')
        return complain(self, "option '%s' needs a value; see eplb %s --help", name, self->name);
    for (size_t i = 0; i <= count; i++)
        if (strcmp(names[i], name + 2) == 0)
            return complain(self, "option '%s' takes no value", name);
    const char *near = nearest_name(name + 2, names, count + 1);
    if (near != NULL)
        return complain(self, "there is no option '%s'; did you mean '--%s'?", name, near);
    return complain(self, "there is no option '%s'; see eplb %s --help", name, self->name);
}

/* getopt's two forms of the table; returns the number of rows. */
static size_t build_tables(const command *self, struct option *names, char *letters)
{
    size_t count = 0;
    *letters++ = ':'; /* a missing value is told apart from an unknown option */
    *letters++ = 'h';
    for (const option_row *row = self->options; row->name != NULL; row++, count++) {
        bool valued = row->kind != OPTION_FLAG;
        names[count] =
            (struct option){row->name, valued ? required_argument : no_argument, NULL, HELP + 1 + (int)count};
        if (row->letter != 0) {
            *letters++ = row->letter;
            if (valued)
                *letters++ = ':';
        }
    }
    *letters = '\0';
    names[count] = (struct option){"help", no_argument, NULL, HELP};
    names[count + 1] = (struct option){NULL, 0, NULL, 0};
    return count;
}

static const option_row *find_row(const command *self, int code)
{
    if (code > HELP)
        return &self->options[code - HELP - 1];
    const option_row *row = self->options;
    while (row->name != NULL && row->letter != code)
        row++;
    return row;
}

/* getopt_long takes abbreviations; an option added later would change what they mean, so they are refused. */
static bool is_abbreviated(const option_row *row, char **argv)
{
    const char *word = argv[optind - 1];
    if (row->kind != OPTION_FLAG && optarg == word)
        word = argv[optind - 2];
    return strncmp(word, "--", 2) == 0 && strcspn(word + 2, "=") != strlen(row->name);
}

/* Where the operands that are not given begin in "OLD NEW". */
static size_t skip_words(const command *self, int count)
{
    const char *word = self->operands;
    for (; count > 0 && strchr(word, ' ') != NULL; count--)
        word = strchr(word, ' ') + 1;
    return (size_t)(word - self->operands);
}

int options_parse(const command *self, int argc, char **argv, void *values, char ***operands, int *count)
{
    struct option names[MAX_OPTIONS + 2];
    char letters[2 * MAX_OPTIONS + 3];
    bool given[MAX_OPTIONS] = {false};
    size_t rows = build_tables(self, names, letters);
    int code;
    opterr = 0;
    optind = 1;
    while ((code = getopt_long(argc, argv, letters, names, NULL)) != -1) {
        if (code == HELP || code == 'h') {
            manual_help(stdout, self);
            return finish_output(self, EXIT_OK);
        }
        if (code == '?' || code == ':')
            return refuse(self, code, argv[optind - 1], rows);
        const option_row *row = find_row(self, code);
        if (is_abbreviated(row, argv))
            return complain(self, "there is no option '%s'; did you mean '--%s'?",
                            optarg == argv[optind - 1] ? argv[optind - 2] : argv[optind - 1], row->name);
        int status = store_once(self, row, optarg, values, given);
        if (status != PARSED)
            return status;
    }
    *operands = argv + optind;
    *count = argc - optind;
    if (*count < self->least_operands)
        return complain(self, "%s %s missing; see eplb %s --help", self->operands + skip_words(self, *count),
                        self->least_operands - *count == 1 ? "is" : "are", self->name);
    for (int i = 0; i < *count; i++)
        if (*(*operands)[i] == '\0')
            return complain(self, "an argument is empty; expected %s", self->operands);
    if (*count > self->most_operands)
        return complain(self, "'%s' is one argument too many; see eplb %s --help",
                        argv[optind + self->most_operands], self->name);
    return PARSED;
}
