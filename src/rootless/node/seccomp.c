/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp.c - see seccomp.h
 *
 * The kernel's keyrings are separated by user ID only, and root of the node has the user's ID on
 * the host. By linking the user's keyring through its number, the node would possess the user's
 * keys. The filter returns ENOSYS, as a kernel without keyrings does; container engines handle
 * that. */
#include "rootless/node/seccomp.h"

#include <seccomp.h>

static void filter_done(scmp_filter_ctx *filter) {
        if (*filter)
                seccomp_release(*filter);
}

/* The other system call ABIs of this architecture; without them in the filter their programs would
 * be killed. */
static const uint32_t other_tables[] = {
#if defined(__x86_64__)
        SCMP_ARCH_X86,
        SCMP_ARCH_X32,
#elif defined(__aarch64__)
        SCMP_ARCH_ARM,
#endif
        0,
};

struct nd_error *rootless_seccomp_load(void) {
        static const int refused[] = {SCMP_SYS(add_key), SCMP_SYS(request_key), SCMP_SYS(keyctl)};
        nd_cleanup(filter_done) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
        int r = filter ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && other_tables[i] != 0; i++)
                r = seccomp_arch_add(filter, other_tables[i]);
        for (size_t i = 0; r == 0 && i < nd_count_of(refused); i++)
                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), refused[i], 0);
        /* Do not set no_new_privs: we are root of the node, and programs in it may gain privileges
         * over it. */
        if (r == 0)
                r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);
        if (r == 0)
                r = seccomp_load(filter);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "load the node's system call filter") : nullptr;
}
