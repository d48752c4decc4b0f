/* Tables for people. Width is counted in bytes: cells are ASCII. */
#include "report/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 24, MAX_CELL = 128 };

struct table {
    const char *heads[MAX_COLUMNS];
    bool left[MAX_COLUMNS];
    size_t width[MAX_COLUMNS];
    size_t columns, count, room;
    char **cells;
    bool lost;
};

void print_count(FILE *out, int64_t count, const char *noun)
{
    (void)fprintf(out, "%" PRId64 " %s%s", count, noun, count == 1 ? "" : "s");
}

table *table_create(const char *const *heads)
{
    table *self = calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    for (; *heads != NULL && self->columns < MAX_COLUMNS; heads++) {
        size_t column = self->columns++;
        self->left[column] = **heads == '<';
        self->heads[column] = *heads + self->left[column];
        self->width[column] = strlen(self->heads[column]);
    }
    return self;
}

void table_destroy(table *self)
{
    if (self == NULL)
        return;
    for (size_t i = 0; i < self->count; i++)
        free(self->cells[i]);
    free(self->cells);
    free(self);
}

void table_cell(table *self, const char *format, ...)
{
    char text[MAX_CELL];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (self == NULL)
        return;
    if (self->count == self->room) {
        size_t room = self->room == 0 ? 64 : 2 * self->room;
        char **cells = realloc(self->cells, room * sizeof *cells);
        if (cells == NULL) {
            self->lost = true;
            return;
        }
        self->cells = cells;
        self->room = room;
    }
    size_t bytes = strlen(text) + 1;
    char *copy = malloc(bytes);
    if (copy == NULL) {
        self->lost = true;
        return;
    }
    memcpy(copy, text, bytes);
    size_t column = self->count % self->columns;
    self->cells[self->count++] = copy;
    if (bytes - 1 > self->width[column])
        self->width[column] = bytes - 1;
}

static void print_row(FILE *out, const table *self, const char *const *row, size_t cells, int indent)
{
    (void)fprintf(out, "%*s", indent, "");
    for (size_t i = 0; i < cells; i++) {
        bool last = i + 1 == cells;
        int width = (int)self->width[i];
        if (self->left[i])
            (void)fprintf(out, last ? "%.*s%s" : "%-*s%s", last ? 0 : width, last ? "" : row[i],
                          last ? row[i] : "  ");
        else
            (void)fprintf(out, "%*s%s", width, row[i], last ? "" : "  ");
    }
    (void)fputc('\n', out);
}

bool table_print(FILE *out, const table *self, int indent)
{
    if (self == NULL)
        return false;
    print_row(out, self, self->heads, self->columns, indent);
    for (size_t i = 0; i < self->count; i += self->columns) {
        size_t cells = self->count - i < self->columns ? self->count - i : self->columns;
        print_row(out, self, (const char *const *)self->cells + i, cells, indent);
    }
    return !self->lost;
}
