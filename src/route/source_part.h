/* The part of each replica's quota that each source rank gets: own rank first, own node next, then the
 * rest. */
#ifndef ROUTE_SOURCE_PART_H
#define ROUTE_SOURCE_PART_H

#include <stddef.h>
#include <stdint.h>

/* Where the parts go: added to part[source * stride + column[replica]], for one source or (only == -1) for
 * all. */
typedef struct source_part_output {
    int64_t *part;
    int64_t stride;
    const int32_t *column; /* [replicas] or NULL: the number of the replica */
    int32_t only;
} source_part_output;

/* One expert. supply [num_ranks] tokens by source and quota [count] by replica have the same sum; both are
 * used up. replica_rank [count]: rank of each replica. O(count * num_ranks). */
void source_part(int32_t num_ranks, const int32_t *rank_node, const int32_t *replica_rank, int32_t count,
                 int64_t *supply, int64_t *quota, const source_part_output *output);

#endif
