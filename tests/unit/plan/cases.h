/* Plans for the tests of the planner, one line each; failures end the test. */
#ifndef TESTS_UNIT_PLAN_CASES_H
#define TESTS_UNIT_PLAN_CASES_H

#include <eplb/eplb.h>

#include "nouns.h"

static inline eplb_plan_params case_params(const char *policy, int32_t groups)
{
    eplb_plan_params params;
    eplb_plan_params_init(&params, sizeof params);
    params.policy = policy;
    params.num_groups = groups;
    return params;
}

/* Plans, checks that a refusal leaves nothing, and returns the status. */
static inline eplb_status case_plan(eplb_plan **plan, const eplb_load *load, const eplb_topology *topology,
                                    const eplb_plan_params *params, eplb_error *error)
{
    eplb_status status = eplb_plan_create(plan, load, topology, params, NULL, error);
    if (status != EPLB_OK) {
        assert_null(*plan);
        assert_int_equal(error->status, status);
        assert_true(error->text[0] != '\0');
    } else {
        assert_int_equal(eplb_plan_is_valid(*plan, NULL), EPLB_OK);
    }
    return status;
}

static inline const int32_t *case_slots(const eplb_plan *plan)
{
    return eplb_placement_physical_to_logical(eplb_plan_placement(plan));
}

#endif
