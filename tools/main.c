/* The eplb command: a table of commands and what stands before one. Each command is one file of this
 * folder. */
#include <string.h>

#include <eplb/status.h>

#include "commands.h"
#include "io/output.h"
#include "manual/manual.h"

static const command *const commands[] = {
    &command_plan,    &command_inspect,  &command_verify,  &command_diff,  &command_route,
    &command_resplit, &command_generate, &command_convert, &command_bench, NULL,
};

static const command *find_command(const char *name)
{
    for (const command *const *one = commands; *one != NULL; one++)
        if (strcmp((*one)->name, name) == 0)
            return *one;
    return NULL;
}

static int refuse_command(const char *name)
{
    const char *names[sizeof commands / sizeof commands[0]];
    size_t count = 0;
    for (; commands[count] != NULL; count++)
        names[count] = commands[count]->name;
    const char *near = nearest_name(name, names, count);
    if (near != NULL)
        return complain(NULL, "there is no command '%s'; did you mean '%s'?", name, near);
    return complain(NULL, "there is no command '%s'; see eplb --help", name);
}

/* `eplb help [COMMAND]`. */
static int help(const char *name)
{
    const command *self = name == NULL ? NULL : find_command(name);
    if (name != NULL && self == NULL)
        return refuse_command(name);
    if (self != NULL)
        manual_help(stdout, self);
    else
        manual_overview(stdout, commands);
    return finish_output(NULL, EXIT_OK);
}

static int print_completion(const char *shell)
{
    if (!manual_completion(stdout, shell, commands))
        return complain(NULL, "--completion is '%s'; expected bash, zsh or fish", shell);
    return finish_output(NULL, EXIT_OK);
}

/* Options that stand in the place of a command. */
static int run_option(const char *name, const char *value)
{
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(value);
    if (strcmp(name, "--version") == 0) {
        (void)printf("eplb %s\n", eplb_version());
        return finish_output(NULL, EXIT_OK);
    }
    if (strcmp(name, "--markdown") == 0) {
        manual_markdown(stdout, commands);
        return finish_output(NULL, EXIT_OK);
    }
    if (strcmp(name, "--completion") == 0 && value != NULL)
        return print_completion(value);
    if (strcmp(name, "--man") == 0 && value != NULL)
        return manual_write_pages(value, commands);
    if (strcmp(name, "--completion") == 0 || strcmp(name, "--man") == 0)
        return complain(NULL, "option '%s' needs a value; see eplb --help", name);
    return complain(NULL, "there is no option '%s' before a command; see eplb --help", name);
}

int main(int argc, char **argv)
{
    io_output_catch_signals();
    if (argc < 2) {
        manual_overview(stderr, commands);
        return EXIT_BAD;
    }
    if (strcmp(argv[1], "help") == 0)
        return help(argv[2]);
    if (argv[1][0] == '-')
        return run_option(argv[1], argv[2]);
    const command *self = find_command(argv[1]);
    return self != NULL ? self->run(self, argc - 1, argv + 1) : refuse_command(argv[1]);
}
