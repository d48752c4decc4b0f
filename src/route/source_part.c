/* The part of each replica's quota that each source rank gets.
 *
 * Three rounds, each as much as possible: a replica serves its own rank, then its node, then whoever is left.
 * The first round does not hurt the second, because a token served on its own rank is also served on its
 * node; so both the tokens that stay on their rank and those that stay on their node are the most these
 * quotas allow. Source: per-source quotas of UltraEP (arXiv 2606.04101), here without rounding. */
#include "route/source_part.h"

static void send(int64_t *supply, int64_t *quota, int32_t source, int32_t replica,
                 const source_part_output *output)
{
    int64_t amount = supply[source] < quota[replica] ? supply[source] : quota[replica];
    supply[source] -= amount;
    quota[replica] -= amount;
    if (amount == 0 || (output->only >= 0 && output->only != source))
        return;
    int64_t row = output->only >= 0 ? 0 : source * output->stride;
    output->part[row + (output->column != NULL ? output->column[replica] : replica)] += amount;
}

void source_part(int32_t num_ranks, const int32_t *rank_node, const int32_t *replica_rank, int32_t count,
                 int64_t *supply, int64_t *quota, const source_part_output *output)
{
    for (int32_t i = 0; i < count; i++)
        send(supply, quota, replica_rank[i], i, output);
    for (int32_t i = 0; i < count; i++) {
        int32_t node = rank_node[replica_rank[i]];
        for (int32_t g = 0; g < num_ranks && quota[i] > 0; g++) {
            if (rank_node[g] == node)
                send(supply, quota, g, i, output);
        }
    }
    int32_t g = 0;
    for (int32_t i = 0; i < count; i++) {
        while (quota[i] > 0 && g < num_ranks) {
            send(supply, quota, g, i, output);
            g += quota[i] > 0;
        }
    }
}
