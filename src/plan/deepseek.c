/* DeepSeek's planner: groups to nodes, spare slots to the hottest experts of each node, replicas to its
 * ranks.
 *
 * The answer of the published module, faults included (docs/deepseek.md), for one layer: pack the expert
 * groups to nodes, replicate inside each node, pack replicas to the node's ranks. "Global" is the same with
 * one group and one node. Single precision throughout, ties to the lowest index. O(S log S).
 * Source: rebalance_experts_hierarchical of deepseek-ai/EPLB. */
#include "plan/deepseek.h"

#include "base/error.h"
#include "plan/pack.h"
#include "plan/replicate.h"

/* Working arrays of one layer; "inner" experts are numbered so that a node's are neighbours. */
typedef struct layer_work {
    int32_t *inner_expert;  /* [E] logical expert of an inner one */
    float *inner_weight;    /* [E] */
    int32_t *inner_count;   /* [E] */
    int32_t *replica_inner; /* [S / N] inner expert of each replica of a node, from the node's first on */
    int32_t *replica_rank;  /* [S / N] */
    float *replica_weight;  /* [S / N] */
    int32_t *pack;          /* [S / N] */
    int32_t *position;      /* [S / N] */
} layer_work;

static bool take_work(layer_work *work, const deepseek_shape *shape, arena *scratch)
{
    size_t experts = (size_t)shape->num_experts, slots = (size_t)(shape->num_slots / shape->num_nodes);
    work->inner_expert = arena_take(scratch, experts, sizeof(int32_t));
    work->inner_weight = arena_take(scratch, experts, sizeof(float));
    work->inner_count = arena_take(scratch, experts, sizeof(int32_t));
    work->replica_inner = arena_take(scratch, slots, sizeof(int32_t));
    work->replica_rank = arena_take(scratch, slots, sizeof(int32_t));
    work->replica_weight = arena_take(scratch, slots, sizeof(float));
    work->pack = arena_take(scratch, slots, sizeof(int32_t));
    work->position = arena_take(scratch, slots, sizeof(int32_t));
    return work->inner_expert != NULL && work->inner_weight != NULL && work->inner_count != NULL &&
           work->replica_inner != NULL && work->replica_rank != NULL && work->replica_weight != NULL &&
           work->pack != NULL && work->position != NULL;
}

#define LANES   8
#define STREAMS 4

/* Single-precision sum in the order in which the original's tensor library adds a short row on a CPU: from
 * eight numbers on in vectors of eight lanes, below that one by one, in both cases as four interleaved
 * partial sums. Sums above 2^24 are rounded, and the rounding decides ties between groups. */
static float row_sum(const float *row, int32_t n)
{
    int32_t lanes = n >= LANES ? LANES : 1;
    int32_t vectors = n / lanes, whole = vectors - vectors % STREAMS;
    float sum = 0.0f, partial[STREAMS][LANES] = {{0.0f}};
    for (int32_t v = 0; v < vectors; v++) {
        float *into = partial[v < whole ? v % STREAMS : 0];
        for (int32_t lane = 0; lane < lanes; lane++)
            into[lane] += row[v * lanes + lane];
    }
    for (int32_t i = vectors * lanes; i < n; i++)
        sum += row[i];
    for (int32_t lane = 0; lane < lanes; lane++) {
        for (int32_t s = 1; s < STREAMS; s++)
            partial[0][lane] += partial[s][lane];
        sum += partial[0][lane];
    }
    return sum;
}

/* Packs groups to nodes and numbers the experts node by node. */
static eplb_status order_groups(const float *weight, const deepseek_shape *shape, layer_work *work,
                                arena *scratch, eplb_error *error)
{
    int32_t groups = shape->num_groups, group_size = shape->num_experts / groups;
    int32_t groups_per_node = groups / shape->num_nodes;
    float *group_weight = arena_take(scratch, (size_t)groups, sizeof *group_weight);
    int32_t *node = arena_take(scratch, (size_t)groups, sizeof *node);
    int32_t *position = arena_take(scratch, (size_t)groups, sizeof *position);
    if (group_weight == NULL || node == NULL || position == NULL)
        return error_memory(error, 3 * (size_t)groups * sizeof *node, "the groups of a layer");
    for (int32_t g = 0; g < groups; g++)
        group_weight[g] = row_sum(weight + (size_t)g * (size_t)group_size, group_size);
    eplb_status status =
        pack_balanced(group_weight, groups, shape->num_nodes, scratch, node, position, error);
    if (status != EPLB_OK)
        return status;
    for (int32_t g = 0; g < groups; g++) {
        int32_t first = (node[g] * groups_per_node + position[g]) * group_size;
        for (int32_t j = 0; j < group_size; j++) {
            work->inner_expert[first + j] = g * group_size + j;
            work->inner_weight[first + j] = weight[g * group_size + j];
        }
    }
    return EPLB_OK;
}

/* Replicates and packs the experts of one node into its slots. */
static eplb_status fill_node(const deepseek_shape *shape, layer_work *work, int32_t node, arena *scratch,
                             int32_t *expert, int32_t *replica_rank, eplb_error *error)
{
    int32_t experts = shape->num_experts / shape->num_nodes, slots = shape->num_slots / shape->num_nodes;
    int32_t ranks = shape->num_ranks / shape->num_nodes, room = slots / ranks;
    const float *weight = work->inner_weight + node * experts;
    const int32_t *inner_expert = work->inner_expert + node * experts;
    int32_t *count = work->inner_count + node * experts;
    eplb_status status = replicate_experts(weight, experts, slots, scratch, work->replica_inner,
                                           work->replica_rank, count, error);
    if (status != EPLB_OK)
        return status;
    for (int32_t i = 0; i < slots; i++) {
        int32_t inner = work->replica_inner[i];
        work->replica_weight[i] = weight[inner] / (float)count[inner];
    }
    status = pack_balanced(work->replica_weight, slots, ranks, scratch, work->pack, work->position, error);
    if (status != EPLB_OK)
        return status;
    for (int32_t i = 0; i < slots; i++) {
        int32_t slot = node * slots + work->pack[i] * room + work->position[i];
        expert[slot] = inner_expert[work->replica_inner[i]];
        if (replica_rank != NULL)
            replica_rank[slot] = work->replica_rank[i];
    }
    return EPLB_OK;
}

eplb_status deepseek_place(const float *weight, const deepseek_shape *shape, arena *scratch, int32_t *expert,
                           int32_t *replica_rank, int32_t *count, eplb_error *error)
{
    arena_mark mark = arena_position(scratch);
    layer_work work;
    if (!take_work(&work, shape, scratch))
        return error_memory(error, 20 * (size_t)shape->num_slots, "DeepSeek's planner");
    eplb_status status = order_groups(weight, shape, &work, scratch, error);
    for (int32_t n = 0; status == EPLB_OK && n < shape->num_nodes; n++)
        status = fill_node(shape, &work, n, scratch, expert, replica_rank, error);
    if (status == EPLB_OK && count != NULL) {
        for (int32_t i = 0; i < shape->num_experts; i++)
            count[work.inner_expert[i]] = work.inner_count[i];
    }
    arena_rewind(scratch, mark);
    return status;
}
