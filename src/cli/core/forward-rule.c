/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/forward-rule.h"

#include <string.h>

#include "base/text.h"

static bool parse_port(const char *text, bool may_be_chosen, uint16_t *ret) {
        uint64_t number = 0;

        if (!(may_be_chosen && *text == '\0') && nd_text_parse_u64(text, UINT16_MAX, &number) < 0)
                return false;
        *ret = (uint16_t) number;
        return number > 0 || may_be_chosen;
}

struct nd_error *cli_forward_rule_parse(const char *text, struct cli_forward_rule *ret) {
        const char *colon = strchr(text, ':');
        nd_autofree char *local = colon ? nd_strndup(text, (size_t) (colon - text)) : nullptr;
        struct cli_forward_rule rule = {};

        if (!parse_port(colon ? colon + 1 : text, false, &rule.remote) || (local && !parse_port(local, true, &rule.local)))
                return nd_error_new(ND_INVALID, 0, "invalid port '%s': use REMOTE, LOCAL:REMOTE or :REMOTE, from 1 to %d",
                                    text, UINT16_MAX);
        if (!local)
                rule.local = rule.remote;
        *ret = rule;
        return nullptr;
}
