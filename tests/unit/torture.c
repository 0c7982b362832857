/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/torture.h>

#include <unit/expect.h>
#include <unit/resources.h>

/* The part of an error's text about the failed call. */
static const char *purpose(enum fault_call call) {
        static const char *const words[] = {
                [FAULT_OPENAT] = "open",
                [FAULT_WRITE] = "write",
                [FAULT_FSYNC] = "sync",
                [FAULT_RENAMEAT] = "rename",
                [FAULT_UNLINKAT] = "remove",
                [FAULT_MKDIRAT] = "make directory",
                [FAULT_OPEN_TREE] = "clone the mount",
                [FAULT_MOVE_MOUNT] = "attach",
                [FAULT_MOUNT_SETATTR] = "idmap",
                [FAULT_FSOPEN] = "open filesystem type",
                [FAULT_FSCONFIG] = "tmpfs: ",
                [FAULT_FSMOUNT] = "mount",
                [FAULT_MOUNT] = "private",
                [FAULT_CLONE3] = "start",
                [FAULT_UNSHARE] = "namespace",
                [FAULT_PIPE2] = "pipe",
                [FAULT_PWRITE] = "write",
                [FAULT_FTRUNCATE] = "size",
                [FAULT_FCHMOD] = "mode",
                [FAULT_FCHOWN] = "owner",
                [FAULT_FCHOWNAT] = "owner",
                [FAULT_UTIMENSAT] = "times",
                [FAULT_SYMLINKAT] = "link",
        };

        return words[call];
}

static void check_text(const struct torture *t, enum fault_call call, int error_number, const struct nd_error *error) {
        const char *text = nd_error_text(error), *why = strerrordesc_np(error_number);
        bool created = call == FAULT_OPENAT && strstr(text, "create");

        if ((!created && !strstr(text, purpose(call))) || !strstr(text, why) || !strstr(text, t->noun))
                fail_msg("%s: %s failed with '%s', and the error says only: %s", t->name, fault_name(call), why, text);
        if (nd_error_errno(error) != error_number)
                fail_msg("%s: %s failed with '%s', but the error's errno is %d", t->name, fault_name(call), why,
                         nd_error_errno(error));
}

/* One run with one fault; false when the operation passed without meeting it. */
static bool strike(const struct torture *t, void *world, enum fault_call call, unsigned nth, int error_number) {
        nd_autoerror struct nd_error *error = nullptr;
        size_t descriptors;
        bool met;

        if (t->prepare)
                t->prepare(world);
        descriptors = resources_descriptors();
        faults_arm(call, nth, error_number, false);
        error = t->run(world);
        met = faults_disarm();

        if (!met && error)
                fail_msg("%s failed without a fault: %s", t->name, nd_error_text(error));
        if (met && !error && !t->silent)
                fail_msg("%s: %s number %u failed without an error", t->name, fault_name(call), nth);
        if (error)
                check_text(t, call, error_number, error);
        if (resources_descriptors() != descriptors)
                fail_msg("%s: %s number %u failed and left a descriptor open", t->name, fault_name(call), nth);
        if (resources_children() > 0)
                fail_msg("%s: %s number %u failed and left a child behind", t->name, fault_name(call), nth);
        if (t->check)
                t->check(world, error != nullptr);
        return met;
}

void torture(const struct torture *t, void *world) {
        static const int errors[] = {ENOSPC, EIO, EMFILE, EPERM};
        enum { CALLS_CEILING = 1000 };

        for (int call = 0; call < FAULT_CALLS; call++) {
                if (!(t->calls & 1u << call))
                        continue;
                for (size_t i = 0; i < nd_count_of(errors); i++) {
                        unsigned nth = 1;

                        while (strike(t, world, (enum fault_call) call, nth, errors[i]))
                                if (++nth > CALLS_CEILING)
                                        fail_msg("%s never passes", t->name);
                        if (nth == 1)
                                fail_msg("%s does not call %s at all", t->name, fault_name((enum fault_call) call));
                }
        }
}
