/* Completion for bash, zsh and fish, from the option tables. */
#include "manual/manual.h"

#include <string.h>

/* Words of a choice, separated by spaces. */
static void put_choices(FILE *out, const option_row *row)
{
    for (const char *c = row->value; *c != '\0'; c++)
        (void)fputc(*c == '|' ? ' ' : *c, out);
}

/* `text` inside single quotes, where a quote ends them, stands escaped, and they begin again; characters of
 * `special` get a backslash. */
static void put_quoted(FILE *out, const char *text, const char *special)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            (void)fputs("'\\''", out);
        else if (strchr(special, *text) != NULL)
            (void)fprintf(out, "\\%c", *text);
        else
            (void)fputc(*text, out);
    }
}

/* The names of a command's listing, separated by spaces. */
static void put_names(FILE *out, const command *self)
{
    for (int32_t i = 0; self->names->name(i) != NULL; i++)
        (void)fprintf(out, "%s%s", i > 0 ? " " : "", self->names->name(i));
}

/* Whether an option, or with NULL the operand, takes one of the names of the command's listing. */
static bool takes_names(const command *self, const option_row *row)
{
    if (self->names == NULL)
        return false;
    const char *option = self->names->option;
    return row == NULL ? option == NULL : option != NULL && strcmp(option, row->name) == 0;
}

/* The words that an option takes, if there are some. */
static bool has_words(const command *self, const option_row *row)
{
    return row->kind == OPTION_CHOICE || takes_names(self, row);
}

static void put_words(FILE *out, const command *self, const option_row *row)
{
    if (row->kind == OPTION_CHOICE)
        put_choices(out, row);
    else
        put_names(out, self);
}

static void bash_command(FILE *out, const command *self)
{
    (void)fprintf(out, "    %s)\n        case $previous in\n", self->name);
    for (const option_row *row = self->options; row->name != NULL; row++) {
        if (row->kind == OPTION_FLAG)
            continue;
        (void)fprintf(out, "        --%s", row->name);
        if (row->letter != 0)
            (void)fprintf(out, " | -%c", row->letter);
        (void)fputs(") ", out);
        if (has_words(self, row)) {
            (void)fputs("mapfile -t COMPREPLY < <(compgen -W '", out);
            put_words(out, self, row);
            (void)fputs("' -- \"$word\") && return ;;\n", out);
        } else if (row->kind == OPTION_FILE) {
            (void)fputs("mapfile -t COMPREPLY < <(compgen -f -- \"$word\") && return ;;\n", out);
        } else {
            (void)fputs("return ;;\n", out);
        }
    }
    (void)fputs("        esac\n        options='--help", out);
    for (const option_row *row = self->options; row->name != NULL; row++)
        (void)fprintf(out, " --%s", row->name);
    (void)fputs("'\n", out);
    if (takes_names(self, NULL)) {
        (void)fputs("        [ \"$COMP_CWORD\" -ne 2 ] || words='", out);
        put_names(out, self);
        (void)fputs("'\n", out);
    }
    (void)fputs("        ;;\n", out);
}

static void put_commands(FILE *out, const command *const *list)
{
    for (; *list != NULL; list++)
        (void)fprintf(out, "%s ", (*list)->name);
}

static void put_bash(FILE *out, const command *const *list)
{
    (void)fputs(
        "# bash completion for eplb\n"
        "_eplb() {\n"
        "    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} options='' words=''\n"
        "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -W '",
        out);
    put_commands(out, list);
    (void)fputs("help --help --version --completion --man --markdown' -- \"$word\")\n"
                "        return\n"
                "    fi\n"
                "    case ${COMP_WORDS[1]} in\n"
                "    help) [ \"$COMP_CWORD\" -ne 2 ] || words='",
                out);
    put_commands(out, list);
    (void)fputs("' ;;\n"
                "    --completion) words='bash zsh fish' ;;\n",
                out);
    for (; *list != NULL; list++)
        bash_command(out, *list);
    (void)fputs("    esac\n"
                "    case $word in\n"
                "    -*) mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\") ;;\n"
                "    *)\n"
                "        if [ -n \"$words\" ]; then\n"
                "            mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
                "        else\n"
                "            mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
                "        fi\n"
                "        ;;\n"
                "    esac\n"
                "}\n"
                "complete -o filenames -F _eplb eplb\n",
                out);
}

static void zsh_row(FILE *out, const command *self, const option_row *row)
{
    (void)fprintf(out, " \\\n            '--%s", row->name);
    if (row->kind != OPTION_FLAG)
        (void)fputc('=', out);
    (void)fputc('[', out);
    put_quoted(out, row->help, "[]");
    (void)fputc(']', out);
    if (has_words(self, row)) {
        (void)fputs(":value:(", out);
        put_words(out, self, row);
        (void)fputc(')', out);
    } else if (row->kind == OPTION_FILE) {
        (void)fputs(":file:_files", out);
    } else if (row->kind != OPTION_FLAG) {
        (void)fputs(":value:", out);
    }
    (void)fputc('\'', out);
}

static void put_zsh(FILE *out, const command *const *list)
{
    (void)fputs("#compdef eplb\n_eplb() {\n    local -a commands\n    commands=(\n", out);
    for (const command *const *one = list; *one != NULL; one++) {
        (void)fprintf(out, "        '%s:", (*one)->name);
        put_quoted(out, (*one)->summary, "");
        (void)fputs("'\n", out);
    }
    (void)fputs("    )\n"
                "    if (( CURRENT == 2 )); then\n"
                "        _describe command commands\n"
                "        return\n"
                "    fi\n"
                "    local name=$words[2]\n"
                "    shift words\n"
                "    (( CURRENT-- ))\n"
                "    case $name in\n",
                out);
    for (; *list != NULL; list++) {
        (void)fprintf(out, "    %s)\n        _arguments", (*list)->name);
        for (const option_row *row = (*list)->options; row->name != NULL; row++)
            zsh_row(out, *list, row);
        (void)fputs(" \\\n            '--help[Print help]'", out);
        if (takes_names(*list, NULL)) {
            (void)fputs(" '1:name:(", out);
            put_names(out, *list);
            (void)fputs(")'", out);
        }
        (void)fputs(" '*:file:_files'\n        ;;\n", out);
    }
    (void)fputs("    esac\n}\n_eplb \"$@\"\n", out);
}

static void fish_row(FILE *out, const command *self, const option_row *row)
{
    (void)fprintf(out, "complete -c eplb -n '__fish_seen_subcommand_from %s' -l %s", self->name, row->name);
    if (row->letter != 0)
        (void)fprintf(out, " -s %c", row->letter);
    if (has_words(self, row)) {
        (void)fputs(" -x -a '", out);
        put_words(out, self, row);
        (void)fputc('\'', out);
    } else if (row->kind == OPTION_FILE) {
        (void)fputs(" -r -F", out);
    } else if (row->kind != OPTION_FLAG) {
        (void)fputs(" -x", out);
    }
    (void)fputs(" -d '", out);
    put_quoted(out, row->help, "\\");
    (void)fputs("'\n", out);
}

static void put_fish(FILE *out, const command *const *list)
{
    (void)fputs("# fish completion for eplb\n", out);
    for (; *list != NULL; list++) {
        (void)fprintf(out, "complete -c eplb -f -n __fish_use_subcommand -a %s -d '", (*list)->name);
        put_quoted(out, (*list)->summary, "\\");
        (void)fputs("'\n", out);
        if (takes_names(*list, NULL)) {
            (void)fprintf(out, "complete -c eplb -f -n '__fish_seen_subcommand_from %s' -a '", (*list)->name);
            put_names(out, *list);
            (void)fputs("'\n", out);
        }
        for (const option_row *row = (*list)->options; row->name != NULL; row++)
            fish_row(out, *list, row);
    }
}

bool manual_completion(FILE *out, const char *shell, const command *const *list)
{
    if (strcmp(shell, "bash") == 0)
        put_bash(out, list);
    else if (strcmp(shell, "zsh") == 0)
        put_zsh(out, list);
    else if (strcmp(shell, "fish") == 0)
        put_fish(out, list);
    else
        return false;
    return true;
}
