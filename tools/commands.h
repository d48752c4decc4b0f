/* The commands, one file each. To add one: its file, a line here, a line in main.c. */
#ifndef TOOLS_COMMANDS_H
#define TOOLS_COMMANDS_H

#include "command.h"

extern const command command_bench;
extern const command command_convert;
extern const command command_diff;
extern const command command_generate;
extern const command command_inspect;
extern const command command_plan;
extern const command command_resplit;
extern const command command_route;
extern const command command_verify;

#endif
