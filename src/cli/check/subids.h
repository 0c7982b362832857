/* SPDX-License-Identifier: Apache-2.0 */
/* subids.h - checks for subordinate IDs of users that overlap the pods' IDs, for `nodens check`
 *
 * A user can map subordinate IDs with newuidmap and act as each of them. If such an ID belongs to a
 * pod, the user can kill the pod's processes and open its files. The kubelet does not check for
 * overlaps, and its default range contains nearly all IDs that useradd assigns. */
#pragma once

#include "cli/check/findings.h"
#include "userns/range.h"

enum {
        SUBIDS_CEILING = 1024 * 1024, /* size limit of /etc/subuid and /etc/subgid */
        SUBIDS_NAME = 64,             /* size of a displayed user name */
};

struct cli_subids_overlap {
        char user[SUBIDS_NAME];
        uint64_t first, last; /* the user's range */
};

/* Finds the first line NAME:FIRST:COUNT that overlaps the range. Skips lines of root and of the
 * user kubelet, whose IDs are the pods', and invalid lines. */
bool cli_subids_find_overlap(const char *text, struct nd_userns_range range, struct cli_subids_overlap *ret);

/* Checks /etc/subuid and /etc/subgid. Reports a warning if a kubelet has run on this host, else a
 * note. Directory services are not queried: they answer for one user at a time. */
void cli_subids_check(struct cli_findings *findings, struct nd_userns_range range);
