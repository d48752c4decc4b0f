/* A number in text. Syntax is checked first, so that strtod sees nothing it would read differently. */
#include "io/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *digits(const char *c)
{
    while (is_digit(*c))
        c++;
    return c;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_word(const char *text, const char *word)
{
    for (; *word != '\0'; text++, word++)
        if (lower(*text) != *word)
            return false;
    return *text == '\0';
}

/* nan and inf, with a sign. */
static bool parse_word(const char *text, io_number *number)
{
    bool negative = *text == '-';
    if (*text == '-' || *text == '+')
        text++;
    if (is_word(text, "nan"))
        number->real = (double)NAN;
    else if (is_word(text, "inf") || is_word(text, "infinity"))
        number->real = negative ? -(double)INFINITY : (double)INFINITY;
    else
        return false;
    number->floating = true;
    return true;
}

/* True if text[length] is a number; *integer tells that it has neither point nor exponent. */
static bool check_syntax(const char *text, size_t length, bool loose, bool *integer)
{
    const char *c = text;
    if (*c == '-' || (loose && *c == '+'))
        c++;
    const char *whole = c;
    c = digits(c);
    size_t whole_digits = (size_t)(c - whole);
    size_t all_digits = whole_digits;
    if (!loose && (whole_digits == 0 || (whole_digits > 1 && *whole == '0')))
        return false;
    *integer = true;
    if (*c == '.') {
        const char *fraction = c + 1;
        c = digits(fraction);
        all_digits += (size_t)(c - fraction);
        *integer = false;
        if (!loose && c == fraction)
            return false;
    }
    if (all_digits == 0)
        return false;
    if (*c == 'e' || *c == 'E') {
        c++;
        if (*c == '-' || *c == '+')
            c++;
        const char *exponent = c;
        c = digits(c);
        *integer = false;
        if (c == exponent)
            return false;
    }
    return (size_t)(c - text) == length;
}

static io_number_result parse_integer(const char *text, io_number *number)
{
    bool negative = *text == '-';
    if (*text == '-' || *text == '+')
        text++;
    uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    uint64_t value = 0;
    for (; *text != '\0'; text++) {
        uint64_t digit = (uint64_t)(*text - '0');
        if (value > (limit - digit) / 10)
            return IO_NUMBER_RANGE;
        value = value * 10 + digit;
    }
    number->floating = false;
    number->integer = negative ? (value == limit ? INT64_MIN : -(int64_t)value) : (int64_t)value;
    return IO_NUMBER_OK;
}

io_number_result io_number_parse(const char *text, size_t length, bool loose, io_number *number)
{
    bool integer;
    if (!check_syntax(text, length, loose, &integer))
        return loose && parse_word(text, number) ? IO_NUMBER_OK : IO_NUMBER_SYNTAX;
    if (integer)
        return parse_integer(text, number);
    number->floating = true;
    number->real = strtod(text, NULL);
    return isinf(number->real) ? IO_NUMBER_RANGE : IO_NUMBER_OK;
}
