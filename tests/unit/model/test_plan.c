/* The plan itself: what it is made of, copies, equality, hash, and what its own check refuses. */
#include <string.h>

#include <eplb/eplb.h>

#include "model/plan_parts.h"
#include "nouns.h"

/* Two layers, three experts, two ranks of two slots. */
typedef struct fixture {
    eplb_topology *topology;
    int32_t slots[2][4];
    double shares[2][4];
    double bound[2];
    plan_parts parts;
} fixture;

static void set_up(fixture *f)
{
    const int32_t slots[2][4] = {{0, 1, 0, 2}, {2, 1, 0, 1}};
    const double shares[2][4] = {{0.25, 1.0, 0.75, 1.0}, {1.0, 0.5, 1.0, 0.5}};
    f->topology = case_topology(2, 1, 2);
    memcpy(f->slots, slots, sizeof slots);
    memcpy(f->shares, shares, sizeof shares);
    f->bound[0] = f->bound[1] = 1.0;
    f->parts = (plan_parts){.topology = f->topology,
                            .num_layers = 2,
                            .num_experts = 3,
                            .physical_to_logical = f->slots[0],
                            .lower_bound = f->bound,
                            .policy = "auto",
                            .reason = "because",
                            .num_groups = 1};
}

static eplb_plan *make(const fixture *f)
{
    eplb_plan *plan;
    assert_int_equal(plan_from_parts(&plan, &f->parts, NULL, NULL), EPLB_OK);
    return plan;
}

static void weigh(fixture *f)
{
    f->parts.split = EPLB_SPLIT_WEIGHTED;
    f->parts.shares = f->shares[0];
}

static void test_parts(void **state)
{
    (void)state;
    fixture f;
    set_up(&f);
    eplb_plan *plan = make(&f);
    assert_int_equal(eplb_plan_is_valid(plan, NULL), EPLB_OK);
    const double equal[2][4] = {{0.5, 1.0, 0.5, 1.0}, {1.0, 0.5, 1.0, 0.5}};
    assert_memory_equal(eplb_plan_shares(plan), equal, sizeof equal);
    assert_string_equal(eplb_plan_policy(plan), "auto");
    assert_string_equal(eplb_plan_reason(plan), "because");
    assert_int_equal(eplb_plan_split(plan), EPLB_SPLIT_EQUAL);
    assert_int_equal(eplb_plan_moves(plan).slots, 0);
    assert_true(eplb_plan_imbalance(plan)[1] == 1.0);
    eplb_plan_destroy(plan);
    weigh(&f);
    plan = make(&f);
    assert_memory_equal(eplb_plan_shares(plan), f.shares, sizeof f.shares);
    assert_int_equal(eplb_plan_is_valid(plan, NULL), EPLB_OK);
    eplb_plan_destroy(plan);
    eplb_plan_destroy(NULL);
    eplb_topology_destroy(f.topology);
}

static void test_copy_and_equality(void **state)
{
    (void)state;
    fixture f;
    set_up(&f);
    weigh(&f);
    eplb_plan *plan = make(&f), *copy;
    assert_int_equal(eplb_plan_copy(&copy, plan, NULL, NULL), EPLB_OK);
    assert_true(eplb_plan_equal(plan, copy));
    assert_true(eplb_plan_hash(plan) == eplb_plan_hash(copy));
    assert_ptr_not_equal(eplb_plan_shares(plan), eplb_plan_shares(copy));
    assert_memory_equal(eplb_plan_imbalance(copy), eplb_plan_imbalance(plan), 2 * sizeof(double));
    eplb_plan_destroy(plan);
    assert_int_equal(eplb_plan_is_valid(copy, NULL), EPLB_OK);
    assert_string_equal(eplb_plan_reason(copy), "because");
    eplb_plan_destroy(copy);
    eplb_topology_destroy(f.topology);
}

/* Each change of what a plan says changes equality and hash; what it does not say does not. */
static void test_differences(void **state)
{
    (void)state;
    fixture f;
    set_up(&f);
    weigh(&f);
    eplb_plan *plan = make(&f), *other;
    f.slots[1][3] = 0;
    other = make(&f);
    assert_false(eplb_plan_equal(plan, other));
    assert_true(eplb_plan_hash(plan) != eplb_plan_hash(other));
    eplb_plan_destroy(other);
    f.slots[1][3] = 1;
    f.shares[0][0] = 0.5;
    other = make(&f);
    assert_false(eplb_plan_equal(plan, other));
    assert_true(eplb_plan_hash(plan) != eplb_plan_hash(other));
    eplb_plan_destroy(other);
    f.shares[0][0] = 0.25;
    f.parts.split = EPLB_SPLIT_BATCH;
    other = make(&f);
    assert_false(eplb_plan_equal(plan, other));
    assert_true(eplb_plan_hash(plan) != eplb_plan_hash(other));
    assert_true(eplb_plan_hash_of(f.topology, 2, 3, EPLB_SPLIT_BATCH, f.slots[0], NULL) ==
                eplb_plan_hash(other)); /* each batch has its own shares */
    eplb_plan_destroy(other);
    f.parts.split = EPLB_SPLIT_WEIGHTED;
    f.parts.reason = "another";
    other = make(&f);
    assert_true(eplb_plan_equal(plan, other));
    assert_true(eplb_plan_hash(plan) == eplb_plan_hash(other));
    eplb_plan_destroy(other);
    eplb_plan_destroy(plan);
    eplb_topology_destroy(f.topology);
}

/* The hash is part of the interface between ranks: it may not change by accident. */
static void test_hash_is_pinned(void **state)
{
    (void)state;
    fixture f;
    set_up(&f);
    eplb_plan *plan = make(&f);
    assert_true(eplb_plan_hash_of(f.topology, 2, 3, EPLB_SPLIT_EQUAL, f.slots[0], NULL) ==
                eplb_plan_hash(plan));
    assert_true(eplb_plan_hash(plan) == UINT64_C(0xbb0534c908e79b9c));
    eplb_plan_destroy(plan);
    weigh(&f);
    plan = make(&f);
    assert_true(eplb_plan_hash_of(f.topology, 2, 3, EPLB_SPLIT_WEIGHTED, f.slots[0], f.shares[0]) ==
                eplb_plan_hash(plan));
    assert_true(eplb_plan_hash(plan) == UINT64_C(0x862403c02b036919));
    eplb_plan_destroy(plan);
    eplb_topology_destroy(f.topology);
}

static void expect_invalid(const fixture *f, const char *says)
{
    eplb_plan *plan = make(f);
    eplb_error error;
    assert_int_equal(eplb_plan_is_valid(plan, &error), EPLB_ERROR_INVALID);
    if (strstr(error.text, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.text, says);
    eplb_plan_destroy(plan);
}

static void test_wrong_plans(void **state)
{
    (void)state;
    fixture f;
    eplb_error error;
    assert_int_equal(eplb_plan_is_valid(NULL, &error), EPLB_ERROR_INVALID);
    set_up(&f);
    f.slots[1][2] = 1;
    expect_invalid(&f, "layer 1: expert-missing (expert 0");
    f.slots[1][2] = 0;
    f.slots[0][2] = 2;
    f.slots[0][3] = 2;
    f.slots[0][1] = 1;
    expect_invalid(&f, "layer 0: duplicate (expert 2, rank 1");
    f.parts.may_duplicate = true;
    eplb_plan *tolerated = make(&f);
    assert_int_equal(eplb_plan_is_valid(tolerated, NULL), EPLB_OK);
    eplb_plan_destroy(tolerated);
    f.slots[1][2] = 1; /* tolerating duplicates does not hide the rest */
    expect_invalid(&f, "layer 1: expert-missing");
    eplb_topology_destroy(f.topology);
    set_up(&f);
    weigh(&f);
    f.shares[0][0] = 0.35;
    expect_invalid(&f, "layer 0, expert 0: shares sum to 1.1");
    f.shares[0][0] = -0.25;
    f.shares[0][2] = 1.25;
    expect_invalid(&f, "layer 0, expert 0");
    eplb_topology_destroy(f.topology);
    set_up(&f);
    f.bound[1] = 1.5;
    expect_invalid(&f, "layer 1: lower bound 1.5");
    eplb_topology_destroy(f.topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),       cmocka_unit_test(test_copy_and_equality),
        cmocka_unit_test(test_differences), cmocka_unit_test(test_hash_is_pinned),
        cmocka_unit_test(test_wrong_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
