/* Packing by DeepSeek's rule: heaviest item first, into the lightest pack that has room.
 *
 * Pack weights are single-precision sums in order of arrival and ties go to the lowest pack, as in the
 * original; as many items as packs go one to one in order, without sorting. Radix order, then one tournament
 * step per item. Source: balanced_packing of deepseek-ai/EPLB; Graham's LPT (1969) with equal pack sizes. */
#include "plan/pack.h"

#include "base/error.h"
#include "plan/descending.h"
#include "plan/float_key.h"
#include "plan/tournament.h"

static void pack_in_order(int32_t n, int32_t *pack, int32_t *position)
{
    for (int32_t i = 0; i < n; i++) {
        pack[i] = i;
        position[i] = 0;
    }
}

/* The first round: into empty packs, items with weight go one by one in order of the packs. Fills the leaves
 * and returns how many items are placed: num_packs, or 0 where an item without weight would stay with the
 * first pack. */
static int32_t pack_first_round(const float *weight, const int32_t *order, int32_t num_packs,
                                tournament *lightest, int32_t *pack, int32_t *position, int32_t *held)
{
    bool loaded = weight[order[num_packs - 1]] > 0.0f;
    for (int32_t g = 0; g < num_packs; g++) {
        float sum = loaded ? weight[order[g]] : 0.0f;
        tournament_set(lightest, g, key_lightest(sum, (uint32_t)g));
        held[g] = loaded ? 1 : 0;
        if (loaded) {
            pack[order[g]] = g;
            position[order[g]] = 0;
        }
    }
    tournament_build(lightest);
    return loaded ? num_packs : 0;
}

/* The second round of packs with room for two: each is full with its next item, so they are taken from the
 * lightest up, which is from the last back; of packs that weigh the same, the lowest first. */
static void pack_second_of_two(const float *weight, const int32_t *order, int32_t num_packs, int32_t *pack,
                               int32_t *position)
{
    const int32_t *item = order + num_packs;
    for (int32_t end = num_packs; end > 0;) {
        int32_t first = end - 1;
        while (first > 0 && weight[order[first - 1]] == weight[order[end - 1]])
            first--;
        for (int32_t g = first; g < end; g++, item++) {
            pack[*item] = g;
            position[*item] = 1;
        }
        end = first;
    }
}

eplb_status pack_balanced(const float *weight, int32_t n, int32_t num_packs, arena *scratch, int32_t *pack,
                          int32_t *position, eplb_error *error)
{
    if (n == num_packs) {
        pack_in_order(n, pack, position);
        return EPLB_OK;
    }
    arena_mark mark = arena_position(scratch);
    int32_t room = n / num_packs;
    int32_t *order = arena_take(scratch, (size_t)n, sizeof *order);
    int32_t *held = arena_take(scratch, (size_t)num_packs, sizeof *held);
    tournament lightest = tournament_take(scratch, num_packs);
    if (order == NULL || held == NULL || lightest.node == NULL)
        return error_memory(error, (size_t)n * sizeof *order, "the packing of replicas");
    eplb_status status = order_descending(weight, n, scratch, order, error);
    if (status != EPLB_OK)
        return status;
    int32_t placed = pack_first_round(weight, order, num_packs, &lightest, pack, position, held);
    if (placed > 0 && room == 2) {
        pack_second_of_two(weight, order, num_packs, pack, position);
        placed = n;
    }
    for (int32_t i = placed; i < n; i++) {
        uint64_t least = tournament_least(&lightest);
        uint32_t g = key_index(least);
        int32_t item = order[i];
        pack[item] = (int32_t)g;
        position[item] = held[g]++;
        float sum = key_weight(least) + weight[item];
        tournament_replace(&lightest, g, held[g] < room ? key_lightest(sum, g) : TOURNAMENT_LAST);
    }
    arena_rewind(scratch, mark);
    return EPLB_OK;
}
