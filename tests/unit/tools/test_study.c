/* The published study shows what it must: the bench runs on two seeds and its rows are held against the
 * article's claims. The rows are caught here in place of the report. */
#include <stdio.h>
#include <string.h>

#include "benches.h"
#include "testing.h"

enum { MOST_ROWS = 64 };

static struct {
    char name[64];
    double mean, worst;
} rows[MOST_ROWS];
static int num_rows;

void bench_row(bench_report *report, const char *name)
{
    (void)report;
    assert_true(num_rows < MOST_ROWS);
    (void)snprintf(rows[num_rows++].name, sizeof rows[0].name, "%s", name);
}

void bench_number(bench_report *report, const char *key, double value)
{
    (void)report;
    assert_true(num_rows > 0);
    if (strcmp(key, "mean") == 0)
        rows[num_rows - 1].mean = value;
    else if (strcmp(key, "worst") == 0)
        rows[num_rows - 1].worst = value;
    else
        fail_msg("unexpected key %s", key);
}

static void expect_mean(const char *name, double least, double most)
{
    for (int i = 0; i < num_rows; i++) {
        if (strcmp(rows[i].name, name) != 0)
            continue;
        if (!(rows[i].mean >= least && rows[i].mean <= most))
            fail_msg("%s: mean %.4f, expected %.4f to %.4f", name, rows[i].mean, least, most);
        assert_true(rows[i].worst >= rows[i].mean);
        return;
    }
    fail_msg("no row %s", name);
}

static void test_claims(void **state)
{
    (void)state;
    const bench_options options = {.quick = true};
    assert_int_equal(bench_study(NULL, &options), 0);
    expect_mean("lognormal0.1.none", 1.06, 1.09);
    expect_mean("lognormal0.5.none", 1.40, 1.50);
    for (int tenth = 1; tenth <= 5; tenth++) {
        char name[64];
        (void)snprintf(name, sizeof name, "lognormal0.%d.global", tenth);
        expect_mean(name, 1.0, 1.01);
        (void)snprintf(name, sizeof name, "lognormal0.%d.hierarchical", tenth);
        expect_mean(name, 1.0, 1.035);
        (void)snprintf(name, sizeof name, "lognormal0.%d.global.slots320", tenth);
        expect_mean(name, 1.0, 1.01);
    }
    expect_mean("zipf1.global", 1.0, 1.01);
    expect_mean("zipf1.hierarchical", 1.36, 1.47);
    expect_mean("zipf1.node_floor", 1.26, 1.36);
    expect_mean("groups8.node", 1.018, 1.030);
    expect_mean("groups8.overall", 1.026, 1.038);
    expect_mean("groups64.node", 1.002, 1.005);
    expect_mean("groups64.overall", 1.011, 1.015);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_claims)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
