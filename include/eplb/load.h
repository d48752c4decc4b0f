/* Load: tokens per logical expert, layer and window, [T, L, E]; T = 1 is one matrix [L, E].
 *
 * Counts are non-negative integers; sums over windows of a layer fit in int64 (checked). A load either
 * owns its counts or borrows the caller's array, which must then stay unchanged while the load lives.
 * Immutable after creation; any number of threads may read it. */
#ifndef EPLB_LOAD_H
#define EPLB_LOAD_H

#include <stdbool.h>

#include <eplb/status.h>

EPLB_BEGIN_DECLS

typedef struct eplb_load eplb_load;

typedef enum eplb_element {
    EPLB_ELEMENT_INT32 = 0,
    EPLB_ELEMENT_INT64 = 1,
    EPLB_ELEMENT_FLOAT32 = 2,
    EPLB_ELEMENT_FLOAT64 = 3
} eplb_element;

/* What a load is made from.
 * Integers are taken as they are. Floating-point counts must be finite and >= 0; if all are whole numbers
 * below 2^53 they are taken as integers, else all are multiplied by one power of two, chosen so that the
 * largest layer total lies in [2^52, 2^53), and rounded to nearest, ties to even. Floats are never
 * borrowed. */
typedef struct eplb_load_params {
    size_t size;
    int32_t num_windows; /* T >= 1 */
    int32_t num_layers;  /* L >= 1 */
    int32_t num_experts; /* E >= 1 */
    eplb_element element;
    const void *counts;      /* element [t, l, e] is at counts + t*strides[0] + l*strides[1] + e*strides[2] */
    int64_t stride_bytes[3]; /* all zero: C order, packed */
    bool borrow;             /* keep a pointer to counts instead of a copy (integers only) */
} eplb_load_params;

/* Defaults: one window, packed int64, copied. */
EPLB_API void eplb_load_params_init(eplb_load_params *params, size_t size);

/* Creates a load and checks every count. Errors: INVALID (negative, NaN, infinite, sizes; names window in
 * the text, layer, expert and value), OVERFLOW (layer), MEMORY. O(T L E). */
EPLB_API eplb_status eplb_load_create(eplb_load **load, const eplb_load_params *params,
                                      const eplb_allocator *allocator, eplb_error *error);
/* Deep, owning copy. Errors: MEMORY. */
EPLB_API eplb_status eplb_load_copy(eplb_load **copy, const eplb_load *load, const eplb_allocator *allocator,
                                    eplb_error *error);
/* Releases it; NULL is fine. */
EPLB_API void eplb_load_destroy(eplb_load *load);
/* True if the object is whole and every count is legal (borrowed counts are read again). O(T L E). */
EPLB_API bool eplb_load_is_valid(const eplb_load *load);
/* Same sizes and counts, however stored. */
EPLB_API bool eplb_load_equal(const eplb_load *a, const eplb_load *b);

/* T, L and E. */
EPLB_API int32_t eplb_load_num_windows(const eplb_load *load);
EPLB_API int32_t eplb_load_num_layers(const eplb_load *load);
EPLB_API int32_t eplb_load_num_experts(const eplb_load *load);
/* Power of two that floating-point input was multiplied by; 0 for integers. */
EPLB_API int32_t eplb_load_scale_log2(const eplb_load *load);
/* Sum over windows of one layer, written to sum[E]. */
EPLB_API void eplb_load_sum(const eplb_load *load, int32_t layer, int64_t *sum);
/* Counts of one layer, written to counts[T, E]. */
EPLB_API void eplb_load_windows(const eplb_load *load, int32_t layer, int64_t *counts);
/* One count. */
EPLB_API int64_t eplb_load_at(const eplb_load *load, int32_t window, int32_t layer, int32_t expert);
/* Total of one layer over windows and experts. */
EPLB_API int64_t eplb_load_total(const eplb_load *load, int32_t layer);

EPLB_END_DECLS

#endif
