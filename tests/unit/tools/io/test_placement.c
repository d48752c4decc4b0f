/* Placement files: every format keeps the slots, ours keeps all a plan says, every rule has a file that
 * breaks it. */
#include "unit/tools/io/files.h"

#include <eplb/eplb.h>

#include "io/placement.h"

/* A plan with everything that is not a default: unequal ranks, a dead one, speeds, nodes, weighted shares. */
static const char *const full_plan =
    "{\"version\": 1, \"policy\": \"auto\", \"reason\": \"a test\", \"split\": \"weighted\", \"num_layers\": "
    "2,\n"
    " \"num_logical_experts\": 3, \"num_slots\": 5, \"num_ranks\": 3, \"num_nodes\": 2, \"num_groups\": 1,\n"
    " \"rank_slots\": [1, 3, 1], \"rank_nodes\": [0, 1, 1], \"dead_ranks\": [2], \"rank_speeds\": [1, 2, "
    "1],\n"
    " \"physical_to_logical_map\": [[0, 1, 2, 0, -1], [2, 1, 0, 2, -1]],\n"
    " \"shares\": [[0.25, 1, 1, 0.75, 0], [0.5, 1, 1, 0.5, 0]],\n"
    " \"metrics\": {\"imbalance\": [1.5, 1.25], \"mean\": 1.375, \"worst\": 1.5, \"lower_bound\": [1.0, "
    "1.25]},\n"
    " \"moves\": {\"slots\": 3, \"received\": 2, \"cross_node\": 1, \"lost\": 1, \"lost_experts\": [[2], "
    "[]]}, \"spilled\": 4, \"plan_seconds\": "
    "0.125,\n"
    " \"hash\": \"00ff00ff12345678\"}\n";

static void read_document(const char *path, int32_t ranks, io_document *document)
{
    const io_document_options options = {.num_ranks = ranks};
    io_error error = {0};
    if (io_document_read(path, &options, document, &error) != EPLB_OK)
        fail_msg("%s", error.text);
}

static void assert_refused(const char *path, eplb_status status, const char *part, const char *other)
{
    io_document document;
    io_error error = {0};
    assert_int_equal(io_document_read(path, NULL, &document, &error), status);
    assert_null(document.physical_to_logical);
    assert_mentions(error.text, part);
    assert_mentions(error.text, other);
}

static void assert_full(const io_document *document)
{
    assert_int_equal(document->num_layers, 2);
    assert_int_equal(document->num_experts, 3);
    assert_int_equal(document->num_slots, 5);
    assert_int_equal(document->num_ranks, 3);
    assert_int_equal(document->num_nodes, 2);
    assert_int_equal(document->rank_slots[1], 3);
    assert_int_equal(document->rank_node[1], 1);
    assert_int_equal(document->rank_alive[1], 1);
    assert_int_equal(document->rank_alive[2], 0);
    assert_int_equal(document->rank_speed[1], 2);
    assert_int_equal(document->split, EPLB_SPLIT_WEIGHTED);
    assert_true(document->shares[3] == 0.75);
    assert_int_equal(document->physical_to_logical[9], -1);
}

static void assert_outcome(const io_document *document)
{
    assert_string_equal(document->policy, "auto");
    assert_string_equal(document->reason, "a test");
    assert_true(document->imbalance[1] == 1.25 && document->lower_bound[0] == 1.0);
    assert_true(document->has_moves && document->moves.received == 2);
    assert_int_equal(document->spilled, 4);
    assert_true(document->plan_seconds == 0.125);
    assert_true(document->has_hash && document->hash == UINT64_C(0x00ff00ff12345678));
}

static void test_plan_round_trip(void **state)
{
    (void)state;
    io_document document, again;
    io_error error = {0};
    read_document(file_with_text("plan", full_plan), 0, &document);
    assert_full(&document);
    assert_outcome(&document);
    assert_int_equal(io_document_write(&document, IO_FORMAT_JSON, file_path("again"), 0, &error), EPLB_OK);
    read_document(file_path("again"), 3, &again);
    assert_full(&again);
    assert_outcome(&again);
    io_document_clear(&again);
    assert_int_equal(io_document_write(&document, IO_FORMAT_NPZ, file_path("again.npz"), 0, &error), EPLB_OK);
    read_document(file_path("again.npz"), 3, &again);
    assert_full(&again);
    io_document_clear(&again);
    io_document_clear(&document);
}

static void test_nouns(void **state)
{
    (void)state;
    io_document document;
    io_error error = {0};
    eplb_placement *placement;
    read_document(file_with_text("plan", full_plan), 0, &document);
    assert_int_equal(io_document_placement(&document, "plan", &placement, &error), EPLB_OK);
    const eplb_topology *topology = eplb_placement_topology(placement);
    assert_int_equal(eplb_topology_num_live_ranks(topology), 2);
    assert_int_equal(eplb_topology_first_slot(topology)[2], 4);
    assert_int_equal(eplb_topology_rank_node(topology)[1], 1);
    assert_int_equal(eplb_topology_rank_alive(topology)[2], 0);
    assert_int_equal(eplb_topology_rank_speed(topology)[1], 2);
    assert_memory_equal(eplb_placement_physical_to_logical(placement), document.physical_to_logical,
                        10 * sizeof(int32_t));
    eplb_placement_destroy(placement);
    io_document_clear(&document);
}

/* Replaces `from` in the full plan by `to`. */
static const char *changed(const char *from, const char *to)
{
    static char text[4096];
    const char *at = strstr(full_plan, from);
    assert_non_null(at);
    (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - full_plan), full_plan, to, at + strlen(from));
    return file_with_text("changed", text);
}

static void test_plan_refusals(void **state)
{
    (void)state;
    const struct {
        const char *from, *to, *part, *other;
    } cases[] = {
        {"\"version\": 1", "\"version\": 2", "version 2", "reads version 1"},
        {"\"version\": 1,", "", "'version' is missing", ""},
        {"\"version\": 1", "\"version\": 1, \"surprise\": 0", "unknown key 'surprise'", ""},
        {"\"version\": 1", "\"version\": 1, \"version\": 1", "duplicate", "line 1"},
        {"\"mean\"", "\"median\"", "unknown key 'metrics.median'", ""},
        {"\"cross_node\"", "\"crossed\"", "unknown key 'moves.crossed'", ""},
        {"\"weighted\"", "\"half\"", "split: 'half'", "weighted"},
        {"\"weighted\"", "\"equal\"", "split is equal", "shares are given"},
        {"\"num_layers\": 2", "\"num_layers\": 3", "physical_to_logical_map has 2", "3"},
        {"\"num_layers\": 2", "\"num_layers\": 0", "num_layers: 0", "1 .. 65536"},
        {"\"num_layers\": 2", "\"num_layers\": 2.0", "num_layers: a number", "an integer"},
        {"\"num_slots\": 5", "\"num_slots\": 6", "physical_to_logical_map[0] has 5", "6"},
        {"\"num_ranks\": 3,", "", "'num_ranks' is missing", ""},
        {"[2, 1, 0, 2, -1]", "[2, 1, 0, 2]", "physical_to_logical_map[1] has 4", "5"},
        {"[2, 1, 0, 2, -1]", "[2, 1, 0, 2, 0.5]", "physical_to_logical_map[1][4]", "an integer"},
        {"[2, 1, 0, 2, -1]", "[2, 1, 0, 2, 4294967296]", "physical_to_logical_map[1][4]", "32 bits"},
        {"[2, 1, 0, 2, -1]", "[2, 1, 0, 2, 99999999999999999999]", "line 4", "too big"},
        {"[0.25, 1, 1, 0.75, 0]", "[\"a\", 1, 1, 0.75, 0]", "shares[0][0]", "a number"},
        {"[1.5, 1.25]", "[1.5]", "metrics.imbalance has 1", "2"},
        {"\"dead_ranks\": [2]", "\"dead_ranks\": [3]", "dead_ranks[0]: 3", "0 .. 2"},
        {"\"rank_slots\": [1, 3, 1]", "\"rank_slots\": [1, 3]", "rank_slots has 2", "3"},
        {"00ff00ff12345678", "00ff", "hash: '00ff'", "16 hexadecimal"},
        {"\"policy\": \"auto\"", "\"policy\": 5", "policy: an integer", "a text"},
        {"\"moves\": {", "\"moves\": [{", "line 7", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused(changed(cases[i].from, cases[i].to), EPLB_ERROR_INVALID, cases[i].part,
                       cases[i].other);
    char truncated[200];
    (void)snprintf(truncated, sizeof truncated, "%.150s", full_plan);
    assert_refused(file_with_text("cut", truncated), EPLB_ERROR_INVALID, "line 2", "cut");
}

/* What verify must be able to describe is read; what makes no topology is told when it is asked for. */
static void test_broken_but_readable(void **state)
{
    (void)state;
    io_document document;
    io_error error = {0};
    eplb_topology *topology;
    eplb_placement *placement;
    read_document(changed("[2, 1, 0, 2, -1]", "[2, 1, 77, 2, -5]"), 0, &document);
    assert_int_equal(document.physical_to_logical[7], 77);
    assert_int_equal(io_document_placement(&document, "file", &placement, &error), EPLB_ERROR_INVALID);
    assert_mentions(error.text, "77");
    io_document_clear(&document);
    read_document(changed("\"rank_slots\": [1, 3, 1]", "\"rank_slots\": [1, 3, 2]"), 0, &document);
    assert_int_equal(io_document_topology(&document, "file", &topology, &error), EPLB_ERROR_INVALID);
    assert_mentions(error.text, "6 slots, the map has 5");
    io_document_clear(&document);
    read_document(changed("\"rank_slots\": [1, 3, 1],", ""), 0, &document);
    assert_int_equal(io_document_topology(&document, "file", &topology, &error), EPLB_ERROR_INVALID);
    assert_mentions(error.text, "do not divide");
    io_document_clear(&document);
}

/* 2 layers, 3 experts, 2 ranks of 2 slots. */
static const int32_t slots[8] = {0, 1, 2, 0, 2, 1, 0, 1};

static void small_document(io_document *document)
{
    read_document(file_with_text("small", "{\"physical_to_logical_map\": [[0, 1, 2, 0], [2, 1, 0, 1]]}"), 2,
                  document);
}

static void test_every_format_keeps_the_slots(void **state)
{
    (void)state;
    io_document document, again;
    small_document(&document);
    for (int i = 0; i < IO_FORMAT_COUNT; i++) {
        io_error error = {0};
        io_format format = (io_format)i;
        if (io_document_write(&document, format, file_path("out"), 3, &error) != EPLB_OK)
            fail_msg("%s", error.text);
        read_document(file_path("out"), 2, &again);
        assert_int_equal(again.format, format);
        assert_int_equal(again.num_layers, 2);
        assert_int_equal(again.num_experts, 3);
        assert_int_equal(again.num_slots, 4);
        assert_memory_equal(again.physical_to_logical, slots, sizeof slots);
        if (format == IO_FORMAT_TRTLLM)
            assert_int_equal(again.layer_ids[1], 4);
        io_document_clear(&again);
    }
    io_error error = {0};
    assert_int_equal(io_document_write(&document, IO_FORMAT_VLLM, file_path("out.npz"), 0, &error), EPLB_OK);
    read_document(file_path("out.npz"), 2, &again);
    assert_int_equal(again.format, IO_FORMAT_VLLM);
    assert_memory_equal(again.physical_to_logical, slots, sizeof slots);
    io_document_clear(&again);
    io_document_clear(&document);
    assert_null(io_format_name(IO_FORMAT_COUNT));
}

static void assert_text(io_format format, const char *expected)
{
    io_document document;
    io_error error = {0};
    small_document(&document);
    assert_int_equal(io_document_write(&document, format, file_path("out"), 3, &error), EPLB_OK);
    assert_file_text(file_path("out"), expected);
    io_document_clear(&document);
}

/* The exact bytes that engines read. */
static void test_engine_texts(void **state)
{
    (void)state;
    assert_text(IO_FORMAT_SGLANG,
                "{\n  \"physical_to_logical_map\": [\n    [0, 1, 2, 0],\n    [2, 1, 0, 1]\n  ]\n}\n");
    assert_text(IO_FORMAT_TRTLLM, "num_slots: 4\nlayer_updates_per_iter: 0\ninitial_global_assignments:\n"
                                  "  3: [0, 1, 2, 0]\n  4: [2, 1, 0, 1]\n");
    assert_text(
        IO_FORMAT_VLLM,
        "{\n  \"physical_to_logical_map\": [\n    [0, 1, 2, 0],\n    [2, 1, 0, 1]\n  ],\n"
        "  \"logical_to_physical_map\": [\n    [\n      [0, 3],\n      [1, -1],\n      [2, -1]\n    ],\n"
        "    [\n      [2, -1],\n      [1, 3],\n      [0, -1]\n    ]\n  ],\n"
        "  \"logical_replica_count\": [\n    [2, 1, 1],\n    [1, 2, 1]\n  ]\n}\n");
}

static void test_engine_refusals(void **state)
{
    (void)state;
    const struct {
        const char *text, *part, *other;
    } cases[] = {
        {"{\"physical_to_logical_map\": [[0]], \"a\": 1}", "unknown key 'a'", ""},
        {"{\"physical_to_logical_map\": []}", "is empty", "one row per layer"},
        {"{\"physical_to_logical_map\": [[]]}", "[0] is empty", ""},
        {"{\"physical_to_logical_map\": [0, 1]}", "a list of lists", ""},
        {"{\"physical_to_logical_map\": 5}", "a list", "an integer"},
        {"{\"physical_to_logical_map\": [[-1, -1]]}", "largest expert id is -1", ""},
        {"{\"logical_count\": [[1]]}", "holds a load", ""},
        {"{\"x\": 1}", "not a placement", "layer_list"},
        {"[[0, 1]]", "not a placement", ""},
        {"{\"physical_to_logical_map\": [[0, 1]], \"logical_replica_count\": [[1, 2]]}", "layer 0, expert 1",
         "counts 2"},
        {"{\"physical_to_logical_map\": [[0, 1, 0]], \"logical_replica_count\": [[2, 1]], "
         "\"logical_to_physical_map\": [[[0, 0], [1, -1]]]}",
         "layer 0, expert 0", "exactly the slots"},
        {"{\"moe_layer_count\": 2, \"layer_list\": [{\"layer_id\": 0, \"device_count\": 1, \"device_list\": "
         "[{\"device_id\": 0, \"device_expert\": [0]}]}]}",
         "moe_layer_count: 2", "1 .. 1"},
        {"{\"moe_layer_count\": 1, \"layer_list\": [{\"layer_id\": 4, \"device_count\": 1, \"device_list\": "
         "[{\"device_id\": 0, \"device_expert\": [0]}]}]}",
         "layer_list[0].layer_id: 4", "0 .. 0"},
        {"{\"moe_layer_count\": 1, \"layer_list\": [{\"layer_id\": 0, \"device_count\": 2, \"device_list\": "
         "[{\"device_id\": 0, \"device_expert\": [0, 1]}, {\"device_id\": 1, \"device_expert\": [0]}]}]}",
         "device_list[1].device_expert has 1", "2"},
        {"{\"moe_layer_count\": 1, \"layer_list\": [{\"device_list\": [{\"device_expert\": [\"0\"]}]}]}",
         "device_list[0].device_expert[0]", "an integer"},
        {"num_slots: 3\ninitial_global_assignments:\n  0: [0, 1]\n", "num_slots is 3", "2 slots"},
        {"initial_global_assignments:\n  0: [0, 1]\n  1: [0]\n", "line 3", "a layer of 1 slots"},
        {"initial_global_assignments:\n  1: [0]\n  0: [0]\n", "line 3", "layer 0 after layer 1"},
        {"initial_global_assignments:\n  0: [0, x]\n", "line 2, column 10", "'x' is not an integer"},
        {"initial_global_assignments: &a {}\n", "no initial_global_assignments", ""},
        {"a: 1\n", "unknown key 'a'", "num_slots"},
        {"num_slots: &a 1\nep_size: *a\n", "alias", "line 2"},
        {"num_slots: 1\n", "no initial_global_assignments", ""},
        {"- 1\n", "not a placement", "line 1"},
        {"num_slots: 1\n}\n", "line 2", "not YAML"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused(file_with_text("bad", cases[i].text), EPLB_ERROR_INVALID, cases[i].part,
                       cases[i].other);
}

static void test_what_engines_cannot_hold(void **state)
{
    (void)state;
    io_document document;
    io_error error = {0};
    read_document(file_with_text("plan", full_plan), 0, &document);
    const char *path = file_path("engine");
    assert_int_equal(io_document_write(&document, IO_FORMAT_SGLANG, path, 0, &error), EPLB_ERROR_UNSUPPORTED);
    assert_mentions(error.text, "same number of slots");
    io_document_clear(&document);
    read_document(file_with_text("a", "{\"physical_to_logical_map\": [[0, 1, -1, 0]]}"), 2, &document);
    assert_int_equal(io_document_write(&document, IO_FORMAT_TRTLLM, path, 0, &error), EPLB_ERROR_UNSUPPORTED);
    assert_mentions(error.text, "layer 0, slot 2 is empty");
    assert_int_equal(io_document_write(&document, IO_FORMAT_VLLM, path, 0, &error), EPLB_OK);
    io_document_clear(&document);
    read_document(file_with_text("a", "{\"physical_to_logical_map\": [[0, 1]]}"), 0, &document);
    assert_int_equal(io_document_write(&document, IO_FORMAT_ASCEND, path, 0, &error), EPLB_ERROR_INVALID);
    assert_mentions(error.text, "--ranks");
    eplb_topology *topology;
    assert_int_equal(io_document_topology(&document, path, &topology, &error), EPLB_ERROR_INVALID);
    assert_mentions(error.text, "--ranks");
    io_document_clear(&document);
}

static void test_contradictions(void **state)
{
    (void)state;
    io_document document;
    io_error error = {0};
    const char *path = file_with_text("plan", full_plan);
    const io_document_options ranks = {.num_ranks = 4}, nodes = {.num_nodes = 1},
                              experts = {.num_experts = 4};
    assert_int_equal(io_document_read(path, &ranks, &document, &error), EPLB_ERROR_INVALID);
    assert_mentions(error.text, "the file says 3 ranks, the command 4");
    assert_int_equal(io_document_read(path, &nodes, &document, &error), EPLB_ERROR_INVALID);
    assert_mentions(error.text, "2 nodes");
    assert_int_equal(io_document_read(path, &experts, &document, &error), EPLB_ERROR_INVALID);
    assert_mentions(error.text, "3 experts");
}

static void test_bare_array(void **state)
{
    (void)state;
    const int64_t shape[2] = {2, 4}, row[1] = {8};
    io_document document;
    read_document(file_with_array("a", NPY_SIGNED, 4, 2, shape, slots, 8), 2, &document);
    assert_int_equal(document.num_layers, 2);
    assert_memory_equal(document.physical_to_logical, slots, sizeof slots);
    io_document_clear(&document);
    read_document(file_with_array("a", NPY_SIGNED, 4, 1, row, slots, 8), 2, &document);
    assert_int_equal(document.num_slots, 8);
    io_document_clear(&document);
    const double real[2] = {0, 1};
    const int64_t two[2] = {1, 2};
    assert_refused(file_with_array("a", NPY_FLOAT, 8, 2, two, real, 2), EPLB_ERROR_UNSUPPORTED,
                   "integers are wanted", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_round_trip),
        cmocka_unit_test(test_nouns),
        cmocka_unit_test(test_plan_refusals),
        cmocka_unit_test(test_broken_but_readable),
        cmocka_unit_test(test_every_format_keeps_the_slots),
        cmocka_unit_test(test_engine_texts),
        cmocka_unit_test(test_engine_refusals),
        cmocka_unit_test(test_what_engines_cannot_hold),
        cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_bare_array),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
