/* Every selection function inside a kernel: it must compile as device code. Nothing is run. */
#include <eplb/route_select.h>

extern "C" __global__ void choose(const int32_t *block, const int32_t *ids, const uint32_t *ordinal,
                                  int32_t *position, int32_t *served, const int32_t *dense,
                                  const int32_t *count, int32_t width, int32_t pairs, int32_t *slots)
{
    int32_t i = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= pairs)
        return;
    eplb_route_table table = eplb_route_table_at(block);
    int32_t e = ids[i];
    int32_t *out = slots + 10 * i;
    out[0] = eplb_select_quota(&table, e, ordinal[i]);
    out[1] = eplb_select_equal(&table, e, ordinal[i], blockIdx.x);
    out[2] = eplb_select_next(&table, position, e);
    out[3] = eplb_select_invariant(&table, e, (uint32_t)i);
    out[4] = eplb_select_vllm(&table, e, (uint32_t)i);
    out[5] = eplb_select_dense(dense, count, width, table.num_experts, e, (uint32_t)i);
    out[6] = eplb_select_sglang_static(dense, table.num_experts, e);
    out[7] = eplb_select_sglang_dynamic(&table, e, (uint32_t)i);
    out[8] = eplb_select_trtllm(&table, e, ordinal[i], blockIdx.x, 0);
    out[9] = eplb_select_exact(&table, served, e);
}
