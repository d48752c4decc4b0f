/* Load: tokens per window, layer and expert, stored as given (int32 or int64, any strides) or borrowed.
 *
 * Integers decide everywhere, so floating-point input becomes integers here, once, by a rule that is the same
 * on every host. Every count is checked at creation, in one pass, so that the rooms behind may add without
 * looking. O(T L E). */
#include <eplb/load.h>

#include <float.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/params.h"

struct eplb_load {
    eplb_allocator allocator;
    int32_t num_windows;
    int32_t num_layers;
    int32_t num_experts;
    int32_t scale_log2;
    eplb_element element; /* INT32 or INT64 */
    int64_t stride[3];    /* bytes */
    const unsigned char *counts;
    void *owned; /* block to release, or NULL when borrowed */
};

#define WHOLE_LIMIT 9007199254740992.0 /* 2^53 */

void eplb_load_params_init(eplb_load_params *params, size_t size)
{
    eplb_load_params defaults = {.size = sizeof defaults, .num_windows = 1, .element = EPLB_ELEMENT_INT64};
    params_init(params, size, &defaults, sizeof defaults);
}

static size_t element_bytes(eplb_element element)
{
    return element == EPLB_ELEMENT_INT32 || element == EPLB_ELEMENT_FLOAT32 ? 4 : 8;
}

static bool is_float(eplb_element element)
{
    return element == EPLB_ELEMENT_FLOAT32 || element == EPLB_ELEMENT_FLOAT64;
}

static eplb_status check_size(const char *what, int32_t value, int32_t most, eplb_error *error)
{
    if (value >= 1 && value <= most)
        return EPLB_OK;
    return error_set(error, EPLB_ERROR_INVALID, (error_place){-1, -1, -1, -1, value},
                     "a load of %d %s: expected 1 to %d", value, what, most);
}

static eplb_status check_params(const eplb_load_params *params, eplb_error *error)
{
    eplb_status status = params_check(params->size, sizeof *params, "load", error);
    if (status == EPLB_OK)
        status = check_size("windows", params->num_windows, EPLB_MAX_WINDOWS, error);
    if (status == EPLB_OK)
        status = check_size("layers", params->num_layers, EPLB_MAX_LAYERS, error);
    if (status == EPLB_OK)
        status = check_size("experts", params->num_experts, EPLB_MAX_EXPERTS, error);
    if (status != EPLB_OK)
        return status;
    if (params->element < EPLB_ELEMENT_INT32 || params->element > EPLB_ELEMENT_FLOAT64)
        return error_text(error, EPLB_ERROR_INVALID, "load element type %d is unknown", (int)params->element);
    if (params->counts == NULL)
        return error_text(error, EPLB_ERROR_INVALID, "load counts are NULL");
    return EPLB_OK;
}

/* The strides asked for, or those of a packed C array. */
static void find_strides(const eplb_load_params *params, int64_t stride[3])
{
    memcpy(stride, params->stride_bytes, sizeof params->stride_bytes);
    if (stride[0] != 0 || stride[1] != 0 || stride[2] != 0)
        return;
    stride[2] = (int64_t)element_bytes(params->element);
    stride[1] = stride[2] * params->num_experts;
    stride[0] = stride[1] * params->num_layers;
}

static const unsigned char *address(const unsigned char *counts, const int64_t stride[3], int32_t t,
                                    int32_t l, int32_t e)
{
    return counts + (ptrdiff_t)(t * stride[0] + l * stride[1] + e * stride[2]);
}

static int64_t read_integer(const unsigned char *at, eplb_element element)
{
    if (element == EPLB_ELEMENT_INT32) {
        int32_t value;
        memcpy(&value, at, sizeof value);
        return value;
    }
    int64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static double read_float(const unsigned char *at, eplb_element element)
{
    if (element == EPLB_ELEMENT_FLOAT32) {
        float value;
        memcpy(&value, at, sizeof value);
        return (double)value;
    }
    double value;
    memcpy(&value, at, sizeof value);
    return value;
}

static eplb_status negative(int32_t t, int32_t l, int32_t e, int64_t value, eplb_error *error)
{
    return error_set(error, EPLB_ERROR_INVALID, (error_place){l, e, -1, -1, value},
                     "load of window %d, layer %d, expert %d is %lld: expected 0 or more", t, l, e,
                     (long long)value);
}

/* Sums every layer over windows and experts, so that later sums cannot overflow. */
static eplb_status check_counts(const eplb_load *load, eplb_error *error)
{
    for (int32_t l = 0; l < load->num_layers; l++) {
        int64_t total = 0;
        for (int32_t t = 0; t < load->num_windows; t++) {
            for (int32_t e = 0; e < load->num_experts; e++) {
                int64_t value = read_integer(address(load->counts, load->stride, t, l, e), load->element);
                if (value < 0)
                    return negative(t, l, e, value, error);
                if (!checked_add(total, value, &total))
                    return error_set(error, EPLB_ERROR_OVERFLOW, (error_place){l, e, -1, -1, value},
                                     "load of layer %d exceeds int64 at window %d, expert %d (value %lld)", l,
                                     t, e, (long long)value);
            }
        }
    }
    return EPLB_OK;
}

/* What a pass over floating-point counts learns. */
typedef struct float_survey {
    bool whole;     /* all are whole numbers below 2^53 */
    double largest; /* largest layer total */
} float_survey;

static eplb_status survey_floats(const eplb_load_params *params, const int64_t stride[3],
                                 float_survey *survey, eplb_error *error)
{
    *survey = (float_survey){true, 0.0};
    for (int32_t l = 0; l < params->num_layers; l++) {
        double total = 0.0;
        for (int32_t t = 0; t < params->num_windows; t++) {
            for (int32_t e = 0; e < params->num_experts; e++) {
                double value = read_float(address(params->counts, stride, t, l, e), params->element);
                if (!(value >= 0.0 && value <= DBL_MAX))
                    return error_set(
                        error, EPLB_ERROR_INVALID, (error_place){l, e, -1, -1, -1},
                        "load of window %d, layer %d, expert %d is %g: expected a finite number, 0 or more",
                        t, l, e, value);
                if (value >= WHOLE_LIMIT || (double)(int64_t)value != value)
                    survey->whole = false;
                total += value;
            }
        }
        if (!(total <= DBL_MAX))
            return error_set(error, EPLB_ERROR_OVERFLOW, (error_place){l, -1, -1, -1, -1},
                             "load of layer %d sums to infinity", l);
        if (total > survey->largest)
            survey->largest = total;
    }
    return EPLB_OK;
}

/* Scale that brings `largest` into [2^52, 2^53); multiplying by 2 or 0.5 is exact, so every host agrees. Two
 * factors, because one alone may be out of range for subnormal or huge input. */
static int32_t find_scale(double largest)
{
    int32_t log2 = 0;
    while (largest >= WHOLE_LIMIT) {
        largest *= 0.5;
        log2--;
    }
    while (largest > 0.0 && largest < WHOLE_LIMIT / 2.0) {
        largest *= 2.0;
        log2++;
    }
    return log2;
}

static double scale_by(double value, int32_t log2)
{
    for (; log2 > 0; log2--)
        value *= 2.0;
    for (; log2 < 0; log2++)
        value *= 0.5;
    return value;
}

/* Nearest integer, ties to even; value is in [0, 2^53). */
static int64_t round_even(double value)
{
    int64_t floor = (int64_t)value;
    double rest = value - (double)floor;
    if (rest > 0.5 || (rest == 0.5 && floor % 2 != 0))
        floor++;
    return floor;
}

/* Fills out[T, L, E], packed, from floating-point counts. */
static void convert_floats(const eplb_load_params *params, const int64_t stride[3], int32_t log2,
                           int64_t *out)
{
    /* The factor is split so that each half is a normal number; products by powers of two are exact until the
     * last. */
    double first = scale_by(1.0, log2 / 2), second = scale_by(1.0, log2 - log2 / 2);
    size_t next = 0;
    for (int32_t t = 0; t < params->num_windows; t++) {
        for (int32_t l = 0; l < params->num_layers; l++) {
            for (int32_t e = 0; e < params->num_experts; e++) {
                double value = read_float(address(params->counts, stride, t, l, e), params->element);
                out[next++] = round_even(value * first * second);
            }
        }
    }
}

static void copy_integers(const eplb_load_params *params, const int64_t stride[3], unsigned char *out)
{
    size_t bytes = element_bytes(params->element);
    for (int32_t t = 0; t < params->num_windows; t++) {
        for (int32_t l = 0; l < params->num_layers; l++) {
            for (int32_t e = 0; e < params->num_experts; e++) {
                memcpy(out, address(params->counts, stride, t, l, e), bytes);
                out += bytes;
            }
        }
    }
}

/* Gives the load its own packed array. */
static eplb_status own_counts(eplb_load *load, const eplb_load_params *params, eplb_error *error)
{
    int64_t stride[3];
    float_survey survey = {true, 0.0};
    find_strides(params, stride);
    if (is_float(params->element)) {
        eplb_status status = survey_floats(params, stride, &survey, error);
        if (status != EPLB_OK)
            return status;
        load->element = EPLB_ELEMENT_INT64;
        load->scale_log2 = survey.whole ? 0 : find_scale(survey.largest);
    }
    size_t bytes = element_bytes(load->element);
    size_t count = (size_t)load->num_windows * (size_t)load->num_layers * (size_t)load->num_experts;
    load->owned = memory_take(&load->allocator, count, bytes);
    if (load->owned == NULL)
        return error_memory(error, count * bytes, "a load");
    load->counts = load->owned;
    load->stride[2] = (int64_t)bytes;
    load->stride[1] = load->stride[2] * load->num_experts;
    load->stride[0] = load->stride[1] * load->num_layers;
    if (is_float(params->element))
        convert_floats(params, stride, load->scale_log2, load->owned);
    else
        copy_integers(params, stride, load->owned);
    return EPLB_OK;
}

eplb_status eplb_load_create(eplb_load **load, const eplb_load_params *params,
                             const eplb_allocator *allocator, eplb_error *error)
{
    *load = NULL;
    eplb_status status = check_params(params, error);
    if (status != EPLB_OK)
        return status;
    eplb_allocator chosen = memory_allocator(allocator);
    eplb_load *created = memory_take(&chosen, 1, sizeof *created);
    if (created == NULL)
        return error_memory(error, sizeof *created, "a load");
    created->allocator = chosen;
    created->num_windows = params->num_windows;
    created->num_layers = params->num_layers;
    created->num_experts = params->num_experts;
    created->element = params->element;
    if (params->borrow && !is_float(params->element)) {
        created->counts = params->counts;
        find_strides(params, created->stride);
    } else {
        status = own_counts(created, params, error);
    }
    if (status == EPLB_OK)
        status = check_counts(created, error);
    if (status != EPLB_OK) {
        eplb_load_destroy(created);
        return status;
    }
    *load = created;
    return EPLB_OK;
}

eplb_status eplb_load_copy(eplb_load **copy, const eplb_load *load, const eplb_allocator *allocator,
                           eplb_error *error)
{
    eplb_load_params params;
    eplb_load_params_init(&params, sizeof params);
    params.num_windows = load->num_windows;
    params.num_layers = load->num_layers;
    params.num_experts = load->num_experts;
    params.element = load->element;
    params.counts = load->counts;
    memcpy(params.stride_bytes, load->stride, sizeof load->stride);
    eplb_status status = eplb_load_create(copy, &params, allocator, error);
    if (status == EPLB_OK)
        (*copy)->scale_log2 = load->scale_log2;
    return status;
}

void eplb_load_destroy(eplb_load *load)
{
    if (load == NULL)
        return;
    eplb_allocator allocator = load->allocator;
    memory_give(&allocator, load->owned);
    memory_give(&allocator, load);
}

bool eplb_load_is_valid(const eplb_load *load)
{
    return load != NULL && load->counts != NULL && check_counts(load, NULL) == EPLB_OK;
}

bool eplb_load_equal(const eplb_load *a, const eplb_load *b)
{
    if (a->num_windows != b->num_windows || a->num_layers != b->num_layers ||
        a->num_experts != b->num_experts)
        return false;
    for (int32_t t = 0; t < a->num_windows; t++) {
        for (int32_t l = 0; l < a->num_layers; l++) {
            for (int32_t e = 0; e < a->num_experts; e++) {
                if (eplb_load_at(a, t, l, e) != eplb_load_at(b, t, l, e))
                    return false;
            }
        }
    }
    return true;
}

int32_t eplb_load_num_windows(const eplb_load *load)
{
    return load->num_windows;
}

int32_t eplb_load_num_layers(const eplb_load *load)
{
    return load->num_layers;
}

int32_t eplb_load_num_experts(const eplb_load *load)
{
    return load->num_experts;
}

int32_t eplb_load_scale_log2(const eplb_load *load)
{
    return load->scale_log2;
}

int64_t eplb_load_at(const eplb_load *load, int32_t window, int32_t layer, int32_t expert)
{
    return read_integer(address(load->counts, load->stride, window, layer, expert), load->element);
}

/* One row of E counts; packed rows, the usual case, are read without address arithmetic. */
static void read_row(const eplb_load *load, int32_t window, int32_t layer, int64_t *row)
{
    const unsigned char *start = address(load->counts, load->stride, window, layer, 0);
    size_t experts = (size_t)load->num_experts;
    if (load->element == EPLB_ELEMENT_INT64 && load->stride[2] == 8) {
        memcpy(row, start, experts * sizeof *row);
        return;
    }
    for (size_t e = 0; e < experts; e++)
        row[e] = read_integer(start + (ptrdiff_t)((int64_t)e * load->stride[2]), load->element);
}

void eplb_load_sum(const eplb_load *load, int32_t layer, int64_t *sum)
{
    read_row(load, 0, layer, sum);
    for (int32_t t = 1; t < load->num_windows; t++) {
        const unsigned char *start = address(load->counts, load->stride, t, layer, 0);
        for (int32_t e = 0; e < load->num_experts; e++)
            sum[e] += read_integer(start + (ptrdiff_t)(e * load->stride[2]), load->element);
    }
}

void eplb_load_windows(const eplb_load *load, int32_t layer, int64_t *counts)
{
    for (int32_t t = 0; t < load->num_windows; t++)
        read_row(load, t, layer, counts + (size_t)t * (size_t)load->num_experts);
}

int64_t eplb_load_total(const eplb_load *load, int32_t layer)
{
    int64_t total = 0;
    for (int32_t t = 0; t < load->num_windows; t++) {
        const unsigned char *start = address(load->counts, load->stride, t, layer, 0);
        for (int32_t e = 0; e < load->num_experts; e++)
            total += read_integer(start + (ptrdiff_t)(e * load->stride[2]), load->element);
    }
    return total;
}
