/* Prints the hash of every plan of a fixed set: every policy, split and case, on loads made of integers
 * alone. Built by several compilers for several machines and run with several thread counts, it must print
 * the same bytes each time (scripts/check-determinism). A policy that refuses a case prints the status
 * instead. Usage: plan_hash THREADS */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <eplb/eplb.h>

#define MAX_WINDOWS 3
#define MAX_LAYERS  9
#define MAX_EXPERTS 128

typedef struct plan_case {
    const char *name;
    int32_t num_windows, num_layers, num_experts;
    int32_t num_ranks, num_nodes, slots_per_rank, num_groups;
    bool keep;    /* start from the initial placement */
    bool uneven;  /* one dead rank, unequal slots and speeds */
    int32_t tile; /* cost by tiles of this many tokens; 0: tokens */
} plan_case;

static const plan_case CASES[] = {
    {"flat", 1, 9, 64, 8, 1, 9, 1, false, false, 0},     {"groups", 1, 5, 64, 8, 4, 10, 8, false, false, 0},
    {"windows", 3, 4, 64, 16, 2, 5, 1, false, false, 0}, {"keep", 1, 5, 128, 16, 2, 9, 1, true, false, 0},
    {"uneven", 1, 3, 48, 8, 2, 9, 1, true, true, 0},     {"tiles", 1, 3, 64, 8, 2, 9, 4, false, false, 128},
};
static const char *const SPLITS[] = {"equal", "weighted", "batch"};

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Skewed and full of ties: a few hot experts, many equal ones, some with no token at all. */
static eplb_status make_load(const plan_case *c, eplb_load **load, eplb_error *error)
{
    static int64_t counts[MAX_WINDOWS * MAX_LAYERS * MAX_EXPERTS];
    int32_t size = c->num_windows * c->num_layers * c->num_experts;
    uint64_t state = (uint64_t)size;
    for (int32_t i = 0; i < size; i++)
        counts[i] =
            (int64_t)(100000 / (1 + next_random(&state) % 64)) / 7 * (int64_t)(next_random(&state) % 4);
    eplb_load_params params;
    eplb_load_params_init(&params, sizeof params);
    params.num_windows = c->num_windows;
    params.num_layers = c->num_layers;
    params.num_experts = c->num_experts;
    params.element = EPLB_ELEMENT_INT64;
    params.counts = counts;
    return eplb_load_create(load, &params, NULL, error);
}

static eplb_status make_topology(const plan_case *c, eplb_topology **topology, eplb_error *error)
{
    static const int32_t slots[] = {9, 8, 9, 10, 7, 9, 12, 9}, speeds[] = {4, 4, 4, 3, 4, 5, 4, 4};
    static const uint8_t alive[] = {1, 1, 1, 1, 1, 0, 1, 1};
    eplb_topology_params params;
    eplb_topology_params_init(&params, sizeof params);
    params.num_ranks = c->num_ranks;
    params.num_nodes = c->num_nodes;
    params.slots_per_rank = c->slots_per_rank;
    if (c->uneven) {
        params.rank_slots = slots;
        params.rank_speed = speeds;
        params.rank_alive = alive;
    }
    return eplb_topology_create(topology, &params, NULL, error);
}

static void print_plan(const plan_case *c, const char *policy, int split, const eplb_plan *plan)
{
    printf("%s %s %s %016" PRIx64, c->name, policy, SPLITS[split], eplb_plan_hash(plan));
    for (int32_t layer = 0; layer < c->num_layers; layer++)
        printf(" %a/%a", eplb_plan_imbalance(plan)[layer], eplb_plan_lower_bound(plan)[layer]);
    printf("\n");
}

static eplb_status run_policy(const plan_case *c, const char *policy, int split, int32_t num_threads)
{
    eplb_error error = {.text = ""};
    eplb_load *load = NULL;
    eplb_topology *topology = NULL;
    eplb_placement *current = NULL;
    eplb_plan *plan = NULL;
    eplb_status status = make_load(c, &load, &error);
    if (status == EPLB_OK)
        status = make_topology(c, &topology, &error);
    if (status == EPLB_OK && c->keep)
        status =
            eplb_placement_create_initial(&current, topology, c->num_layers, c->num_experts, NULL, &error);
    if (status == EPLB_OK) {
        eplb_plan_params params;
        eplb_plan_params_init(&params, sizeof params);
        params.policy = policy;
        params.split = (eplb_split)split;
        params.num_groups = c->num_groups;
        params.current = current;
        params.num_threads = num_threads;
        if (c->tile > 0)
            params.cost = (eplb_cost){.tokens = 0, .tiles = 1, .activated = 16, .tile_tokens = c->tile};
        status = eplb_plan_create(&plan, load, topology, &params, NULL, &error);
    }
    if (status == EPLB_OK)
        print_plan(c, policy, split, plan);
    else
        printf("%s %s %s %s: %s\n", c->name, policy, SPLITS[split], eplb_status_name(status), error.text);
    eplb_plan_destroy(plan);
    eplb_placement_destroy(current);
    eplb_topology_destroy(topology);
    eplb_load_destroy(load);
    return status;
}

int main(int argc, char **argv)
{
    int32_t num_threads = argc > 1 ? (int32_t)strtol(argv[1], NULL, 10) : 1;
    int num_plans = 0;
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++)
        for (int32_t policy = 0; policy < eplb_policy_count(); policy++)
            for (int split = EPLB_SPLIT_EQUAL; split <= EPLB_SPLIT_BATCH; split++)
                num_plans += run_policy(&CASES[c], eplb_policy_name(policy), split, num_threads) == EPLB_OK;
    printf("%d plans\n", num_plans);
    return num_plans > 0 ? 0 : 1;
}
