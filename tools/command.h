/* Commands: one declarative table of options per command, from which parsing, --help, the man pages, the
 * shell completion and docs/command-line.md all come.
 *
 * A command is one file tools/<name>.c that defines a `const struct command` and one line in the table of
 * main.c. Its options fill a plain struct through offsets; fields keep what the command preset where an
 * option is absent. */
#ifndef TOOLS_COMMAND_H
#define TOOLS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses of every command. */
enum {
    EXIT_OK = 0,
    EXIT_NO = 1,       /* the check failed, or there is nothing to gain */
    EXIT_BAD = 2,      /* bad usage or input, or output that cannot be written */
    EXIT_INTERNAL = 3, /* out of memory, the system refused, or a defect of this program */
    PARSED = -1        /* options_parse: go on */
};

typedef enum option_kind {
    OPTION_FLAG,    /* bool; no value */
    OPTION_INTEGER, /* int64_t in least .. most */
    OPTION_NUMBER,  /* double in least .. most */
    OPTION_CHOICE,  /* int: index into `value`, the words separated by '|' */
    OPTION_TEXT,    /* const char *, not empty */
    OPTION_FILE     /* the same; completion offers files */
} option_kind;

typedef struct option_row {
    const char *name; /* long name without dashes; NULL ends a table */
    char letter;      /* short name, or 0 */
    option_kind kind;
    const char *value; /* what stands for the value in help: "G", "FILE", "equal|weighted|batch" */
    size_t offset;     /* of the field in the command's struct of values */
    double least, most;
    const char *help; /* one sentence or two, without a full stop at the end */
} option_row;

/* Names that an option or operand takes and what each means, 0 .. until name is NULL. */
typedef struct listing {
    const char *title;  /* "Policies" */
    const char *option; /* the option that takes one of them; NULL: the operand does */
    const char *(*name)(int32_t index);
    const char *(*summary)(int32_t index);
} listing;

typedef struct command {
    const char *name;
    const char *summary;  /* one line, without a full stop */
    const char *operands; /* "LOAD", "OLD NEW", "" */
    int least_operands, most_operands;
    const char *text;     /* paragraphs for --help and the manual, separated by an empty line */
    const char *json;     /* what --json prints, or NULL */
    const char *exit_no;  /* when the exit status is 1, or NULL for never */
    const char *examples; /* command lines, one a line */
    const option_row *options;
    const listing *names; /* or NULL */
    int (*run)(const struct command *self, int argc, char **argv);
} command;

/* A row whose value goes into a field of `type`; each table shortens it to ROW with its own type. */
#define OPTION_ROW(type, name, letter, kind, value, field, least, most, help)                                \
    {                                                                                                        \
        name, letter, kind, value, offsetof(type, field), least, most, help                                  \
    }
/* Rows that several tables share. */
#define ROW_JSON(type)                                                                                       \
    {                                                                                                        \
        "json", 0, OPTION_FLAG, NULL, offsetof(type, json), 0, 0,                                            \
            "Print one JSON document on standard output and nothing else"                                    \
    }
#define ROW_END                                                                                              \
    {                                                                                                        \
        NULL, 0, OPTION_FLAG, NULL, 0, 0, 0, NULL                                                            \
    }

/* Fills `values` from argv[1 ..] and moves the operands to *operands (argv is reordered). Returns PARSED, or
 * the exit status when there is nothing more to do: --help was printed, or a message was. */
int options_parse(const command *self, int argc, char **argv, void *values, char ***operands, int *count);

/* Name of `names[count]` nearest to `word`, or NULL when none is near. */
const char *nearest_name(const char *word, const char *const *names, size_t count);

/* Prints "eplb COMMAND: message" to standard error and returns EXIT_BAD. */
int complain(const command *self, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));
/* The same, as "warning:". */
void warn(const command *self, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));

/* The same, as "note:". */
void inform(const command *self, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));

/* Refuses two inputs that are both standard input; a path may be NULL. PARSED or EXIT_BAD. */
int check_inputs(const command *self, const char *first, const char *first_path, const char *second,
                 const char *second_path);

/* Flushes standard output; EXIT_BAD and a message when something could not be written. `status` otherwise. */
int finish_output(const command *self, int status);

/* The word `index` of a choice row's value, in a static or caller's buffer. */
const char *choice_word(const option_row *row, int index, char *buffer, size_t size);

#endif
