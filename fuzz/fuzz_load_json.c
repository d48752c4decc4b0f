/* Fuzzes the reader of JSON loads; its tokenizer must take every document that jansson takes. */
#include "load_target.h"

#include <jansson.h>

#include "io/json_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int tokenizes(const char *path, io_error *error)
{
    io_input *input;
    if (io_input_open(&input, path, error) != EPLB_OK)
        return 0;
    json_reader reader;
    json_reader_init(&reader, input);
    json_token token = TOKEN_LITERAL;
    eplb_status status = EPLB_OK;
    while (status == EPLB_OK && token != TOKEN_END)
        status = json_next(&reader, &token, error);
    io_input_close(input);
    return status == EPLB_OK;
}

/* jansson allows deeper nesting and longer numbers than a load needs. */
static int is_limit(const io_error *error)
{
    return strstr(error->text, "deep") != NULL || strstr(error->text, "not a JSON value") != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_load(data, size);
    if (memchr(data, '\0', size) != NULL) /* jansson takes a number to end at a zero byte */
        return 0;
    json_t *root = json_loadb((const char *)data, size, JSON_DECODE_ANY, NULL);
    if (root != NULL) {
        io_error error = {0};
        require(tokenizes(input_file(data, size), &error) || is_limit(&error));
        json_decref(root);
    }
    return 0;
}
