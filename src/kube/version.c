/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/version.h"

#include <string.h>

#include "base/text.h"

static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-";

int nd_kube_version_parse(const char *text, struct nd_kube_version *ret) {
        uint64_t minor;

        if (nd_streq(text, "latest")) {
                *ret = ND_POLICY_LATEST;
                return 0;
        }
        if (!nd_has_prefix(text, "v1."))
                return -EINVAL;
        text += strlen("v1.");
        if (text[0] == '0' && text[1] != '\0')
                return -EINVAL;
        if (nd_text_parse_u64(text, INT64_MAX, &minor) < 0)
                return -EINVAL;
        *ret = (struct nd_kube_version) {.minor = minor};
        return 0;
}

char *nd_kube_version_text(struct nd_kube_version version) {
        return version.latest ? nd_strdup("latest") : nd_format("v1.%llu", (unsigned long long) version.minor);
}

/* Takes one number at *at, without leading zeros, and moves past it. */
static int take_number(const char **at, uint32_t *ret) {
        size_t length = strspn(*at, "0123456789");
        nd_autofree char *digits = nullptr;

        if (length == 0 || length > 10 || (length > 1 && **at == '0'))
                return -EINVAL;
        digits = nd_strndup(*at, length);
        *at += length;
        return nd_text_parse_u32(digits, ret);
}

/* Identifiers of a pre-release or a build: not empty, joined by dots. Numbers of a pre-release have
 * no leading zeros. */
static int skip_identifiers(const char **at, bool prerelease) {
        for (;; (*at)++) {
                size_t length = strspn(*at, letters);

                if (length == 0)
                        return -EINVAL;
                if (prerelease && length > 1 && **at == '0' && strspn(*at, "0123456789") == length)
                        return -EINVAL;
                *at += length;
                if (**at != '.')
                        return 0;
        }
}

int nd_version_parse(const char *text, struct nd_version *ret) {
        struct nd_version version = {};
        uint32_t *const parts[] = {&version.major, &version.minor, &version.patch};

        if (*text == 'v')
                text++;
        for (size_t i = 0; i < nd_count_of(parts); i++) {
                if (i > 0 && *text++ != '.')
                        return -EINVAL;
                if (take_number(&text, parts[i]) < 0)
                        return -EINVAL;
        }
        if (*text == '-') {
                text++;
                if (skip_identifiers(&text, true) < 0)
                        return -EINVAL;
        }
        if (*text == '+') {
                text++;
                if (skip_identifiers(&text, false) < 0)
                        return -EINVAL;
        }
        if (*text != '\0')
                return -EINVAL;
        *ret = version;
        return 0;
}

static int compare_numbers(uint32_t a, uint32_t b) {
        return (a > b) - (a < b);
}

int nd_version_compare(const struct nd_version *a, const struct nd_version *b) {
        int order = compare_numbers(a->major, b->major);

        if (order == 0)
                order = compare_numbers(a->minor, b->minor);
        return order != 0 ? order : compare_numbers(a->patch, b->patch);
}
