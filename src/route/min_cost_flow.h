/* A small minimum cost flow: nodes, arcs with capacity and cost, one source, one sink. */
#ifndef ROUTE_MIN_COST_FLOW_H
#define ROUTE_MIN_COST_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

/* Arc 2 i and its reverse 2 i + 1; capacity is what is left. */
typedef struct min_cost_flow {
    int32_t num_nodes;
    int32_t num_arcs;
    int32_t *head;     /* [nodes] first arc, -1: none */
    int32_t *next;     /* [arcs] */
    int32_t *to;       /* [arcs] */
    int32_t *cost;     /* [arcs] */
    int64_t *capacity; /* [arcs] */
    int32_t *distance; /* [nodes] */
    int32_t *level;    /* [nodes] */
    int32_t *current;  /* [nodes] */
    int32_t *queue;    /* [nodes + 1] ring */
    int32_t *path;     /* [nodes] */
    uint8_t *queued;   /* [nodes] */
} min_cost_flow;

/* Room for max_arcs arcs (reverse ones not counted). False when memory is out. */
bool min_cost_flow_init(min_cost_flow *flow, int32_t num_nodes, int32_t max_arcs, arena *scratch);
/* Adds an arc, cost >= 0; returns its number. */
int32_t min_cost_flow_add(min_cost_flow *flow, int32_t from, int32_t to, int64_t capacity, int32_t cost);
/* Units on an arc after a run. */
int64_t min_cost_flow_on(const min_cost_flow *flow, int32_t arc);
/* Pushes a maximum flow of least cost; returns its value. Costs are small integers: one shortest path search
 * and one blocking flow per distinct path cost. */
int64_t min_cost_flow_run(min_cost_flow *flow, int32_t source, int32_t sink);

#endif
