/* Replica counts that minimise the largest replica: each spare goes to the expert whose replicas are hottest.
 *
 * The rule is optimal for the largest replica (an exchange argument; the divisor rule of apportionment), not
 * for the largest rank: the search changes counts afterwards. A binary heap, heaviest on top, then fewest
 * replicas, then lowest index. O(E + R log E). Same idea as DeepSeek's replication, without its fault that a
 * layer without load gives every spare to expert 0. */
#include "plan/replica_counts.h"

#include "base/error.h"

typedef struct claim {
    double work;
    int32_t count;
    int32_t expert;
} claim;

static bool before(const claim *a, const claim *b)
{
    if (a->work != b->work)
        return a->work > b->work;
    if (a->count != b->count)
        return a->count < b->count;
    return a->expert < b->expert;
}

static void sift_down(claim *heap, int32_t n, int32_t i)
{
    claim moving = heap[i];
    for (;;) {
        int32_t child = 2 * i + 1;
        if (child >= n)
            break;
        if (child + 1 < n && before(&heap[child + 1], &heap[child]))
            child++;
        if (!before(&heap[child], &moving))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = moving;
}

/* Gives `spare` replicas, each to the top of the heap of n claims. */
static void grant(const replica_work *work, claim *heap, int32_t n, int32_t spare, int32_t cap,
                  int32_t *count)
{
    for (int32_t i = n / 2; i-- > 0;)
        sift_down(heap, n, i);
    for (; spare > 0 && n > 0; spare--) {
        claim *top = &heap[0];
        int32_t e = top->expert;
        count[e] = ++top->count;
        if (count[e] < cap)
            top->work = replica_work_at(work, e, count[e]);
        else
            *top = heap[--n];
        if (n > 0)
            sift_down(heap, n, 0);
    }
}

eplb_status replica_counts(const replica_work *work, int32_t num_experts, int32_t replicas, int32_t cap,
                           int32_t *count, arena *scratch, eplb_error *error)
{
    claim *heap = arena_take(scratch, (size_t)num_experts, sizeof *heap);
    if (heap == NULL)
        return error_memory(error, (size_t)num_experts * sizeof *heap, "replica counts");
    for (int32_t e = 0; e < num_experts; e++) {
        heap[e] = (claim){replica_work_at(work, e, 1), 1, e};
        count[e] = 1;
    }
    grant(work, heap, cap > 1 ? num_experts : 0, replicas - num_experts, cap, count);
    return EPLB_OK;
}

/* Fewest replicas, at most `cap`, of at most `largest` each; cap + 1 if there are none. */
static int32_t fewest(const replica_work *work, int32_t expert, double largest, int32_t cap)
{
    double whole = replica_work_at(work, expert, 1);
    int32_t count = whole <= largest ? 1 : whole < largest * cap ? (int32_t)(whole / largest) : cap;
    count = count > 0 ? count : 1;
    while (count <= cap && replica_work_at(work, expert, count) > largest)
        count++;
    return count;
}

eplb_status replica_counts_large(const replica_work *work, int32_t num_experts, int32_t replicas, int32_t cap,
                                 double largest, int32_t *count, bool *fits, arena *scratch,
                                 eplb_error *error)
{
    claim *heap = arena_take(scratch, (size_t)num_experts, sizeof *heap);
    if (heap == NULL)
        return error_memory(error, (size_t)num_experts * sizeof *heap, "replica counts");
    int32_t n = 0;
    int64_t spare = replicas;
    *fits = true;
    for (int32_t e = 0; e < num_experts; e++) {
        count[e] = fewest(work, e, largest, cap);
        *fits &= count[e] <= cap;
        spare -= count[e];
        double replica = replica_work_at(work, e, count[e]);
        if (replica <= largest / 2 && count[e] < cap)
            heap[n++] = (claim){replica, count[e], e};
    }
    *fits &= spare >= 0;
    if (*fits)
        grant(work, heap, n, (int32_t)spare, cap, count);
    return EPLB_OK;
}
