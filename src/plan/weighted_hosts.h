/* Hosts: the ranks that take a replica of another node, and what fills their other slots. */
#ifndef PLAN_WEIGHTED_HOSTS_H
#define PLAN_WEIGHTED_HOSTS_H

#include "plan/layer.h"

/* A replica of an expert of node `from` on rank `host` of node `to`, to serve so many tokens. */
typedef struct weighted_piece {
    int32_t expert;
    int32_t from;
    int32_t to;
    int32_t host;
    double tokens;
} weighted_piece;

typedef struct weighted_hosts {
    const layer_problem *problem;
    const int32_t *order; /* [E] ascending load */
    /* The caller's for each filling: */
    weighted_piece *piece; /* [max_spill]; no host has two */
    int32_t num_pieces;
    double rank_tokens; /* what a rank takes per unit of speed */
    int64_t *kept;      /* [E] tokens that stay at home; less what hosts share */
    int32_t *area;      /* [E] node of the expert; num_nodes: a host holds it whole */
    int32_t *rank_area; /* [G] node of the rank; num_nodes: a host */
    /* Filled: */
    layer_answer *answer; /* of hosts: slots, with quotas; a piece's is -1 */
    double *room;         /* [G] tokens that a host still takes */
    /* Inside: */
    int32_t *count;  /* [G] slots that are filled */
    int32_t *own;    /* [E] experts of a node, ascending load */
    uint8_t *chosen; /* [E] of own: a host holds it */
} weighted_hosts;

/* Takes the arrays; `order` and `answer` are the caller's. False when memory is out. */
bool weighted_hosts_init(weighted_hosts *hosts, const layer_problem *problem, const int32_t *order,
                         layer_answer *answer, arena *scratch);
/* Fills the hosts of a node with whole experts of it, the coldest that leave its other ranks no more than
 * they take, and perhaps part of a hot one. O(spare slots * (own experts + hosts k^2)). */
void weighted_hosts_fill(weighted_hosts *hosts, int32_t node);

#endif
