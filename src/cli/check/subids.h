/* SPDX-License-Identifier: Apache-2.0 */
/* subids.h - subordinate IDs of users that overlap the pods' IDs; the part of `nodens check` about them
 *
 * A user maps subordinate IDs by newuidmap and acts as each of them. Where such an ID is a pod's, the user can kill the pod's processes and
 * open its files. The kubelet does not look for overlaps, and its default range has nearly all IDs that useradd assigns. */
#pragma once

#include "cli/check/findings.h"
#include "userns/range.h"

enum {
        SUBIDS_CEILING = 1024 * 1024, /* of /etc/subuid and /etc/subgid */
        SUBIDS_NAME = 64,             /* of a user's name, as it is shown */
};

struct cli_subids_overlap {
        char user[SUBIDS_NAME];
        uint64_t first, last; /* of the user's range */
};

/* The first line NAME:FIRST:COUNT of the text that overlaps the range. Lines of root and of the user kubelet do not count: pods have
 * their IDs from the latter. Lines that cannot be read are passed over. */
bool cli_subids_find_overlap(const char *text, struct nd_userns_range range, struct cli_subids_overlap *ret);

/* Looks into /etc/subuid and /etc/subgid. A warning where a kubelet has run on this machine, else a note. Directory services are not asked: they
 * answer for one user at a time. */
void cli_subids_check(struct cli_findings *findings, struct nd_userns_range range);
