/* SPDX-License-Identifier: Apache-2.0 */
/* bundle.c - see bundle.h
 *
 * Theory of operation
 *   cri_bundle_make() runs the steps that may refuse the container first and the steps that leave
 *   something behind last: volumes are opened and cloned in the host's mount namespace, and the
 *   worker moves to a mount namespace for the OCI runtime, in which the host's paths are the same.
 *   There the root filesystem is built (in yet another one, build-mntns.h), the user is looked up
 *   in that root, volumes are attached (volume-attachment.h), and the spec is written last. The
 *   add_*() functions below list the default mounts; a volume at the same path replaces a
 *   default. */
#include "cri/bundle/bundle.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "cri/bundle/apparmor.h"
#include "cri/bundle/capabilities.h"
#include "cri/bundle/cdi.h"
#include "cri/bundle/device-nodes.h"
#include "cri/bundle/devices.h"
#include "cri/bundle/image-path.h"
#include "cri/bundle/process.h"
#include "cri/bundle/resources.h"
#include "cri/bundle/rootfs.h"
#include "cri/bundle/runtime-mntns.h"
#include "cri/bundle/selinux.h"
#include "cri/bundle/volume-attachment.h"
#include "cri/bundle/volumes.h"
#include "cri/core/config.h"
#include "cri/core/container-path.h"
#include "cri/core/paths.h"
#include "oci/platform.h"
#include "oci/seccomp.h"
#include "oci/spec.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/own-userns.h"
#include "sys/program.h"

enum {
        TTY_GROUP = 5,       /* the conventional group of terminals */
        OVERFLOW_ID = 65534, /* what the kernel shows for an ID that it cannot map */
};

static const struct cri_container_request *request_of(const struct cri_bundle_plan *plan) {
        return &plan->container->request;
}

static const struct cri_sandbox_request *pod_of(const struct cri_bundle_plan *plan) {
        return &plan->container->sandbox->request;
}

/* ---- mounts ---- */

static bool covered(const struct cri_container_request *request, const char *destination) {
        nd_vector_each (mount, &request->mounts) {
                nd_autofree char *path = cri_container_path_clean(mount->container_path);
                size_t length = strlen(path);

                if (nd_streq(path, destination))
                        return true;
                /* A volume at /dev replaces all defaults below it. */
                if (nd_streq(path, "/dev") && nd_has_prefix(destination, path) && destination[length] == '/')
                        return true;
        }
        return false;
}

static void add_mount(const struct cri_bundle_plan *plan, struct nd_spec *spec, const char *destination, const char *type,
                      const char *source, const char *const *options) {
        struct nd_spec_mount *mount;

        if (covered(request_of(plan), destination))
                return;
        mount = nd_spec_add_mount(spec, destination, type, source);
        for (; *options; options++)
                nd_spec_mount_option(mount, *options);
}

#define OPTIONS(...) ((const char *const[]) {__VA_ARGS__, nullptr})

/* The container's root owns its cgroup, and with CAP_SYS_ADMIN it can mount cgroups writable. */
static bool owns_cgroup(const struct cri_bundle_plan *plan) {
        return plan->image && plan->namespaces[POD_USER] && !plan->config->without_cgroups;
}

/* The container may create cgroups below its own, where the pod's limits apply. Only with a user
 * namespace: the OCI runtime chowns the cgroup to the container's root, who does not own the
 * limits. Root of the node would own them. */
static bool writes_cgroups(const struct cri_bundle_plan *plan) {
        struct cri_runtime_handler handler;

        return owns_cgroup(plan) && cri_config_handler(plan->config, pod_of(plan)->runtime_handler, &handler) &&
               handler.writable_cgroups;
}

static void add_proc_and_sys(const struct cri_bundle_plan *plan, const struct cri_volume_attachment *attachment,
                             struct nd_spec *spec) {
        bool mapped = plan->namespaces[POD_USER], privileged = request_of(plan)->privileged;
        const char *access = privileged ? "rw" : "ro", *cgroups = privileged || writes_cgroups(plan) ? "rw" : "ro";

        /* A new instance of proc or sysfs belongs to a PID or network namespace, which the pod's
         * user namespace must own. */
        if (mapped && !plan->pid)
                add_mount(plan, spec, "/proc", nullptr, "/proc", OPTIONS("rbind", "rprivate", "nosuid", "noexec", "nodev"));
        else
                add_mount(plan, spec, "/proc", "proc", "proc", OPTIONS("nosuid", "noexec", "nodev"));
        if (attachment->sys) {
                ; /* already attached below the root, without submounts */
        } else if (mapped && !plan->namespaces[POD_NET]) {
                add_mount(plan, spec, "/sys", nullptr, "/sys",
                          OPTIONS("rbind", "rprivate", "nosuid", "noexec", "nodev", "rro"));
                /* The bind mount includes the node's cgroups. The kernel refuses a second cgroup
                 * mount directly on the first, and the mount that crun would put between them is
                 * writable. */
                add_mount(plan, spec, "/sys/fs/cgroup", "tmpfs", "tmpfs",
                          OPTIONS("nosuid", "noexec", "nodev", "ro", "size=4k", "nr_inodes=1"));
        } else {
                add_mount(plan, spec, "/sys", "sysfs", "sysfs", OPTIONS("nosuid", "noexec", "nodev", access));
        }
        add_mount(plan, spec, "/sys/fs/cgroup", "cgroup", "cgroup", OPTIONS("nosuid", "noexec", "nodev", "relatime", cgroups));
}

static void add_dev(const struct cri_bundle_plan *plan, struct nd_spec *spec) {
        bool mapped = plan->namespaces[POD_USER];
        bool group = mapped ? pod_of(plan)->gids.count > TTY_GROUP : nd_own_userns_has_gid(plan->users, TTY_GROUP);

        add_mount(plan, spec, "/dev", "tmpfs", "tmpfs", OPTIONS("nosuid", "strictatime", "mode=755", "size=65536k"));
        add_mount(plan, spec, "/dev/pts", "devpts", "devpts",
                  group ? OPTIONS("nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5")
                        : OPTIONS("nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"));
        if (mapped && !plan->namespaces[POD_IPC])
                add_mount(plan, spec, "/dev/mqueue", nullptr, "/dev/mqueue",
                          OPTIONS("rbind", "rprivate", "nosuid", "noexec", "nodev"));
        else
                add_mount(plan, spec, "/dev/mqueue", "mqueue", "mqueue", OPTIONS("nosuid", "noexec", "nodev"));
        add_mount(plan, spec, "/dev/shm", nullptr, plan->shm, OPTIONS("rbind", "rprivate", "rw", "nosuid", "noexec", "nodev"));
}

static void add_files(const struct cri_bundle_plan *plan, struct nd_spec *spec) {
        const char *access = request_of(plan)->read_only_root ? "ro" : "rw";
        const char *const *options = OPTIONS("rbind", "rprivate", access, "nosuid", "noexec", "nodev");

        add_mount(plan, spec, "/etc/hostname", nullptr, plan->hostname, options);
        add_mount(plan, spec, "/etc/hosts", nullptr, plan->hosts, options);
        add_mount(plan, spec, "/etc/resolv.conf", nullptr, plan->resolv, options);
}

/* The root's propagation limits that of all mounts in the container. */
static const char *root_propagation(const struct cri_container_request *request) {
        const char *propagation = nullptr;

        nd_vector_each (mount, &request->mounts) {
                if (mount->propagation == MOUNT_BIDIRECTIONAL)
                        return "rshared";
                if (mount->propagation == MOUNT_HOST_TO_CONTAINER)
                        propagation = "rslave";
        }
        return propagation;
}

/* ---- namespaces, security ---- */

/* Root of a rootless node cannot create device nodes. */
static bool makes_devices(const struct cri_bundle_plan *plan) {
        return plan->namespaces[POD_USER] && plan->users->initial;
}

static void add_namespaces(const struct cri_bundle_plan *plan, struct nd_spec *spec) {
        /* OCI names. */
        static const char *const types[] = {[POD_USER] = "user", [POD_NET] = "network", [POD_IPC] = "ipc", [POD_UTS] = "uts"};
        bool mapped = plan->namespaces[POD_USER];

        static_assert(nd_count_of(types) == POD_NAMESPACES);
        for (size_t i = 0; i < nd_count_of(types); i++)
                if (plan->namespaces[i])
                        nd_spec_add_namespace(spec, types[i], plan->namespaces[i]);
        nd_spec_add_namespace(spec, "mount", nullptr);
        if (plan->pid)
                nd_spec_add_namespace(spec, "pid", *plan->pid ? plan->pid : nullptr);
        /* A privileged container sees the node's cgroups; a user namespace could not mount them. */
        if (mapped || !request_of(plan)->privileged)
                nd_spec_add_namespace(spec, "cgroup", nullptr);
        spec->user_namespace = mapped;
        spec->binds_devices = mapped || !plan->users->initial;
        spec->makes_devices = makes_devices(plan);
        spec->uids = pod_of(plan)->uids;
        spec->gids = pod_of(plan)->gids;
}

static struct nd_error *convert_seccomp(const char *path, uint64_t capabilities, bool single_id, struct nd_spec *spec) {
        struct nd_platform platform = nd_platform_host();
        struct nd_seccomp_host host = {
                .architecture = platform.architecture, .capabilities = capabilities, .single_id = single_id};
        nd_autofree char *profile = nullptr;
        nd_autotext struct nd_text text = ND_TEXT(ND_SPEC_CEILING);
        struct utsname kernel;

        if (uname(&kernel) == 0)
                /* NOLINTNEXTLINE(cert-err34-c) */
                (void) sscanf(kernel.release, "%4u.%4u", &host.kernel_major, &host.kernel_minor);
        nd_try(nd_file_read_kernel(path, ND_SECCOMP_CEILING, &profile));
        nd_try(nd_seccomp_convert(profile, strlen(profile), &host, &text));
        spec->seccomp = nd_text_steal(&text);
        return nullptr;
}

struct nd_error *cri_bundle_check_seccomp(const char *path) {
        nd_cleanup(nd_spec_done) struct nd_spec spec = {};

        return convert_seccomp(path, 0, false, &spec);
}

/* On a node with one ID, programs that change their user would fail. */
static struct nd_error *add_single_id(const struct cri_bundle_plan *plan, struct nd_spec *spec) {
        nd_autotext struct nd_text text = ND_TEXT(ND_SPEC_CEILING);

        if (!nd_own_userns_is_single(plan->users))
                return nullptr;
        nd_seccomp_single_id(&text);
        spec->seccomp = nd_text_steal(&text);
        return nullptr;
}

static struct nd_error *add_seccomp(const struct cri_bundle_plan *plan, struct nd_spec *spec) {
        const struct cri_container_request *request = request_of(plan);
        const char *path = request->seccomp.kind == PROFILE_DEFAULT     ? plan->config->seccomp_profile
                           : request->seccomp.kind == PROFILE_LOCALHOST ? request->seccomp.localhost
                                                                        : nullptr;

        if (request->privileged)
                path = nullptr;
        if (!path)
                return add_single_id(plan, spec);
        return nd_error_wrap(
                convert_seccomp(path, spec->process.capabilities.bounding, nd_own_userns_is_single(plan->users), spec),
                "seccomp profile '%s'", path);
}

static struct nd_error *add_apparmor(const struct cri_bundle_plan *plan, struct nd_spec *spec) {
        if (request_of(plan)->privileged)
                return nullptr;
        return cri_apparmor_choose(plan->users, &request_of(plan)->apparmor, plan->namespaces[POD_USER],
                                   &spec->process.apparmor);
}

/* Our capabilities that the kernel accepts for what no namespace owns. */
static uint64_t over_kernel(const struct cri_bundle_plan *plan) {
        return nd_own_userns_over_kernel(plan->users, cri_capabilities_own());
}

static void add_oom_score(const struct cri_bundle_plan *plan, struct nd_spec_process *process) {
        int64_t wanted = request_of(plan)->resources.oom_score_adj;

        process->has_oom_score = true;
        process->oom_score = cri_resources_oom_score(wanted, over_kernel(plan));
        plan->report->oom_score_clamped = wanted >= -1000 && process->oom_score > wanted;
}

/* A privileged process gets the limits of the node's init. */
static void add_limits(const struct cri_bundle_plan *plan, struct nd_spec_process *process) {
        static const struct {
                int resource;
                const char *name;
        } limits[] = {
                {RLIMIT_AS, "RLIMIT_AS"},
                {RLIMIT_CORE, "RLIMIT_CORE"},
                {RLIMIT_CPU, "RLIMIT_CPU"},
                {RLIMIT_DATA, "RLIMIT_DATA"},
                {RLIMIT_FSIZE, "RLIMIT_FSIZE"},
                {RLIMIT_LOCKS, "RLIMIT_LOCKS"},
                {RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK"},
                {RLIMIT_MSGQUEUE, "RLIMIT_MSGQUEUE"},
                {RLIMIT_NICE, "RLIMIT_NICE"},
                {RLIMIT_NOFILE, "RLIMIT_NOFILE"},
                {RLIMIT_NPROC, "RLIMIT_NPROC"},
                {RLIMIT_RSS, "RLIMIT_RSS"},
                {RLIMIT_RTPRIO, "RLIMIT_RTPRIO"},
                {RLIMIT_RTTIME, "RLIMIT_RTTIME"},
                {RLIMIT_SIGPENDING, "RLIMIT_SIGPENDING"},
                {RLIMIT_STACK, "RLIMIT_STACK"},
        };
        bool may_raise = over_kernel(plan) & UINT64_C(1) << CAP_SYS_RESOURCE;

        for (size_t i = 0; i < nd_count_of(limits); i++) {
                struct rlimit first, own;

                if (prlimit(1, limits[i].resource, nullptr, &first) < 0 || prlimit(0, limits[i].resource, nullptr, &own) < 0)
                        continue;
                if (!may_raise && first.rlim_max > own.rlim_max)
                        first.rlim_max = own.rlim_max;
                if (first.rlim_cur > first.rlim_max)
                        first.rlim_cur = first.rlim_max;
                nd_vector_push(
                        &process->limits,
                        ((struct nd_spec_limit) {.type = limits[i].name, .hard = first.rlim_max, .soft = first.rlim_cur}));
        }
}

static struct nd_error *add_security(const struct cri_bundle_plan *plan, struct nd_spec *spec) {
        const struct cri_container_request *request = request_of(plan);
        bool mapped = plan->namespaces[POD_USER];

        nd_try(cri_capabilities_choose(request, cri_capabilities_own(), &spec->process.capabilities));
        spec->process.no_new_privileges = request->no_new_privileges && !request->privileged;
        add_oom_score(plan, &spec->process);
        nd_try(add_seccomp(plan, spec));
        nd_try(add_apparmor(plan, spec));
        if (request->privileged) {
                if (!mapped)
                        add_limits(plan, &spec->process);
                return nullptr;
        }
        nd_vector_each (path, &request->masked_paths) {
                nd_strings_add(&spec->masked, *path);
        }
        nd_vector_each (path, &request->read_only_paths) {
                nd_strings_add(&spec->read_only, *path);
        }
        return nullptr;
}

/* ---- bundle ---- */

static void set_user(const struct cri_container_user *user, struct nd_spec_process *process,
                     struct cri_bundle_report *report) {
        process->user.uid = report->uid = user->uid;
        process->user.gid = report->gid = user->gid;
        report->group_count = 0;
        nd_vector_each (group, &user->groups) {
                nd_vector_push(&process->user.groups, *group);
                report->groups[report->group_count++] = *group;
        }
}

/* Whether a hook runs as the container's root while the bundle is still visible to it. */
static bool has_mapped_hook(const struct nd_spec *spec) {
        nd_vector_each (hook, &spec->hooks)
                if (nd_streq(hook->stage, "createContainer"))
                        return spec->user_namespace;
        return false;
}

/* The file contains variables with secrets, so only root can read it. Hooks that run mapped read
 * it too: for their container, the group of the pod's root can read it. Mapped root must not own
 * it, since we read it again to find the cgroup that we kill. */
static struct nd_error *write_spec(const struct cri_bundle_plan *plan, const char *directory, const struct nd_spec *spec) {
        nd_autotext struct nd_text text = ND_TEXT(ND_SPEC_CEILING);
        nd_autofree char *path = nd_format("%s/config.json", directory);

        nd_try(nd_spec_format(spec, &text));
        nd_try(nd_file_write(AT_FDCWD, path, nd_text_get(&text), text.length, 0600));
        return has_mapped_hook(spec) ? nd_file_give(AT_FDCWD, path, 0, pod_of(plan)->gids.outside, 0640) : nullptr;
}

/* Parts shared by containers and the pod's init. */
static struct nd_error *begin_spec(const struct cri_bundle_plan *plan, char *root, struct nd_spec *spec) {
        const char *parent = pod_of(plan)->cgroup_parent;

        spec->root = root;
        add_namespaces(plan, spec);
        if (!plan->config->without_cgroups)
                cri_resources_describe(&request_of(plan)->resources, parent, &spec->resources);
        spec->no_subgroup = plan->config->systemd_cgroups;
        if (owns_cgroup(plan))
                cri_resources_bound_cgroups(&spec->resources);
        /* The kernel enables controllers below a cgroup only if it has no process of its own. */
        if (writes_cgroups(plan))
                spec->leaf_cgroup = cri_resources_leaf(plan->container->id);
        return cri_resources_cgroup(plan->config, parent, plan->container->id, &spec->cgroup);
}

/* No label if a container shares the node's PID or IPC namespace: it would deny access to what
 * the pod was given. */
static struct nd_error *choose_labels(const struct cri_bundle_plan *plan, struct cri_selinux_labels *ret) {
        const struct cri_container_request *request = request_of(plan);

        if (!cri_selinux_is_on() || request->pid == NAMESPACE_NODE || request->ipc == NAMESPACE_NODE)
                return nullptr;
        return cri_selinux_labels_of(request, pod_of(plan)->uid, ret);
}

static struct nd_error *label_volumes(const struct cri_container_request *request, const struct cri_volumes *found,
                                      const struct cri_selinux_labels *labels) {
        for (size_t i = 0; labels->mount && i < request->mounts.count; i++)
                if (request->mounts.items[i].relabel && found->items[i].file >= 0)
                        nd_try(cri_selinux_relabel(found->items[i].file, found->items[i].path, labels->mount));
        return nullptr;
}

static struct nd_error *make_spec(const struct cri_bundle_plan *plan, const char *directory, int tree,
                                  const struct cri_container_user *user, const struct cri_volumes *found,
                                  struct cri_selinux_labels *labels, struct cri_volume_attachment *attachment) {
        nd_cleanup(nd_spec_done) struct nd_spec spec = {};
        const struct cri_container_request *request = request_of(plan);

        nd_try(begin_spec(plan, cri_volume_attachment_root(attachment, directory), &spec));
        spec.read_only_root = request->read_only_root;
        spec.propagation = root_propagation(request);
        nd_try(cri_process_describe(request, plan->image, pod_of(plan)->hostname, &spec.process));
        set_user(user, &spec.process, plan->report);
        nd_try(add_security(plan, &spec));
        spec.process.selinux = nd_take_ptr(labels->process);
        spec.mount_label = nd_take_ptr(labels->mount);
        add_proc_and_sys(plan, attachment, &spec);
        add_dev(plan, &spec);
        /* may mount them below /dev */
        nd_try(cri_devices_describe(request, plan->config->device_ownership, &spec));
        add_files(plan, &spec);
        volumes_mount(request, found, &attachment->declared, &spec);
        /* last: it overrides the rest */
        nd_try(cri_cdi_describe(plan->config, &request->cdi_devices, &spec));
        nd_try(cri_device_nodes_make(attachment, &spec));
        nd_try(cri_image_path_check(attachment->root >= 0 ? attachment->root : tree,
                                    &spec)); /* checked with the volumes attached */
        nd_try(cri_volume_attachment_finish(attachment, &spec));
        return write_spec(plan, directory, &spec);
}

static struct nd_error *open_userns(const struct cri_bundle_plan *plan, int *ret_fd) {
        const char *path = plan->namespaces[POD_USER];

        *ret_fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -EBADF;
        if (path && *ret_fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open the pod's user namespace '%s'", path);
        return nullptr;
}

/* Uses the mount points of images as the volumes' sources. */
/* The IDs of the pod's user namespace, for copies of layers that a rootless node cannot idmap. */
static struct nd_tree_shift shift_of(const struct cri_bundle_plan *plan) {
        const struct cri_sandbox_request *pod = pod_of(plan);
        uint32_t count = pod->uids.count < pod->gids.count ? pod->uids.count : pod->gids.count;

        return (struct nd_tree_shift) {
                .uid = pod->uids.outside, .gid = pod->gids.outside, .count = plan->users->initial ? 0 : count};
}

static struct nd_error *mount_images(const struct cri_bundle_plan *plan, const char *directory, int userns,
                                     struct cri_volumes *found) {
        nd_try(cri_image_volumes_make(&(struct cri_image_volumes_plan) {.layers = plan->layers,
                                                                        .directory = directory,
                                                                        .userns = userns,
                                                                        .shift = shift_of(plan),
                                                                        .build_mntns = plan->build_mntns},
                                      request_of(plan), plan->volumes));
        nd_vector_each (volume, plan->volumes) {
                found->items[volume->mount].source = cri_image_volumes_path(directory, volume->mount);
        }
        return nullptr;
}

/* Whether a process in the container may get SYS_ADMIN. Without a user namespace no read-only
 * flag can be enforced against it. */
static bool may_remount(const struct cri_bundle_plan *plan) {
        struct nd_spec_capabilities set = {};
        nd_autoerror struct nd_error *error = cri_capabilities_choose(request_of(plan), cri_capabilities_own(), &set);

        return error || set.bounding & UINT64_C(1) << CAP_SYS_ADMIN;
}

static struct nd_error *attach_all(const struct cri_bundle_plan *plan, const char *directory, int userns,
                                   const struct cri_volumes *found, const struct cri_declared_volumes *declared,
                                   struct cri_volume_attachment *ret, int *root) {
        const struct cri_container_request *request = request_of(plan);
        bool sys = userns >= 0 && !plan->namespaces[POD_NET] && !covered(request, "/sys");
        bool nodes = makes_devices(plan) && request->devices.count + request->cdi_devices.count > 0;

        if (request->mounts.count == 0 && declared->count == 0 && !sys && !nodes && (userns < 0 || !request->read_only_root))
                return nullptr;
        ret->refuses = userns >= 0 && !plan->config->unlocked_volumes && may_remount(plan);
        nd_try(cri_volume_attachment_begin(ret, directory, userns, root));
        if (sys)
                nd_try(nd_error_wrap(cri_volume_attachment_add_sys(ret), "attach the host's /sys"));
        return cri_volume_attachment_add_volumes(ret, request, found, declared);
}

/* Whether the recorded file is in the container's tree: a layer above may have replaced it. The
 * kernel shows an owner that the pod does not have as its overflow ID, which no file of the pod has
 * outside of its user namespace. */
static bool is_unmapped(int tree, const char *path) {
        struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
        nd_autoclose int fd = nd_sys->openat2(tree, path, &how, sizeof how);
        struct stat st;

        return fd >= 0 && fstat(fd, &st) == 0 && (st.st_uid == OVERFLOW_ID || st.st_gid == OVERFLOW_ID);
}

static struct nd_error *check_owner(const struct cri_bundle_plan *plan, int tree) {
        const struct nd_layer_owner *owner = plan->owner;
        nd_autofree char *quoted = nullptr;

        plan->report->unmapped_owner = owner && is_unmapped(tree, owner->path);
        if (!plan->report->unmapped_owner || !plan->config->refuse_unmapped_owners)
                return nullptr;
        quoted = nd_text_quote(owner->path);
        return nd_error_new(
                ND_PRECONDITION, 0,
                "image '%s': the file %s belongs to %u:%u, but the pod's user namespace has only the IDs 0 to %u; " CRI_BUNDLE_OWNER_ADVICE,
                request_of(plan)->image, quoted, owner->uid, owner->gid, pod_of(plan)->uids.count - 1);
}

/* Of the pod's own mounts, those that the OCI runtime finds by their path on the host. */
struct pod_mounts {
        int netns, files; /* clones; -EBADF = none */
};
#define POD_MOUNTS_NONE ((struct pod_mounts) {.netns = -EBADF, .files = -EBADF})

static void pod_mounts_done(struct pod_mounts *mounts) {
        nd_close_fd(&mounts->netns);
        nd_close_fd(&mounts->files);
}

static struct nd_error *clone_private(const char *path, int *ret_fd) {
        nd_autoclose int tree = -EBADF;

        nd_try(nd_mount_clone(AT_FDCWD, path, false, &tree));
        nd_try(nd_mount_propagation(tree, MS_PRIVATE, false));
        *ret_fd = nd_take_fd(tree);
        return nullptr;
}

/* Enters a mount namespace for the OCI runtime, with the mounts of the pod. */
static struct nd_error *enter_runtime_mntns(const struct cri_bundle_plan *plan, int *ret_fd) {
        nd_cleanup(pod_mounts_done) struct pod_mounts mounts = POD_MOUNTS_NONE;
        const char *netns = plan->namespaces[POD_NET];
        nd_autoclose int fd = -EBADF;

        if (netns)
                nd_try(clone_private(netns, &mounts.netns));
        nd_try(clone_private(plan->files, &mounts.files));
        nd_try(cri_runtime_mntns_enter(plan->runtime_mntns, &fd));
        if (netns)
                nd_try(nd_mount_attach(mounts.netns, AT_FDCWD, netns));
        nd_try(nd_mount_attach(mounts.files, AT_FDCWD, plan->files));
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

static void report_mappings(const struct cri_volumes *found, struct cri_bundle_report *report) {
        for (size_t i = 0; i < found->count; i++)
                report->mappings[i] = found->items[i].mapping;
        report->mapping_count = found->count;
}

static struct nd_error *make_for_image(const struct cri_bundle_plan *plan, const char *directory, int *ret_fd) {
        nd_cleanup(cri_volumes_done) struct cri_volumes found = {.bridges = &plan->report->bridges};
        nd_cleanup(cri_declared_volumes_done) struct cri_declared_volumes declared = {};
        nd_cleanup(cri_container_user_done) struct cri_container_user user = {};
        nd_cleanup(cri_selinux_labels_done) struct cri_selinux_labels labels = {};
        nd_cleanup(cri_volume_attachment_done) struct cri_volume_attachment attachment = ATTACHMENT_NONE;
        nd_autoclose int userns = -EBADF, tree = -EBADF, mount_namespace = -EBADF;
        const struct cri_sandbox_request *pod = pod_of(plan);

        nd_try(choose_labels(plan, &labels));
        nd_try(open_userns(plan, &userns));
        nd_try(cri_volumes_look(plan->config, plan->container->sandbox, request_of(plan), userns, &found));
        report_mappings(&found, plan->report);
        nd_try(label_volumes(request_of(plan), &found, &labels));
        nd_try(enter_runtime_mntns(plan, &mount_namespace));
        nd_try(mount_images(plan, directory, userns, &found));
        nd_try(cri_rootfs_build(&(struct cri_rootfs_plan) {.layers = plan->layers,
                                                           .chains = plan->chains,
                                                           .count = plan->chain_count,
                                                           .directory = directory,
                                                           .userns = userns,
                                                           .uid = userns >= 0 ? pod->uids.outside : 0,
                                                           .gid = userns >= 0 ? pod->gids.outside : 0,
                                                           .ids = userns >= 0 ? shift_of(plan).count : 0,
                                                           .label = labels.mount,
                                                           .build_mntns = plan->build_mntns},
                                &tree));
        nd_try(check_owner(plan, tree));
        nd_try(cri_user_resolve(tree, request_of(plan), plan->image->user,
                                &(struct cri_user_scope) {.ids = userns >= 0 ? pod->uids.count : 0, .node = plan->users},
                                &user));
        nd_try(cri_declared_volumes_make(&(struct cri_declared_volumes_plan) {.image = plan->image,
                                                                              .request = request_of(plan),
                                                                              .directory = directory,
                                                                              .tree = tree,
                                                                              .uid = userns >= 0 ? pod->uids.outside : 0,
                                                                              .gid = userns >= 0 ? pod->gids.outside : 0},
                                         &declared));
        nd_try(attach_all(plan, directory, userns, &found, &declared, &attachment, &tree));
        nd_try(make_spec(plan, directory, tree, &user, &found, &labels, &attachment));
        plan->report->image_file = cri_rootfs_find_owner(tree, &plan->report->image_owner);
        nd_try(cri_rootfs_attach(tree, directory));
        *ret_fd = nd_take_fd(mount_namespace);
        return nullptr;
}

/* Path of the pod's init with symlinks resolved: a bind mount cannot have a symlink as its
 * source. */
static struct nd_error *find_init(const struct cri_config *config, char **ret) {
        const char *path = getenv("PATH");
        nd_autofree char *program =
                strchr(config->init, '/') ? nd_strdup(config->init) : nd_program_find(path ? path : "", config->init);

        *ret = program ? realpath(program, nullptr) : nullptr;
        if (*ret)
                return nullptr;
        return nd_error_new(
                ND_PRECONDITION, ENOENT,
                "pods with a shared PID namespace need '%s': install the package catatonit, or set init in the configuration",
                config->init);
}

/* The init's root contains only its program, bind-mounted. It is a mount and not a directory,
 * since crun must be able to make it private. */
static struct nd_error *make_init_root(const struct cri_bundle_plan *plan, const char *directory, int *ret_fd) {
        nd_autofree char *place = nd_format("%s/rootfs", directory);
        const struct nd_mount_fs_option options[] = {{"size", "64k"}, {"mode", "755"}};
        nd_autoclose int tree = -EBADF;

        nd_try(nd_dir_make(AT_FDCWD, place, 0755));
        nd_try(nd_mount_fs_make("tmpfs", options, nd_count_of(options), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &tree));
        nd_try(nd_file_write(tree, "init", "", 0, 0755));
        nd_try(nd_dir_make(tree, "dev", 0755));  /* crun always makes devices there */
        nd_try(nd_dir_make(tree, "proc", 0755)); /* crun needs it to set up the process */
        if (plan->namespaces[POD_USER])
                nd_try(nd_dir_give(tree, ".", pod_of(plan)->uids.outside, pod_of(plan)->gids.outside, 0755));
        *ret_fd = nd_take_fd(tree);
        return nullptr;
}

static struct nd_error *make_for_init(const struct cri_bundle_plan *plan, const char *directory, int *ret_fd) {
        nd_cleanup(nd_spec_done) struct nd_spec spec = {};
        nd_autofree char *program = nullptr;
        nd_autoclose int tree = -EBADF, mount_namespace = -EBADF;
        struct nd_spec_mount *mount;

        nd_try(enter_runtime_mntns(plan, &mount_namespace));
        nd_try(find_init(plan->config, &program));
        nd_try(make_init_root(plan, directory, &tree));
        nd_try(begin_spec(plan, nd_format("%s/rootfs", directory), &spec));
        spec.read_only_root = true;
        nd_strings_add(&spec.process.arguments, "/init");
        nd_strings_add(&spec.process.arguments, "-P");
        spec.process.no_new_privileges = true;
        *plan->report = (struct cri_bundle_report) {};
        add_oom_score(plan, &spec.process);
        (void) nd_spec_add_mount(&spec, "/proc", "proc", "proc");
        mount = nd_spec_add_mount(&spec, "/dev", "tmpfs", "tmpfs");
        nd_spec_mount_option(mount, "size=64k");
        nd_spec_mount_option(mount, "mode=755");
        mount = nd_spec_add_mount(&spec, "/init", nullptr, program);
        nd_spec_mount_option(mount, "bind");
        nd_spec_mount_option(mount, "ro");
        nd_try(write_spec(plan, directory, &spec));
        nd_try(cri_rootfs_attach(tree, directory));
        *ret_fd = nd_take_fd(mount_namespace);
        return nullptr;
}

size_t cri_bundle_report_size(const struct cri_container_request *request) {
        return sizeof(struct cri_bundle_report) + request->mounts.count * sizeof(struct cri_mount_mapping);
}

struct nd_error *cri_bundle_make(void *argument, int *ret_fd) {
        const struct cri_bundle_plan *plan = argument;
        nd_autofree char *directory = cri_path_of_container(plan->config, plan->container);

        return plan->image ? make_for_image(plan, directory, ret_fd) : make_for_init(plan, directory, ret_fd);
}

struct nd_error *cri_bundle_cgroup(const char *directory, char **ret) {
        nd_autofree char *path = nd_format("%s/config.json", directory), *text = nullptr;
        nd_autoerror struct nd_error *error = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;
        const char *given;
        size_t length;

        error = nd_file_read(AT_FDCWD, path, ND_SPEC_CEILING, &text, &length);
        if (error)
                return nd_error_code(error) == ND_NOT_FOUND ? nullptr : nd_take_ptr(error);
        nd_try(nd_json_parse(text, length, ND_SPEC_CEILING, &doc));
        given = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(yyjson_doc_get_root(doc), "linux"), "cgroupsPath"));
        return given ? cri_resources_cgroup_path(given, ret) : nullptr;
}

struct nd_error *cri_bundle_undo(const char *directory) {
        nd_autofree char *path = nd_format("%s/config.json", directory);

        nd_try(cri_volume_attachment_undo(directory));
        nd_try(cri_rootfs_undo(directory));
        nd_try(cri_image_volumes_undo(directory));
        nd_try(cri_declared_volumes_undo(directory));
        return nd_file_unlink(AT_FDCWD, path);
}
