/* A bench's rows of figures, and their two forms. Names and keys are copied; a lost figure is remembered, so
 * that a report is complete or says that it is not. */
#include "report.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <eplb/status.h>

#include "io/json_writer.h"
#include "report/table.h"

enum { MAX_FIGURES = 20 };

typedef struct figure {
    char *key;
    double number;
} figure;

typedef struct row {
    char *name;
    int count;
    figure figures[MAX_FIGURES];
} row;

struct bench_report {
    row *rows;
    size_t count, room;
    bool lost;
};

bench_report *bench_report_create(void)
{
    return calloc(1, sizeof(bench_report));
}

void bench_report_destroy(bench_report *report)
{
    if (report == NULL)
        return;
    for (size_t i = 0; i < report->count; i++) {
        for (int j = 0; j < report->rows[i].count; j++)
            free(report->rows[i].figures[j].key);
        free(report->rows[i].name);
    }
    free(report->rows);
    free(report);
}

bool bench_report_lost(const bench_report *report)
{
    return report->lost;
}

static char *copy_text(bench_report *report, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = malloc(bytes);
    if (copy == NULL)
        report->lost = true;
    else
        memcpy(copy, text, bytes);
    return copy;
}

void bench_row(bench_report *report, const char *name)
{
    if (report->count == report->room) {
        size_t room = report->room == 0 ? 32 : 2 * report->room;
        row *rows = realloc(report->rows, room * sizeof *rows);
        if (rows == NULL) {
            report->lost = true;
            return;
        }
        report->rows = rows;
        report->room = room;
    }
    report->rows[report->count++] = (row){.name = copy_text(report, name)};
}

static figure *add_figure(bench_report *report, const char *key)
{
    row *last = report->count > 0 ? &report->rows[report->count - 1] : NULL;
    if (last == NULL || last->count == MAX_FIGURES) {
        report->lost = true;
        return NULL;
    }
    figure *one = &last->figures[last->count++];
    one->key = copy_text(report, key);
    return one;
}

void bench_number(bench_report *report, const char *key, double value)
{
    figure *one = add_figure(report, key);
    if (one != NULL)
        one->number = value;
}

static bool same_figures(const row *a, const row *b)
{
    if (a->count != b->count)
        return false;
    for (int i = 0; i < a->count; i++)
        if (strcmp(a->figures[i].key, b->figures[i].key) != 0)
            return false;
    return true;
}

static void print_rows(const row *rows, size_t count, FILE *out)
{
    const char *heads[MAX_FIGURES + 2] = {"<name"};
    for (int i = 0; i < rows[0].count; i++)
        heads[i + 1] = rows[0].figures[i].key;
    table *cells = table_create(heads);
    for (size_t i = 0; i < count; i++) {
        table_cell(cells, "%s", rows[i].name);
        for (int j = 0; j < rows[i].count; j++)
            table_cell(cells, "%.6g", rows[i].figures[j].number);
    }
    (void)table_print(out, cells, 0);
    table_destroy(cells);
}

void bench_report_print(const bench_report *report, FILE *out)
{
    for (size_t i = 0, j; i < report->count; i = j) {
        for (j = i + 1; j < report->count && same_figures(&report->rows[i], &report->rows[j]);)
            j++;
        if (i > 0)
            (void)fputc('\n', out);
        print_rows(report->rows + i, j - i, out);
    }
}

/* "Intel Xeon ... , 2 cores, Linux x86_64"; the processor only where the system tells it. */
static void describe_machine(char *text, size_t size)
{
    char line[256], model[160] = "";
    struct utsname system = {.sysname = "unknown"};
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && model[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL)
            (void)snprintf(model, sizeof model, "%.*s, ", (int)strcspn(colon + 2, "\n"), colon + 2);
    }
    if (file != NULL)
        (void)fclose(file);
    (void)uname(&system);
    (void)snprintf(text, size, "%s%ld cores, %s %s", model, sysconf(_SC_NPROCESSORS_ONLN), system.sysname,
                   system.machine);
}

eplb_status bench_report_json(const bench_report *report, const char *path, io_error *error)
{
    io_output *output;
    json_writer json;
    char machine[512];
    eplb_status status = io_output_open(&output, path, error);
    if (status != EPLB_OK)
        return status;
    json_begin_document(&json, output);
    json_begin_object(&json);
    json_key(&json, "results");
    json_begin_array(&json);
    for (size_t i = 0; i < report->count; i++) {
        const row *one = &report->rows[i];
        json_begin_object(&json);
        json_key_string(&json, "name", one->name);
        for (int j = 0; j < one->count; j++)
            json_key_double(&json, one->figures[j].key, one->figures[j].number);
        json_end_object(&json);
    }
    json_end_array(&json);
    describe_machine(machine, sizeof machine);
    json_key_string(&json, "machine", machine);
    json_key_string(&json, "version", eplb_version());
    json_end_object(&json);
    json_end_document(&json);
    return io_output_close(output, error);
}
