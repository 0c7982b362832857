/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/quantity.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

enum {
        /* 10^18 < 2^60: with the largest binary suffix, 2^60, it fits into 128 bits */
        DIGITS = 18,
        EXPONENT = 1000,    /* larger exponents are cut to this one, which is beyond any result */
        EXPONENT_TEXT = 10, /* digits of an exponent */
};

/* The number before the suffix: digits * 10^exponent. */
struct decimal {
        unsigned __int128 digits;
        int exponent;
        bool negative;
};

static bool is_digit(char c) {
        return c >= '0' && c <= '9';
}

/* Takes one digit. Zeros are held back until another digit follows: trailing ones only change the
 * exponent. */
static int take_digit(struct decimal *number, int digit, int *count, int *zeros) {
        if (digit == 0) {
                if (number->digits != 0)
                        (*zeros)++;
                return 0;
        }
        *count += *zeros + 1;
        if (*count > DIGITS)
                return -ERANGE;
        for (; *zeros > 0; (*zeros)--)
                number->digits *= 10;
        number->digits = number->digits * 10 + (unsigned) digit;
        return 0;
}

/* Sign, digits, point, digits; at least one digit. */
static int take_number(const char **text, struct decimal *ret) {
        int count = 0, zeros = 0, fraction = 0, r;
        bool any = false, point = false;
        const char *at = *text;

        *ret = (struct decimal) {.negative = *at == '-'};
        if (*at == '-' || *at == '+')
                at++;
        for (; is_digit(*at) || (*at == '.' && !point); at++) {
                if (*at == '.') {
                        point = true;
                        continue;
                }
                any = true;
                if (point && fraction++ > EXPONENT)
                        return -ERANGE;
                r = take_digit(ret, *at - '0', &count, &zeros);
                if (r < 0)
                        return r;
        }
        if (!any)
                return -EINVAL;
        if (zeros > EXPONENT)
                return -ERANGE;
        ret->exponent = ret->digits == 0 ? 0 : zeros - fraction;
        *text = at;
        return 0;
}

/* "e6", "E-3": sign and digits to the end. */
static int take_exponent(const char *text, int *ret) {
        bool negative = *text == '-';
        size_t length;
        int value = 0;

        if (*text == '-' || *text == '+')
                text++;
        length = strspn(text, "0123456789");
        if (length == 0 || length > EXPONENT_TEXT || text[length] != '\0')
                return -EINVAL;
        for (; *text; text++)
                value = value > EXPONENT ? value : value * 10 + (*text - '0');
        *ret = negative ? -value : value;
        return 0;
}

/* Parses the suffix; its factor is 10^ret_ten * 2^ret_two. */
static int take_suffix(const char *text, int *ret_ten, int *ret_two) {
        static const struct {
                const char *text;
                int ten, two;
        } suffixes[] = {{"", 0, 0},    {"n", -9, 0},  {"u", -6, 0},  {"m", -3, 0}, {"k", 3, 0},   {"M", 6, 0},
                        {"G", 9, 0},   {"T", 12, 0},  {"P", 15, 0},  {"E", 18, 0}, {"Ki", 0, 10}, {"Mi", 0, 20},
                        {"Gi", 0, 30}, {"Ti", 0, 40}, {"Pi", 0, 50}, {"Ei", 0, 60}};

        *ret_ten = *ret_two = 0;
        for (size_t i = 0; i < nd_count_of(suffixes); i++)
                if (nd_streq(text, suffixes[i].text)) {
                        *ret_ten = suffixes[i].ten;
                        *ret_two = suffixes[i].two;
                        return 0;
                }
        return *text == 'e' || *text == 'E' ? take_exponent(text + 1, ret_ten) : -EINVAL;
}

/* Divides by a power of ten. up: away from zero, to round a positive amount up; a negative one is
 * rounded towards zero. */
static unsigned __int128 shrink(unsigned __int128 amount, int tens, bool up) {
        bool rest = false;

        for (; tens > 0 && amount > 0; tens--) {
                rest = rest || amount % 10 != 0;
                amount /= 10;
        }
        return amount + (rest && up);
}

int nd_quantity_parse(const char *text, int64_t *ret) {
        struct decimal number;
        unsigned __int128 amount;
        int ten, two, r;

        r = take_number(&text, &number);
        if (r < 0)
                return r;
        r = take_suffix(text, &ten, &two);
        if (r < 0)
                return r;
        ten += number.exponent;
        amount = number.digits << two;
        if (ten < 0)
                amount = shrink(amount, -ten, !number.negative);
        for (; ten > 0 && amount > 0; ten--) {
                if (amount > INT64_MAX)
                        return -ERANGE;
                amount *= 10;
        }
        if (amount > INT64_MAX)
                return -ERANGE;
        *ret = number.negative ? -(int64_t) amount : (int64_t) amount;
        return 0;
}
