/* SPDX-License-Identifier: Apache-2.0 */
/* runtime-mntns.c - see runtime-mntns.h
 *
 * Theory of operation
 *   A worker makes the template once per daemon: a copy of the host's mount namespace. The daemon
 *   keeps a descriptor of it, so it needs neither a process nor a pin. Then the mounts in @excluded
 *   are unmounted there: by another worker, because there are thousands on a node full of pods and
 *   the daemon's start must not wait for it, and by each worker that enters, because mounts of new
 *   pods arrive in the template as all others do:
 *   All mounts of the template are slaves of the host's: a filesystem that is mounted or unmounted
 *   on the host later (a driver's directory, a disk) is so in the template too, and hooks and
 *   devices find it. A container does not need the excluded ones: its own are cloned from the
 *   host's mount namespace and attached in the copy by descriptor.
 *   If a mount of the host is not shared, the template keeps it as it was when the daemon started.
 * Owns       the descriptor and the worker.
 * Invariant  no mount of the template is shared: what happens there does not propagate to the host.
 *            Only mounts whose parent directories belong to root or to the kubelet are excluded, so
 *            no pod can redirect an unmount with a link. */
#include "cri/bundle/runtime-mntns.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cri/core/config.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/worker.h"

enum {
        TABLE_CEILING = 64 << 20, /* bytes of the mount table */
        MOUNT_POINT_FIELD = 5,    /* of a line of mountinfo */
};

static constexpr uint64_t deadline_us = 60 * ND_SECOND_US;

struct cri_runtime_mntns {
        int mount_namespace;
        struct cri_runtime_mntns_places places;
        struct nd_worker *worker; /* until the first exclusion is done */
};

/* ---- exclusion ---- */

enum place {
        PLACE_RUN, /* our directories */
        PLACE_STATE,
        PLACE_NETNS,
        PLACE_PODS, /* any directory "pods": the kubelet's */
};

static const struct {
        enum place below;
        const char *pattern; /* a * matches within one component */
} excluded[] = {
        {PLACE_RUN, "pins"},
        {PLACE_RUN, "pins/*"},
        {PLACE_RUN, "pods/*/files"},
        {PLACE_NETNS, "*"},
        /* of containers that an older version created */
        {PLACE_STATE, "pods/*/containers/*/rootfs"},
        {PLACE_STATE, "pods/*/containers/*/mounts"},
        {PLACE_STATE, "pods/*/containers/*/images/*"},
        /* The pod can write to deeper directories; mounts there are excluded with these. */
        {PLACE_PODS, "*/volumes/kubernetes.io~*/*"},
        {PLACE_PODS, "*/volumes/kubernetes.io~*/*/mount"},
        {PLACE_PODS, "*/volume-subpaths/*/*/*"},
};

static bool matches_below(const char *directory, const char *path, const char *pattern) {
        size_t length = directory ? strlen(directory) : 0;

        return length > 0 && nd_has_prefix(path, directory) && path[length] == '/' &&
               fnmatch(pattern, path + length + 1, FNM_PATHNAME | FNM_NOESCAPE) == 0;
}

static bool matches_pods(const char *path, const char *pattern) {
        static const char pods[] = "/pods/";

        for (const char *found = strstr(path, pods); found; found = strstr(found + 1, pods))
                if (fnmatch(pattern, found + strlen(pods), FNM_PATHNAME | FNM_NOESCAPE) == 0)
                        return true;
        return false;
}

static bool is_excluded(const struct cri_runtime_mntns_places *places, const char *path) {
        const char *const directories[] = {
                [PLACE_RUN] = places->run, [PLACE_STATE] = places->state, [PLACE_NETNS] = places->netns};

        for (size_t i = 0; i < nd_count_of(excluded); i++)
                if (excluded[i].below == PLACE_PODS ? matches_pods(path, excluded[i].pattern)
                                                    : matches_below(directories[excluded[i].below], path, excluded[i].pattern))
                        return true;
        return false;
}

static bool is_octal(char c) {
        return c >= '0' && c <= '7';
}

/* The kernel writes space, tab, newline and backslash as a backslash and three octal digits. */
static char *unescape(const char *text, size_t length) {
        nd_autofree char *result = nd_malloc(length + 1);
        size_t end = 0;

        for (size_t i = 0; i < length; i++) {
                if (text[i] == '\\' && length - i > 3 && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
                    is_octal(text[i + 3])) {
                        result[end++] = (char) ((text[i + 1] - '0') << 6 | (text[i + 2] - '0') << 3 | (text[i + 3] - '0'));
                        i += 3;
                } else {
                        result[end++] = text[i];
                }
        }
        result[end] = '\0';
        return nd_take_ptr(result);
}

char *cri_runtime_mntns_excluded(const struct cri_runtime_mntns_places *places, const char *line) {
        nd_autofree char *path = nullptr;

        for (int field = 1; field < MOUNT_POINT_FIELD; field++) {
                line += strcspn(line, " \n");
                if (*line != ' ')
                        return nullptr;
                line++;
        }
        path = unescape(line, strcspn(line, " \n"));
        return is_excluded(places, path) ? nd_take_ptr(path) : nullptr;
}

/* ---- in workers ---- */

/* Unmounts what is excluded, in the caller's mount namespace. A mount may be gone already: with
 * one above it, on the host, or by another worker. */
static struct nd_error *exclude(const struct cri_runtime_mntns_places *places) {
        nd_autofree char *table = nullptr;

        nd_try(nd_file_read_kernel("/proc/self/mountinfo", TABLE_CEILING, &table));
        for (const char *line = table; *line; line += strcspn(line, "\n"), line += *line == '\n') {
                nd_autofree char *path = cri_runtime_mntns_excluded(places, line);

                if (path)
                        nd_try(nd_mount_detach(path));
        }
        return nullptr;
}

static struct nd_error *open_own(int *ret_fd) {
        int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                return nd_error_new(ND_INTERNAL, errno, "open our mount namespace");
        *ret_fd = fd;
        return nullptr;
}

static struct nd_error *make([[maybe_unused]] void *argument, int *ret_fd) {
        if (nd_sys->unshare(CLONE_NEWNS) < 0 || nd_sys->mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a mount namespace below the host's");
        return open_own(ret_fd);
}

static struct nd_error *enter_template(const struct cri_runtime_mntns *template) {
        if (nd_sys->setns(template->mount_namespace, CLONE_NEWNS) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "enter the mount namespace of OCI runtimes");
        return exclude(&template->places);
}

static struct nd_error *exclude_work(void *argument, [[maybe_unused]] int *ret_fd) {
        return enter_template(argument);
}

struct nd_error *cri_runtime_mntns_enter(const struct cri_runtime_mntns *template, int *ret_fd) {
        nd_try(enter_template(template));
        if (nd_sys->unshare(CLONE_NEWNS) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a mount namespace for the OCI runtime");
        return open_own(ret_fd);
}

/* ---- in the daemon ---- */

/* After a failure the workers that enter try again, and report it. */
static void on_excluded(struct nd_error *error, [[maybe_unused]] int fd, void *userdata) {
        struct cri_runtime_mntns *template = userdata;

        template->worker = nullptr;
        nd_ignore(error);
}

struct nd_error *cri_runtime_mntns_open(sd_event *loop, const struct cri_config *config, struct cri_runtime_mntns **ret) {
        struct cri_runtime_mntns *template = nd_new(struct cri_runtime_mntns);
        struct nd_error *error;

        /* the first pod that needs it reports the error */
        nd_ignore(nd_dir_make(AT_FDCWD, config->netns, 0755));
        /* the mount table has no links */
        *template = (struct cri_runtime_mntns) {.mount_namespace = -EBADF,
                                                .places = {.run = realpath(config->run, nullptr),
                                                           .state = realpath(config->state, nullptr),
                                                           .netns = realpath(config->netns, nullptr)}};
        error = nd_worker_run("make a mount namespace for OCI runtimes", make, nullptr, deadline_us,
                              &template->mount_namespace);
        if (!error)
                error = nd_worker_start(loop, "unmount pods' mounts for OCI runtimes", exclude_work, template, deadline_us,
                                        on_excluded, template, &template->worker);
        if (error) {
                cri_runtime_mntns_free(template);
                return error;
        }
        *ret = template;
        return nullptr;
}

void cri_runtime_mntns_free(struct cri_runtime_mntns *template) {
        if (!template)
                return;
        nd_worker_cancel(template->worker);
        nd_close_fd(&template->mount_namespace);
        free(template->places.run);
        free(template->places.state);
        free(template->places.netns);
        free(template);
}
