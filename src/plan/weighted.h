/* The weighted split, file by file: what its parts hand to each other.
 *
 * A layer is cut into parts (the whole layer, a node, a connected component): ranks and the experts that live
 * on them. Inside a part the tree (weighted_tree.c) or, with rank speeds or scarce uneven slots, the greedy
 * form of it (weighted_uneven.c) puts every rank at its target. Everything writes slots and quotas of a
 * layer_answer whose slots of the part are still empty (-1, 0). */
#ifndef PLAN_WEIGHTED_H
#define PLAN_WEIGHTED_H

#include "plan/layer.h"
#include "plan/min_max_split.h"

/* Largest total, in units, of a part: sums of two totals still fit int64. */
#define WEIGHTED_TOTAL_LIMIT (INT64_MAX / 2)

typedef struct weighted_part {
    int32_t num_ranks;
    const int32_t *ranks; /* [num_ranks] ascending */
    int32_t num_experts;
    const int32_t *experts; /* [num_experts] ascending load, ties: lower index first */
    int64_t total;          /* their load */
    int32_t min_slots;      /* fewest slots of a rank of the part */
    int32_t num_slots;
} weighted_part;

/* Units per token, so that `total` divides by `divisor` exactly: `divisor` itself, or less where the product
 * would leave int64. Then targets differ by one unit, below 2^-45 of the mean for any divisor up to
 * EPLB_MAX_RANKS. */
int64_t weighted_unit(int64_t total, int64_t divisor);

/* Equal speeds and num_experts <= (min_slots - 1) * num_ranks + 1: each rank at total / num_ranks. */
bool weighted_tree_fits(const weighted_part *part);
bool weighted_tree(const layer_problem *problem, const weighted_part *part, int64_t unit, arena *scratch,
                   layer_answer *answer);

/* Fewer spare slots than the tree needs: connected components, each exact in itself. Equal speeds and
 * slots. */
bool weighted_components_fit(const layer_problem *problem, const weighted_part *part);
bool weighted_components(const layer_problem *problem, const weighted_part *part, arena *scratch,
                         layer_answer *answer);

/* *bound: proved lower bound of max over ranks of load / speed for any placement and shares of the part, as a
 * fraction of its mean total / speed; >= 1. False when memory is out. O(E log E + c R) for c components. */
bool weighted_bound(const layer_problem *problem, const weighted_part *part, arena *scratch, double *bound);

/* The same for the whole layer, as a fraction of its mean: ranks without slots count in the mean, nodes do
 * not matter. It holds for equal shares, too. False when memory is out. O(E log E + c R). */
bool weighted_floor(const layer_problem *problem, double *bound, arena *scratch);

/* Rank speeds, or slots too uneven for the tree: the same steps with a target and a number of slots of its
 * own for each rank, in several orders. *exact tells if one of them put every rank at its target; else the
 * slots of the part are left empty. */
bool weighted_uneven(const layer_problem *problem, const weighted_part *part, int64_t unit, arena *scratch,
                     layer_answer *answer, bool *exact);

/* Improves a placement and its shares, of whatever origin, that repair alone cannot improve: disturbs and
 * repairs it until *imbalance is at most `goal` or the work is used up. False when memory is out. */
bool weighted_kicks(const layer_problem *problem, double goal, arena *scratch, layer_answer *answer,
                    double *imbalance);

/* Best shares for given slots, by flow (min_max_split.h), in units that make rounding negligible. */
typedef struct weighted_shares {
    const layer_problem *problem;
    int64_t total;      /* of load */
    int64_t *load;      /* [E] units */
    int32_t *first;     /* [E + 1] replicas by expert */
    int32_t *rank;      /* [S] rank of a replica */
    int32_t *slot;      /* [S] slot of a replica */
    int64_t *quota;     /* [S] units of a replica */
    int64_t *rank_load; /* [G] units */
    uint8_t *tight;     /* [G] 1: member of the set that proves the level */
    int64_t max_load;   /* level reached: max over ranks of load / speed = max_load / max_speed */
    int64_t max_speed;
} weighted_shares;

bool weighted_shares_init(weighted_shares *shares, const layer_problem *problem, arena *scratch);
/* Solves for the experts in the slots; -1 is empty. Two slots of one rank with one expert: the first serves.
 * `near` is another solve over nearly the same slots to start from, or NULL. */
bool weighted_shares_solve(weighted_shares *shares, const int32_t *expert, const weighted_shares *near,
                           arena *scratch);
/* quota[S] by slot from the last solve. */
void weighted_shares_write(const weighted_shares *shares, int64_t *quota);
/* The level of the last solve as an imbalance: 1.0 is perfect. */
double weighted_shares_imbalance(const weighted_shares *shares);

/* Gives the empty slots of the part an expert that its rank lacks, with quota 0, chosen to absorb drift. */
bool weighted_expander(const layer_problem *problem, const weighted_part *part, arena *scratch,
                       layer_answer *answer);

#endif
