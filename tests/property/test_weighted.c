/* Weighted planning on random legal layers: every answer keeps every promise.
 *
 * EPLB_PROPERTY_CASES sets the number of cases (default 20,000). Inputs: alike or uneven ranks, speeds,
 * nodes and groups, loads with zeros, ties, heavy tails, one hot expert or totals near the limit, and current
 * placements that are whole or broken, with limits of moves. What is promised is computed from slots and
 * quotas alone. */
#include <math.h>
#include <stdio.h>

#include "../layer_case.h"
#include "../testing.h"
#include "base/random.h"
#include "plan/policies.h"
#include "plan/weighted.h"

static layer_case layer, other;
static random_state dice;
static arena scratch;

static int32_t pick(int32_t least, int32_t most)
{
    return least + (int32_t)random_below(&dice, (uint32_t)(most - least + 1));
}

static void draw_load(void)
{
    int kind = pick(0, 6);
    for (int32_t e = 0; e < layer.problem.num_experts; e++) {
        double unit = random_unit(&dice), tail = 1.0 / (unit + 0x1p-20);
        int64_t *load = &layer.load[e];
        if (kind == 0)
            *load = pick(0, 999);
        else if (kind == 1)
            *load = pick(0, 4) == 0 ? pick(0, 100000) : 0;
        else if (kind == 2)
            *load = (int64_t)(tail * tail);
        else if (kind == 3)
            *load = e == 0 ? 1000000 : pick(0, 2);
        else if (kind == 4)
            *load = 7;
        else if (kind == 5)
            *load = INT64_MAX / layer.problem.num_experts / pick(1, 1000);
        else
            *load = 0;
    }
}

static void draw_ranks(int32_t *rank_slots)
{
    bool uneven = pick(1, 3) == 1, speeds = pick(1, 3) == 1;
    int32_t spread = pick(1, 3) == 1 ? 200 : 20, k = pick(1, 6);
    layer.problem.num_nodes = pick(1, layer.problem.num_ranks < 3 ? layer.problem.num_ranks : 3);
    for (int32_t g = 0; g < layer.problem.num_ranks; g++) {
        rank_slots[g] = uneven && g > 0 ? pick(0, k + 1) : k;
        layer.rank_speed[g] = speeds ? pick(90, 90 + spread) : 1;
        layer.rank_node[g] = g * layer.problem.num_nodes / layer.problem.num_ranks;
    }
}

static void draw_experts(const int32_t *rank_slots)
{
    int32_t slots = 0;
    for (int32_t g = 0; g < layer.problem.num_ranks; g++)
        slots += rank_slots[g];
    int32_t exact = slots - layer.problem.num_ranks + 1;
    layer.problem.num_experts = pick(1, pick(0, 1) == 0 && exact > 0 ? exact : slots);
    if (layer.problem.num_nodes > 1 && pick(0, 1) == 0) {
        int32_t groups = layer.problem.num_nodes * pick(1, 3);
        if (groups <= layer.problem.num_experts) {
            layer.problem.num_groups = groups;
            layer.problem.num_experts -= layer.problem.num_experts % groups;
            layer.problem.max_spill = pick(0, 4);
        }
    }
}

static void draw_current(void)
{
    bool whole = pick(0, 1) == 0;
    for (int32_t s = 0; s < layer.problem.num_slots; s++) {
        layer.current[s] = pick(0, 4) > 0 ? pick(0, layer.problem.num_experts - 1) : -1;
        if (whole && s < layer.problem.num_experts)
            layer.current[s] = s;
    }
    layer.problem.current = layer.current;
    layer.problem.max_moves = pick(0, 1) == 0 ? INT64_MAX : pick(0, 6);
    layer.problem.target_imbalance = pick(0, 2) == 0 ? 1.1 : 0.0;
}

static void draw(void)
{
    int32_t rank_slots[CASE_RANKS] = {0};
    case_init(&layer, 1, pick(1, 9), 1);
    draw_ranks(rank_slots);
    draw_experts(rank_slots);
    draw_load();
    case_finish(&layer, rank_slots);
    if (pick(0, 2) == 0)
        draw_current();
}

/* Experts that the current placement lacks; 0 without one. */
static int64_t count_lost(void)
{
    int64_t lost = 0;
    for (int32_t e = 0; layer.problem.current != NULL && e < layer.problem.num_experts; e++) {
        bool found = false;
        for (int32_t s = 0; s < layer.problem.num_slots; s++)
            found = found || layer.current[s] == e;
        lost += found ? 0 : 1;
    }
    return lost;
}

static double kept_imbalance(void)
{
    arena_mark mark = arena_position(&scratch);
    weighted_shares shares;
    assert_true(weighted_shares_init(&shares, &layer.problem, &scratch));
    assert_true(weighted_shares_solve(&shares, layer.current, NULL, &scratch));
    arena_rewind(&scratch, mark);
    return weighted_shares_imbalance(&shares);
}

/* DeepSeek's plan with its equal split; infinite where it refuses. */
static double deepseek_imbalance(void)
{
    other = layer;
    case_refresh(&other);
    other.problem.split = EPLB_SPLIT_EQUAL;
    other.answer.expert = other.expert;
    arena_mark mark = arena_position(&scratch);
    eplb_status status = plan_layer_deepseek(&other.problem, &scratch, &other.answer, NULL);
    arena_rewind(&scratch, mark);
    if (status != EPLB_OK)
        return HUGE_VAL;
    memset(other.quota, 0, sizeof other.quota); /* split equally */
    return case_imbalance(&other);
}

/* Promises of a plan from nothing. */
static const char *wrong_from_nothing(double reached, bool grouped)
{
    const layer_problem *p = &layer.problem;
    bool alike = p->uniform_speed && p->uniform_slots > 0 && !grouped;
    if (alike && p->num_experts <= p->num_slots - p->num_ranks + 1 && reached > 1.0 + 1e-12)
        return "not exact";
    return reached > deepseek_imbalance() * (1.0 + 1e-9) ? "worse than DeepSeek's" : NULL;
}

/* Promises of a plan from a current placement. */
static const char *wrong_from_current(double reached, bool grouped)
{
    if (case_received(&layer) > layer.problem.max_moves)
        return "too many moves";
    return count_lost() == 0 && !grouped && reached > kept_imbalance() * (1.0 + 1e-9) ? "worse than keeping"
                                                                                      : NULL;
}

static const char *wrong_answer(double reached)
{
    const layer_problem *p = &layer.problem;
    bool grouped = p->num_groups > 1 && p->num_groups % p->num_nodes == 0;
    const char *wrong = case_problem(&layer);
    if (wrong != NULL)
        return wrong;
    if (reached < layer.answer.bound * (1.0 - 1e-12))
        return "below the bound";
    if (p->current == NULL)
        return wrong_from_nothing(reached, grouped);
    return wrong_from_current(reached, grouped);
}

static void check(long number)
{
    eplb_error error;
    const layer_problem *p = &layer.problem;
    arena_mark mark = arena_position(&scratch);
    eplb_status status = plan_layer_weighted(p, &scratch, &layer.answer, &error);
    arena_rewind(&scratch, mark);
    if (count_lost() > p->max_moves) {
        assert_int_equal(status, EPLB_ERROR_INFEASIBLE);
        return;
    }
    double reached = case_imbalance(&layer);
    const char *wrong = status != EPLB_OK ? error.text : wrong_answer(reached);
    if (wrong != NULL)
        fail_msg("case %ld: %s (E %d, G %d, S %d, nodes %d, groups %d, reached %.17g, bound %.17g)", number,
                 wrong, p->num_experts, p->num_ranks, p->num_slots, p->num_nodes, p->num_groups, reached,
                 layer.answer.bound);
}

static void every_promise_is_kept(void **state)
{
    (void)state;
    const char *text = getenv("EPLB_PROPERTY_CASES");
    long cases = text != NULL ? strtol(text, NULL, 10) : 20000;
    dice = random_seed(20240229);
    arena_init(&scratch, NULL);
    for (long n = 0; n < cases; n++) {
        draw();
        check(n);
    }
    arena_destroy(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_promise_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
