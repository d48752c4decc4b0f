/* Generators: a seed names one load, and each has the property it is drawn for. */
#include "synthetic.h"

#include <math.h>
#include <string.h>

#include "testing.h"

enum { EXPERTS = 256 };

static void test_seed_names_the_load(void **state)
{
    double a[EXPERTS], b[EXPERTS], c[EXPERTS];
    random_state one = random_seed(7), again = random_seed(7), other = random_seed(8);
    (void)state;
    synthetic_lognormal(&one, 0.5, EXPERTS, a);
    synthetic_lognormal(&again, 0.5, EXPERTS, b);
    synthetic_lognormal(&other, 0.5, EXPERTS, c);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a, c, sizeof a);
}

static void test_lognormal_spread(void **state)
{
    double weights[EXPERTS], sum = 0.0, squares = 0.0;
    random_state random = random_seed(1);
    (void)state;
    for (int round = 0; round < 40; round++) {
        synthetic_lognormal(&random, 0.5, EXPERTS, weights);
        for (int e = 0; e < EXPERTS; e++) {
            sum += log(weights[e]);
            squares += log(weights[e]) * log(weights[e]);
        }
    }
    assert_true(fabs(sum / (40.0 * EXPERTS)) < 0.02);
    assert_true(fabs(sqrt(squares / (40.0 * EXPERTS)) - 0.5) < 0.02);
}

static void test_zipf_is_a_permutation_of_the_law(void **state)
{
    double weights[EXPERTS];
    random_state random = random_seed(1);
    (void)state;
    synthetic_zipf(&random, 1.0, EXPERTS, weights);
    for (int rank = 1; rank <= EXPERTS; rank++) {
        int found = 0;
        for (int e = 0; e < EXPERTS; e++)
            found += weights[e] == pow(rank, -1.0);
        assert_int_equal(found, 1);
    }
    assert_true(weights[0] != 1.0 || weights[1] != 0.5);
}

static void test_counts_add_up(void **state)
{
    static const double weights[4] = {1.0, 2.0, 3.0, 0.0};
    static const double none[4] = {0.0};
    int64_t counts[4];
    (void)state;
    synthetic_counts(weights, 4, 600.0, 0, counts);
    assert_memory_equal(counts, ((const int64_t[]){100, 200, 300, 0}), sizeof counts);
    synthetic_counts(weights, 4, 600.0, 5, counts);
    assert_int_equal(counts[3], 5);
    synthetic_counts(none, 4, 600.0, 0, counts);
    assert_int_equal(counts[0], 0);
}

static void test_rank_skew_has_its_ratio(void **state)
{
    static int64_t counts[16 * 8];
    random_state random = random_seed(3);
    (void)state;
    assert_true(synthetic_rank_skew(&random, 16, 8, 2.0, 1e7, counts));
    double most = 0.0, total = 0.0;
    for (int g = 0; g < 16; g++) {
        double sum = 0.0;
        for (int j = 0; j < 8; j++)
            sum += (double)counts[g * 8 + j];
        most = sum > most ? sum : most;
        total += sum;
    }
    assert_true(fabs(16.0 * most / total - 2.0) < 1e-3);
}

static void test_topics_change_the_hottest(void **state)
{
    static int64_t counts[64 * EXPERTS];
    random_state random = random_seed(3);
    int changes = 0, last = -1;
    (void)state;
    assert_true(synthetic_topics(&random, 64, EXPERTS, 8, 0.3, 1e6, counts));
    for (int t = 0; t < 64; t++) {
        int hottest = 0;
        for (int e = 1; e < EXPERTS; e++)
            hottest = counts[t * EXPERTS + e] > counts[t * EXPERTS + hottest] ? e : hottest;
        changes += hottest != last;
        last = hottest;
    }
    assert_true(changes > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seed_names_the_load),
        cmocka_unit_test(test_lognormal_spread),
        cmocka_unit_test(test_zipf_is_a_permutation_of_the_law),
        cmocka_unit_test(test_counts_add_up),
        cmocka_unit_test(test_rank_skew_has_its_ratio),
        cmocka_unit_test(test_topics_change_the_hottest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
