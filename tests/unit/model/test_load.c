/* Load: storage, strides, floating-point input, and every refusal with its place. */
#include <math.h>
#include <string.h>

#include <eplb/eplb.h>

#include "testing.h"

static eplb_load_params params_of(int32_t windows, int32_t layers, int32_t experts, eplb_element element,
                                  const void *counts)
{
    eplb_load_params params;
    eplb_load_params_init(&params, sizeof params);
    params.num_windows = windows;
    params.num_layers = layers;
    params.num_experts = experts;
    params.element = element;
    params.counts = counts;
    return params;
}

static void test_windows_and_sums(void **state)
{
    (void)state;
    const int32_t counts[2][2][3] = {{{1, 2, 3}, {4, 5, 6}}, {{10, 20, 30}, {40, 50, 60}}};
    eplb_load_params params = params_of(2, 2, 3, EPLB_ELEMENT_INT32, counts);
    eplb_load *load;
    assert_int_equal(eplb_load_create(&load, &params, NULL, NULL), EPLB_OK);
    int64_t sum[3], windows[6];
    eplb_load_sum(load, 1, sum);
    const int64_t expected[3] = {44, 55, 66};
    assert_memory_equal(sum, expected, sizeof expected);
    eplb_load_windows(load, 0, windows);
    const int64_t both[6] = {1, 2, 3, 10, 20, 30};
    assert_memory_equal(windows, both, sizeof both);
    assert_int_equal(eplb_load_total(load, 0), 66);
    assert_int_equal(eplb_load_at(load, 1, 0, 2), 30);
    eplb_load_destroy(load);
}

static void test_borrowed_transposed_equals_owned(void **state)
{
    (void)state;
    const int64_t by_expert[3][2] = {{1, 4}, {2, 5}, {3, 6}}; /* [E][L] */
    const int64_t by_layer[2][3] = {{1, 2, 3}, {4, 5, 6}};
    eplb_load_params params = params_of(1, 2, 3, EPLB_ELEMENT_INT64, by_expert);
    params.stride_bytes[1] = sizeof(int64_t);
    params.stride_bytes[2] = 2 * sizeof(int64_t);
    params.borrow = true;
    eplb_load *borrowed, *owned, *copy;
    assert_int_equal(eplb_load_create(&borrowed, &params, NULL, NULL), EPLB_OK);
    params = params_of(1, 2, 3, EPLB_ELEMENT_INT64, by_layer);
    assert_int_equal(eplb_load_create(&owned, &params, NULL, NULL), EPLB_OK);
    assert_true(eplb_load_equal(borrowed, owned));
    assert_true(eplb_load_is_valid(borrowed));
    assert_int_equal(eplb_load_copy(&copy, borrowed, NULL, NULL), EPLB_OK);
    assert_true(eplb_load_equal(copy, owned));
    eplb_load_destroy(borrowed);
    eplb_load_destroy(owned);
    eplb_load_destroy(copy);
}

static void test_negative_stride(void **state)
{
    (void)state;
    const int32_t counts[4] = {1, 2, 3, 4};
    eplb_load_params params = params_of(1, 1, 4, EPLB_ELEMENT_INT32, counts + 3);
    params.stride_bytes[2] = -(int64_t)sizeof(int32_t);
    eplb_load *load;
    assert_int_equal(eplb_load_create(&load, &params, NULL, NULL), EPLB_OK);
    for (int32_t e = 0; e < 4; e++)
        assert_int_equal(eplb_load_at(load, 0, 0, e), 4 - e);
    eplb_load_destroy(load);
}

static void test_whole_floats_stay(void **state)
{
    (void)state;
    const float counts[3] = {0.0f, 16777216.0f, 7.0f};
    eplb_load_params params = params_of(1, 1, 3, EPLB_ELEMENT_FLOAT32, counts);
    eplb_load *load;
    assert_int_equal(eplb_load_create(&load, &params, NULL, NULL), EPLB_OK);
    assert_int_equal(eplb_load_scale_log2(load), 0);
    assert_int_equal(eplb_load_at(load, 0, 0, 1), 16777216);
    eplb_load_destroy(load);
}

static void test_fractions_are_scaled(void **state)
{
    (void)state;
    const double cases[][2] = {{0.5, 0.25}, {3e-310, 1e-310}, {1e300, 0.5e300}, {1e18, 0.1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        eplb_load_params params = params_of(1, 1, 2, EPLB_ELEMENT_FLOAT64, cases[i]);
        eplb_load *load;
        assert_int_equal(eplb_load_create(&load, &params, NULL, NULL), EPLB_OK);
        double total = (double)eplb_load_total(load, 0);
        assert_true(total >= 0x1p52 && total <= 0x1p53);
        double expected = cases[i][0] / (cases[i][0] + cases[i][1]);
        double got = (double)eplb_load_at(load, 0, 0, 0) / total;
        assert_true(fabs(got - expected) < 1e-12);
        eplb_load_destroy(load);
    }
}

static void refuse(const eplb_load_params *params, eplb_status status, int32_t layer, int32_t expert)
{
    eplb_load *load = (eplb_load *)params;
    eplb_error error;
    assert_int_equal(eplb_load_create(&load, params, NULL, &error), status);
    assert_null(load);
    assert_int_equal(error.status, status);
    assert_int_equal(error.layer, layer);
    assert_int_equal(error.expert, expert);
}

static void test_refusals(void **state)
{
    (void)state;
    const int64_t negative[4] = {1, 2, -3, 4};
    eplb_load_params params = params_of(1, 2, 2, EPLB_ELEMENT_INT64, negative);
    refuse(&params, EPLB_ERROR_INVALID, 1, 0);
    params.borrow = true;
    refuse(&params, EPLB_ERROR_INVALID, 1, 0);
    const int64_t huge[2] = {INT64_MAX, 1};
    params = params_of(1, 1, 2, EPLB_ELEMENT_INT64, huge);
    refuse(&params, EPLB_ERROR_OVERFLOW, 0, 1);
    params = params_of(2, 1, 1, EPLB_ELEMENT_INT64, huge); /* over windows, too */
    refuse(&params, EPLB_ERROR_OVERFLOW, 0, 0);
    const double bad[3][2] = {{1.0, NAN}, {INFINITY, 1.0}, {1.0, -0.5}};
    for (int i = 0; i < 3; i++) {
        params = params_of(1, 1, 2, EPLB_ELEMENT_FLOAT64, bad[i]);
        refuse(&params, EPLB_ERROR_INVALID, 0, i == 1 ? 0 : 1);
    }
    const double infinite_sum[2] = {1.7e308, 1.7e308};
    params = params_of(1, 1, 2, EPLB_ELEMENT_FLOAT64, infinite_sum);
    refuse(&params, EPLB_ERROR_OVERFLOW, 0, -1);
    params = params_of(1, 0, 2, EPLB_ELEMENT_INT64, huge);
    refuse(&params, EPLB_ERROR_INVALID, -1, -1);
    params = params_of(1, 1, 0, EPLB_ELEMENT_INT64, huge);
    refuse(&params, EPLB_ERROR_INVALID, -1, -1);
    params = params_of(0, 1, 1, EPLB_ELEMENT_INT64, huge);
    refuse(&params, EPLB_ERROR_INVALID, -1, -1);
    params = params_of(1, 1, 1, EPLB_ELEMENT_INT64, NULL);
    refuse(&params, EPLB_ERROR_INVALID, -1, -1);
    params = params_of(1, 1, 1, (eplb_element)9, huge);
    refuse(&params, EPLB_ERROR_INVALID, -1, -1);
}

static void test_borrowed_counts_are_read_again(void **state)
{
    (void)state;
    int64_t counts[2] = {1, 2};
    eplb_load_params params = params_of(1, 1, 2, EPLB_ELEMENT_INT64, counts);
    params.borrow = true;
    eplb_load *load;
    assert_int_equal(eplb_load_create(&load, &params, NULL, NULL), EPLB_OK);
    assert_true(eplb_load_is_valid(load));
    counts[1] = -2;
    assert_false(eplb_load_is_valid(load));
    eplb_load_destroy(load);
    assert_false(eplb_load_is_valid(NULL));
    eplb_load_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows_and_sums),
        cmocka_unit_test(test_borrowed_transposed_equals_owned),
        cmocka_unit_test(test_negative_stride),
        cmocka_unit_test(test_whole_floats_stay),
        cmocka_unit_test(test_fractions_are_scaled),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_borrowed_counts_are_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
