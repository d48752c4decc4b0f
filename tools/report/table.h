/* Tables for people: cells are collected, columns aligned, numbers to the right. */
#ifndef TOOLS_REPORT_TABLE_H
#define TOOLS_REPORT_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* "1 layer", "2 layers". */
void print_count(FILE *out, int64_t count, const char *noun);

typedef struct table table;

/* A table with the given column heads, ended by NULL; a head that begins with '<' is aligned left. NULL when
 * memory is out. */
table *table_create(const char *const *heads);
void table_destroy(table *self);
/* Appends a cell, row by row. */
void table_cell(table *self, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));
/* Prints what was collected, every line behind `indent` spaces; false when a cell had been lost to memory. */
bool table_print(FILE *out, const table *self, int indent);

#endif
