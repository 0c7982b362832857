/* SPDX-License-Identifier: Apache-2.0 */
/* pod-files.c - see pod-files.h
 *
 * Theory of operation
 *   The tmpfs is filled while detached and attached when complete. It belongs to the pod's root,
 *   so no idmapped mount is needed. Its size is that of /dev/shm in containerd and CRI-O (64
 *   MiB); the files are written before any container can fill it. It costs one mount line per
 *   pod. */
#include "cri/bundle/pod-files.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "cri/bundle/selinux.h"
#include "cri/core/paths.h"
#include "sys/file.h"
#include "sys/mount.h"

enum {
        HOST_FILE = 256 * 1024, /* limit of the node's own resolv.conf or hosts */
        FILE_CEILING = 256 * 1024,
};

static const char *const names[] = {
        [POD_HOSTNAME] = "hostname", [POD_HOSTS] = "hosts", [POD_RESOLV] = "resolv.conf", [POD_SHM] = "shm"};
static_assert(nd_count_of(names) == POD_SHM + 1);

char *cri_pod_files_directory(const struct cri_config *config, const struct cri_sandbox *sandbox) {
        nd_autofree char *run = cri_path_of_sandbox_run(config, sandbox->id);

        return nd_format("%s/files", run);
}

char *cri_pod_files_path(const struct cri_config *config, const struct cri_sandbox *sandbox, enum cri_pod_file which) {
        nd_autofree char *directory = cri_pod_files_directory(config, sandbox);

        if (which == POD_SHM && sandbox->request.ipc == NAMESPACE_NODE)
                return nd_strdup("/dev/shm");
        return nd_format("%s/%s", directory, names[which]);
}

/* ---- contents ---- */

static void write_hostname(const struct cri_sandbox_request *request, struct nd_text *text) {
        char node[65] = "";

        (void) gethostname(node, sizeof node - 1);
        nd_text_addf(text, "%s\n", request->hostname[0] && request->network != NAMESPACE_NODE ? request->hostname : node);
}

/* The kubelet mounts its own file over this; other clients expect at least localhost. */
static struct nd_error *write_hosts(const struct cri_sandbox_request *request, struct nd_text *text) {
        nd_autofree char *node = nullptr;

        if (request->network != NAMESPACE_NODE) {
                nd_text_add(text, "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n");
                return nullptr;
        }
        nd_try(nd_file_read_kernel("/etc/hosts", HOST_FILE, &node));
        nd_text_add(text, node);
        return nullptr;
}

static void add_words(struct nd_text *text, const char *keyword, const struct nd_strings *words) {
        if (words->count == 0)
                return;
        nd_text_add(text, keyword);
        nd_vector_each (word, words) {
                nd_text_addf(text, " %s", *word);
        }
        nd_text_add(text, "\n");
}

static struct nd_error *write_resolv(const struct cri_sandbox_request *request, struct nd_text *text) {
        nd_autofree char *node = nullptr;

        if (!request->has_dns) {
                nd_try(nd_file_read_kernel("/etc/resolv.conf", HOST_FILE, &node));
                nd_text_add(text, node);
                return nullptr;
        }
        add_words(text, "search", &request->dns_searches);
        nd_vector_each (server, &request->dns_servers) {
                nd_text_addf(text, "nameserver %s\n", *server);
        }
        add_words(text, "options", &request->dns_options);
        return nullptr;
}

/* A value with a line break would add a line to resolv.conf. */
static struct nd_error *check_words(const char *what, const struct nd_strings *words) {
        nd_vector_each (word, words) {
                if (strpbrk(*word, "\r\n"))
                        return nd_error_new(ND_INVALID, 0, "DNS %s: the value contains a line break", what);
        }
        return nullptr;
}

struct nd_error *cri_pod_files_check(const struct cri_sandbox_request *request) {
        if (strpbrk(request->hostname, "\r\n/"))
                return nd_error_new(ND_INVALID, 0, "the host name contains a line break or a slash");
        nd_try(check_words("server", &request->dns_servers));
        nd_try(check_words("search", &request->dns_searches));
        return check_words("option", &request->dns_options);
}

/* ---- set up and undo ---- */

static struct nd_error *write_file(int directory, const char *name, const struct nd_text *text, uid_t uid, gid_t gid) {
        nd_autoclose int fd = -EBADF;

        if (text->overflow)
                return nd_error_new(ND_INVALID, 0, "the pod's %s is larger than %d bytes", name, FILE_CEILING);
        fd = nd_sys->openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd < 0 || nd_sys->fchmod(fd, 0644) < 0 || nd_sys->fchown(fd, uid, gid) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create the pod's %s", name);
        if (nd_sys->write(fd, nd_text_get(text), text->length) != (ssize_t) text->length)
                return nd_error_new(nd_error_code_of(errno), errno, "write the pod's %s", name);
        return nullptr;
}

static struct nd_error *fill(int directory, const struct cri_sandbox_request *request, uid_t uid, gid_t gid) {
        nd_autotext struct nd_text hostname = ND_TEXT(FILE_CEILING), hosts = ND_TEXT(FILE_CEILING),
                                   resolv = ND_TEXT(FILE_CEILING);

        write_hostname(request, &hostname);
        nd_try(write_hosts(request, &hosts));
        nd_try(write_resolv(request, &resolv));
        nd_try(write_file(directory, names[POD_HOSTNAME], &hostname, uid, gid));
        nd_try(write_file(directory, names[POD_HOSTS], &hosts, uid, gid));
        nd_try(write_file(directory, names[POD_RESOLV], &resolv, uid, gid));
        nd_try(nd_dir_make(directory, names[POD_SHM], 01777));
        if (nd_sys->fchmodat(directory, names[POD_SHM], 01777, 0) < 0 ||
            nd_sys->fchownat(directory, names[POD_SHM], uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "set the owner of the pod's /dev/shm");
        return nullptr;
}

struct nd_error *cri_pod_files_make(const struct cri_config *config, const struct cri_sandbox *sandbox) {
        const struct cri_sandbox_request *request = &sandbox->request;
        uid_t uid = request->user_namespace ? request->uids.outside : 0;
        gid_t gid = request->user_namespace ? request->gids.outside : 0;
        nd_autofree char *pods = nd_format("%s/pods", config->run), *run = cri_path_of_sandbox_run(config, sandbox->id);
        nd_autofree char *directory = cri_pod_files_directory(config, sandbox);
        nd_autofree char *owner = nd_format("%u", uid), *group = nd_format("%u", gid), *label = nullptr;
        nd_autoclose int tree = -EBADF;

        if (cri_selinux_is_on())
                nd_try(cri_selinux_pod_label(request, &label));
        nd_try(nd_mount_fs_make("tmpfs",
                                (const struct nd_mount_fs_option[]) {{"source", "nodens-pod"},
                                                                     {"size", "64m"},
                                                                     {"mode", "0755"},
                                                                     {"uid", owner},
                                                                     {"gid", group},
                                                                     {"context", label}},
                                label ? 6 : 5, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, &tree));
        nd_try(fill(tree, request, uid, gid));
        nd_try(nd_dir_make(AT_FDCWD, pods, 0711));
        nd_try(cri_path_make_of_pod(AT_FDCWD, run, request));
        nd_try(nd_dir_make(AT_FDCWD, directory, 0700));
        return nd_mount_attach(tree, AT_FDCWD, directory);
}

static struct nd_error *remove_directory(const char *path) {
        if (nd_sys->unlinkat(AT_FDCWD, path, AT_REMOVEDIR) < 0 && errno != ENOENT)
                return nd_error_new(nd_error_code_of(errno), errno, "remove '%s'", path);
        return nullptr;
}

struct nd_error *cri_pod_files_undo(const struct cri_config *config, const struct cri_sandbox *sandbox) {
        nd_autofree char *run = cri_path_of_sandbox_run(config, sandbox->id),
                         *directory = cri_pod_files_directory(config, sandbox);

        if (nd_sys->umount2(directory, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
                return nd_error_new(nd_error_code_of(errno), errno, "unmount '%s'", directory);
        nd_try(remove_directory(directory));
        return remove_directory(run);
}
