/* Our plan document in JSON: every key known, every size checked; docs/formats.md lists the keys. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/json_fields.h"
#include "io/json_writer.h"
#include "io/placement_formats.h"

#define PLAN_VERSION 1

static const char *const plan_keys[] = {"version",
                                        "policy",
                                        "reason",
                                        "split",
                                        "num_layers",
                                        "num_logical_experts",
                                        "num_slots",
                                        "num_ranks",
                                        "num_nodes",
                                        "num_groups",
                                        "rank_slots",
                                        "rank_nodes",
                                        "dead_ranks",
                                        "rank_speeds",
                                        "physical_to_logical_map",
                                        "shares",
                                        "metrics",
                                        "moves",
                                        "spilled",
                                        "plan_seconds",
                                        "hash",
                                        "frontier",
                                        NULL};

static const char *const split_names[] = {"equal", "weighted", "batch"};

static eplb_status read_version(const json_fields *fields)
{
    int64_t version = 0;
    eplb_status status = json_get_int(fields, "version", false, INT64_MIN, INT64_MAX, &version);
    if (status == EPLB_OK && version != PLAN_VERSION)
        status = io_fail(fields->error, EPLB_ERROR_INVALID,
                         "%s: version %" PRId64 "; this program reads version %d", fields->name, version,
                         PLAN_VERSION);
    return status;
}

static eplb_status read_split(const json_fields *fields, io_document *document)
{
    char *text;
    eplb_status status = json_get_text(fields, "split", &text);
    if (status != EPLB_OK || text == NULL)
        return status;
    int found = -1;
    for (int i = 0; i < 3; i++)
        if (strcmp(text, split_names[i]) == 0)
            found = i;
    if (found < 0)
        status = io_fail(fields->error, EPLB_ERROR_INVALID,
                         "%s: split: '%.60s'; equal, weighted and batch are known", fields->name, text);
    document->split = found > 0 ? (eplb_split)found : EPLB_SPLIT_EQUAL;
    free(text);
    return status;
}

static eplb_status read_sizes(const json_fields *fields, io_document *document)
{
    const struct {
        const char *key;
        bool optional;
        int32_t least, most;
        int32_t *value;
    } sizes[] = {
        {"num_layers", false, 1, EPLB_MAX_LAYERS, &document->num_layers},
        {"num_logical_experts", false, 1, EPLB_MAX_EXPERTS, &document->num_experts},
        {"num_slots", false, 1, EPLB_MAX_SLOTS, &document->num_slots},
        {"num_ranks", false, 1, EPLB_MAX_RANKS, &document->num_ranks},
        {"num_nodes", true, 1, EPLB_MAX_RANKS, &document->num_nodes},
        {"num_groups", true, 0, EPLB_MAX_EXPERTS, &document->num_groups},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        eplb_status status = json_get_int32(fields, sizes[i].key, sizes[i].optional, sizes[i].least,
                                            sizes[i].most, sizes[i].value);
        if (status != EPLB_OK)
            return status;
    }
    return EPLB_OK;
}

static eplb_status read_dead(const json_fields *fields, io_document *document)
{
    int32_t *dead;
    int64_t count = 0;
    eplb_status status = json_get_int_row(fields, "dead_ranks", -1, &dead, &count);
    if (status == EPLB_OK && dead != NULL) {
        document->rank_alive = malloc((size_t)document->num_ranks);
        if (document->rank_alive == NULL)
            status = io_fail_memory(fields->error, fields->name, "dead_ranks");
        else
            memset(document->rank_alive, 1, (size_t)document->num_ranks);
    }
    for (int64_t i = 0; i < count && status == EPLB_OK; i++) {
        if (dead[i] < 0 || dead[i] >= document->num_ranks)
            status = io_fail(fields->error, EPLB_ERROR_INVALID,
                             "%s: dead_ranks[%" PRId64 "]: %d is not in 0 .. %d", fields->name, i, dead[i],
                             document->num_ranks - 1);
        else
            document->rank_alive[dead[i]] = 0;
    }
    free(dead);
    return status;
}

static eplb_status read_ranks(const json_fields *fields, io_document *document)
{
    int64_t ranks = document->num_ranks;
    eplb_status status = json_get_int_row(fields, "rank_slots", ranks, &document->rank_slots, NULL);
    if (status == EPLB_OK)
        status = json_get_int_row(fields, "rank_nodes", ranks, &document->rank_node, NULL);
    if (status == EPLB_OK)
        status = json_get_int_row(fields, "rank_speeds", ranks, &document->rank_speed, NULL);
    return status == EPLB_OK ? read_dead(fields, document) : status;
}

static eplb_status read_arrays(const json_fields *fields, io_document *document)
{
    int64_t layers = document->num_layers, slots = document->num_slots;
    eplb_status status = json_get_int_matrix(fields, "physical_to_logical_map", &layers, &slots,
                                             &document->physical_to_logical);
    if (status == EPLB_OK && document->physical_to_logical == NULL)
        status = io_fail(fields->error, EPLB_ERROR_INVALID,
                         "%s: the key 'physical_to_logical_map' is missing", fields->name);
    if (status == EPLB_OK)
        status = json_get_double_matrix(fields, "shares", layers, slots, &document->shares);
    bool weighted = document->split == EPLB_SPLIT_WEIGHTED;
    if (status == EPLB_OK && weighted != (document->shares != NULL))
        status = io_fail(fields->error, EPLB_ERROR_INVALID, "%s: split is %s, but shares are %s",
                         fields->name, split_names[document->split], weighted ? "missing" : "given");
    return status;
}

static eplb_status read_before(const json_fields *metrics, io_document *document)
{
    static const char *const keys[] = {"imbalance", "window_mean", "window_p95", NULL};
    if (!json_has(metrics, "before"))
        return EPLB_OK;
    io_window_figures *windows = &document->windows;
    int64_t layers = document->num_layers;
    json_fields before;
    eplb_status status = json_fields_init(&before, metrics->name, "metrics.before.",
                                          json_object_get(metrics->object, "before"), keys, metrics->error);
    if (status == EPLB_OK)
        status = json_get_double_row(&before, "imbalance", layers, &windows->before_imbalance);
    if (status == EPLB_OK)
        status = json_get_double_row(&before, "window_mean", layers, &windows->before_mean);
    if (status == EPLB_OK)
        status = json_get_double_row(&before, "window_p95", layers, &windows->before_percentile95);
    return status;
}

static eplb_status read_metrics(const json_fields *fields, io_document *document)
{
    static const char *const keys[] = {"imbalance",   "mean",       "worst",  "lower_bound",       "windows",
                                       "window_mean", "window_p95", "before", "cross_node_tokens", NULL};
    if (!json_has(fields, "metrics"))
        return EPLB_OK;
    json_fields metrics;
    const struct {
        const char *key;
        double **row;
    } rows[] = {{"imbalance", &document->imbalance},
                {"lower_bound", &document->lower_bound},
                {"cross_node_tokens", &document->cross_node_tokens},
                {"window_mean", &document->windows.mean},
                {"window_p95", &document->windows.percentile95}};
    eplb_status status = json_fields_init(&metrics, fields->name, "metrics.",
                                          json_object_get(fields->object, "metrics"), keys, fields->error);
    if (status == EPLB_OK)
        status = json_get_double(&metrics, "mean", &document->mean);
    if (status == EPLB_OK)
        status = json_get_double(&metrics, "worst", &document->worst);
    if (status == EPLB_OK)
        status =
            json_get_int32(&metrics, "windows", true, 1, EPLB_MAX_WINDOWS, &document->windows.num_windows);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && status == EPLB_OK; i++)
        status = json_get_double_row(&metrics, rows[i].key, document->num_layers, rows[i].row);
    return status == EPLB_OK ? read_before(&metrics, document) : status;
}

static eplb_status read_moves(const json_fields *fields, io_document *document)
{
    static const char *const keys[] = {"slots", "received", "cross_node", "lost", "lost_experts", NULL};
    document->has_moves = json_has(fields, "moves");
    if (!document->has_moves)
        return EPLB_OK;
    json_fields moves;
    eplb_status status = json_fields_init(&moves, fields->name, "moves.",
                                          json_object_get(fields->object, "moves"), keys, fields->error);
    if (status == EPLB_OK)
        status = json_get_int(&moves, "slots", false, 0, INT64_MAX, &document->moves.slots);
    if (status == EPLB_OK)
        status = json_get_int(&moves, "received", false, 0, INT64_MAX, &document->moves.received);
    if (status == EPLB_OK)
        status = json_get_int(&moves, "cross_node", false, 0, INT64_MAX, &document->moves.cross_node);
    if (status == EPLB_OK)
        status = json_get_int(&moves, "lost", true, 0, INT64_MAX, &document->moves.lost);
    return status;
}

static eplb_status read_hash(const json_fields *fields, io_document *document)
{
    char *text;
    eplb_status status = json_get_text(fields, "hash", &text);
    if (status != EPLB_OK || text == NULL)
        return status;
    if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        status = io_fail(fields->error, EPLB_ERROR_INVALID, "%s: hash: '%.60s' is not 16 hexadecimal digits",
                         fields->name, text);
    else
        document->hash = strtoull(text, NULL, 16);
    document->has_hash = status == EPLB_OK;
    free(text);
    return status;
}

static eplb_status read_origin(const json_fields *fields, io_document *document)
{
    eplb_status status = json_get_text(fields, "policy", &document->policy);
    if (status == EPLB_OK)
        status = json_get_text(fields, "reason", &document->reason);
    if (status == EPLB_OK)
        status = json_get_double(fields, "plan_seconds", &document->plan_seconds);
    if (status == EPLB_OK && json_has(fields, "plan_seconds") && document->plan_seconds < 0.0)
        status = io_fail(fields->error, EPLB_ERROR_INVALID, "%s: plan_seconds: %g is negative", fields->name,
                         document->plan_seconds);
    if (status == EPLB_OK)
        status = json_get_int(fields, "spilled", true, 0, INT64_MAX, &document->spilled);
    return status;
}

eplb_status plan_json_read(const json_t *root, const char *name, io_document *document, io_error *error)
{
    static eplb_status (*const parts[])(const json_fields *, io_document *) = {
        read_split, read_sizes, read_ranks, read_arrays, read_metrics, read_moves, read_hash, read_origin};
    document->format = IO_FORMAT_JSON;
    json_fields fields = {name, "", root, error};
    eplb_status status = read_version(&fields); /* first: another version may have other keys */
    if (status == EPLB_OK)
        status = json_fields_init(&fields, name, "", root, plan_keys, error);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && status == EPLB_OK; i++)
        status = parts[i](&fields, document);
    return status;
}

static void write_ranks(json_writer *json, const io_document *document)
{
    const struct {
        const char *key;
        const int32_t *values;
    } rows[] = {{"rank_slots", document->rank_slots},
                {"rank_nodes", document->rank_node},
                {"rank_speeds", document->rank_speed}};
    for (size_t i = 0; i < 3; i++)
        if (rows[i].values != NULL) {
            json_key(json, rows[i].key);
            json_int32_row(json, rows[i].values, document->num_ranks);
        }
    if (document->rank_alive == NULL)
        return;
    json_key(json, "dead_ranks");
    json_begin_inline_array(json);
    for (int32_t rank = 0; rank < document->num_ranks; rank++)
        if (!document->rank_alive[rank])
            json_int(json, rank);
    json_end_array(json);
}

static void write_row(json_writer *json, const char *key, const double *values, int32_t layers)
{
    if (values == NULL)
        return;
    json_key(json, key);
    json_double_row(json, values, layers);
}

static void write_windows(json_writer *json, const io_document *document)
{
    const io_window_figures *windows = &document->windows;
    int32_t layers = document->num_layers;
    if (windows->num_windows > 0)
        json_key_int(json, "windows", windows->num_windows);
    write_row(json, "window_mean", windows->mean, layers);
    write_row(json, "window_p95", windows->percentile95, layers);
    if (windows->before_imbalance == NULL)
        return;
    json_key(json, "before");
    json_begin_object(json);
    write_row(json, "imbalance", windows->before_imbalance, layers);
    write_row(json, "window_mean", windows->before_mean, layers);
    write_row(json, "window_p95", windows->before_percentile95, layers);
    json_end_object(json);
}

static void write_metrics(json_writer *json, const io_document *document)
{
    double sum = 0.0, worst = 0.0;
    for (int32_t layer = 0; layer < document->num_layers; layer++) {
        sum += document->imbalance[layer];
        worst = document->imbalance[layer] > worst ? document->imbalance[layer] : worst;
    }
    json_key(json, "metrics");
    json_begin_object(json);
    write_row(json, "imbalance", document->imbalance, document->num_layers);
    json_key_double(json, "mean", sum / document->num_layers);
    json_key_double(json, "worst", worst);
    write_row(json, "lower_bound", document->lower_bound, document->num_layers);
    write_row(json, "cross_node_tokens", document->cross_node_tokens, document->num_layers);
    write_windows(json, document);
    json_end_object(json);
}

static void write_sizes(json_writer *json, const io_document *document)
{
    json_key_int(json, "num_layers", document->num_layers);
    json_key_int(json, "num_logical_experts", document->num_experts);
    json_key_int(json, "num_slots", document->num_slots);
    json_key_int(json, "num_ranks", document->num_ranks);
    json_key_int(json, "num_nodes", document->num_nodes > 0 ? document->num_nodes : 1);
    json_key_int(json, "num_groups", document->num_groups > 0 ? document->num_groups : 1);
}

static void write_frontier(json_writer *json, const io_document *document)
{
    json_key(json, "frontier");
    json_begin_array(json);
    for (int32_t i = 0; i < document->num_frontier; i++) {
        const io_frontier_point *point = &document->frontier[i];
        json_begin_object(json);
        json_key_int(json, "max_moves", point->max_moves);
        json_key_int(json, "received", point->received);
        json_key_int(json, "cross_node", point->cross_node);
        json_key_double(json, "mean", point->mean);
        json_key_double(json, "worst", point->worst);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_moves(json_writer *json, const io_document *document)
{
    json_key(json, "moves");
    json_begin_object(json);
    json_key_int(json, "slots", document->moves.slots);
    json_key_int(json, "received", document->moves.received);
    json_key_int(json, "cross_node", document->moves.cross_node);
    json_key_int(json, "lost", document->moves.lost);
    if (document->lost_experts != NULL) {
        json_key(json, "lost_experts");
        json_begin_array(json);
        for (int32_t l = 0; l < document->num_layers; l++) {
            json_begin_inline_array(json);
            for (int64_t i = document->lost_first[l]; i < document->lost_first[l + 1]; i++)
                json_int(json, document->lost_experts[i]);
            json_end_array(json);
        }
        json_end_array(json);
    }
    json_end_object(json);
}

static void write_outcome(json_writer *json, const io_document *document)
{
    if (document->imbalance != NULL)
        write_metrics(json, document);
    if (document->has_moves)
        write_moves(json, document);
    if (document->num_frontier > 0)
        write_frontier(json, document);
    if (document->spilled > 0)
        json_key_int(json, "spilled", document->spilled);
    if (document->plan_seconds >= 0.0)
        json_key_double(json, "plan_seconds", document->plan_seconds);
    if (document->has_hash) {
        char text[17];
        (void)snprintf(text, sizeof text, "%016" PRIx64, document->hash);
        json_key_string(json, "hash", text);
    }
}

void plan_json_write(const io_document *document, io_output *output)
{
    json_writer json;
    json_begin_document(&json, output);
    json_begin_object(&json);
    json_key_int(&json, "version", PLAN_VERSION);
    if (document->policy != NULL)
        json_key_string(&json, "policy", document->policy);
    if (document->reason != NULL)
        json_key_string(&json, "reason", document->reason);
    json_key_string(&json, "split", split_names[document->split]);
    write_sizes(&json, document);
    write_ranks(&json, document);
    json_key(&json, "physical_to_logical_map");
    json_int32_matrix(&json, document->physical_to_logical, document->num_layers, document->num_slots);
    if (document->shares != NULL) {
        json_key(&json, "shares");
        json_double_matrix(&json, document->shares, document->num_layers, document->num_slots);
    }
    write_outcome(&json, document);
    json_end_object(&json);
    json_end_document(&json);
}
