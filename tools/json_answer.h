/* The JSON document that a command prints on standard output: one object. */
#ifndef TOOLS_JSON_ANSWER_H
#define TOOLS_JSON_ANSWER_H

#include "command.h"
#include "io/json_writer.h"

typedef struct json_answer {
    const command *self;
    json_writer json;
} json_answer;

/* The writer, inside the object; NULL after a message: out of memory, and there is nothing to end. */
json_writer *json_answer_begin(json_answer *answer, const command *self);
/* PARSED or an exit status. */
int json_answer_end(json_answer *answer);

#endif
