/* A general max-flow for tests: adjacency matrix, breadth-first augmenting paths (Edmonds and Karp). It
 * shares no idea with the solvers under test beyond the theorem. Sizes up to a few hundred nodes. */
#ifndef REFERENCE_MAX_FLOW_H
#define REFERENCE_MAX_FLOW_H

#include <stdint.h>
#include <stdlib.h>

typedef struct max_flow {
    int num_nodes;
    int64_t *capacity; /* [nodes, nodes], residual */
    int *parent;
    int *queue;
} max_flow;

static inline max_flow max_flow_create(int num_nodes)
{
    size_t n = (size_t)num_nodes;
    max_flow f = {num_nodes, calloc(n * n, sizeof(int64_t)), calloc(n, sizeof(int)), calloc(n, sizeof(int))};
    if (f.capacity == NULL || f.parent == NULL || f.queue == NULL)
        abort();
    return f;
}

static inline void max_flow_destroy(max_flow *f)
{
    free(f->capacity);
    free(f->parent);
    free(f->queue);
}

static inline int64_t *max_flow_edge(max_flow *f, int from, int to)
{
    return &f->capacity[(size_t)from * (size_t)f->num_nodes + (size_t)to];
}

static inline int max_flow_search(max_flow *f, int source, int sink)
{
    int head = 0, tail = 0;
    for (int i = 0; i < f->num_nodes; i++)
        f->parent[i] = -1;
    f->parent[source] = source;
    f->queue[tail++] = source;
    while (head < tail && f->parent[sink] < 0) {
        int at = f->queue[head++];
        for (int to = 0; to < f->num_nodes; to++) {
            if (f->parent[to] < 0 && *max_flow_edge(f, at, to) > 0) {
                f->parent[to] = at;
                f->queue[tail++] = to;
            }
        }
    }
    return f->parent[sink] >= 0;
}

/* Value of a maximum flow; the capacities become residual. */
static inline int64_t max_flow_run(max_flow *f, int source, int sink)
{
    int64_t value = 0;
    while (max_flow_search(f, source, sink)) {
        int64_t amount = INT64_MAX;
        for (int at = sink; at != source; at = f->parent[at]) {
            int64_t left = *max_flow_edge(f, f->parent[at], at);
            amount = left < amount ? left : amount;
        }
        for (int at = sink; at != source; at = f->parent[at]) {
            *max_flow_edge(f, f->parent[at], at) -= amount;
            *max_flow_edge(f, at, f->parent[at]) += amount;
        }
        value += amount;
    }
    return value;
}

/* Whether loads [E] over replicas (first, rank) fit ranks of the given capacity [G]. */
static inline int max_flow_fits(int num_experts, int num_ranks, const int32_t *first, const int32_t *rank,
                                const int64_t *load, const int64_t *capacity)
{
    max_flow f = max_flow_create(num_experts + num_ranks + 2);
    int source = num_experts + num_ranks, sink = source + 1;
    int64_t total = 0;
    for (int e = 0; e < num_experts; e++) {
        *max_flow_edge(&f, source, e) = load[e];
        total += load[e];
        for (int32_t i = first[e]; i < first[e + 1]; i++)
            *max_flow_edge(&f, e, num_experts + rank[i]) = load[e];
    }
    for (int g = 0; g < num_ranks; g++)
        *max_flow_edge(&f, num_experts + g, sink) = capacity[g];
    int64_t value = max_flow_run(&f, source, sink);
    max_flow_destroy(&f);
    return value == total;
}

/* Least integer maximum rank load over all integer splits, by bisection. */
static inline int64_t max_flow_min_max(int num_experts, int num_ranks, const int32_t *first,
                                       const int32_t *rank, const int64_t *load)
{
    int64_t low = 0, high = 0;
    int64_t *capacity = calloc((size_t)num_ranks, sizeof *capacity);
    if (capacity == NULL)
        abort();
    for (int e = 0; e < num_experts; e++)
        high += load[e];
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        for (int g = 0; g < num_ranks; g++)
            capacity[g] = middle;
        if (max_flow_fits(num_experts, num_ranks, first, rank, load, capacity))
            high = middle;
        else
            low = middle + 1;
    }
    free(capacity);
    return low;
}

#endif
