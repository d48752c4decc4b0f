/* Lists on the command line. Decimals are read exactly, digit by digit: a speed of 0.7 is seven tenths on
 * every host. */
#include "list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DECIMALS = 9 };

#define TOO_LONG "the list is too long"

/* One number of the list: mantissa / 10^decimals. */
typedef struct number {
    int64_t mantissa;
    int decimals;
} number;

typedef struct numbers {
    number *all;
    int32_t count;
    int32_t room;
} numbers;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads a number at *text and steps over it. */
static bool read_number(const char **text, bool decimals, number *out)
{
    const char *c = *text;
    bool point = false;
    *out = (number){0, 0};
    if (!is_digit(*c))
        return false;
    for (; is_digit(*c) || (decimals && !point && *c == '.'); c++) {
        if (*c == '.') {
            point = true;
            continue;
        }
        if (out->mantissa > INT64_MAX / 1000 || (point && ++out->decimals > MAX_DECIMALS))
            return false;
        out->mantissa = out->mantissa * 10 + (*c - '0');
    }
    *text = c;
    return true;
}

static bool append(numbers *list, number value, int32_t most)
{
    if (list->count == most)
        return false;
    if (list->count == list->room) {
        int32_t room = list->room == 0 ? 64 : 2 * list->room;
        number *all = realloc(list->all, (size_t)room * sizeof *all);
        if (all == NULL)
            return false;
        list->all = all;
        list->room = room;
    }
    list->all[list->count++] = value;
    return true;
}

static const char *what_is_expected(list_rule rule)
{
    return rule.decimals ? "expected plain numbers like 1,0.8 or 1x24,0.8x8, without exponents or ranges"
                         : "expected numbers like 0,3,8-11 or 9x3,8";
}

/* Appends first .. last. Returns what is wrong, or NULL. */
static const char *append_range(numbers *list, int64_t first, int64_t last, list_rule rule)
{
    if (last < first)
        return "a range runs from a whole number up to a greater one";
    for (; first <= last; first++)
        if (!append(list, (number){first, 0}, rule.most_values))
            return TOO_LONG;
    return NULL;
}

/* One item between commas: N, N-M (not with decimals) or NxC. Returns what is wrong, or NULL. */
static const char *read_item(const char **text, list_rule rule, numbers *list)
{
    const char *malformed = what_is_expected(rule);
    number value, other = {1, 0};
    if (!read_number(text, rule.decimals, &value))
        return malformed;
    char sign = **text;
    if (sign == '-' && rule.decimals)
        return malformed;
    if (sign == '-' || sign == 'x') {
        (*text)++;
        if (!read_number(text, false, &other))
            return malformed;
    }
    if (sign == '-')
        return append_range(list, value.mantissa, other.mantissa, rule);
    if (sign == 'x' && other.mantissa < 1)
        return "a repeat count is at least 1";
    for (int64_t i = 0; i < (sign == 'x' ? other.mantissa : 1); i++)
        if (!append(list, value, rule.most_values))
            return TOO_LONG;
    return NULL;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Brings all values to one number of decimals and then to the smallest whole numbers in the same proportion;
 * if the largest is above `most`, to the nearest with `most` as the largest. */
static bool make_whole(numbers *list, int64_t most)
{
    int decimals = 0;
    for (int32_t i = 0; i < list->count; i++)
        decimals = list->all[i].decimals > decimals ? list->all[i].decimals : decimals;
    int64_t divisor = 0, largest = 0;
    for (int32_t i = 0; i < list->count; i++) {
        number *one = &list->all[i];
        for (; one->decimals < decimals; one->decimals++) {
            if (one->mantissa > INT64_MAX / 10)
                return false;
            one->mantissa *= 10;
        }
        divisor = common_divisor(one->mantissa, divisor);
        largest = one->mantissa > largest ? one->mantissa : largest;
    }
    if (decimals == 0 && largest <= most)
        return true;
    for (int32_t i = 0; i < list->count && divisor > 0; i++) {
        number *one = &list->all[i];
        one->mantissa /= divisor;
        if (largest / divisor > most) {
            double scaled = (double)one->mantissa / (double)(largest / divisor) * (double)most;
            one->mantissa = (int64_t)(scaled + 0.5);
        }
    }
    return true;
}

static bool check_range(const numbers *list, list_rule rule, char *message, size_t size)
{
    for (int32_t i = 0; i < list->count; i++) {
        int64_t value = list->all[i].mantissa;
        if (value >= rule.least && value <= rule.most)
            continue;
        if (rule.decimals)
            (void)snprintf(message, size, "entry %d is too small; expected positive numbers", (int)i);
        else
            (void)snprintf(message, size, "entry %d is %lld; expected a whole number from %lld to %lld",
                           (int)i, (long long)value, (long long)rule.least, (long long)rule.most);
        return false;
    }
    return true;
}

/* Reads all items; returns what is wrong, or NULL. */
static const char *read_items(const char *text, list_rule rule, numbers *list)
{
    for (;;) {
        const char *wrong = read_item(&text, rule, list);
        if (wrong != NULL)
            return wrong;
        if (*text == '\0')
            break;
        if (*text++ != ',')
            return what_is_expected(rule);
    }
    return rule.decimals && !make_whole(list, rule.most) ? "a number has too many digits" : NULL;
}

bool list_parse(const char *text, list_rule rule, int32_t **values, int32_t *count, char *message,
                size_t size)
{
    numbers list = {NULL, 0, 0};
    *values = NULL;
    *count = 0;
    const char *wrong = read_items(text, rule, &list);
    if (wrong != NULL)
        (void)snprintf(message, size, "%s", wrong);
    if (wrong == NULL && check_range(&list, rule, message, size)) {
        *values = malloc((size_t)list.count * sizeof **values);
        if (*values == NULL)
            (void)snprintf(message, size, "out of memory");
    }
    for (; *values != NULL && *count < list.count; (*count)++)
        (*values)[*count] = (int32_t)list.all[*count].mantissa;
    free(list.all);
    return *values != NULL;
}
