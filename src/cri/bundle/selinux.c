/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/selinux.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "sys/child.h"

#ifndef ND_SELINUX
#define ND_SELINUX 0 /* default of a build without the option */
#endif

static constexpr uint64_t deadline_us = 120 * ND_SECOND_US; /* for a whole volume */

enum {
        CATEGORIES = 1024,
        PART = 255, /* bytes of a user, role, type or level */
        WORDS = 4096,
};

void cri_selinux_labels_done(struct cri_selinux_labels *labels) {
        free(labels->process);
        free(labels->mount);
        *labels = (struct cri_selinux_labels) {};
}

bool cri_selinux_is_on(void) {
        return ND_SELINUX && access("/sys/fs/selinux/enforce", F_OK) == 0;
}

/* ---- labels ---- */

/* A part of a label has letters, digits, '_', '-' and '.'; only a level has colons and commas. */
static struct nd_error *check(const char *what, const char *part, const char *more) {
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

        for (const char *at = part; *at; at++)
                if (!strchr(letters, *at) && !strchr(more, *at))
                        return nd_error_new(ND_INVALID, 0, "invalid seLinuxOptions.%s: '%.*s'", what, PART, part);
        if (strlen(part) > PART)
                return nd_error_new(ND_INVALID, 0, "seLinuxOptions.%s is longer than %d bytes", what, PART);
        return nullptr;
}

/* FNV-1a only spreads pods over the categories; it protects no secret. */
static char *level_of(const char *pod_uid) {
        uint32_t hash = 2166136261U;
        unsigned first, second;

        for (const char *at = pod_uid; *at; at++)
                hash = (hash ^ (unsigned char) *at) * 16777619U;
        first = hash % CATEGORIES;
        second = hash / CATEGORIES % (CATEGORIES - 1);
        second += second >= first; /* two different ones */
        return nd_format("s0:c%u,c%u", first < second ? first : second, first < second ? second : first);
}

static const char *or_else(const char *given, const char *otherwise) {
        return given && given[0] ? given : otherwise;
}

struct nd_error *cri_selinux_labels_of(const struct cri_container_request *request, const char *pod_uid,
                                       struct cri_selinux_labels *ret) {
        const struct cri_selinux_request *given = &request->selinux;
        nd_autofree char *own = level_of(pod_uid);
        const char *user = or_else(given->user, "system_u"), *role = or_else(given->role, "system_r"),
                   *type = or_else(given->type, request->privileged ? "spc_t" : "container_t"),
                   *level = or_else(given->level, request->privileged ? "s0" : own);

        nd_try(check("user", user, ""));
        nd_try(check("role", role, ""));
        nd_try(check("type", type, ""));
        nd_try(check("level", level, ":,"));
        *ret = (struct cri_selinux_labels) {.process = nd_format("%s:%s:%s:%s", user, role, type, level),
                                            .mount = nd_format("%s:object_r:container_file_t:%s", user, level)};
        return nullptr;
}

struct nd_error *cri_selinux_pod_label(const struct cri_sandbox_request *pod, char **ret) {
        nd_autofree char *own = level_of(pod->uid);
        const char *level = or_else(pod->selinux_level, own);

        nd_try(check("level", level, ":,"));
        *ret = nd_format("system_u:object_r:container_file_t:%s", level);
        return nullptr;
}

/* ---- volumes ---- */

struct nd_error *cri_selinux_relabel(int fd, const char *name, const char *label) {
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};
        nd_autofree char *file = nd_format("/proc/%d/fd/%d", (int) getpid(), fd), *directory = nd_format("%s/.", file);
        const char *const whole[] = {"chcon", "--recursive", "-P", "--no-dereference", "--", label, directory, nullptr};
        const char *const one[] = {"chcon", "--dereference", "--", label, file, nullptr};
        struct stat st;

        if (fstat(fd, &st) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "stat volume '%s'", name);
        nd_try(nd_child_run(&(struct nd_child_plan) {.argv = S_ISDIR(st.st_mode) ? whole : one,
                                                     .deadline_us = deadline_us,
                                                     .dies_with_us = true,
                                                     .output_ceiling = WORDS},
                            &result));
        return nd_error_wrap(nd_child_result_error(&result, "chcon"), "label '%s' for volume '%s'", label, name);
}
