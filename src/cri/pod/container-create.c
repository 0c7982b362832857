/* SPDX-License-Identifier: Apache-2.0 */
/* container-create.c - steps of a creation; see container.c
 *
 * Theory of operation
 *   The first record already says that directory, mount and OCI runtime state must be undone: one
 *   write instead of three, and undoing what was never made is cheap and rare. A worker then checks
 *   the volumes, builds the root filesystem in a mount namespace of its own and writes the spec
 *   (bundle.c). nodens-mon creates the streams and runs crun create in that mount namespace, which
 *   ends with crun. The namespaces of the process that it reports are checked
 *   (joined-namespaces.c) before the record says CREATED. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/log.h"
#include "cri/bundle/bundle.h"
#include "cri/bundle/pod-files.h"
#include "cri/bundle/process.h"
#include "cri/bundle/resources.h"
#include "cri/core/events.h"
#include "cri/core/paths.h"
#include "cri/core/record.h"
#include "cri/namespace/namespaces.h"
#include "cri/pod/container-operation.h"
#include "cri/pod/container-process.h"
#include "cri/pod/joined-namespaces.h"
#include "cri/stats/telemetry.h"
#include "oci/store.h"
#include "sys/calls.h"
#include "sys/cgroup.h"
#include "sys/file.h"

static constexpr uint64_t bundle_deadline_us = 60 * ND_SECOND_US;
/* In a rootless node the first container of an image may copy all of it. */
static constexpr uint64_t copy_deadline_us = 600 * ND_SECOND_US;
static constexpr uint64_t create_deadline_us = 60 * ND_SECOND_US;

enum {
        /* of the pod's init: among the last to be killed by the OOM killer */
        INIT_OOM_SCORE = -998,
};

struct cri_creation {
        char *bytes;
        size_t length;
        struct nd_oci_config image;
        struct nd_digest *chains;
        size_t chain_count;
        struct cri_image_volumes volumes;
        struct cri_bundle_report *report; /* shared memory of report_size bytes */
        size_t report_size;
        struct nd_layer_owner owner; /* path "" = none */
        /* Referenced by plan. */
        char *layers, *pid, *files, *hostname, *hosts, *resolv, *shm;
        char *namespaces[POD_NAMESPACES];
        /* of another container, open until the OCI runtime has joined it; -EBADF = none */
        int pid_namespace;
        int mount_namespace; /* for the OCI runtime, until the monitor has it */
        struct cri_bundle_plan plan;
};

void cri_container_create_free(struct cri_creation *creation) {
        if (!creation)
                return;
        free(creation->bytes);
        nd_oci_config_done(&creation->image);
        free(creation->chains);
        cri_image_volumes_done(&creation->volumes);
        if (creation->report)
                (void) munmap(creation->report, creation->report_size);
        nd_close_fd(&creation->pid_namespace);
        nd_close_fd(&creation->mount_namespace);
        free(creation->layers);
        free(creation->pid);
        free(creation->files);
        free(creation->hostname);
        free(creation->hosts);
        free(creation->resolv);
        free(creation->shm);
        for (size_t i = 0; i < POD_NAMESPACES; i++)
                free(creation->namespaces[i]);
        free(creation);
}

/* ---- request ---- */

/* The request of the pod's init. */
static struct cri_container_request init_request(void) {
        return (struct cri_container_request) {
                .name = nd_strdup("init"),
                .image = nd_strdup(""),
                .image_by_user = nd_strdup(""),
                .working_directory = nd_strdup(""),
                .log_path = nd_strdup(""),
                .pid_target = nd_strdup(""),
                .user_name = nd_strdup(""),
                .resources = {.cpuset_cpus = nd_strdup(""), .cpuset_mems = nd_strdup(""), .oom_score_adj = INIT_OOM_SCORE},
                .seccomp = {.kind = PROFILE_UNSET, .localhost = nd_strdup("")},
                .apparmor = {.kind = PROFILE_UNSET, .localhost = nd_strdup("")},
                .pid = NAMESPACE_CONTAINER,
        };
}

static struct nd_error *check_mapping(const struct cri_sandbox_request *pod, const struct cri_container_request *request) {
        if (pod->user_namespace == request->user_namespace &&
            (!pod->user_namespace || (memcmp(&pod->uids, &request->uids, sizeof pod->uids) == 0 &&
                                      memcmp(&pod->gids, &request->gids, sizeof pod->gids) == 0)))
                return nullptr;
        return nd_error_new(ND_INVALID, 0, "the container's user namespace differs from its sandbox's");
}

static char *join_log_path(const struct cri_sandbox_request *pod, const struct cri_container_request *request) {
        if (!*pod->log_directory || !*request->log_path)
                return nd_strdup("");
        return nd_format("%s/%s", pod->log_directory, request->log_path);
}

static struct cri_container *container_new(struct cri_sandbox *sandbox, struct cri_container_request *request) {
        struct cri_container *container = nd_new(struct cri_container);

        cri_pod_table_new_id(container->id);
        container->sandbox = sandbox;
        container->internal = !request;
        container->request = request ? nd_take(*request, (struct cri_container_request) {}) : init_request();
        container->state = CONTAINER_NEW;
        container->created_at = nd_clock_wall_ns();
        container->image_reference = nd_strdup("");
        container->reason = nd_strdup("");
        container->message = nd_strdup("");
        container->log_path = join_log_path(&sandbox->request, &container->request);
        container->cgroup = nd_strdup("");
        container->monitor_cgroup = nd_strdup("");
        container->checks_json = nd_strdup("");
        return container;
}

struct nd_error *cri_container_create_accept(struct cri_container_operation *operation, struct cri_sandbox *sandbox,
                                             struct cri_container_request *request, const char *bytes, size_t length) {
        struct cri_creation *creation;

        if (request) {
                if (sandbox->state != SANDBOX_READY || sandbox->stopping || !sandbox->this_boot)
                        return nd_error_new(ND_PRECONDITION, 0, "sandbox %.13s is not ready", sandbox->id);
                nd_try(check_mapping(&sandbox->request, request));
        }
        creation = operation->creation = nd_new(struct cri_creation);
        creation->pid_namespace = creation->mount_namespace = -EBADF;
        creation->bytes = nd_malloc(length + 1);
        memcpy(creation->bytes, bytes ? bytes : "", bytes ? length : 0);
        creation->length = length;
        operation->container = container_new(sandbox, request);
        cri_pod_table_add_container(&operation->parts->pods, operation->container);
        (void) cri_container_life_of(operation->parts, operation->container);
        return nullptr;
}

/* ---- image ---- */

static struct nd_error *take_image(struct cri_container_operation *operation) {
        struct cri_container *container = operation->container;
        struct cri_creation *creation = operation->creation;
        const struct nd_image *image = nullptr;
        char text[ND_DIGEST_TEXT];

        nd_try(nd_oci_store_find(operation->parts->images, container->request.image, &image));
        if (!image)
                return nd_error_new(ND_NOT_FOUND, 0, "image '%s' not found on this node: pull it first",
                                    container->request.image);
        nd_try(nd_error_wrap(nd_oci_store_config(operation->parts->images, image, &creation->image), "image '%s'",
                             container->request.image));
        creation->chain_count = image->layer_count;
        creation->chains = nd_calloc(image->layer_count + 1, sizeof *creation->chains);
        nd_image_chains(image, creation->chains);
        container->image = image->id;
        if (container->request.user_namespace &&
            nd_layer_owner_is_outside(&image->owner, container->request.uids.count, container->request.gids.count))
                creation->owner = image->owner;
        if (image->layer_count > 0)
                container->top = creation->chains[image->layer_count - 1];
        nd_strset(&container->image_reference,
                  image->digests.count > 0 ? image->digests.items[0] : nd_digest_text(&image->id, text));
        return nullptr;
}

/* From now on the store keeps their layers for this container, even if the images are removed. */
static struct nd_error *take_mounted_images(struct cri_container_operation *operation) {
        struct cri_container *container = operation->container;
        struct cri_creation *creation = operation->creation;

        nd_try(cri_image_volumes_find(operation->parts->images, &container->request, &creation->volumes));
        nd_vector_each (volume, &creation->volumes) {
                nd_vector_push(&container->mounted, volume->chains[volume->count - 1]);
        }
        return nullptr;
}

/* ---- bundle ---- */

/* Passes our own descriptor, as with the pins: the pid may have been reused when the OCI runtime
 * opens it. */
static struct nd_error *join_pid(struct cri_creation *creation, const struct cri_container *holder, const char *what,
                                 char **ret) {
        nd_try(cri_joined_namespaces_open(holder, what, &creation->pid_namespace));
        *ret = nd_format("/proc/%d/fd/%d", (int) getpid(), creation->pid_namespace);
        return nullptr;
}

/* The pid namespace of the container: nullptr = the host's, "" = its own. */
static struct nd_error *choose_pid(struct cri_container_operation *operation, char **ret) {
        const struct cri_container_request *request = &operation->container->request;
        struct cri_container *target = nullptr;

        switch (request->pid) {
        case NAMESPACE_NODE:
                return nullptr;
        case NAMESPACE_POD:
                return join_pid(operation->creation, operation->container->sandbox->init, "the pod's init", ret);
        case NAMESPACE_TARGET:
                nd_try(cri_pod_table_find_container(&operation->parts->pods, request->pid_target, &target));
                if (target->sandbox != operation->container->sandbox)
                        return nd_error_new(ND_INVALID, 0, "target container '%s' belongs to another pod",
                                            request->pid_target);
                return join_pid(operation->creation, target, "the target container", ret);
        case NAMESPACE_CONTAINER:
                break;
        }
        *ret = nd_strdup("");
        return nullptr;
}

static struct nd_error *plan_bundle(struct cri_container_operation *operation) {
        struct cri_container *container = operation->container;
        struct cri_creation *creation = operation->creation;
        const struct cri_parts *parts = operation->parts;
        const struct cri_config *config = &parts->config;

        nd_try(choose_pid(operation, &creation->pid));
        creation->report_size = cri_bundle_report_size(&container->request);
        creation->report = mmap(nullptr, creation->report_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (creation->report == MAP_FAILED) {
                creation->report = nullptr;
                return nd_error_new(ND_EXHAUSTED, errno, "allocate memory shared with a worker");
        }
        for (unsigned i = 0; i < POD_NAMESPACES; i++)
                creation->namespaces[i] =
                        cri_namespaces_path(&parts->config, parts->pins, container->sandbox, (enum cri_pod_namespace) i);
        creation->layers = nd_format("%s/layers", nd_oci_store_root(parts->images));
        creation->files = cri_pod_files_directory(config, container->sandbox);
        creation->hostname = cri_pod_files_path(config, container->sandbox, POD_HOSTNAME);
        creation->hosts = cri_pod_files_path(config, container->sandbox, POD_HOSTS);
        creation->resolv = cri_pod_files_path(config, container->sandbox, POD_RESOLV);
        creation->shm = cri_pod_files_path(config, container->sandbox, POD_SHM);
        creation->plan = (struct cri_bundle_plan) {
                .config = config,
                .users = &parts->users,
                .container = container,
                .image = container->internal ? nullptr : &creation->image,
                .layers = creation->layers,
                .chains = creation->chains,
                .chain_count = creation->chain_count,
                .volumes = &creation->volumes,
                .owner = *creation->owner.path ? &creation->owner : nullptr,
                .pid = creation->pid,
                .files = creation->files,
                .hostname = creation->hostname,
                .hosts = creation->hosts,
                .resolv = creation->resolv,
                .shm = creation->shm,
                .report = creation->report,
                .build_mntns = parts->build_mntns,
                .runtime_mntns = parts->runtime_mntns,
        };
        for (unsigned i = 0; i < POD_NAMESPACES; i++)
                creation->plan.namespaces[i] = creation->namespaces[i];
        return nullptr;
}

/* The container starts all the same: programs that only read the file work. */
static void log_unmapped_owner(const struct cri_container_operation *operation) {
        const struct nd_layer_owner *owner = &operation->creation->owner;
        nd_autofree char *path = nd_text_quote(owner->path), *ids = nd_format("%u:%u", owner->uid, owner->gid);

        nd_log(ND_LOG_WARNING,
               "a file of the image belongs to an ID that the pod's user namespace does not have; in the pod its owner is 65534 and "
               "it cannot be changed; " CRI_BUNDLE_OWNER_ADVICE,
               nd_field("image", operation->container->request.image), nd_field("container", operation->container->id),
               nd_field("file", path), nd_field("owner", ids));
}

static void take_bundle(struct cri_container_operation *operation, int mount_namespace) {
        struct cri_container *container = operation->container;
        const struct cri_bundle_report *report = operation->creation->report;

        container->image_file = report->image_file;
        container->image_owner = report->image_owner;
        container->user.uid = report->uid;
        container->user.gid = report->gid;
        for (uint32_t i = 0; i < report->group_count && i < USER_GROUPS_MOST; i++)
                nd_vector_push(&container->user.groups, report->groups[i]);
        for (size_t i = 0; i < report->mapping_count && i < container->request.mounts.count; i++)
                nd_vector_push(&container->mappings, report->mappings[i]);
        if (report->oom_score_clamped)
                cri_telemetry_oom_score_clamped(operation->parts->telemetry);
        if (report->unmapped_owner)
                log_unmapped_owner(operation);
        operation->creation->mount_namespace = mount_namespace;
}

/* Whether the worker may have copied layers, which take space in the image store. */
static bool may_copy(const struct cri_container_operation *operation) {
        return !operation->parts->users.initial && operation->container->request.user_namespace;
}

static void count_copies(const struct cri_container_operation *operation) {
        const struct cri_creation *creation = operation->creation;
        struct nd_oci_store *images = operation->parts->images;

        if (!may_copy(operation))
                return;
        if (creation->chain_count > 0)
                nd_oci_store_count_shifted(images, creation->chains, creation->chain_count);
        nd_vector_each (volume, &creation->volumes) {
                if (volume->count > 0)
                        nd_oci_store_count_shifted(images, volume->chains, volume->count);
        }
}

static void on_bundle(struct nd_error *error, int fd, void *userdata) {
        struct cri_container_operation *operation = userdata;

        operation->worker = nullptr;
        count_copies(operation);
        cri_telemetry_bridges(operation->parts->telemetry, &operation->creation->report->bridges);
        if (!error)
                take_bundle(operation, fd);
        cri_container_advance(operation, INPUT_DONE, error);
}

struct nd_error *cri_container_create_prepare(struct cri_container_operation *operation) {
        struct cri_container *container = operation->container;
        struct cri_creation *creation = operation->creation;
        nd_autofree char *home = nullptr;

        container->stop_signal = SIGTERM;
        if (!container->internal) {
                nd_try(take_image(operation));
                nd_try(take_mounted_images(operation));
                container->stop_signal = cri_process_stop_signal(&container->request, &creation->image);
        }
        nd_try(plan_bundle(operation));
        nd_try(cri_monitor_home(container->id, &home));
        nd_strset(&container->monitor_cgroup, home);
        container->made = CONTAINER_MADE_DIRECTORY | CONTAINER_MADE_ROOT | CONTAINER_MADE_ENGINE;
        return cri_record_new_container(operation->parts->records, container, container->internal ? nullptr : creation->bytes,
                                        creation->length);
}

struct nd_error *cri_container_create_bundle(struct cri_container_operation *operation) {
        return nd_worker_start(operation->parts->loop, "prepare the container", cri_bundle_make, &operation->creation->plan,
                               may_copy(operation) ? copy_deadline_us : bundle_deadline_us, on_bundle, operation,
                               &operation->worker);
}

/* ---- monitor ---- */

/* Maps a user of the process to the host. */
static uint32_t outside(const struct cri_sandbox_request *pod, const struct nd_userns_map *map, uint32_t id) {
        return pod->user_namespace ? map->outside + id : id;
}

static struct nd_error *make_run_directory(const char *path) {
        nd_autofree char *parent = nd_strndup(path, (size_t) (strrchr(path, '/') - path));

        nd_try(nd_dir_make(AT_FDCWD, parent, 0700));
        return nd_dir_make(AT_FDCWD, path, 0700);
}

struct nd_error *cri_container_create_monitor(struct cri_container_operation *operation) {
        struct cri_container *container = operation->container;
        struct cri_parts *parts = operation->parts;
        const struct cri_sandbox_request *pod = &container->sandbox->request;
        const struct cri_container_request *request = &container->request;
        nd_autoclose int mount_namespace = nd_take_fd(operation->creation->mount_namespace);
        nd_cleanup(nd_strings_done) struct nd_strings argv = {};
        nd_autofree char *directory = cri_path_of_container_run(&parts->config, container->id);
        nd_autofree char *bundle = cri_path_of_container(&parts->config, container);
        nd_autofree char *pid_file = nd_format("%s/pid", directory), *console = nullptr;

        if (request->tty)
                console = nd_format("%s/console", directory);
        nd_try(make_run_directory(directory));
        nd_try(cri_oci_runtime_create_argv(&parts->config, pod->runtime_handler, container->id, bundle, pid_file, console,
                                           &argv));
        return cri_monitor_start(parts->loop,
                                 &(struct cri_monitor_plan) {
                                         .program = parts->config.monitor,
                                         .id = container->id,
                                         .directory = directory,
                                         .create = (const char *const *) argv.items,
                                         .deadline_us = create_deadline_us,
                                         .log_directory = *container->log_path ? pod->log_directory : "",
                                         .log_path = *container->log_path ? request->log_path : "",
                                         .terminal = request->tty,
                                         .stdin_open = request->stdin_open,
                                         .stdin_once = request->stdin_once,
                                         .uid = outside(pod, &pod->uids, container->user.uid),
                                         .gid = outside(pod, &pod->gids, container->user.gid),
                                         .cgroup = container->monitor_cgroup,
                                         .mount_namespace = mount_namespace,
                                 },
                                 &cri_container_monitor_events, container->life, &container->monitor);
}

/* ---- process ---- */

/* The container's cgroup; none if it is in ours, which must not be killed with it. The process of a
 * container that may create cgroups is in a leaf below it. */
static struct nd_error *find_cgroup(const struct cri_config *config, const struct cri_container *container, char **ret) {
        nd_autofree char *path = nd_format("/proc/%d/cgroup", (int) container->pid), *text = nullptr, *own = nullptr,
                         *leaf = cri_resources_leaf(container->id);
        char *last;

        if (config->without_cgroups)
                return nullptr;
        nd_try(nd_file_read_kernel(path, 64 << 10, &text));
        own = nd_cgroup_path_of(text);
        last = own ? strrchr(own, '/') : nullptr;
        if (last && last != own && nd_streq(last + 1, leaf))
                *last = '\0';
        nd_strset(ret, own ? own : "");
        return nullptr;
}

struct nd_error *cri_container_create_record(struct cri_container_operation *operation) {
        struct cri_container *container = operation->container;
        nd_autoclose int process = cri_container_process(container);

        nd_try(cri_joined_namespaces_check(container->pid, &operation->creation->plan, operation->creation->pid_namespace));
        nd_try(find_cgroup(&operation->parts->config, container, &container->cgroup));
        /* Make sure that the values above are those of the container's process and not of a later
         * one with the same pid, whose cgroup would be killed with the container. */
        if (process < 0 || nd_sys->pidfd_send_signal(process, 0, 0) < 0) {
                nd_strset(&container->cgroup, "");
                return nd_error_new(ND_INTERNAL, 0, "the container's process exited before it could be checked");
        }
        container->created_at = nd_clock_wall_ns();
        container->state = CONTAINER_CREATED;
        return cri_record_save_container(operation->parts->records, container, RECORD_NOSYNC);
}

void cri_container_create_report(struct cri_container_operation *operation) {
        cri_container_sync(operation->container->life);
        cri_events_of_container(operation->parts->events, operation->container, EVENT_CREATED);
}
