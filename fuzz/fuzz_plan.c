/* Fuzzes the planner: bytes choose topology, load, current placement and every parameter. Whatever they are,
 * a call ends in a plan or in a status with a text. A plan is valid, keeps its limits, is not below its own
 * lower bound, does not depend on the number of threads and, for a policy of ours, is no worse than the
 * placement it started from. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <eplb/eplb.h>

enum { MAX_RANKS = 12, MAX_EXPERTS = 40, MAX_LAYERS = 3, MAX_WINDOWS = 3, MAX_SLOTS = MAX_RANKS * 8 };

typedef struct input {
    const uint8_t *data;
    size_t size;
} input;

typedef struct scene {
    eplb_topology *topology;
    eplb_load *load;
    eplb_placement *current;
    eplb_plan_params params;
} scene;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next byte; zeros after the end. */
static uint32_t next_byte(input *in)
{
    if (in->size == 0)
        return 0;
    in->size--;
    return *in->data++;
}

static int32_t between(input *in, int32_t low, int32_t high)
{
    return low + (int32_t)(next_byte(in) % (uint32_t)(high - low + 1));
}

static void require(bool holds, const char *what, const char *detail)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz_plan: %s: %s\n", what, detail);
    abort();
}

static void require_text(eplb_status status, const eplb_error *error)
{
    require(status != EPLB_ERROR_INTERNAL, "a result failed its own check", error->text);
    require(status == error->status && error->text[0] != '\0', "a refusal without a reason",
            eplb_status_name(status));
}

static bool make_topology(input *in, scene *s)
{
    int32_t slots[MAX_RANKS], speeds[MAX_RANKS];
    uint8_t alive[MAX_RANKS];
    eplb_topology_params params;
    eplb_topology_params_init(&params, sizeof params);
    params.num_ranks = between(in, 1, MAX_RANKS);
    params.num_nodes = between(in, 1, params.num_ranks);
    params.slots_per_rank = between(in, 1, 8);
    uint32_t kinds = next_byte(in);
    for (int32_t rank = 0; rank < params.num_ranks; rank++) {
        slots[rank] = (kinds & 1) != 0 ? between(in, 0, 8) : params.slots_per_rank;
        speeds[rank] = (kinds & 2) != 0 ? between(in, 1, 200) : 1;
        alive[rank] = (kinds & 4) == 0 || next_byte(in) % 8 != 0;
    }
    params.rank_slots = slots;
    params.rank_speed = speeds;
    params.rank_alive = alive;
    eplb_error error = {.text = ""};
    eplb_status status = eplb_topology_create(&s->topology, &params, NULL, &error);
    if (status != EPLB_OK)
        require_text(status, &error);
    return status == EPLB_OK;
}

static bool make_load(input *in, scene *s)
{
    static int64_t counts[MAX_WINDOWS * MAX_LAYERS * MAX_EXPERTS];
    eplb_load_params params;
    eplb_load_params_init(&params, sizeof params);
    params.num_windows = between(in, 1, MAX_WINDOWS);
    params.num_layers = between(in, 1, MAX_LAYERS);
    params.num_experts = between(in, 1, MAX_EXPERTS);
    params.counts = counts;
    /* From a few tokens to sums at the edge of int64. */
    int shift = between(in, 0, 55);
    for (int32_t i = 0; i < params.num_windows * params.num_layers * params.num_experts; i++)
        counts[i] = (int64_t)next_byte(in) << (next_byte(in) % 2 == 0 ? 0 : shift);
    eplb_error error = {.text = ""};
    eplb_status status = eplb_load_create(&s->load, &params, NULL, &error);
    if (status != EPLB_OK)
        require_text(status, &error);
    return status == EPLB_OK;
}

/* Any content, also one that no engine could serve from. */
static void make_current(input *in, scene *s)
{
    int32_t num_layers = eplb_load_num_layers(s->load), num_experts = eplb_load_num_experts(s->load);
    eplb_error error = {.text = ""};
    eplb_status status;
    if (next_byte(in) % 2 == 0) {
        status =
            eplb_placement_create_initial(&s->current, s->topology, num_layers, num_experts, NULL, &error);
    } else {
        static int32_t slots[MAX_LAYERS * MAX_SLOTS];
        for (int32_t i = 0; i < num_layers * eplb_topology_num_slots(s->topology); i++)
            slots[i] = between(in, -1, num_experts - 1);
        status =
            eplb_placement_create(&s->current, s->topology, num_layers, num_experts, slots, NULL, &error);
    }
    if (status != EPLB_OK)
        require_text(status, &error);
}

static void make_params(input *in, scene *s)
{
    eplb_plan_params *params = &s->params;
    eplb_plan_params_init(params, sizeof *params);
    params->policy = eplb_policy_name(between(in, 0, eplb_policy_count() - 1));
    params->split = (eplb_split)between(in, EPLB_SPLIT_EQUAL, EPLB_SPLIT_BATCH);
    params->num_groups = between(in, 0, 8);
    params->current = s->current;
    uint32_t kinds = next_byte(in);
    if ((kinds & 1) != 0)
        params->max_moves_per_layer = between(in, 0, 20);
    if ((kinds & 2) != 0)
        params->max_moves = between(in, 0, 40);
    if ((kinds & 4) != 0)
        params->target_imbalance = 1.0 + between(in, 0, 200) / 100.0;
    if ((kinds & 8) != 0)
        params->max_spill = between(in, 0, 6);
    if ((kinds & 16) != 0)
        params->cost =
            (eplb_cost){between(in, 0, 3), between(in, 0, 3), between(in, 0, 200), between(in, 1, 128)};
    params->work_limit = (kinds & 32) != 0 ? between(in, 1, 200) : 1000;
    params->num_threads = 1;
}

static void check_plan(const scene *s, const eplb_plan *plan)
{
    eplb_error error = {.text = ""};
    require(eplb_plan_is_valid(plan, &error) == EPLB_OK, "not valid", error.text);
    eplb_move_count moves = eplb_plan_moves(plan);
    bool ours = strcmp(s->params.policy, "deepseek") != 0 && strcmp(s->params.policy, "vllm") != 0;
    require(!ours || s->current == NULL || s->params.max_moves == EPLB_UNLIMITED ||
                moves.received <= s->params.max_moves,
            "more moves than allowed", s->params.policy);
    for (int32_t layer = 0; layer < eplb_load_num_layers(s->load); layer++)
        require(eplb_plan_lower_bound(plan)[layer] <= eplb_plan_imbalance(plan)[layer] * (1 + 1e-9),
                "below its lower bound", s->params.policy);
}

/* The same plan with three threads. */
static void check_threads(scene *s, const eplb_plan *plan)
{
    eplb_plan *again = NULL;
    eplb_error error = {.text = ""};
    s->params.num_threads = 3;
    require(eplb_plan_create(&again, s->load, s->topology, &s->params, NULL, &error) == EPLB_OK,
            "fails with three threads", error.text);
    require(eplb_plan_hash(plan) == eplb_plan_hash(again) && eplb_plan_equal(plan, again),
            "depends on the threads", s->params.policy);
    eplb_plan_destroy(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    scene s = {NULL, NULL, NULL, {0}};
    if (make_topology(&in, &s) && make_load(&in, &s)) {
        bool threads = next_byte(&in) % 16 == 1;
        if (next_byte(&in) % 2 == 1)
            make_current(&in, &s);
        make_params(&in, &s);
        eplb_plan *plan = NULL;
        eplb_error error = {.text = ""};
        eplb_status status = eplb_plan_create(&plan, s.load, s.topology, &s.params, NULL, &error);
        if (status == EPLB_OK) {
            check_plan(&s, plan);
            if (threads)
                check_threads(&s, plan);
        } else {
            require(plan == NULL, "a plan beside a failure", error.text);
            require_text(status, &error);
        }
        eplb_plan_destroy(plan);
    }
    eplb_placement_destroy(s.current);
    eplb_load_destroy(s.load);
    eplb_topology_destroy(s.topology);
    return 0;
}
