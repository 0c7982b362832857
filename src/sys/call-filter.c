/* SPDX-License-Identifier: Apache-2.0 */
/* call-filter.c - see call-filter.h */
#include "sys/call-filter.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "base/assert.h"
#include "sys/machine.h"

#define LOAD(field) ((struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned) offsetof(struct seccomp_data, field)))
#define LOAD_LOW(argument)                                                                                                    \
        ((struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS,                                                              \
                                       (unsigned) (offsetof(struct seccomp_data, args) + 8 * (argument))))
#define JUMP(test, value, yes, no) ((struct sock_filter) BPF_JUMP(BPF_JMP | (test) | BPF_K, value, yes, no))
#define GIVE(action) ((struct sock_filter) BPF_STMT(BPF_RET | BPF_K, action))

/* the lower half of an argument comes first */
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

/* Each call is decided by its own instructions, so every jump is short. */
size_t nd_call_filter_build(const struct nd_call_filter *filter, struct sock_filter ret[static ND_CALL_FILTER_MOST]) {
        size_t n = 0;

        nd_assert(6 + 2 * filter->allowed_count + 5 * filter->conditional_count + 1 <= ND_CALL_FILTER_MOST);
        ret[n++] = LOAD(arch);
        ret[n++] = JUMP(BPF_JEQ, ND_AUDIT_ARCH, 1, 0);
        ret[n++] = GIVE(SECCOMP_RET_KILL_PROCESS);
        ret[n++] = LOAD(nr);
        ret[n++] = JUMP(BPF_JGE, ND_CALLS_END, 0, 1);
        ret[n++] = GIVE(SECCOMP_RET_KILL_PROCESS);
        for (size_t i = 0; i < filter->allowed_count; i++) {
                ret[n++] = JUMP(BPF_JEQ, (uint32_t) filter->allowed[i], 0, 1);
                ret[n++] = GIVE(SECCOMP_RET_ALLOW);
        }
        for (size_t i = 0; i < filter->conditional_count; i++) {
                const struct nd_call_condition *one = &filter->conditional[i];

                ret[n++] = LOAD(nr);
                ret[n++] = JUMP(BPF_JEQ, (uint32_t) one->number, 0, 3);
                ret[n++] = LOAD_LOW(one->argument);
                ret[n++] =
                        one->condition == ND_CALL_EQUAL ? JUMP(BPF_JEQ, one->value, 0, 1) : JUMP(BPF_JSET, one->value, 1, 0);
                ret[n++] = GIVE(SECCOMP_RET_ALLOW);
        }
        ret[n++] = GIVE(SECCOMP_RET_ERRNO | EPERM);
        return n;
}

struct nd_error *nd_call_filter_load(const struct nd_call_filter *filter) {
        struct sock_filter program[ND_CALL_FILTER_MOST];
        struct sock_fprog code = {.len = (unsigned short) nd_call_filter_build(filter, program), .filter = program};

        if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
                return nullptr; /* the kernel has no seccomp filters */
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &code) < 0)
                return nd_error_new(ND_INTERNAL, errno, "load the system call filter");
        return nullptr;
}
