/* Completion for bash, zsh and fish, from the option tables. */
#include "manual/manual.h"

#include <string.h>

/* Words of a choice, separated by spaces. */
static void put_choices(FILE *out, const option_row *row)
{
    for (const char *c = row->value; *c != '\0'; c++)
        (void)fputc(*c == '|' ? ' ' : *c, out);
}

/* `text` inside single quotes; shells differ in how a quote is written there, so it becomes a typographic
 * one. */
static void put_quoted(FILE *out, const char *text, const char *plain)
{
    for (; *text != '\0'; text++)
        (void)fputc(strchr(plain, *text) != NULL ? ' ' : *text, out);
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
        if (row->kind == OPTION_CHOICE) {
            (void)fputs("mapfile -t COMPREPLY < <(compgen -W '", out);
            put_choices(out, row);
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
    (void)fputs("'\n        ;;\n", out);
}

static void put_bash(FILE *out, const command *const *list)
{
    (void)fputs("# bash completion for eplb\n"
                "_eplb() {\n"
                "    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} options=\n"
                "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                "        mapfile -t COMPREPLY < <(compgen -W '",
                out);
    for (const command *const *one = list; *one != NULL; one++)
        (void)fprintf(out, "%s ", (*one)->name);
    (void)fputs(
        "help --help --version' -- \"$word\")\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n", out);
    for (; *list != NULL; list++)
        bash_command(out, *list);
    (void)fputs("    esac\n"
                "    case $word in\n"
                "    -*) mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\") ;;\n"
                "    *) mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;\n"
                "    esac\n"
                "}\n"
                "complete -o filenames -F _eplb eplb\n",
                out);
}

static void zsh_row(FILE *out, const option_row *row)
{
    (void)fprintf(out, " \\\n            '--%s", row->name);
    if (row->kind != OPTION_FLAG)
        (void)fputc('=', out);
    (void)fputc('[', out);
    put_quoted(out, row->help, "'[]:");
    (void)fputc(']', out);
    if (row->kind == OPTION_CHOICE) {
        (void)fputs(":value:(", out);
        put_choices(out, row);
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
        put_quoted(out, (*one)->summary, "':");
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
            zsh_row(out, row);
        (void)fputs(" \\\n            '--help[Print help]' '*:file:_files'\n        ;;\n", out);
    }
    (void)fputs("    esac\n}\n_eplb \"$@\"\n", out);
}

static void fish_row(FILE *out, const command *self, const option_row *row)
{
    (void)fprintf(out, "complete -c eplb -n '__fish_seen_subcommand_from %s' -l %s", self->name, row->name);
    if (row->letter != 0)
        (void)fprintf(out, " -s %c", row->letter);
    if (row->kind == OPTION_CHOICE) {
        (void)fputs(" -x -a '", out);
        put_choices(out, row);
        (void)fputc('\'', out);
    } else if (row->kind == OPTION_FILE) {
        (void)fputs(" -r -F", out);
    } else if (row->kind != OPTION_FLAG) {
        (void)fputs(" -x", out);
    }
    (void)fputs(" -d '", out);
    put_quoted(out, row->help, "'\\");
    (void)fputs("'\n", out);
}

static void put_fish(FILE *out, const command *const *list)
{
    (void)fputs("# fish completion for eplb\n", out);
    for (; *list != NULL; list++) {
        (void)fprintf(out, "complete -c eplb -f -n __fish_use_subcommand -a %s -d '", (*list)->name);
        put_quoted(out, (*list)->summary, "'\\");
        (void)fputs("'\n", out);
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
