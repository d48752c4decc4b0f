/* Selection: from a token's expert to a slot, as inline functions for the host and for CUDA device code.
 *
 * Nothing here allocates, locks, or calls out; a table is one flat block of int32 that can be copied to a
 * device as it is (eplb/route.h makes it). `ordinal` is the running number of a token among those of its
 * expert that this source has seen (0, 1, 2, ...); where no such counter exists, the token's row may stand
 * for it, with the guarantee of a hash. An expert out of range, -1 included, or without a live replica gives
 * slot -1. All functions are O(1) and pure, but those that take `position`, which they advance. */
#ifndef EPLB_ROUTE_SELECT_H
#define EPLB_ROUTE_SELECT_H

#include <stdint.h>

#if defined(__CUDACC__) || defined(__HIPCC__)
#define EPLB_DEVICE __host__ __device__
#else
#define EPLB_DEVICE
#endif

/* The head of a block of int32: a magic number, sizes, and where each array starts, counted from the block's
 * start. */
enum {
    EPLB_TABLE_MAGIC = 0,
    /* E, and the rank the table was made for or -1: the same for all. */
    EPLB_TABLE_EXPERTS = 1,
    EPLB_TABLE_SOURCE = 2,
    /* [E + 1] and the slots by expert: live replicas of e are slots[first[e] .. first[e+1]), ascending. */
    EPLB_TABLE_REPLICA_FIRST = 3,
    EPLB_TABLE_SLOTS = 4,
    /* [E + 1] and the rows: tokens of e go to slots in the order rows[row_first[e] .. row_first[e+1]). */
    EPLB_TABLE_ROW_FIRST = 5,
    EPLB_TABLE_ROWS = 6,
    /* Epoch of the table, low 31 and high bits; int32 in the block. */
    EPLB_TABLE_EPOCH_LOW = 7,
    EPLB_TABLE_EPOCH_HIGH = 8,
    EPLB_TABLE_LENGTH = 9,
    /* The place that follows each place of the rows, the first after the last. */
    EPLB_TABLE_NEXT = 10,
    /* [E] floor((2^32 - 1) / row length) and / replica count; 0 where there is none. */
    EPLB_TABLE_ROW_INVERSE = 11,
    EPLB_TABLE_REPLICA_INVERSE = 12,
    /* Whole weights of the slots, in the order of EPLB_TABLE_SLOTS: the shares to 2^-29, without a row's
       rounding. */
    EPLB_TABLE_WEIGHTS = 13,
    EPLB_TABLE_HEAD = 16
};
#define EPLB_TABLE_MAGIC_VALUE 0x45504c42

/* One layer's table, as pointers into a block. */
typedef struct eplb_route_table {
    int32_t num_experts;
    int32_t source;
    const int32_t *replica_first;
    const int32_t *slots;
    const int32_t *row_first;
    const int32_t *rows;
    const int32_t *next;
    const int32_t *row_inverse;
    const int32_t *replica_inverse;
    const int32_t *weights;
} eplb_route_table;

/* The table inside a block, wherever the block was copied to. */
EPLB_DEVICE static inline eplb_route_table eplb_route_table_at(const int32_t *block)
{
    eplb_route_table table;
    table.num_experts = block[EPLB_TABLE_EXPERTS];
    table.source = block[EPLB_TABLE_SOURCE];
    table.replica_first = block + block[EPLB_TABLE_REPLICA_FIRST];
    table.slots = block + block[EPLB_TABLE_SLOTS];
    table.row_first = block + block[EPLB_TABLE_ROW_FIRST];
    table.rows = block + block[EPLB_TABLE_ROWS];
    table.next = block + block[EPLB_TABLE_NEXT];
    table.row_inverse = block + block[EPLB_TABLE_ROW_INVERSE];
    table.replica_inverse = block + block[EPLB_TABLE_REPLICA_INVERSE];
    table.weights = block + block[EPLB_TABLE_WEIGHTS];
    return table;
}

/* Whether an expert is one of the table's. */
EPLB_DEVICE static inline int eplb_route_knows(const eplb_route_table *table, int32_t expert)
{
    return (uint32_t)expert < (uint32_t)table->num_experts;
}

/* Live replicas of an expert; 0 when it is out of range. */
EPLB_DEVICE static inline uint32_t eplb_route_replicas(const eplb_route_table *table, int32_t expert)
{
    if (!eplb_route_knows(table, expert))
        return 0;
    return (uint32_t)(table->replica_first[expert + 1] - table->replica_first[expert]);
}

/* number mod divisor without a division: the quotient by the stored inverse is at most one too small. */
EPLB_DEVICE static inline uint32_t eplb_route_modulo(uint32_t number, uint32_t divisor, int32_t inverse)
{
    uint32_t quotient = (uint32_t)((uint64_t)number * (uint32_t)inverse >> 32);
    uint32_t rest = number - quotient * divisor;
    return rest >= divisor ? rest - divisor : rest;
}

/* Equal split: replicas in turn, the first one shifted by rank and expert, so that small batches of many
 * ranks do not meet on the same replica. Any run of consecutive ordinals gives every replica its quota
 * rounded down or up, but for the run over ordinal + rank + expert = 2^32, where the turn starts anew (counts
 * that are powers of two excepted). The caller counts: one uint32 per expert for each source and layer, as
 * ordinal++; a kernel takes the token's number among those of its expert in the batch, from the prefix sums
 * that dispatch needs anyway, plus the tokens of earlier batches. */
EPLB_DEVICE static inline int32_t eplb_select_equal(const eplb_route_table *table, int32_t expert,
                                                    uint32_t ordinal, uint32_t rank)
{
    uint32_t count = eplb_route_replicas(table, expert);
    if (count == 0)
        return -1;
    uint32_t turn =
        eplb_route_modulo(ordinal + rank + (uint32_t)expert, count, table->replica_inverse[expert]);
    return table->slots[table->replica_first[expert] + (int32_t)turn];
}

/* Split by quota: after every ordinal each replica has served its share of the tokens so far to less than one
 * token (the row is a chairman sequence). The rows of a table made for a source rank hold that rank's part of
 * each quota, own rank and own node first: this one function is the rule `quota`, `nearest`, `resplit` and
 * `activated`. */
EPLB_DEVICE static inline int32_t eplb_select_quota(const eplb_route_table *table, int32_t expert,
                                                    uint32_t ordinal)
{
    if (!eplb_route_knows(table, expert))
        return -1;
    int32_t begin = table->row_first[expert];
    uint32_t length = (uint32_t)(table->row_first[expert + 1] - begin);
    if (length == 0)
        return -1;
    return table->rows[begin + (int32_t)eplb_route_modulo(ordinal, length, table->row_inverse[expert])];
}

/* The same with a counter per expert, position [E] (start at 0, one array per source and layer): no division.
 * The counters stay valid when the table changes. */
EPLB_DEVICE static inline int32_t eplb_select_next(const eplb_route_table *table, int32_t *position,
                                                   int32_t expert)
{
    if (!eplb_route_knows(table, expert))
        return -1;
    int32_t begin = table->row_first[expert], length = table->row_first[expert + 1] - begin;
    if (length <= 0)
        return -1;
    int32_t at = (uint32_t)position[expert] < (uint32_t)length ? position[expert] : 0;
    position[expert] = at + 1;
    return table->rows[begin + at];
}

/* The replica of begin .. end-1 whose next token is due first, among those that may have one after `seen`
 * tokens; -1: none, the counters are not of these weights. */
EPLB_DEVICE static inline int32_t eplb_route_due(const eplb_route_table *table, const int32_t *served,
                                                 int32_t begin, int32_t end, int64_t seen, int64_t sum)
{
    int32_t best = -1;
    for (int32_t i = begin; i < end; i++) {
        int64_t weight = table->weights[i];
        if (served[i] * sum >= (seen + 1) * weight)
            continue;
        if (best < 0 ||
            (served[i] + INT64_C(1)) * table->weights[best] < (served[best] + INT64_C(1)) * weight)
            best = i;
    }
    return best;
}

/* Split by the shares themselves, without rows: after every token each replica has served its share of the
 * tokens so far to less than one token, however many there are (the shares to 2^-29). served: a counter per
 * replica, as many as the placement has slots (start at 0, one array per source and layer; start at 0 again
 * when the table changes). O(replicas of the expert); experts with one replica cost a look-up. */
EPLB_DEVICE static inline int32_t eplb_select_exact(const eplb_route_table *table, int32_t *served,
                                                    int32_t expert)
{
    if (!eplb_route_knows(table, expert))
        return -1;
    int32_t begin = table->replica_first[expert], end = table->replica_first[expert + 1];
    if (end - begin <= 1)
        return end > begin ? table->slots[begin] : -1;
    int64_t seen = 0, sum = 0;
    for (int32_t i = begin; i < end; i++) {
        seen += served[i];
        sum += table->weights[i];
    }
    int32_t best = eplb_route_due(table, served, begin, end, seen, sum);
    if (best < 0) {
        for (int32_t i = begin; i < end; i++)
            served[i] = 0;
        seen = 0;
        best = eplb_route_due(table, served, begin, end, 0, sum);
    }
    served[best]++;
    if (seen + 1 == sum) { /* everyone has exactly what is due */
        for (int32_t i = begin; i < end; i++)
            served[i] = 0;
    }
    return table->slots[best];
}

/* Rank-invariant: depends on expert and token alone, so that every rank picks the same slot for the same
 * token. Use a table made without a source rank. `token` is the token's row in the batch that all ranks
 * share; the odd factor (the golden ratio of 2^32) spreads the rows that chose this expert over its row. */
EPLB_DEVICE static inline int32_t eplb_select_invariant(const eplb_route_table *table, int32_t expert,
                                                        uint32_t token)
{
    uint32_t mixed = token * 2654435769u;
    return eplb_select_quota(table, expert, mixed ^ mixed >> 16);
}

/* --- as other engines choose, for comparison --------------------------------------------------------- */

/* vLLM: ((row * 2654435769) mod 2^32) mod replica_count, the same for all choices of a row. */
EPLB_DEVICE static inline int32_t eplb_select_vllm(const eplb_route_table *table, int32_t expert,
                                                   uint32_t row)
{
    uint32_t count = eplb_route_replicas(table, expert);
    if (count == 0)
        return -1;
    return table->slots[table->replica_first[expert] + (int32_t)(row * 2654435769u % count)];
}

/* The same index into a dense table [E, width] that lists count[e] entries (replicas, or a repeat table). */
EPLB_DEVICE static inline int32_t eplb_select_dense(const int32_t *dense, const int32_t *count, int32_t width,
                                                    int32_t num_experts, int32_t expert, uint32_t row)
{
    if ((uint32_t)expert >= (uint32_t)num_experts || count[expert] <= 0)
        return -1;
    return dense[(int64_t)expert * width + (int32_t)(row * 2654435769u % (uint32_t)count[expert])];
}

/* SGLang, static: one slot per expert for this rank (eplb_sglang_static fills `own` [E]). */
EPLB_DEVICE static inline int32_t eplb_select_sglang_static(const int32_t *own, int32_t num_experts,
                                                            int32_t expert)
{
    return (uint32_t)expert < (uint32_t)num_experts ? own[expert] : -1;
}

/* SGLang, dynamic: a random 16-bit number modulo replica_count for every pair. */
EPLB_DEVICE static inline int32_t eplb_select_sglang_dynamic(const eplb_route_table *table, int32_t expert,
                                                             uint32_t random)
{
    uint32_t count = eplb_route_replicas(table, expert);
    if (count == 0)
        return -1;
    return table->slots[table->replica_first[expert] + (int32_t)((random & 0xffffu) % count)];
}

/* TensorRT-LLM: round robin inside a block of 1,024 pairs; `running` counts the expert inside the block,
 * `block` is the number of the block, `rank` the EP rank (0 where the engine leaves it out). */
EPLB_DEVICE static inline int32_t eplb_select_trtllm(const eplb_route_table *table, int32_t expert,
                                                     uint32_t running, uint32_t block, uint32_t rank)
{
    uint32_t count = eplb_route_replicas(table, expert);
    if (count == 0)
        return -1;
    return table->slots[table->replica_first[expert] + (int32_t)((running + block + rank) % count)];
}

#endif
