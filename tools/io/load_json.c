/* Loads in JSON: nested lists [E], [L, E] or [T, L, E], bare or under a key: `load`, `counts` (ours),
 * `logical_count` (SGLang's recorder), `load_history` (vLLM's recorded history: objects with a
 * logical_expert_load each). Streams: the depth of the first number tells the dimensions, closing brackets
 * end rows and windows. */
#include <string.h>

#include "io/json_reader.h"
#include "io/load_readers.h"

typedef struct load_parser {
    json_reader reader;
    io_windows *windows;
} load_parser;

/* A bracket of a list closed: `above` is how many levels of lists are still open in this load. */
static eplb_status close_level(load_parser *parser, int dimensions, int above, io_error *error)
{
    eplb_status status = EPLB_OK;
    if (above == dimensions - 1)
        status = windows_end_row(parser->windows, error);
    if (status == EPLB_OK && (above == dimensions - 2 || (dimensions == 1 && above == 0)))
        status = windows_end_window(parser->windows, error);
    return status;
}

static eplb_status check_depth(const load_parser *parser, int level, int *dimensions, io_error *error)
{
    if (*dimensions == 0)
        *dimensions = level;
    if (level > 3)
        return json_fail(&parser->reader, error, "numbers nested %d deep; [T, L, E] is the deepest load",
                         level);
    if (level != *dimensions)
        return json_fail(&parser->reader, error, "a number nested %d deep among numbers nested %d deep",
                         level, *dimensions);
    return EPLB_OK;
}

/* The list whose first bracket was taken; every window it holds is a whole one. */
static eplb_status read_list(load_parser *parser, io_error *error)
{
    int base = parser->reader.depth - 1;
    int dimensions = 0;
    while (parser->reader.depth > base) {
        json_token token;
        eplb_status status = json_next(&parser->reader, &token, error);
        if (status != EPLB_OK)
            return status;
        int level = parser->reader.depth - base;
        if (token == TOKEN_NUMBER) {
            status = check_depth(parser, level, &dimensions, error);
            if (status == EPLB_OK)
                status = windows_value(parser->windows, &parser->reader.number, error);
        } else if (token == TOKEN_END_ARRAY) {
            if (level + 1 > dimensions)
                return json_fail(&parser->reader, error,
                                 "an empty list; every layer has at least one expert");
            status = close_level(parser, dimensions, level, error);
        } else if (token != TOKEN_BEGIN_ARRAY) {
            return json_fail(&parser->reader, error, "only numbers and lists of numbers may stand in a load");
        }
        if (status != EPLB_OK)
            return status;
    }
    return EPLB_OK;
}

static eplb_status want_list(load_parser *parser, const char *what, io_error *error)
{
    json_token token;
    eplb_status status = json_next(&parser->reader, &token, error);
    if (status != EPLB_OK)
        return status;
    if (token != TOKEN_BEGIN_ARRAY)
        return json_fail(&parser->reader, error, "%s must be a list", what);
    return EPLB_OK;
}

/* One record of load_history, after its '{'. */
static eplb_status read_record(load_parser *parser, io_error *error)
{
    bool found = false;
    for (;;) {
        json_token token;
        eplb_status status = json_next(&parser->reader, &token, error);
        if (status != EPLB_OK)
            return status;
        if (token == TOKEN_END_OBJECT)
            break;
        if (strcmp(parser->reader.text, "logical_expert_load") == 0) {
            if (found)
                return json_fail(&parser->reader, error, "logical_expert_load twice in one record");
            found = true;
            status = want_list(parser, "logical_expert_load", error);
            if (status == EPLB_OK)
                status = read_list(parser, error);
        } else {
            status = json_next(&parser->reader, &token, error);
            if (status == EPLB_OK)
                status = json_skip(&parser->reader, token, error);
        }
        if (status != EPLB_OK)
            return status;
    }
    return found ? EPLB_OK
                 : json_fail(&parser->reader, error, "a record of load_history lacks logical_expert_load");
}

static eplb_status read_history(load_parser *parser, io_error *error)
{
    eplb_status status = want_list(parser, "load_history", error);
    while (status == EPLB_OK) {
        json_token token;
        status = json_next(&parser->reader, &token, error);
        if (status != EPLB_OK || token == TOKEN_END_ARRAY)
            break;
        if (token != TOKEN_BEGIN_OBJECT)
            return json_fail(&parser->reader, error, "load_history must be a list of objects");
        status = read_record(parser, error);
    }
    return status;
}

static bool is_list_key(const char *key)
{
    return strcmp(key, "load") == 0 || strcmp(key, "counts") == 0 || strcmp(key, "logical_count") == 0;
}

/* The value of a key of the outermost object; *found counts the loads. */
static eplb_status read_member(load_parser *parser, int *found, io_error *error)
{
    char *key = parser->reader.text;
    bool history = strcmp(key, "load_history") == 0;
    if (history || is_list_key(key)) {
        if (++*found > 1)
            return json_fail(&parser->reader, error, "a second load, '%.60s', in one document", key);
        if (history)
            return read_history(parser, error);
        eplb_status status = want_list(parser, "a load", error);
        return status == EPLB_OK ? read_list(parser, error) : status;
    }
    json_token token;
    eplb_status status = json_next(&parser->reader, &token, error);
    return status == EPLB_OK ? json_skip(&parser->reader, token, error) : status;
}

static eplb_status read_object(load_parser *parser, io_error *error)
{
    int found = 0;
    for (;;) {
        json_token token;
        eplb_status status = json_next(&parser->reader, &token, error);
        if (status != EPLB_OK)
            return status;
        if (token == TOKEN_END_OBJECT)
            break;
        status = read_member(parser, &found, error);
        if (status != EPLB_OK)
            return status;
    }
    if (found == 0)
        return json_fail(
            &parser->reader, error,
            "no load in this object; it needs one of the keys load, counts, logical_count, load_history");
    return EPLB_OK;
}

eplb_status load_read_json(io_input *input, io_windows *windows, io_error *error)
{
    load_parser parser;
    parser.windows = windows;
    json_reader_init(&parser.reader, input);
    json_token token;
    eplb_status status = json_next(&parser.reader, &token, error);
    if (status == EPLB_OK)
        status = token == TOKEN_BEGIN_OBJECT ? read_object(&parser, error) : read_list(&parser, error);
    if (status == EPLB_OK)
        status = json_next(&parser.reader, &token, error); /* nothing may follow */
    return status;
}
