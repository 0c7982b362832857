/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-settings.c - options and environment, both from lines NAME=VALUE: the results are within
 * their bounds, and no variable that names a socket of the host gets into the node */
#include <string.h>

#include <unit/fuzz.h>

#include "base/text.h"
#include "rootless/node/settings.h"

enum { LINES = 64 };

struct lines {
        char *items[LINES + 1];
        size_t count;
};

static const char *lookup(const char *name, void *userdata) {
        const struct lines *lines = userdata;
        size_t length = strlen(name);

        for (size_t i = 0; i < lines->count; i++)
                if (strncmp(lines->items[i], name, length) == 0 && lines->items[i][length] == '=')
                        return lines->items[i] + length + 1;
        return nullptr;
}

static void check_environment(struct lines *lines) {
        nd_cleanup(nd_strings_done) struct nd_strings words =
                rootless_config_environment(lines->items, "n", "/api", "1000", "1000");
        size_t homes = 0, directories = 0;

        fuzz_require(words.count > 0 && !words.items[words.count - 1]);
        nd_vector_each (word, &words) {
                if (!*word)
                        continue;
                fuzz_require(!nd_has_prefix(*word, "SSH_AUTH_SOCK=") && !nd_has_prefix(*word, "DBUS_SESSION_BUS_ADDRESS=") &&
                             !nd_has_prefix(*word, "NOTIFY_SOCKET="));
                homes += nd_has_prefix(*word, "HOME=");
                directories += nd_has_prefix(*word, "ROOTLESSKIT_STATE_DIR=");
        }
        fuzz_require(homes == 1 && directories == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autofree char *text = fuzz_text(data, size);
        nd_cleanup(rootless_config_done) struct rootless_config config = {};
        nd_autoerror struct nd_error *error = nullptr;
        struct lines lines = {};
        struct rootless_settings settings = {};

        for (char *line = text; *line && lines.count < LINES;) {
                size_t length = strcspn(line, "\n");
                char *next = line + length + (line[length] == '\n');

                line[length] = '\0';
                lines.items[lines.count++] = line;
                line = next;
        }
        check_environment(&lines);
        settings.name = lookup("name", &lines);
        settings.net = lookup("net", &lines);
        settings.data = lookup("data", &lines);
        error = rootless_config_resolve(&settings, lookup("lasting", &lines) != nullptr, lookup, &lines, &config);
        if (error)
                return 0;
        fuzz_require(config.name && config.mtu >= NET_MTU_MIN && config.mtu <= NET_MTU_MAX);
        fuzz_require(!config.data || config.data[0] == '/');
        return 0;
}
