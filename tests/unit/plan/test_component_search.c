/* Components of ranks and experts against every way to divide them. */
#include "../../allocator.h"
#include "../../testing.h"
#include "base/random.h"
#include "plan/component_search.h"

enum { COUNT = 3, EXPERTS = 9 };

typedef struct split_case {
    int64_t load[EXPERTS];
    int32_t component[EXPERTS];
    int32_t size[COUNT];
    component_split split;
} split_case;

/* k = 2: sizes 2, 2, 2; k = 3: sizes 1, 1, 1. */
static void draw(split_case *c, random_state *random, int32_t slots_per_rank)
{
    for (int32_t e = 0; e < EXPERTS; e++) {
        c->load[e] = (int64_t)random_below(random, 1000) * (1 + (int64_t)random_below(random, 6));
        c->component[e] = e % COUNT;
    }
    for (int32_t i = 0; i < COUNT; i++)
        c->size[i] = slots_per_rank == 2 ? 2 : 1;
    c->split = (component_split){EXPERTS, COUNT, slots_per_rank, c->load, c->component, c->size};
}

/* Largest load per rank; < 0 if a component has not as many experts as go with its ranks. */
static double judge(const split_case *c, const int32_t *component, const int32_t *size)
{
    int64_t load[COUNT] = {0};
    int32_t held[COUNT] = {0};
    double most = 0;
    for (int32_t e = 0; e < EXPERTS; e++) {
        load[component[e]] += c->load[e];
        held[component[e]]++;
    }
    for (int32_t i = 0; i < COUNT; i++) {
        if (size[i] < 1 || held[i] != (c->split.slots_per_rank - 1) * size[i] + 1)
            return -1;
        most = (double)load[i] / size[i] > most ? (double)load[i] / size[i] : most;
    }
    return most;
}

/* Least over all divisions of experts; sizes follow from how many a component has. */
static double best_of_all(const split_case *c)
{
    double least = 1e300;
    for (int32_t code = 0; code < 19683; code++) {
        int32_t component[EXPERTS], size[COUNT], held[COUNT] = {0};
        for (int32_t e = 0, rest = code; e < EXPERTS; e++, rest /= COUNT) {
            component[e] = rest % COUNT;
            held[component[e]]++;
        }
        for (int32_t i = 0; i < COUNT; i++)
            size[i] = (held[i] - 1) / (c->split.slots_per_rank - 1);
        double value = judge(c, component, size);
        least = value >= 0 && value < least ? value : least;
    }
    return least;
}

static void the_best_division_is_mostly_found(void **state)
{
    (void)state;
    random_state random = random_seed(11);
    int32_t optimal = 0;
    for (int32_t i = 0; i < 40; i++) {
        split_case c;
        draw(&c, &random, 2 + i % 2);
        arena scratch;
        arena_init(&scratch, NULL);
        double before = judge(&c, c.component, c.size), least = best_of_all(&c);
        int64_t total = 0;
        for (int32_t e = 0; e < EXPERTS; e++)
            total += c.load[e];
        double mean = (double)total / (c.size[0] * COUNT);
        component_limits limits = {mean, mean, 20000, NULL, NULL};
        assert_true(component_search(&c.split, &limits, &scratch));
        double reached = judge(&c, c.component, c.size);
        assert_true(reached >= least && reached <= before);
        optimal += reached == least;
        arena_destroy(&scratch);
    }
    assert_true(optimal >= 36); /* the heat suits layers of hundreds of experts */
}

static bool stop_at_once(void *context)
{
    ++*(int32_t *)context;
    return true;
}

static void a_stop_keeps_what_there_is(void **state)
{
    (void)state;
    split_case c;
    random_state random = random_seed(12);
    int32_t asked = 0;
    arena scratch;
    arena_init(&scratch, NULL);
    draw(&c, &random, 2);
    component_limits limits = {0, 0, 1000000, stop_at_once, &asked};
    assert_true(component_search(&c.split, &limits, &scratch));
    assert_int_equal(asked, 1);
    for (int32_t e = 0; e < EXPERTS; e++)
        assert_int_equal(c.component[e], e % COUNT);
    arena_destroy(&scratch);
}

static void memory_may_run_out(void **state)
{
    (void)state;
    split_case c;
    random_state random = random_seed(13);
    test_allocator memory = test_allocator_make(0);
    eplb_allocator allocator = test_allocator_use(&memory);
    arena scratch;
    arena_init(&scratch, &allocator);
    draw(&c, &random, 2);
    component_limits limits = {0, 0, 100, NULL, NULL};
    assert_false(component_search(&c.split, &limits, &scratch));
    arena_destroy(&scratch);
    assert_int_equal(memory.num_live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_division_is_mostly_found),
        cmocka_unit_test(a_stop_keeps_what_there_is),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
