/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/platform.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/text.h"

static char to_lower(char c) {
        if (c >= 'A' && c <= 'Z')
                return (char) (c - 'A' + 'a');
        return c;
}

static bool copy_field(const char *text, char field[static ND_PLATFORM_FIELD]) {
        size_t length = text ? strlen(text) : 0;

        if (length >= ND_PLATFORM_FIELD)
                return false;
        for (size_t i = 0; i < length; i++) {
                if (text[i] <= ' ' || text[i] > '~')
                        return false;
                field[i] = to_lower(text[i]);
        }
        field[length] = '\0';
        return true;
}

/* Aliases of architectures. A variant of nullptr keeps the given one. */
static const struct {
        const char *alias, *architecture, *variant;
} aliases[] = {
        {"i386", "386", ""},
        {"i586", "386", ""},
        {"i686", "386", ""},
        {"x86_64", "amd64", nullptr},
        {"x86-64", "amd64", nullptr},
        {"armhf", "arm", "v7"},
        {"armel", "arm", "v6"},
        {"armv7l", "arm", "v7"},
        {"aarch64", "arm64", nullptr},
        {"armv6l", "arm", "v6"},
        {"loongarch64", "loong64", nullptr},
};

/* Aliases of variants. */
static const struct {
        const char *architecture, *alias, *variant;
} variants[] = {
        {"amd64", "v1", ""},  {"arm64", "8", ""},     {"arm64", "v8", ""},     {"arm64", "v8.0", ""},
        {"arm64", "9", "v9"}, {"arm64", "9.0", "v9"}, {"arm64", "v9.0", "v9"}, {"arm", "", "v7"},
        {"arm", "7", "v7"},   {"arm", "5", "v5"},     {"arm", "6", "v6"},      {"arm", "8", "v8"},
};

static void normalise(struct nd_platform *p) {
        if (p->os[0] == '\0')
                (void) copy_field("linux", p->os);
        for (size_t i = 0; i < nd_count_of(aliases); i++)
                if (nd_streq(p->architecture, aliases[i].alias)) {
                        (void) copy_field(aliases[i].architecture, p->architecture);
                        if (aliases[i].variant)
                                (void) copy_field(aliases[i].variant, p->variant);
                        break;
                }
        for (size_t i = 0; i < nd_count_of(variants); i++)
                if (nd_streq(p->architecture, variants[i].architecture) && nd_streq(p->variant, variants[i].alias)) {
                        (void) copy_field(variants[i].variant, p->variant);
                        break;
                }
}

bool nd_platform_make(const char *os, const char *architecture, const char *variant, struct nd_platform *ret) {
        struct nd_platform platform = {};

        if (!copy_field(os, platform.os) || !copy_field(architecture, platform.architecture) ||
            !copy_field(variant, platform.variant)) {
                *ret = (struct nd_platform) {.os = "unknown", .architecture = "unknown"};
                return false;
        }
        normalise(&platform);
        *ret = platform;
        return true;
}

struct nd_platform nd_platform_host(void) {
        struct nd_platform host = {};
        struct utsname names = {};

        (void) uname(&names); /* cannot fail; the kernel's machine names are aliases here */
        (void) nd_platform_make("linux", names.machine, "", &host);
        return host;
}

/* Platforms that a host accepts, best first; larger than the longest list (arm64/v9.7 has 22). */
struct choices {
        const char *os;
        struct nd_platform items[32];
        size_t count;
};

static void add(struct choices *choices, const char *architecture, const char *variant) {
        if (choices->count < nd_count_of(choices->items))
                (void) nd_platform_make(choices->os, architecture, variant, &choices->items[choices->count++]);
}

/* "v8" and "v8.0" are equal, as in the normalisation. */
static void add_version(struct choices *choices, const char *architecture, int major, int minor) {
        char variant[ND_PLATFORM_FIELD];

        if (minor > 0)
                (void) snprintf(variant, sizeof variant, "v%d.%d", major, minor);
        else
                (void) snprintf(variant, sizeof variant, "v%d", major);
        add(choices, architecture, variant);
}

/* Parses "vN" or "vN.M"; false for any other variant. */
static bool parse_version(const char *variant, int *ret_major, int *ret_minor) {
        if (variant[0] != 'v' || variant[1] < '0' || variant[1] > '9')
                return false;
        *ret_major = variant[1] - '0';
        *ret_minor = 0;
        if (variant[2] == '\0')
                return true;
        if (variant[2] != '.' || variant[3] < '0' || variant[3] > '9' || variant[4] != '\0')
                return false;
        *ret_minor = variant[3] - '0';
        return true;
}

/* A variant and the older ones of its architecture: whole numbers down to lowest. */
static void add_family(struct choices *choices, const char *architecture, const char *variant, int lowest) {
        int major, minor;

        add(choices, architecture, variant);
        if (!parse_version(variant, &major, &minor) || minor != 0)
                return;
        for (major--; major >= lowest; major--)
                add_version(choices, architecture, major, 0);
}

/* v9.x includes v8.(x+5), and v8 ended with v8.9. */
static void add_arm64(struct choices *choices, const char *variant) {
        int major = 8, minor = 0;

        if (variant[0] != '\0' && !parse_version(variant, &major, &minor))
                return;
        if (major == 9 ? minor > 7 : major != 8)
                return;
        for (int m = minor; major == 9 && m >= 0; m--)
                add_version(choices, "arm64", 9, m);
        if (major == 9)
                minor = minor + 5 < 9 ? minor + 5 : 9;
        for (; minor >= 0; minor--)
                add_version(choices, "arm64", 8, minor);
        add_family(choices, "arm", "v8", 5);
}

static bool same(const struct nd_platform *a, const struct nd_platform *b) {
        return nd_streq(a->os, b->os) && nd_streq(a->architecture, b->architecture) && nd_streq(a->variant, b->variant);
}

int nd_platform_rank(const struct nd_platform *wanted, const struct nd_platform *candidate) {
        struct choices choices = {.os = wanted->os};

        if (candidate->features)
                return -1;
        if (nd_streq(wanted->architecture, "amd64")) {
                add_family(&choices, "amd64", wanted->variant, 1);
                add(&choices, "386", "");
        } else if (nd_streq(wanted->architecture, "arm64")) {
                add_arm64(&choices, wanted->variant);
        } else if (nd_streq(wanted->architecture, "arm")) {
                add_family(&choices, "arm", wanted->variant, 5);
        } else {
                add(&choices, wanted->architecture, wanted->variant);
        }
        for (size_t i = 0; i < choices.count; i++)
                if (same(&choices.items[i], candidate))
                        return (int) i;
        return -1;
}

const char *nd_platform_text(const struct nd_platform *platform, char ret[static ND_PLATFORM_TEXT]) {
        (void) snprintf(ret, ND_PLATFORM_TEXT, "%s/%s%s%s", platform->os, platform->architecture,
                        platform->variant[0] ? "/" : "", platform->variant);
        return ret;
}
