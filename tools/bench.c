/* eplb bench: the figures of the README, each printed by the code that measures it. */
#include <string.h>

#include "bench.h"
#include "commands.h"
#include "failure.h"
#include "report.h"

typedef struct bench_values {
    int64_t repetitions;
    const char *trace, *output;
    bool quick, json;
} bench_values;

#define ROW(...) OPTION_ROW(bench_values, __VA_ARGS__)

static const option_row bench_options_table[] = {
    ROW("repetitions", 0, OPTION_INTEGER, "N", repetitions, 1, 1000000,
        "Measure N times. Default: the bench's own"),
    ROW("trace", 0, OPTION_FILE, "FILE", trace, 0, 0,
        "Recorded trace for benches that judge plans on one. Default: generated loads"),
    ROW("quick", 0, OPTION_FLAG, NULL, quick, 0, 0, "Few repetitions and small sizes: does it run?"),
    ROW("output", 'o', OPTION_FILE, "FILE", output, 0, 0, "Write the JSON document to FILE too"),
    ROW_JSON(bench_values),
    ROW_END,
};

static int list_benches(void)
{
    for (const bench *one = bench_table; one->name != NULL; one++)
        (void)printf("  %-10s %s\n", one->name, one->summary);
    return EXIT_OK;
}

static int refuse_bench(const command *self, const char *name)
{
    const char *names[64];
    size_t count = 0;
    for (; count < 64 && bench_table[count].name != NULL; count++)
        names[count] = bench_table[count].name;
    const char *near = nearest_name(name, names, count);
    if (near != NULL)
        return complain(self, "there is no bench '%s'; did you mean '%s'?", name, near);
    return complain(self, "there is no bench '%s'; eplb bench lists them", name);
}

static int run_bench(const command *self, const bench *chosen, const bench_values *values)
{
    bench_options options = {(int)values->repetitions, values->trace, values->quick};
    bench_report *report = bench_report_create();
    if (report == NULL)
        return fail_memory(self);
    int status = chosen->run(report, &options);
    if (status == 0 && bench_report_lost(report))
        status = fail_memory(self);
    io_error error;
    if (status == 0 && !values->json)
        bench_report_print(report, stdout);
    if (status == 0 && values->json && bench_report_json(report, NULL, &error) != EPLB_OK)
        status = fail_io(self, &error);
    if (status == 0 && values->output != NULL && bench_report_json(report, values->output, &error) != EPLB_OK)
        status = fail_io(self, &error);
    bench_report_destroy(report);
    return status;
}

static int bench_command(const command *self, int argc, char **argv)
{
    bench_values values = {.repetitions = 0};
    char **operands;
    int count;
    int status = options_parse(self, argc, argv, &values, &operands, &count);
    if (status != PARSED)
        return status;
    if (count == 0)
        return finish_output(self, list_benches());
    for (const bench *one = bench_table; one->name != NULL; one++)
        if (strcmp(one->name, operands[0]) == 0)
            return finish_output(self, run_bench(self, one, &values));
    return refuse_bench(self, operands[0]);
}

static const char *bench_name(int32_t index)
{
    return bench_table[index].name;
}

static const char *bench_summary(int32_t index)
{
    return bench_table[index].summary;
}

static const listing benches = {"Benches", NULL, bench_name, bench_summary};

const command command_bench = {
    .name = "bench",
    .summary = "Measure the figures of the README",
    .operands = "[NAME]",
    .least_operands = 0,
    .most_operands = 1,
    .text = "Runs one bench and prints its rows; without a name, lists the benches. Times are medians and "
            "ratios are taken inside one run.",
    .json = "results [{name, figures...}], machine, version.",
    .examples = "eplb bench\neplb bench study --json",
    .options = bench_options_table,
    .names = &benches,
    .run = bench_command,
};
