/* Shared-expert levelling: where each token's shared expert runs when every rank holds it.
 *
 * All tokens start at home. The largest load comes down to the level that the routed loads, the sources that
 * keep theirs and the mean allow; a price stops it earlier: one step down costs one remote token per rank
 * above the level. What leaves its rank stays on its node while that has room below the level; the rest goes
 * to the emptiest ranks anywhere. Exact. O(G^2 + nodes * G log tokens). Source: SGLang Waterfill (pull
 * request 19290), there by weighted random choice. */
#include <eplb/route.h>

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/params.h"
#include "route/source_part.h"

void eplb_shared_params_init(eplb_shared_params *params, size_t size)
{
    eplb_shared_params defaults = {.size = sizeof defaults, .batch_floor = 64};
    params_init(params, size, &defaults, sizeof defaults);
}

/* Checks and returns the total of the counts. NULL tokens: none. */
static eplb_status check(const eplb_topology *topology, const int64_t *routed, const int64_t *tokens,
                         const eplb_shared_params *params, int64_t *total, eplb_error *error)
{
    eplb_status status = params_check(params->size, sizeof *params, "shared", error);
    if (status != EPLB_OK)
        return status;
    if (params->price_per_mille < 0 || params->batch_floor < 0)
        return error_text(error, EPLB_ERROR_INVALID, "price %d and floor %lld: expected 0 or more",
                          params->price_per_mille, (long long)params->batch_floor);
    for (int32_t g = 0; g < eplb_topology_num_ranks(topology); g++) {
        int64_t here = tokens != NULL ? tokens[g] : 0;
        error_place place = {-1, -1, g, -1, routed[g] < 0 ? routed[g] : here};
        if (routed[g] < 0 || here < 0)
            return error_set(error, EPLB_ERROR_INVALID, place, "rank %d: a count of %lld", g,
                             (long long)place.value);
        if (!eplb_topology_rank_alive(topology)[g] && (here > 0 || routed[g] > 0))
            return error_set(error, EPLB_ERROR_INVALID, place, "rank %d is dead but has tokens", g);
        if (!checked_add(*total, routed[g], total) || !checked_add(*total, here, total))
            return error_set(error, EPLB_ERROR_OVERFLOW, place, "the tokens do not fit int64");
    }
    return EPLB_OK;
}

/* Ranks that may receive: those with open[g] != 0. Tokens that they take up to `level`. */
static int64_t room_up_to(int32_t num_ranks, const int64_t *load, const uint8_t *open, int64_t level,
                          int64_t enough)
{
    int64_t room = 0;
    for (int32_t g = 0; g < num_ranks && room < enough; g++) {
        if (open[g] && load[g] < level)
            room = level - load[g] > enough - room ? enough : room + (level - load[g]);
    }
    return room;
}

/* Gives `amount` tokens to the open ranks so that their largest load is least: part[g] += what each takes,
 * load too. The last incomplete row goes to ranks from `start` on. At least one rank must be open. */
static void fill_level(int32_t num_ranks, int64_t *load, const uint8_t *open, int64_t amount, int32_t start,
                       int64_t *part)
{
    int64_t low = INT64_MAX;
    for (int32_t g = 0; g < num_ranks; g++)
        low = open[g] && load[g] < low ? load[g] : low;
    int64_t high = low + amount;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (room_up_to(num_ranks, load, open, middle, amount) >= amount)
            high = middle;
        else
            low = middle + 1;
    }
    for (int32_t g = 0; g < num_ranks; g++) {
        int64_t given = open[g] && load[g] < low - 1 ? low - 1 - load[g] : 0;
        load[g] += given;
        part[g] += given;
        amount -= given;
    }
    for (int32_t n = 0; n < num_ranks && amount > 0; n++) {
        int32_t g = (int32_t)(((int64_t)start + n) % num_ranks);
        if (open[g] && load[g] < low) {
            load[g]++;
            part[g]++;
            amount--;
        }
    }
}

/* --- global counts ----------------------------------------------------------------------------------- */

typedef struct shared_scratch {
    int64_t *load;   /* [G] with all tokens at home */
    int64_t *leave;  /* [G] tokens that leave */
    int64_t *take;   /* [G] tokens that come */
    int32_t *number; /* [G] 0, 1, 2, ... */
    uint8_t *open;   /* [G] */
} shared_scratch;

/* The least value such that no more than `count` live ranks have a larger load. */
static int64_t price_level(const eplb_topology *topology, const int64_t *load, int64_t count)
{
    int32_t ranks = eplb_topology_num_ranks(topology);
    const uint8_t *alive = eplb_topology_rank_alive(topology);
    int64_t level = INT64_MAX;
    if (count >= eplb_topology_num_live_ranks(topology))
        return 0;
    for (int32_t g = 0; g < ranks; g++) {
        int64_t larger = 0;
        for (int32_t h = 0; h < ranks && alive[g]; h++)
            larger += alive[h] && load[h] > load[g];
        if (alive[g] && larger <= count && load[g] < level)
            level = load[g];
    }
    return level;
}

/* The level to come down to. */
static int64_t choose_level(const eplb_topology *topology, const int64_t *routed, const int64_t *tokens,
                            const eplb_shared_params *params, int64_t total, const int64_t *load)
{
    int32_t live = eplb_topology_num_live_ranks(topology);
    int64_t level = live > 0 ? total / live + (total % live != 0) : 0;
    for (int32_t g = 0; g < eplb_topology_num_ranks(topology); g++) {
        int64_t stays = tokens[g] < params->batch_floor ? load[g] : routed[g];
        level = stays > level ? stays : level;
    }
    if (params->price_per_mille > 0) {
        int64_t priced = price_level(topology, load, 1000 / params->price_per_mille);
        level = priced > level ? priced : level;
    }
    return level;
}

/* Gives each node as much of what leaves its ranks as it has room for; returns how much found none. */
static int64_t fill_nodes(const eplb_topology *topology, int64_t level, shared_scratch *scratch)
{
    int32_t ranks = eplb_topology_num_ranks(topology);
    const int32_t *rank_node = eplb_topology_rank_node(topology);
    int64_t far = 0;
    for (int32_t node = 0; node < eplb_topology_num_nodes(topology); node++) {
        int64_t leave = 0, room;
        for (int32_t g = 0; g < ranks; g++) {
            bool here = rank_node[g] == node;
            leave += here ? scratch->leave[g] : 0;
            scratch->open[g] = here && eplb_topology_rank_alive(topology)[g] && scratch->load[g] < level;
        }
        room = room_up_to(ranks, scratch->load, scratch->open, level, leave);
        if (room > 0)
            fill_level(ranks, scratch->load, scratch->open, room, 0, scratch->take);
        far += leave - room;
    }
    return far;
}

static void level_global(const eplb_topology *topology, const int64_t *routed, const int64_t *tokens,
                         const eplb_shared_params *params, int64_t total, shared_scratch *scratch,
                         int64_t *part)
{
    int32_t ranks = eplb_topology_num_ranks(topology);
    for (int32_t g = 0; g < ranks; g++)
        scratch->load[g] = routed[g] + tokens[g];
    int64_t level = choose_level(topology, routed, tokens, params, total, scratch->load);
    for (int32_t g = 0; g < ranks; g++) {
        scratch->leave[g] = scratch->load[g] > level ? scratch->load[g] - level : 0;
        scratch->load[g] -= scratch->leave[g];
        scratch->take[g] = 0;
        scratch->number[g] = g;
        part[(size_t)g * (size_t)ranks + (size_t)g] = tokens[g] - scratch->leave[g];
    }
    int64_t far = fill_nodes(topology, level, scratch);
    for (int32_t g = 0; g < ranks; g++)
        scratch->open[g] = eplb_topology_rank_alive(topology)[g] && scratch->load[g] < level;
    if (far > 0)
        fill_level(ranks, scratch->load, scratch->open, far, 0, scratch->take);
    source_part_output output = {.part = part, .stride = ranks, .only = -1};
    source_part(ranks, eplb_topology_rank_node(topology), scratch->number, ranks, scratch->leave,
                scratch->take, &output);
}

eplb_status eplb_shared_level(const eplb_topology *topology, const int64_t *routed, const int64_t *tokens,
                              const eplb_shared_params *params, int64_t *part, const eplb_allocator *given,
                              eplb_error *error)
{
    int64_t total = 0;
    eplb_status status = check(topology, routed, tokens, params, &total, error);
    if (status != EPLB_OK)
        return status;
    eplb_allocator allocator = memory_allocator(given);
    size_t ranks = (size_t)eplb_topology_num_ranks(topology);
    shared_scratch scratch = {.load = memory_take(&allocator, 3 * ranks, sizeof *scratch.load),
                              .number = memory_take(&allocator, ranks, sizeof *scratch.number),
                              .open = memory_take(&allocator, ranks, sizeof *scratch.open)};
    if (scratch.load != NULL && scratch.number != NULL && scratch.open != NULL) {
        scratch.leave = scratch.load + ranks;
        scratch.take = scratch.leave + ranks;
        memset(part, 0, ranks * ranks * sizeof *part);
        level_global(topology, routed, tokens, params, total, &scratch, part);
    } else {
        status = error_memory(error, 3 * ranks * sizeof(int64_t), "shared-expert levelling");
    }
    memory_give(&allocator, scratch.load);
    memory_give(&allocator, scratch.number);
    memory_give(&allocator, scratch.open);
    return status;
}

/* --- own counts -------------------------------------------------------------------------------------- */

/* The least level at which `tokens` fit over the live ranks, not below any routed load. */
static int64_t own_level(const eplb_topology *topology, const int64_t *routed, int64_t tokens)
{
    int32_t ranks = eplb_topology_num_ranks(topology);
    const uint8_t *alive = eplb_topology_rank_alive(topology);
    int64_t low = 0;
    for (int32_t g = 0; g < ranks; g++)
        low = routed[g] > low ? routed[g] : low;
    int64_t high = low + tokens;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (room_up_to(ranks, routed, alive, middle, tokens) >= tokens)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Live ranks other than the source, of its node (near) or not, below the level. */
static void open_ranks(const eplb_topology *topology, int32_t source, bool near, const int64_t *load,
                       int64_t level, uint8_t *open)
{
    const int32_t *node = eplb_topology_rank_node(topology);
    for (int32_t g = 0; g < eplb_topology_num_ranks(topology); g++)
        open[g] = g != source && eplb_topology_rank_alive(topology)[g] && (node[g] == node[source]) == near &&
                  load[g] < level;
}

eplb_status eplb_shared_level_own(const eplb_topology *topology, int32_t source, const int64_t *routed,
                                  int64_t tokens, const eplb_shared_params *params, int64_t *part,
                                  const eplb_allocator *given, eplb_error *error)
{
    int64_t total = tokens;
    int32_t ranks = eplb_topology_num_ranks(topology);
    if (source < 0 || source >= ranks || !eplb_topology_rank_alive(topology)[source] || tokens < 0)
        return error_set(error, EPLB_ERROR_INVALID, (error_place){-1, -1, source, -1, tokens},
                         "source rank %d of %d with %lld tokens: expected a live rank and no negative count",
                         source, ranks, (long long)tokens);
    eplb_status status = check(topology, routed, NULL, params, &total, error);
    if (status != EPLB_OK)
        return status;
    memset(part, 0, (size_t)ranks * sizeof *part);
    int64_t level = own_level(topology, routed, tokens);
    int64_t stays = level - routed[source] < tokens ? level - routed[source] : tokens;
    if (tokens < params->batch_floor || params->price_per_mille > 1000)
        stays = tokens;
    part[source] = stays;
    if (stays == tokens)
        return EPLB_OK;
    eplb_allocator allocator = memory_allocator(given);
    int64_t *load = memory_take(&allocator, (size_t)ranks, sizeof *load);
    uint8_t *open = memory_take(&allocator, (size_t)ranks, sizeof *open);
    if (load != NULL && open != NULL) {
        memcpy(load, routed, (size_t)ranks * sizeof *load);
        int64_t leave = tokens - stays;
        open_ranks(topology, source, true, load, level, open);
        int64_t near = room_up_to(ranks, load, open, level, leave);
        if (near > 0)
            fill_level(ranks, load, open, near, source + 1, part);
        open_ranks(topology, source, false, load, level, open);
        if (leave > near)
            fill_level(ranks, load, open, leave - near, source + 1, part);
    } else {
        status = error_memory(error, (size_t)ranks * sizeof *load, "shared-expert levelling");
    }
    memory_give(&allocator, load);
    memory_give(&allocator, open);
    return status;
}
