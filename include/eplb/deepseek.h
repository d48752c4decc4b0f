/* DeepSeek's planner and its two primitives, as the published module computes them.
 *
 * Arithmetic is single precision, as in the original, and ties go to the lowest index. The known faults of
 * the original stay (docs/deepseek.md): it may put two replicas of an expert on one rank, and without load
 * all spare slots go to expert 0. For better plans use eplb_plan_create with policy "auto". Pure functions,
 * thread-safe. Weights must be finite and >= 0. Errors name the row as layer and the item as expert. */
#ifndef EPLB_DEEPSEEK_H
#define EPLB_DEEPSEEK_H

#include <eplb/status.h>

EPLB_BEGIN_DECLS

/* Packs n items of each of num_rows rows into num_packs packs of n / num_packs items, heaviest first into the
 * lightest pack with room. weight [rows, n]; pack_index, rank_in_pack [rows, n] (position inside the pack).
 * n must divide by num_packs. O(rows * n (log n + log packs)). Errors: INVALID, MEMORY. */
EPLB_API eplb_status eplb_balanced_packing(const float *weight, int32_t num_rows, int32_t num_items,
                                           int32_t num_packs, int32_t *pack_index, int32_t *rank_in_pack,
                                           const eplb_allocator *allocator, eplb_error *error);

/* Replicates num_logical experts into num_physical >= num_logical replicas so that the largest load per
 * replica is least: each spare goes to the expert with the largest weight / count. weight [rows,
 * num_logical]; physical_to_logical, replica_rank [rows, num_physical]; logical_count [rows, num_logical].
 * O(rows * (n + spares log n)). Errors: INVALID, MEMORY. */
EPLB_API eplb_status eplb_replicate_experts(const float *weight, int32_t num_rows, int32_t num_logical,
                                            int32_t num_physical, int32_t *physical_to_logical,
                                            int32_t *replica_rank, int32_t *logical_count,
                                            const eplb_allocator *allocator, eplb_error *error);

/* The whole planner: hierarchical when num_groups divides by num_nodes, else global. weight [L, E];
 * physical_to_logical [L, S], logical_count [L, E]; replica_rank [L, S] (number of a replica among its
 * expert's) may be NULL. S must divide by num_ranks; hierarchical also needs E to divide by num_groups and
 * num_ranks by num_nodes. O(L S log S). Errors: INVALID, MEMORY. */
EPLB_API eplb_status eplb_rebalance_experts(const float *weight, int32_t num_layers, int32_t num_logical,
                                            int32_t num_replicas, int32_t num_groups, int32_t num_nodes,
                                            int32_t num_ranks, int32_t *physical_to_logical,
                                            int32_t *replica_rank, int32_t *logical_count,
                                            const eplb_allocator *allocator, eplb_error *error);

/* What eplb_rebalance_experts wrote, in the form that the module returns and engines index with: physical_out
 * [L, S], dense_out [L, E, width] (the slot of each replica by its number, -1 behind the last) and count_out
 * [L, E]. width is at least the largest count. Errors: INVALID (an id or number out of range: layer, slot,
 * value; the outputs are then incomplete). O(L (S + E width)), allocates nothing. */
EPLB_API eplb_status eplb_rebalance_tables_int64(int32_t num_layers, int32_t num_logical,
                                                 int32_t num_replicas, int32_t width,
                                                 const int32_t *physical_to_logical,
                                                 const int32_t *replica_rank, const int32_t *logical_count,
                                                 int64_t *physical_out, int64_t *dense_out,
                                                 int64_t *count_out, eplb_error *error);

EPLB_END_DECLS

#endif
