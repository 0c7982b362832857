/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check/subids.h"

#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/core/kubelet-config.h"
#include "sys/file.h"

static bool is_of_the_node(const char *name) {
        static const char *const names[] = {"kubelet", "root", "0"};

        for (size_t i = 0; i < nd_count_of(names); i++)
                if (nd_streq(name, names[i]))
                        return true;
        return false;
}

bool cli_subids_find_overlap(const char *text, struct nd_userns_range range, struct cli_subids_overlap *ret) {
        nd_autofree char *copy = nd_strdup(text);
        char *rest = copy, *line;
        uint64_t first, count;

        while ((line = strsep(&rest, "\n"))) {
                const char *name = strsep(&line, ":"), *first_text = strsep(&line, ":");

                if (!first_text || !line || *name == '\0' || is_of_the_node(name) ||
                    nd_text_parse_u64(first_text, UINT32_MAX, &first) < 0 ||
                    nd_text_parse_u64(line, ND_ID_SPACE, &count) < 0 || count == 0)
                        continue;
                if (first >= (uint64_t) range.first + range.count || range.first >= first + count)
                        continue;
                *ret = (struct cli_subids_overlap) {.first = first, .last = first + count - 1};
                (void) strncat(ret->user, name, sizeof ret->user - 1);
                return true;
        }
        return false;
}

static bool check_file(struct cli_findings *findings, const char *path, struct nd_userns_range range) {
        nd_autofree char *text = nullptr;
        nd_autoerror struct nd_error *absent = nd_file_read_kernel(path, SUBIDS_CEILING, &text);
        bool used = access(KUBELET_ROOT, F_OK) == 0;
        struct cli_subids_overlap overlap;

        if (absent || !cli_subids_find_overlap(text, range, &overlap))
                return false;
        cli_findings_add(findings, used ? FINDING_WARN : FINDING_NOTE, "pod IDs and users",
                         nd_format("IDs of user %s (%llu to %llu in %s) overlap those of pods: %s can act as a pod's user",
                                   overlap.user, (unsigned long long) overlap.first, (unsigned long long) overlap.last, path,
                                   overlap.user),
                         nd_strdup("assign user kubelet a range that no other user has, such as "
                                   "kubelet:655360000:7208960 in /etc/subuid and /etc/subgid; drain the node first"));
        return true;
}

void cli_subids_check(struct cli_findings *findings, struct nd_userns_range range) {
        if (!check_file(findings, "/etc/subuid", range))
                (void) check_file(findings, "/etc/subgid", range);
}
