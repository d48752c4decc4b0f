/* Python's random: what the interpreter draws after random.seed(42). */
#include "testing.h"

#include "route/python_random.h"

static void draws_are_pythons(void **state)
{
    (void)state;
    /* sample(range(10), 3), shuffle of range(8), sample(range(100), 6), sample(range(1000), 4) */
    static const int32_t small[3] = {1, 0, 4}, shuffled[8] = {7, 5, 2, 4, 0, 6, 1, 3},
                         many[6] = {4, 3, 11, 27, 29, 64}, few[4] = {616, 27, 574, 203};
    python_random random;
    int32_t pool[1000], sample[8];
    uint8_t taken[1000];
    python_random_seed(&random, 42);
    for (int32_t i = 0; i < 1000; i++)
        pool[i] = i;
    python_random_sample(&random, pool, 10, 3, sample, taken);
    assert_memory_equal(sample, small, sizeof small);
    for (int32_t i = 0; i < 8; i++)
        sample[i] = i;
    python_random_shuffle(&random, sample, 8);
    assert_memory_equal(sample, shuffled, sizeof shuffled);
    for (int32_t i = 0; i < 10; i++)
        pool[i] = i;
    python_random_sample(&random, pool, 100, 6, sample, taken);
    assert_memory_equal(sample, many, sizeof many);
    for (int32_t i = 0; i < 100; i++)
        pool[i] = i;
    python_random_sample(&random, pool, 1000, 4, sample, taken);
    assert_memory_equal(sample, few, sizeof few);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(draws_are_pythons)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
