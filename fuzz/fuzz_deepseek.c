/* DeepSeek's module on arbitrary shapes and arbitrary bits as weights: it answers or refuses, and what it
 * answers is a placement: every slot filled, every expert present, counts and replica numbers that agree with
 * the slots. */
#include <stdint.h>
#include <string.h>

#include <eplb/eplb.h>

#include "require.h"

enum { MOST_EXPERTS = 96, MOST_SLOTS = 400, ROWS = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_row(const int32_t *held, const int32_t *rank, const int32_t *count, int32_t experts,
                      int32_t slots)
{
    int32_t seen[MOST_EXPERTS] = {0};
    bool numbered[MOST_EXPERTS][MOST_SLOTS] = {{false}};
    for (int32_t p = 0; p < slots; p++) {
        require(held[p] >= 0 && held[p] < experts);
        require(rank[p] >= 0 && rank[p] < count[held[p]]);
        require(!numbered[held[p]][rank[p]]);
        numbered[held[p]][rank[p]] = true;
        seen[held[p]]++;
    }
    for (int32_t e = 0; e < experts; e++)
        require(seen[e] >= 1 && seen[e] == count[e]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 5)
        return 0;
    static float weight[ROWS * MOST_EXPERTS];
    static int32_t held[ROWS * MOST_SLOTS], rank[ROWS * MOST_SLOTS], count[ROWS * MOST_EXPERTS];
    int32_t experts = data[0] % (MOST_EXPERTS + 1), slots = experts + data[1], groups = data[2] % 13,
            nodes = data[3] % 7, ranks = data[4] % 33;
    if (ranks > 0)
        slots -= slots % ranks;
    memset(weight, 0, sizeof weight);
    size_t bytes = size - 5;
    memcpy(weight, data + 5, bytes < sizeof weight ? bytes : sizeof weight);
    eplb_error error;
    eplb_status status = eplb_rebalance_experts(weight, ROWS, experts, slots, groups, nodes, ranks, held,
                                                rank, count, NULL, &error);
    require(status == EPLB_OK || status == EPLB_ERROR_INVALID);
    if (status != EPLB_OK) {
        require(error.status == status && error.text[0] != '\0');
        return 0;
    }
    for (int32_t r = 0; r < ROWS; r++)
        check_row(held + r * slots, rank + r * slots, count + r * experts, experts, slots);
    return 0;
}
