/* One layer's placement while it is being changed: who sits where, and what every rank carries.
 *
 * Two changes are enough to reach any placement: swapping the contents of two slots, and giving a slot to
 * another expert, which changes the replica counts of both and so the load of every rank that holds either.
 * Both keep all sums exact. An expert sits on a rank at most once; -1 is an empty slot. */
#ifndef PLAN_LAYOUT_H
#define PLAN_LAYOUT_H

#include "plan/expert_bits.h"
#include "plan/replica_work.h"

typedef struct layout {
    const replica_work *work;
    int32_t num_experts;
    int32_t num_ranks;
    int32_t num_slots;
    int32_t max_count;           /* most replicas an expert may have: ranks that have a slot */
    const int32_t *first_slot;   /* [G + 1] */
    const int32_t *slot_rank;    /* [S] */
    const double *inverse_speed; /* [G] */

    int32_t *expert;      /* [S] */
    double *slot_load;    /* [S] work of what the slot holds */
    double *rank_load;    /* [G] */
    int32_t *sorted_slot; /* [S] slots of each rank, heaviest first, from first_slot[rank] on */
    double *sorted_load;  /* [S] their loads */
    int32_t *count;       /* [E] */
    double *replica_load; /* [E] work of one replica at this count */
    double *fewer_load;   /* [E] the same with one replica less (0 at count < 2) */
    double *more_load;    /* [E] the same with one replica more */
    int32_t *first;       /* [E] a slot of the expert, the head of a chain through `next`; -1: none */
    int32_t *next;        /* [S] */
    int32_t *previous;    /* [S] */
    uint64_t *holds;      /* [G, words] what each rank holds (expert_bits.h) */
    int32_t words;
} layout;

/* Takes the arrays from `scratch`; the layout is empty: no expert anywhere. Errors: MEMORY. O(S + E + G
 * E/64). */
eplb_status layout_init(layout *seats, const layer_problem *problem, const replica_work *work, arena *scratch,
                        eplb_error *error);
/* Replaces everything by expert[S]; it must hold no expert twice on a rank. O(S + E + G E/64). */
void layout_set(layout *seats, const int32_t *expert);
/* Exchanges the contents of two slots of different ranks; either may be empty. O(1). */
void layout_swap(layout *seats, int32_t slot, int32_t other);
/* Gives a slot to an expert that its rank does not hold; what sat there loses a replica. O(replicas of
 * both). */
void layout_reassign(layout *seats, int32_t slot, int32_t expert);
/* Largest rank load / speed; *rank is the first that has it. O(G). */
double layout_hottest(const layout *seats, int32_t *rank);

static inline bool layout_holds(const layout *seats, int32_t rank, int32_t expert)
{
    return expert >= 0 && expert_bits_has(seats->holds, seats->words, rank, expert);
}

#endif
