/* SPDX-License-Identifier: Apache-2.0 */
/* namespaces.c - see namespaces.h
 *
 * Which namespace a sysctl belongs to:
 *      kernel.sem, kernel.shm*, kernel.msg*, fs.mqueue.*    IPC
 *      net.*                                                network
 *      everything else                                      the host: refused
 * A pod may set the sysctls of namespaces that it owns (R2). Names and values stay separate
 * strings, never joined into a command line or split again (R1). A name has dots between its parts,
 * and a slash where a part contains a dot, as sysctl(8) reads it:
 * net.ipv4.conf.eth0/100.forwarding.
 * By default a pod gets what containerd and CRI-O set too: unprivileged processes may bind every
 * port and ping. IPv6 addresses come from IPAM, which guarantees that they are unique, so
 * duplicate address detection, which takes a second or two, is off. */
#include "cri/namespace/namespaces.h"

#include <ctype.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>

#include "cri/core/paths.h"
#include "cri/namespace/pins.h"
#include "sys/file.h"
#include "sys/namespace.h"
#include "sys/own-userns.h"

enum {
        SYSCTL_NAME = 253, /* the API's limit */
        SYSCTL_VALUE = 4096,
        HOSTNAME = 64, /* the kernel's limit */
};

static const char *const names[POD_NAMESPACES] = {
        [POD_USER] = "user", [POD_NET] = "net", [POD_IPC] = "ipc", [POD_UTS] = "uts"};

const char *cri_namespaces_name(enum cri_pod_namespace which) {
        return names[which];
}

bool cri_namespaces_owned(const struct cri_sandbox_request *request, enum cri_pod_namespace which) {
        switch (which) {
        case POD_USER:
                return request->user_namespace;
        case POD_NET:
        case POD_UTS:
                return request->network != NAMESPACE_NODE;
        case POD_IPC:
                return request->ipc != NAMESPACE_NODE;
        case POD_NAMESPACES:
                break;
        }
        return false;
}

char *cri_namespaces_path(const struct cri_config *config, const struct cri_pins *pins, const struct cri_sandbox *sandbox,
                          enum cri_pod_namespace which) {
        if (!cri_namespaces_owned(&sandbox->request, which))
                return nullptr;
        if (which == POD_NET)
                return cri_path_of_netns(config, sandbox->id);
        return cri_pins_path(pins, sandbox->id, names[which]);
}

/* ---- sysctls ---- */

/* The path below /proc/sys; nullptr if the name is invalid. */
static char *sysctl_path(const char *name) {
        nd_autofree char *path = nd_strdup(name);
        size_t length = strlen(name), part = 0;

        if (length == 0 || length > SYSCTL_NAME)
                return nullptr;
        for (size_t i = 0; i <= length; i++) {
                if (name[i] != '.' && name[i] != '\0') {
                        if (!isalnum((unsigned char) name[i]) && !strchr("_-/", name[i]))
                                return nullptr;
                        if (name[i] == '/')
                                path[i] = '.';
                        continue;
                }
                /* empty, "." or ".." */
                if (i == part || (i - part <= 2 && strspn(path + part, ".") >= i - part))
                        return nullptr;
                if (name[i] == '.')
                        path[i] = '/';
                part = i + 1;
        }
        return nd_take_ptr(path);
}

/* The namespace that a sysctl belongs to; POD_NAMESPACES if it is the host's. */
static enum cri_pod_namespace sysctl_owner(const char *path) {
        if (nd_has_prefix(path, "net/"))
                return POD_NET;
        if (nd_streq(path, "kernel/sem") || nd_has_prefix(path, "kernel/shm") || nd_has_prefix(path, "kernel/msg") ||
            nd_has_prefix(path, "fs/mqueue/"))
                return POD_IPC;
        return POD_NAMESPACES;
}

static struct nd_error *check_sysctl(const struct cri_sandbox_request *request, const struct cri_pair *sysctl) {
        nd_autofree char *path = sysctl_path(sysctl->key), *quoted = nullptr;
        enum cri_pod_namespace owner = path ? sysctl_owner(path) : POD_NAMESPACES;

        if (!path) {
                quoted = nd_text_quote(sysctl->key);
                return nd_error_new(ND_INVALID, 0, "invalid sysctl name %s", quoted);
        }
        if (owner == POD_NAMESPACES)
                return nd_error_new(ND_INVALID, 0, "sysctl '%s' is not namespaced: set it on the node", sysctl->key);
        if (!cri_namespaces_owned(request, owner))
                return nd_error_new(ND_INVALID, 0, "sysctl '%s' would change the node, because the pod uses the node's %s",
                                    sysctl->key, owner == POD_NET ? "network (hostNetwork)" : "IPC (hostIPC)");
        if (strlen(sysctl->value) > SYSCTL_VALUE)
                return nd_error_new(ND_INVALID, 0, "sysctl '%s': the value is longer than %d bytes", sysctl->key,
                                    SYSCTL_VALUE);
        for (const char *c = sysctl->value; *c; c++)
                if (!isprint((unsigned char) *c) && *c != '\t')
                        return nd_error_new(ND_INVALID, 0, "sysctl '%s': the value contains a byte that is not printable",
                                            sysctl->key);
        return nullptr;
}

struct nd_error *cri_namespaces_check(const struct cri_sandbox_request *request) {
        nd_vector_each (sysctl, &request->sysctls) {
                nd_try(check_sysctl(request, sysctl));
        }
        if (strlen(request->hostname) > HOSTNAME)
                return nd_error_new(ND_INVALID, 0, "host name '%.64s...' is longer than %d bytes", request->hostname,
                                    HOSTNAME);
        return nullptr;
}

/* Sysctls of one interface can be set only when the network has created it. */
static bool is_late(const char *path) {
        static const char *const families[] = {"net/ipv4/conf/", "net/ipv6/conf/", "net/ipv4/neigh/", "net/ipv6/neigh/",
                                               "net/mpls/conf/"};
        static const char *const early[] = {"all/", "default/", "lo/"};

        for (size_t i = 0; i < nd_count_of(families); i++) {
                const char *interface = path + strlen(families[i]);

                if (!nd_has_prefix(path, families[i]))
                        continue;
                for (size_t j = 0; j < nd_count_of(early); j++)
                        if (nd_has_prefix(interface, early[j]))
                                return false;
                return true;
        }
        return false;
}

struct sysctls {
        struct nd_namespace_sysctl *items;
        size_t count;
        size_t capacity;
};

static void sysctls_done(struct sysctls *list) {
        nd_vector_each (sysctl, list) {
                free((char *) sysctl->path);
                free((char *) sysctl->value);
        }
        nd_vector_done(list);
}

static void add_default(struct sysctls *list, const char *path, const char *value) {
        nd_vector_each (sysctl, list) {
                if (nd_streq(sysctl->path, path))
                        return;
        }
        nd_vector_push(list,
                       ((struct nd_namespace_sysctl) {.path = nd_strdup(path), .value = nd_strdup(value), .optional = true}));
}

/* The kernel refuses a group that is not mapped in the user namespace. */
static void add_ping_range(struct sysctls *list, const struct nd_own_userns *users,
                           const struct cri_sandbox_request *request) {
        uint32_t last = request->user_namespace ? request->gids.count - 1 : nd_own_userns_last_gid(users);
        nd_autofree char *range = nd_format("0 %u", last < INT32_MAX ? last : (uint32_t) INT32_MAX);

        add_default(list, "net/ipv4/ping_group_range", range);
}

/* Adds the sysctls of the request: either the late ones or the others. The request is already
 * validated. */
static void add_requested(struct sysctls *list, const struct cri_sandbox_request *request, bool late) {
        nd_vector_each (sysctl, &request->sysctls) {
                nd_autofree char *path = sysctl_path(sysctl->key);

                if (path && is_late(path) == late)
                        nd_vector_push(list, ((struct nd_namespace_sysctl) {.path = nd_take_ptr(path),
                                                                            .value = nd_strdup(sysctl->value)}));
        }
}

static void list_sysctls(struct sysctls *list, const struct nd_own_userns *users, const struct cri_sandbox_request *request) {
        add_requested(list, request, false);
        if (!cri_namespaces_owned(request, POD_NET))
                return;
        add_default(list, "net/ipv4/ip_unprivileged_port_start", "0");
        add_default(list, "net/ipv6/conf/default/accept_dad", "0");
        add_ping_range(list, users, request);
}

bool cri_namespaces_have_late_sysctls(const struct cri_sandbox_request *request) {
        nd_cleanup(sysctls_done) struct sysctls list = {};

        add_requested(&list, request, true);
        return list.count > 0;
}

/* Runs in a worker, which stays in the pod's network namespace. */
struct nd_error *cri_namespaces_set_late_sysctls(const struct cri_config *config, const struct cri_sandbox *sandbox) {
        nd_cleanup(sysctls_done) struct sysctls list = {};
        nd_autofree char *path = cri_path_of_netns(config, sandbox->id);
        nd_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

        if (fd < 0 || nd_sys->setns(fd, CLONE_NEWNET) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "enter the network namespace '%s'", path);
        add_requested(&list, &sandbox->request, true);
        nd_vector_each (sysctl, &list) {
                nd_try(nd_namespace_sysctl_write(sysctl));
        }
        return nullptr;
}

/* ---- set up and undo ---- */

static struct nd_error *make(const struct nd_own_userns *users, const struct cri_sandbox_request *request,
                             struct nd_namespace_set *ret) {
        nd_cleanup(sysctls_done) struct sysctls list = {};
        const struct nd_userns_plan user = {
                .uids = &request->uids, .uid_count = 1, .gids = &request->gids, .gid_count = 1, .charge_to_root = true};
        struct nd_namespace_plan plan = {
                .user = request->user_namespace ? &user : nullptr,
                .flags = (cri_namespaces_owned(request, POD_NET) ? CLONE_NEWNET : 0) |
                         (cri_namespaces_owned(request, POD_IPC) ? CLONE_NEWIPC : 0) |
                         (cri_namespaces_owned(request, POD_UTS) ? CLONE_NEWUTS : 0),
                /* without one the pod has the node's name */
                .hostname = request->hostname[0] ? request->hostname : nullptr,
        };

        list_sysctls(&list, users, request);
        plan.sysctls = list.items;
        plan.sysctl_count = list.count;
        return nd_namespace_make(&plan, ret);
}

struct nd_error *cri_namespaces_make(const struct cri_config *config, const struct nd_own_userns *users,
                                     const struct cri_pins *pins, const struct cri_sandbox *sandbox) {
        nd_cleanup(nd_namespace_set_done) struct nd_namespace_set made = ND_NAMESPACE_SET_NONE;
        nd_autofree char *net = cri_path_of_netns(config, sandbox->id);

        nd_try(make(users, &sandbox->request, &made));
        if (made.net >= 0) {
                nd_try(nd_dir_make(AT_FDCWD, config->netns, 0755));
                nd_try(nd_namespace_pin(made.net, AT_FDCWD, net));
        }
        if (made.user < 0 && made.ipc < 0 && made.uts < 0)
                return nullptr;
        return cri_pins_put(pins, sandbox->id, (const char *const[]) {names[POD_USER], names[POD_IPC], names[POD_UTS]},
                            (const int[]) {made.user, made.ipc, made.uts}, 3);
}

struct nd_error *cri_namespaces_undo(const struct cri_config *config, const struct cri_pins *pins,
                                     const struct cri_sandbox *sandbox) {
        nd_autofree char *net = cri_path_of_netns(config, sandbox->id);

        nd_try(nd_namespace_unpin(net));
        return cri_pins_drop(pins, sandbox->id, (const char *const[]) {names[POD_USER], names[POD_IPC], names[POD_UTS]}, 3);
}
