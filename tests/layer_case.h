/* A layer_problem with its arrays, for tests that call planning algorithms directly, and an exact judge of
 * answers. */
#ifndef TESTS_LAYER_CASE_H
#define TESTS_LAYER_CASE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plan/layer.h"

#define CASE_RANKS   128
#define CASE_EXPERTS 512
#define CASE_SLOTS   1024

typedef struct layer_case {
    layer_problem problem;
    layer_answer answer;
    int64_t load[CASE_EXPERTS];
    int32_t first_slot[CASE_RANKS + 1];
    int32_t slot_rank[CASE_SLOTS];
    int32_t rank_node[CASE_RANKS];
    int32_t rank_speed[CASE_RANKS];
    int32_t current[CASE_SLOTS];
    int32_t expert[CASE_SLOTS];
    int64_t quota[CASE_SLOTS];
} layer_case;

/* Sums, numbering and the empty answer, after load, rank_slots and the like were set. */
static inline void case_finish(layer_case *c, const int32_t *rank_slots)
{
    layer_problem *p = &c->problem;
    p->num_slots = 0;
    p->total = p->total_speed = 0;
    p->uniform_speed = true;
    p->uniform_slots = rank_slots[0];
    for (int32_t g = 0; g < p->num_ranks; g++) {
        c->first_slot[g] = p->num_slots;
        for (int32_t i = 0; i < rank_slots[g]; i++)
            c->slot_rank[p->num_slots++] = g;
        p->total_speed += c->rank_speed[g];
        p->uniform_speed = p->uniform_speed && c->rank_speed[g] == c->rank_speed[0];
        if (rank_slots[g] != rank_slots[0])
            p->uniform_slots = -1;
    }
    c->first_slot[p->num_ranks] = p->num_slots;
    for (int32_t e = 0; e < p->num_experts; e++)
        p->total += c->load[e];
    p->load = p->window_load = c->load;
    p->first_slot = c->first_slot;
    p->slot_rank = c->slot_rank;
    p->rank_node = c->rank_node;
    p->rank_speed = c->rank_speed;
    for (int32_t s = 0; s < p->num_slots; s++) {
        c->expert[s] = -1;
        c->quota[s] = 0;
    }
    c->answer = (layer_answer){.expert = c->expert, .quota = c->quota, .bound = 1.0};
}

/* E experts without load on G alike ranks of k slots, one node, weighted split. */
static inline void case_init(layer_case *c, int32_t num_experts, int32_t num_ranks, int32_t slots)
{
    memset(c, 0, sizeof *c);
    c->problem = (layer_problem){.num_experts = num_experts,
                                 .num_ranks = num_ranks,
                                 .num_nodes = 1,
                                 .num_groups = 1,
                                 .num_windows = 1,
                                 .split = EPLB_SPLIT_WEIGHTED,
                                 .cost = {.tokens = 1, .tile_tokens = 128},
                                 .plain_cost = true,
                                 .max_moves = INT64_MAX};
    int32_t rank_slots[CASE_RANKS] = {0};
    for (int32_t g = 0; g < num_ranks; g++) {
        c->rank_speed[g] = 1;
        rank_slots[g] = slots;
    }
    case_finish(c, rank_slots);
}

/* Again with the loads (and nothing else) changed. */
static inline void case_refresh(layer_case *c)
{
    int32_t rank_slots[CASE_RANKS] = {0};
    for (int32_t g = 0; g < c->problem.num_ranks; g++)
        rank_slots[g] = c->first_slot[g + 1] - c->first_slot[g];
    case_finish(c, rank_slots);
}

/* Windows [count, E], which stay the caller's, and their sum as the load. */
static inline void case_windows(layer_case *c, const int64_t *windows, int32_t count)
{
    for (int32_t e = 0; e < c->problem.num_experts; e++) {
        c->load[e] = 0;
        for (int32_t t = 0; t < count; t++)
            c->load[e] += windows[t * c->problem.num_experts + e];
    }
    case_refresh(c);
    c->problem.num_windows = count;
    c->problem.window_load = windows;
}

/* Puts so many ranks on each node, and groups on the nodes. */
static inline void case_nodes(layer_case *c, int32_t ranks_per_node, int32_t num_groups)
{
    for (int32_t g = 0; g < c->problem.num_ranks; g++)
        c->rank_node[g] = g / ranks_per_node;
    c->problem.num_nodes = c->problem.num_ranks / ranks_per_node;
    c->problem.num_groups = num_groups;
}

static inline bool case_rank_holds(const layer_case *c, const int32_t *expert, int32_t rank, int32_t wanted)
{
    for (int32_t s = c->first_slot[rank]; s < c->first_slot[rank + 1]; s++) {
        if (expert[s] == wanted)
            return true;
    }
    return false;
}

/* NULL if every expert has a slot, none is twice on a rank and no quota is negative; else what is wrong. */
static inline const char *case_problem(const layer_case *c)
{
    bool seen[CASE_EXPERTS] = {false};
    for (int32_t s = 0; s < c->problem.num_slots; s++) {
        int32_t e = c->expert[s];
        if (e < -1 || e >= c->problem.num_experts)
            return "expert out of range";
        if (c->quota[s] < 0 || (e < 0 && c->quota[s] != 0))
            return "quota";
        if (e < 0)
            continue;
        seen[e] = true;
        for (int32_t t = c->first_slot[c->slot_rank[s]]; t < s; t++) {
            if (c->expert[t] == e)
                return "an expert twice on a rank";
        }
    }
    for (int32_t e = 0; e < c->problem.num_experts; e++) {
        if (!seen[e])
            return "an expert without a slot";
    }
    return NULL;
}

/* max over ranks of (load / speed) / mean, from slots and quotas alone. */
static inline double case_imbalance(const layer_case *c)
{
    static const double none = 1.0;
    double sum[CASE_EXPERTS] = {0.0}, worst = 0.0;
    int32_t count[CASE_EXPERTS] = {0};
    if (c->problem.total == 0)
        return none;
    for (int32_t s = 0; s < c->problem.num_slots; s++) {
        if (c->expert[s] >= 0) {
            sum[c->expert[s]] += (double)c->quota[s];
            count[c->expert[s]]++;
        }
    }
    for (int32_t g = 0; g < c->problem.num_ranks; g++) {
        double load = 0.0;
        for (int32_t s = c->first_slot[g]; s < c->first_slot[g + 1]; s++) {
            int32_t e = c->expert[s];
            if (e >= 0)
                load += (double)c->load[e] *
                        (sum[e] > 0.0 ? (double)c->quota[s] / sum[e] : 1.0 / (double)count[e]);
        }
        load /= (double)c->rank_speed[g];
        worst = load > worst ? load : worst;
    }
    return worst / ((double)c->problem.total / (double)c->problem.total_speed);
}

/* Experts that a rank of `current` did not hold. */
static inline int64_t case_received(const layer_case *c)
{
    int64_t received = 0;
    for (int32_t s = 0; s < c->problem.num_slots; s++) {
        if (c->expert[s] >= 0 && !case_rank_holds(c, c->current, c->slot_rank[s], c->expert[s]))
            received++;
    }
    return received;
}

#endif
