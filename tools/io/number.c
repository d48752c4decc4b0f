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

/* After the point: *seen grows by the digits; NULL where none stand although they must. */
static const char *fraction(const char *c, bool loose, size_t *seen)
{
    const char *end = digits(c);
    *seen += (size_t)(end - c);
    return end == c && !loose ? NULL : end;
}

/* After the e: a sign and digits; NULL where no digit stands. */
static const char *exponent(const char *c)
{
    if (*c == '-' || *c == '+')
        c++;
    const char *end = digits(c);
    return end == c ? NULL : end;
}

static bool is_exponent_mark(char c)
{
    return c == 'e' || c == 'E';
}

/* Digits before the point: JSON wants one at least, and no zero before another. */
static bool legal_whole(const char *whole, size_t count, bool loose)
{
    return loose || count == 1 || (count > 1 && *whole != '0');
}

/* True if text[length] is a number; *integer tells that it has neither point nor exponent. */
static bool check_syntax(const char *text, size_t length, bool loose, bool *integer)
{
    const char *c = text;
    if (*c == '-' || (loose && *c == '+'))
        c++;
    const char *whole = c;
    c = digits(whole);
    size_t seen = (size_t)(c - whole);
    if (!legal_whole(whole, seen, loose))
        return false;
    *integer = *c != '.' && !is_exponent_mark(*c);
    if (*c == '.')
        c = fraction(c + 1, loose, &seen);
    if (c != NULL && seen > 0 && is_exponent_mark(*c))
        c = exponent(c + 1);
    return c != NULL && seen > 0 && (size_t)(c - text) == length;
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
