/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp.h - converts seccomp profiles of the containers project to OCI's linux.seccomp
 *
 * The format of /usr/share/containers/seccomp.json is OCI's, plus rules that apply only with or
 * without a capability, on some architectures or from some kernel on, and a map of architectures.
 * OCI's own files are accepted as well, since they only lack these. The result is for one host and
 * one set of capabilities, so that the engine has nothing to decide. */
#pragma once

#include "base/text.h"

enum {
        ND_SECCOMP_CEILING = 1 << 20, /* maximum size of a profile */
};

struct nd_seccomp_host {
        const char *architecture; /* Go's name: "amd64" */
        /* The container's bounding set; bits as in nd_spec_capabilities. */
        uint64_t capabilities;
        unsigned kernel_major, kernel_minor; /* for rules with a minimum kernel */
        /* There is one user and one group: calls that change them, or the owner of a file, succeed
         * without an effect, also if the profile says otherwise. */
        bool single_id;
};

/* Appends the JSON of linux.seccomp. An ND_INVALID error describes what is wrong with the profile,
 * without its name; the appended text is invalid then. */
[[nodiscard]] struct nd_error *nd_seccomp_convert(const char *bytes, size_t length, const struct nd_seccomp_host *host,
                                                  struct nd_text *ret);

/* Appends the JSON of a filter that allows everything, with the rule of single_id. */
void nd_seccomp_single_id(struct nd_text *ret);
