/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp.h - system call filters: from the file that people keep to OCI's linux.seccomp
 *
 * The file is the containers project's format (/usr/share/containers/seccomp.json): OCI's, plus rules that hold only with or without a capability, on some
 * architectures or from some kernel on, and a map of architectures. OCI's own files are read as well, since they lack only that. What comes out
 * is for one machine and one set of capabilities, so that the engine has nothing to decide. */
#pragma once

#include "base/text.h"

enum {
        ND_SECCOMP_CEILING = 1 << 20, /* bytes of a profile */
};

struct nd_seccomp_host {
        const char *architecture;            /* as Go calls it: "amd64" */
        uint64_t capabilities;               /* the container's bounding set; bits as in nd_spec_capabilities */
        unsigned kernel_major, kernel_minor; /* for rules that begin with a kernel */
};

/* Appends the JSON of linux.seccomp. ND_INVALID says what is wrong with the profile, without its name; what was
 * appended means nothing then. */
[[nodiscard]] struct nd_error *nd_seccomp_convert(const char *bytes, size_t length, const struct nd_seccomp_host *host,
                                                  struct nd_text *ret);
