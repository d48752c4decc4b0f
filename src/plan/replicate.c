/* Replication by DeepSeek's rule: every spare slot goes to the expert whose replicas are hottest now.
 *
 * Greedy in single precision, ties to the lowest index, as the first maximum of the original. It minimises
 * the hottest replica exactly (the min-max divisor rule of apportionment). One tournament step per spare
 * slot. Source: replicate_experts of deepseek-ai/EPLB. */
#include "plan/replicate.h"

#include "base/error.h"
#include "plan/float_key.h"
#include "plan/tournament.h"

eplb_status replicate_experts(const float *weight, int32_t n, int32_t num_slots, arena *scratch,
                              int32_t *expert, int32_t *rank, int32_t *count, eplb_error *error)
{
    arena_mark mark = arena_position(scratch);
    tournament hottest = tournament_take(scratch, n);
    if (hottest.node == NULL)
        return error_memory(error, 2 * (size_t)n * sizeof(uint64_t), "the hottest replica");
    for (int32_t e = 0; e < n; e++) {
        expert[e] = e;
        rank[e] = 0;
        count[e] = 1;
        tournament_set(&hottest, e, key_heaviest(weight[e], (uint32_t)e));
    }
    tournament_build(&hottest);
    for (int32_t p = n; p < num_slots; p++) {
        uint32_t e = key_index(tournament_least(&hottest));
        expert[p] = (int32_t)e;
        rank[p] = count[e]++;
        tournament_replace(&hottest, e, key_heaviest(weight[e] / (float)count[e], e));
    }
    arena_rewind(scratch, mark);
    return EPLB_OK;
}
