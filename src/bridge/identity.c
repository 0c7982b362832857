/* SPDX-License-Identifier: Apache-2.0 */
/* identity.c - see identity.h */
#include "bridge/identity.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum {
        STATUS_MOST = 8192,
};

static void become(struct bridge_thread *thread, uint32_t uid, uint32_t gid, const uint32_t *groups, int count) {
        /* System calls, because libc would change all threads. */
        if (gid != thread->gid)
                (void) syscall(SYS_setfsgid, gid);
        if (uid != thread->uid)
                (void) syscall(SYS_setfsuid, uid);
        thread->uid = uid;
        thread->gid = gid;
        if (count == thread->group_count &&
            (count == 0 || memcmp(groups, thread->groups, (size_t) count * sizeof *groups) == 0))
                return;
        if (count > 0)
                memcpy(thread->groups, groups, (size_t) count * sizeof *groups);
        thread->group_count = count;
        (void) syscall(SYS_setgroups, count, thread->groups);
}

void bridge_identity_root(struct bridge_thread *thread) {
        become(thread, 0, 0, nullptr, 0);
}

/* Reads "Groups:" of /proc/PID/status. The caller waits for our reply, so it still exists. */
static int read_groups(const struct bridge_thread *thread, uint32_t pid, uint32_t ret[static BRIDGE_GROUPS]) {
        const struct bridge_settings *settings = &bridge_shared(thread)->settings;
        char path[32], text[STATUS_MOST], *at;
        nd_autoclose int fd = -EBADF;
        ssize_t length;
        int count = 0;

        (void) snprintf(path, sizeof path, "%u/status", pid);
        fd = openat(bridge_shared(thread)->proc, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        if (length <= 0)
                return 0;
        text[length] = '\0';
        at = strstr(text, "\nGroups:");
        for (at = at ? at + strlen("\nGroups:") : nullptr; at && count < BRIDGE_GROUPS;) {
                char *end;
                unsigned long group;

                at += strspn(at, " \t");
                if (*at == '\n')
                        break;
                group = strtoul(at, &end, 10);
                if (end == at)
                        break;
                at = end;
                if (group >= settings->first_id && group - settings->first_id < settings->ids)
                        ret[count++] = (uint32_t) (group - settings->first_id);
        }
        return count;
}

/* Groups are read each time: a process can give them up, and its ID can be another one's soon. */
static void become_caller(struct bridge_thread *thread, const struct fuse_in_header *head) {
        uint32_t groups[BRIDGE_GROUPS];
        int count = read_groups(thread, head->pid, groups);

        become(thread, head->uid, head->gid, groups, count);
}

void bridge_identity_owner(struct bridge_thread *thread, uint32_t uid, uint32_t gid) {
        const struct bridge_settings *settings = &bridge_shared(thread)->settings;

        if (settings->as != BRIDGE_AS_ROOT && !settings->force_owner)
                become(thread, uid, gid, nullptr, 0);
}

/* The owner that the kernel has cached with the node: an NFS server may refuse to tell root, which
 * it squashes, the attributes of another user's directory (EACCES from Linux 7, which asks for a
 * delegation in the same request). */
static bool become_owner(struct bridge_thread *thread, int fd, const char *name) {
        int flags = AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC | (*name == '\0' ? AT_EMPTY_PATH : 0);
        struct statx x;

        if (statx(fd, name, flags, STATX_UID | STATX_GID, &x) < 0)
                return false;
        bridge_identity_owner(thread, x.stx_uid, x.stx_gid);
        return true;
}

void bridge_identity_for(struct bridge_thread *thread, const struct fuse_in_header *head, const struct bridge_node *node) {
        const struct bridge_settings *settings = &bridge_shared(thread)->settings;

        if (settings->as == BRIDGE_AS_CALLER && !settings->force_owner && head->uid != UINT32_MAX) {
                become_caller(thread, head);
                return;
        }
        bridge_identity_root(thread);
        if (settings->as != BRIDGE_AS_ROOT)
                (void) become_owner(thread, node->fd, "");
}

bool bridge_identity_retry(struct bridge_thread *thread, const struct bridge_node *parent, const char *name, int error) {
        return (error == -EACCES || error == -EPERM) && bridge_shared(thread)->settings.as == BRIDGE_AS_OWNER &&
               become_owner(thread, parent->fd, name);
}

void bridge_identity_creator(struct bridge_thread *thread, const struct bridge_request *request) {
        const struct bridge_settings *settings = &bridge_shared(thread)->settings;

        if (settings->force_owner)
                bridge_identity_root(thread);
        else if (settings->as == BRIDGE_AS_CALLER)
                become_caller(thread, request->head);
        else
                become(thread, request->head->uid, request->head->gid, &request->group, request->group == UINT32_MAX ? 0 : 1);
}

void bridge_identity_keep_setid(bool keep) {
        struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2];

        if (syscall(SYS_capget, &head, data) < 0)
                return;
        if (keep)
                data[0].effective |= data[0].permitted & 1u << CAP_FSETID;
        else
                data[0].effective &= ~(1u << CAP_FSETID);
        (void) syscall(SYS_capset, &head, data);
}
