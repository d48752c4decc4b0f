/* The JSON document that a command prints on standard output. */
#include "json_answer.h"

#include "failure.h"

json_writer *json_answer_begin(json_answer *answer, const command *self)
{
    io_output *output;
    io_error error;
    if (io_output_open(&output, NULL, &error) != EPLB_OK) {
        (void)fail_io(self, &error);
        return NULL;
    }
    answer->self = self;
    json_begin_document(&answer->json, output);
    json_begin_object(&answer->json);
    return &answer->json;
}

int json_answer_end(json_answer *answer)
{
    io_error error;
    json_end_object(&answer->json);
    json_end_document(&answer->json);
    return io_output_close(answer->json.output, &error) == EPLB_OK ? PARSED : fail_io(answer->self, &error);
}
