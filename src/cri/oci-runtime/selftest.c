/* SPDX-License-Identifier: Apache-2.0 */
/* selftest.c - see selftest.h
 *
 * Theory of operation
 *   One worker per runtime handler and feature, all in parallel. Each creates a directory
 *   <state>/selftest/<handler>-<feature> with a layer that holds one static program (the pods'
 *   init, run with --version), builds a root filesystem on it as rootfs.c does for every container,
 *   and runs the program there with the handler's OCI runtime. All mounts are in the worker's
 *   private mount namespace and end with it. The directory is removed afterwards, and also before,
 *   because a killed daemon may have left one. A feature works if the program ran and the worker's
 *   checks passed.
 *   In addition each OCI runtime is probed for the flaw that image-path.h protects against. Nothing
 *   waits for that result: it is logged and included in verbose Status.
 *   If everything works, <run>/selftest records the environment: this boot, these OCI runtimes,
 *   this program, these filesystems, this nodens-cri. A daemon that finds its own environment there
 *   skips the test; after a failure the test runs again at every start. */
#include "cri/oci-runtime/selftest.h"

#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "cri/bundle/rootfs.h"
#include "cri/core/config.h"
#include "cri/oci-runtime/oci-runtime.h"
#include "oci/spec.h"
#include "sys/cgroup.h"
#include "sys/child.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/own-userns.h"
#include "sys/program.h"
#include "sys/tree.h"
#include "sys/userns.h"
#include "sys/worker.h"
#include "userns/delegation.h"
#include "userns/probe.h"

#ifndef ND_VERSION
#define ND_VERSION "0"
#endif

#define NOTE "selftest"

enum {
        PROGRAM_CEILING = 16 << 20,
};

static constexpr uint64_t deadline_us = 30 * ND_SECOND_US;

static const char *const names[SELFTEST_FEATURES] = {
        [SELFTEST_OCI_RUNTIME] = "engine",
        [SELFTEST_READ_ONLY] = "recursiveReadOnlyMounts",
        [SELFTEST_USERNS] = "userNamespaces",
        [SELFTEST_HOST_NETWORK] = "userNamespacesHostNetwork",
};

struct trial {
        struct cri_selftest *selftest;
        const char *handler;
        enum cri_selftest_feature feature;
        struct nd_worker *worker;
        char *reason; /* why it does not work; nullptr = it works */
};

/* Checks a handler's OCI runtime for a known flaw. */
struct probe {
        struct cri_selftest *selftest;
        const char *handler;
        struct nd_worker *worker;
        char *flaw; /* nullptr = not found */
};

struct cri_selftest {
        const struct cri_config *config;
        /* the first row is crun, which every node has */
        struct trial trials[HANDLERS_MOST + 1][SELFTEST_FEATURES];
        struct probe probes[HANDLERS_MOST + 1];
        size_t handlers;
        size_t pending, probing;
        char *circumstances; /* the environment of the test; nullptr if it cannot be determined */
        void (*done)(void *userdata);
        void *userdata;
        sd_event_source *later;
};

/* ---- in the worker ---- */

struct room {
        const struct cri_config *config;
        struct cri_runtime_handler oci_runtime;
        enum cri_selftest_feature feature;
        char *directory;
        char *layers;
        struct nd_digest chain;
        const struct nd_own_userns *users;
        bool idmapped;            /* the volume is */
        int userns;               /* -EBADF = no user namespace */
        struct nd_userns_map map; /* of that user namespace */
};

static bool maps_users(enum cri_selftest_feature feature) {
        return feature == SELFTEST_USERNS || feature == SELFTEST_HOST_NETWORK;
}

static char *locate(const char *program) {
        if (strchr(program, '/'))
                return nd_strdup(program);
        return nd_program_find(getenv("PATH") ?: "/usr/sbin:/usr/bin:/sbin:/bin", program);
}

static struct nd_error *find_program(const struct cri_config *config, char **ret) {
        *ret = locate(config->init);
        return *ret ? nullptr
                    : nd_error_new(ND_NOT_FOUND, 0,
                                   "program '%s' not found: install it (Debian: catatonit), or set init in %s", config->init,
                                   CRI_CONFIG_PATH);
}

static struct nd_error *check_oci_runtime(const struct cri_runtime_handler *handler) {
        nd_autofree char *program = locate(handler->program);

        if (program && access(program, X_OK) == 0)
                return nullptr;
        return nd_error_new(ND_NOT_FOUND, 0,
                            "OCI runtime '%s' not found: install it (Debian: %s), or correct the path in " CRI_CONFIG_PATH,
                            handler->program, handler->kind == OCI_RUNTIME_RUNC ? "runc" : "crun");
}

static struct nd_error *make_layer(const struct room *room) {
        static const char *const directories[] = {"proc", "sys", "dev", "volume"};
        nd_autofree char *program = nullptr, *bytes = nullptr, *layer = nullptr;
        nd_autoclose int fd = -EBADF;
        char hex[ND_DIGEST_HEX];
        size_t length = 0;

        nd_try(find_program(room->config, &program));
        nd_try(nd_file_read(AT_FDCWD, program, PROGRAM_CEILING, &bytes, &length));
        nd_try(nd_dir_make(AT_FDCWD, room->layers, 0711));
        layer = nd_format("%s/%s", room->layers, nd_digest_hex(&room->chain, hex));
        nd_try(nd_dir_make(AT_FDCWD, layer, 0711));
        free(layer);
        layer = nd_format("%s/%s/fs", room->layers, hex);
        nd_try(nd_dir_make(AT_FDCWD, layer, 0755));
        nd_try(nd_dir_open(AT_FDCWD, layer, &fd));
        for (size_t i = 0; i < nd_count_of(directories); i++)
                nd_try(nd_dir_make(fd, directories[i], 0755));
        return nd_file_replace_unsynced(fd, "init", bytes, length, 0755);
}

/* Whether a path can be idmapped; not the host's filesystems in a rootless node. */
static struct nd_error *idmap(const char *path, int userns) {
        nd_autoclose int tree = -EBADF;

        nd_try(nd_mount_clone(AT_FDCWD, path, false, &tree));
        return nd_mount_idmap(tree, userns, false);
}

/* A volume as the kubelet creates it, idmapped or, in a rootless node that cannot, with the
 * container's IDs. */
static struct nd_error *make_volume(struct room *room, char **ret) {
        nd_autoerror struct nd_error *error = nullptr;

        *ret = nd_format("%s/volume", room->directory);
        nd_try(nd_dir_make(AT_FDCWD, *ret, 0755));
        if (!maps_users(room->feature))
                return nullptr;
        error = idmap(*ret, room->userns);
        room->idmapped = !error;
        if (!error || room->users->initial)
                return nd_take_ptr(error);
        return nd_dir_give(AT_FDCWD, *ret, room->map.outside, room->map.outside, 0755);
}

static void add_mounts(const struct room *room, const char *volume, struct nd_spec *spec) {
        struct nd_spec_mount *mount;

        nd_spec_mount_option(nd_spec_add_mount(spec, "/proc", "proc", "proc"), "nosuid");
        mount = nd_spec_add_mount(spec, "/dev", "tmpfs", "tmpfs");
        nd_spec_mount_option(mount, "nosuid");
        nd_spec_mount_option(mount, "mode=755");
        mount = nd_spec_add_mount(spec, "/volume", nullptr, volume);
        nd_spec_mount_option(mount, "rbind");
        nd_spec_mount_option(mount, "rprivate");
        if (room->idmapped) {
                mount->idmapped = true;
                mount->uids = mount->gids = room->map;
        }
        if (room->feature == SELFTEST_READ_ONLY)
                nd_spec_mount_option(mount, "rro");
        if (room->feature == SELFTEST_HOST_NETWORK) {
                mount = nd_spec_add_mount(spec, "/sys", nullptr, "/sys");
                nd_spec_mount_option(mount, "rbind");
                nd_spec_mount_option(mount, "rprivate");
                nd_spec_mount_option(mount, "rro");
        }
}

static struct nd_error *write_spec(struct room *room) {
        nd_cleanup(nd_spec_done) struct nd_spec spec = {};
        nd_autofree char *volume = nullptr, *users = nullptr;
        nd_autoclose int fd = -EBADF;
        nd_autotext struct nd_text text = ND_TEXT(ND_SPEC_CEILING);

        nd_try(make_volume(room, &volume));
        nd_strings_add(&spec.process.arguments, "/init");
        nd_strings_add(&spec.process.arguments, "--version");
        spec.process.directory = nd_strdup("/");
        spec.root = nd_strdup("rootfs");
        add_mounts(room, volume, &spec);
        nd_spec_add_namespace(&spec, "mount", nullptr);
        nd_spec_add_namespace(&spec, "pid", nullptr);
        nd_spec_add_namespace(&spec, "ipc", nullptr);
        if (room->feature != SELFTEST_HOST_NETWORK) {
                nd_spec_add_namespace(&spec, "uts", nullptr);
                nd_spec_add_namespace(&spec, "network", nullptr);
        }
        if (maps_users(room->feature)) {
                users = nd_format("/proc/%d/fd/%d", (int) getpid(), room->userns);
                nd_spec_add_namespace(&spec, "user", users);
                spec.user_namespace = true;
                spec.uids = spec.gids = room->map;
        }
        nd_try(nd_spec_format(&spec, &text));
        nd_try(nd_dir_open(AT_FDCWD, room->directory, &fd));
        return nd_file_replace_unsynced(fd, "config.json", nd_text_get(&text), text.length, 0600);
}

/* crun works without a cgroup; runc creates one at the root and removes it. */
static struct nd_error *run_oci_runtime(const struct room *room) {
        nd_autofree char *root = nd_format("%s/engine", room->directory),
                         *id = nd_format("nodens-selftest-%s-%s", room->oci_runtime.name, names[room->feature]);
        const char *const crun[] = {
                room->oci_runtime.program, "--root", root,   "--cgroup-manager", "disabled", "run", "--bundle",
                room->directory,           id,       nullptr};
        const char *const runc[] = {room->oci_runtime.program, "--root", root,   "run", "--bundle",
                                    room->directory,           id,       nullptr};
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};

        nd_try(nd_child_run(&(struct nd_child_plan) {.argv = room->oci_runtime.kind == OCI_RUNTIME_RUNC ? runc : crun,
                                                     .environment = cri_oci_runtime_environment(),
                                                     .deadline_us = deadline_us,
                                                     .output_ceiling = 4096},
                            &result));
        nd_try(nd_child_result_error(&result, room->oci_runtime.name));
        return result.output && result.output[0]
                       ? nullptr
                       : nd_error_new(ND_INTERNAL, 0, "%s ran '%s --version' in a container, which printed nothing",
                                      room->oci_runtime.program, room->config->init);
}

/* The image's files must belong to the container's root, or their modes have another meaning than
 * in the image. */
static struct nd_error *check_owner(const struct room *room) {
        nd_autofree char *path = nd_format("%s/rootfs/init", room->directory);
        uint32_t expected = room->map.outside;
        struct stat st;

        if (stat(path, &st) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "stat '%s'", path);
        if (st.st_uid != expected || st.st_gid != expected)
                return nd_error_new(ND_INTERNAL, 0, "a layer's file of root belongs to %u:%u in the container, expected %u",
                                    st.st_uid, st.st_gid, expected);
        return nullptr;
}

/* A rootless node without a delegated cgroup cannot create any. With the other driver systemd
 * does it. */
static struct nd_error *check_cgroups(const struct room *room) {
        nd_autofree char *name = nd_format("nodens-selftest-%s-%d", room->oci_runtime.name, (int) getpid());
        nd_autoclose int root = -EBADF;

        if (room->config->systemd_cgroups || room->config->without_cgroups)
                return nullptr;
        nd_try(nd_cgroup_open("/", &root));
        nd_try(nd_error_wrap(nd_cgroup_make(root, name),
                             "containers need cgroups, but this node may not create any: start it with a delegated cgroup"));
        (void) nd_cgroup_remove(root, name);
        return nullptr;
}

/* A kubelet gives each pod a block of IDs, and a rootless node may have none. */
static struct nd_error *check_blocks(const struct room *room) {
        if (room->users->initial || nd_delegation_pods(&room->users->uids, &room->users->gids).count > 0)
                return nullptr;
        return nd_error_new(ND_PRECONDITION, 0,
                            "this rootless node has no block of %d IDs for a pod: give the node's user more subordinate IDs",
                            ND_IDS_UNIT);
}

static struct nd_error *run_trial(struct room *room) {
        struct nd_userns_plan users = {
                .uids = &room->map, .uid_count = 1, .gids = &room->map, .gid_count = 1, .charge_to_root = true};
        struct cri_rootfs_plan plan = {
                .layers = room->layers, .chains = &room->chain, .count = 1, .directory = room->directory, .userns = -EBADF};
        nd_autoclose int tree = -EBADF;

        if (room->feature == SELFTEST_OCI_RUNTIME)
                nd_try(check_cgroups(room));
        nd_try(make_layer(room));
        if (maps_users(room->feature)) {
                nd_try(check_blocks(room));
                nd_try(nd_probe_map(&room->map));
                if (room->users->initial)
                        nd_try(nd_probe_overlay(room->config->images));
                nd_try(nd_probe_idmap_tmpfs());
                nd_try(nd_userns_make(&users, &room->userns));
                plan.userns = room->userns;
                plan.uid = plan.gid = room->map.outside;
                plan.ids = room->users->initial ? 0 : room->map.count;
        }
        nd_try(cri_rootfs_build(&plan, &tree));
        nd_try(cri_rootfs_attach(tree, room->directory));
        nd_try(check_owner(room));
        nd_try(write_spec(room));
        return run_oci_runtime(room);
}

static struct nd_error *remove_room(const struct cri_config *config, const char *name) {
        nd_autofree char *parent = nd_format("%s/selftest", config->state);
        nd_autoclose int fd = -EBADF;

        nd_try(nd_dir_make(AT_FDCWD, config->state, 0711));
        nd_try(nd_dir_make(AT_FDCWD, parent, 0711));
        nd_try(nd_dir_open(AT_FDCWD, parent, &fd));
        return nd_tree_remove(fd, name);
}

static struct nd_error *work(void *argument, [[maybe_unused]] int *ret_fd) {
        const struct trial *trial = argument;
        const struct cri_config *config = trial->selftest->config;
        nd_autofree char *name = nd_format("%s-%s", trial->handler, names[trial->feature]);
        nd_autofree char *directory = nd_format("%s/selftest/%s", config->state, name);
        nd_autofree char *layers = nd_format("%s/layers", directory), *root = nd_format("%s/rootfs", directory);
        struct room room = {.config = config,
                            .feature = trial->feature,
                            .directory = directory,
                            .layers = layers,
                            .chain = nd_digest_of(ND_HASH_SHA256, "nodens", strlen("nodens")),
                            .userns = -EBADF};
        nd_cleanup(nd_own_userns_done) struct nd_own_userns users = {};
        struct nd_error *error;

        nd_try(nd_own_userns_read(&users));
        room.users = &users;
        if (!cri_config_handler(config, trial->handler, &room.oci_runtime))
                return nd_error_new(ND_INTERNAL, 0, "unknown runtime handler '%s'", trial->handler);
        nd_try(check_oci_runtime(&room.oci_runtime));
        nd_try(remove_room(config, name));
        nd_try(nd_dir_make(AT_FDCWD, directory, 0711));
        error = nd_error_wrap(run_trial(&room), "in '%s'", directory);
        (void) nd_sys->umount2(root, MNT_DETACH);
        (void) nd_sys->umount2(layers, MNT_DETACH); /* the idmapped mount over it */
        nd_ignore(remove_room(config, name));       /* leftovers are removed at the next start */
        return error;
}

static struct nd_error *probe_work(void *argument, [[maybe_unused]] int *ret_fd) {
        const struct probe *probe = argument;
        struct cri_runtime_handler oci_runtime;

        if (!cri_config_handler(probe->selftest->config, probe->handler, &oci_runtime))
                return nd_error_new(ND_INTERNAL, 0, "unknown runtime handler '%s'", probe->handler);
        return nd_probe_engine_dev(oci_runtime.program, oci_runtime.kind == OCI_RUNTIME_RUNC, cri_oci_runtime_environment());
}

/* ---- cached result ---- */

static bool add_file(struct nd_text *text, const char *path) {
        struct stat st;

        if (!path || stat(path, &st) < 0)
                return false;
        if (S_ISDIR(st.st_mode))
                nd_text_addf(text, "%s on %ju\n", path, (uintmax_t) st.st_dev);
        else
                nd_text_addf(text, "%s %ju:%ju %jd.%09ld %jd\n", path, (uintmax_t) st.st_dev, (uintmax_t) st.st_ino,
                             (intmax_t) st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (intmax_t) st.st_size);
        return true;
}

static bool add_oci_runtimes(struct nd_text *text, const struct cri_config *config) {
        nd_vector_each (handler, &config->handlers) {
                nd_autofree char *program = locate(handler->program);

                nd_text_addf(text, "%s %s ", handler->name, cri_config_engine_name(handler->kind));
                if (!add_file(text, program))
                        return false;
        }
        return true;
}

/* Everything that the result depends on; nullptr if part of it is missing. */
static char *circumstances_of(const struct cri_config *config) {
        nd_autofree char *crun = locate(config->crun), *init = locate(config->init), *boot = nullptr;
        nd_autotext struct nd_text text = ND_TEXT(64 << 10);
        nd_autoerror struct nd_error *error = nd_file_read_kernel("/proc/sys/kernel/random/boot_id", 64, &boot);

        if (error)
                return nullptr;
        nd_text_addf(&text, "nodens-cri %s\nboot %s", ND_VERSION, boot);
        if (!add_file(&text, crun) || !add_file(&text, init) || !add_file(&text, config->state) ||
            !add_file(&text, config->images) || !add_oci_runtimes(&text, config) || text.overflow)
                return nullptr;
        return nd_text_steal(&text);
}

#define FLAW "flaw "

/* The last lines of the record are the flaws of OCI runtimes: "flaw HANDLER: TEXT". */
static void take_flaws(struct cri_selftest *selftest, const char *text) {
        for (size_t length; *text; text += length + (text[length] == '\n')) {
                length = strcspn(text, "\n");
                for (size_t i = 0; i < selftest->handlers; i++) {
                        nd_autofree char *start = nd_format(FLAW "%s: ", selftest->probes[i].handler);

                        if (nd_has_prefix(text, start) && !selftest->probes[i].flaw)
                                selftest->probes[i].flaw = nd_strndup(text + strlen(start), length - strlen(start));
                }
        }
}

static bool worked_before(struct cri_selftest *selftest) {
        nd_autofree char *path = nd_format("%s/" NOTE, selftest->config->run), *text = nullptr;
        nd_autoerror struct nd_error *error = nd_file_read(AT_FDCWD, path, 64 << 10, &text, nullptr);

        if (error || !selftest->circumstances || !nd_has_prefix(text, selftest->circumstances))
                return false;
        take_flaws(selftest, text + strlen(selftest->circumstances));
        return true;
}

static struct nd_error *write_note(const struct cri_selftest *selftest) {
        nd_autotext struct nd_text text = ND_TEXT(64 << 10);
        nd_autoclose int fd = -EBADF;

        nd_text_add(&text, selftest->circumstances);
        for (size_t i = 0; i < selftest->handlers; i++)
                if (selftest->probes[i].flaw)
                        nd_text_addf(&text, FLAW "%s: %s\n", selftest->probes[i].handler, selftest->probes[i].flaw);
        nd_try(nd_dir_open(AT_FDCWD, selftest->config->run, &fd));
        return nd_file_replace_unsynced(fd, NOTE, nd_text_get(&text), text.length, 0600);
}

static void note_success(const struct cri_selftest *selftest) {
        if (selftest->pending > 0 || selftest->probing > 0)
                return;
        for (size_t i = 0; i < selftest->handlers; i++)
                for (size_t k = 0; k < SELFTEST_FEATURES; k++)
                        if (selftest->trials[i][k].reason)
                                return;
        if (selftest->circumstances)
                nd_ignore(write_note(selftest)); /* without it the next start runs the test again */
}

/* ---- on the loop ---- */

static void trial_ended(struct cri_selftest *selftest) {
        if (--selftest->pending == 0)
                (void) sd_event_source_set_enabled(selftest->later, SD_EVENT_ONESHOT);
}

static void on_worker(struct nd_error *error, int fd, void *userdata) {
        struct trial *trial = userdata;

        nd_close_fd(&fd);
        trial->worker = nullptr;
        if (error)
                trial->reason = nd_strdup(nd_error_text(error));
        nd_error_free(error);
        trial_ended(trial->selftest);
}

static int on_later([[maybe_unused]] sd_event_source *source, void *userdata) {
        struct cri_selftest *selftest = userdata;

        note_success(selftest);
        selftest->done(selftest->userdata);
        return 0;
}

static void report_flaw(const struct probe *probe) {
        if (probe->flaw)
                nd_log(ND_LOG_WARNING, "OCI runtime has a known flaw; images that exploit it are refused",
                       nd_field("handler", probe->handler), nd_field("flaw", probe->flaw),
                       nd_field("remedy", "upgrade crun to 1.28 or later"));
}

static void on_probed(struct nd_error *error, int fd, void *userdata) {
        struct probe *probe = userdata;

        nd_close_fd(&fd);
        probe->worker = nullptr;
        if (nd_error_code(error) == ND_PRECONDITION)
                probe->flaw = nd_strdup(nd_error_text(error));
        nd_error_free(error); /* the trials report an OCI runtime that does not work at all */
        report_flaw(probe);
        probe->selftest->probing--;
        note_success(probe->selftest);
}

static void start_probe(sd_event *loop, struct probe *probe) {
        nd_autoerror struct nd_error *error = nd_worker_start(loop, "probe the OCI runtime", probe_work, probe,
                                                              2 * deadline_us, on_probed, probe, &probe->worker);

        probe->selftest->probing += !error;
}

static void start_trial(sd_event *loop, struct cri_selftest *selftest, struct trial *trial) {
        nd_autoerror struct nd_error *error =
                nd_worker_start(loop, "self-test", work, trial, deadline_us, on_worker, trial, &trial->worker);

        if (!error)
                return;
        trial->reason = nd_strdup(nd_error_text(error));
        trial_ended(selftest);
}

static void plan_trials(struct cri_selftest *selftest) {
        selftest->handlers = selftest->config->handlers.count + 1;
        for (size_t i = 0; i < selftest->handlers; i++) {
                const char *handler = i == 0 ? "crun" : selftest->config->handlers.items[i - 1].name;

                selftest->probes[i] = (struct probe) {.selftest = selftest, .handler = handler};
                for (enum cri_selftest_feature feature = 0; feature < SELFTEST_FEATURES; feature++)
                        selftest->trials[i][feature] =
                                (struct trial) {.selftest = selftest, .handler = handler, .feature = feature};
        }
}

struct cri_selftest *cri_selftest_new(sd_event *loop, const struct cri_config *config, void (*done)(void *userdata),
                                      void *userdata) {
        struct cri_selftest *selftest = nd_new(struct cri_selftest);

        selftest->config = config;
        selftest->done = done;
        selftest->userdata = userdata;
        selftest->circumstances = circumstances_of(config);
        plan_trials(selftest);
        if (sd_event_add_defer(loop, &selftest->later, on_later, selftest) < 0)
                abort(); /* out of memory is the only possible failure */
        if (worked_before(selftest)) {
                for (size_t i = 0; i < selftest->handlers; i++)
                        report_flaw(&selftest->probes[i]);
                return selftest; /* done runs from the loop */
        }
        (void) sd_event_source_set_enabled(selftest->later, SD_EVENT_OFF);
        selftest->pending = selftest->handlers * SELFTEST_FEATURES;
        for (size_t i = 0; i < selftest->handlers; i++)
                for (enum cri_selftest_feature feature = 0; feature < SELFTEST_FEATURES; feature++)
                        start_trial(loop, selftest, &selftest->trials[i][feature]);
        for (size_t i = 0; i < selftest->handlers; i++)
                start_probe(loop, &selftest->probes[i]);
        return selftest;
}

void cri_selftest_free(struct cri_selftest *selftest) {
        if (!selftest)
                return;
        for (size_t i = 0; i < selftest->handlers; i++) {
                nd_worker_cancel(selftest->probes[i].worker);
                free(selftest->probes[i].flaw);
                for (enum cri_selftest_feature feature = 0; feature < SELFTEST_FEATURES; feature++) {
                        nd_worker_cancel(selftest->trials[i][feature].worker);
                        free(selftest->trials[i][feature].reason);
                }
        }
        sd_event_source_disable_unref(selftest->later);
        free(selftest->circumstances);
        free(selftest);
}

/* ---- results ---- */

const char *cri_selftest_name(enum cri_selftest_feature feature) {
        return names[feature];
}

const char *cri_selftest_handler(const struct cri_selftest *selftest, size_t number) {
        return number == 0 ? "" : number <= selftest->handlers ? selftest->trials[number - 1][0].handler : nullptr;
}

static const struct trial *trials_of(const struct cri_selftest *selftest, const char *handler) {
        if (!*handler)
                return selftest->trials[0];
        for (size_t i = 0; i < selftest->handlers; i++)
                if (nd_streq(selftest->trials[i][0].handler, handler))
                        return selftest->trials[i];
        return nullptr;
}

const char *cri_selftest_reason(const struct cri_selftest *selftest, const char *handler, enum cri_selftest_feature feature) {
        const struct trial *trials = trials_of(selftest, handler);

        return !trials                 ? "unknown runtime handler"
               : selftest->pending > 0 ? "the self-test is still running"
                                       : trials[feature].reason;
}

struct nd_error *cri_selftest_userns(const struct cri_selftest *selftest, const char *handler, bool host_network) {
        const char *reason = cri_selftest_reason(selftest, handler, host_network ? SELFTEST_HOST_NETWORK : SELFTEST_USERNS);

        if (!reason)
                return nullptr;
        return nd_error_new(ND_PRECONDITION, 0, "this node%s%s cannot run pods with a user namespace%s: %s",
                            *handler ? " with runtime handler " : "", handler, host_network ? " on the host's network" : "",
                            reason);
}

const char *cri_selftest_flaw(const struct cri_selftest *selftest, const char *handler) {
        for (size_t i = 0; i < selftest->handlers; i++)
                if (nd_streq(selftest->probes[i].handler, *handler ? handler : selftest->probes[0].handler))
                        return selftest->probes[i].flaw;
        return nullptr;
}

void cri_selftest_describe(const struct cri_selftest *selftest, struct nd_json_out *out) {
        nd_json_open(out, "selftest", '{');
        for (enum cri_selftest_feature feature = 0; feature < SELFTEST_FEATURES; feature++)
                nd_json_string(out, names[feature], cri_selftest_reason(selftest, "", feature) ?: "works");
        nd_json_close(out, '}');
        nd_json_open(out, "engineFlaws", '{');
        for (size_t i = 0; i < selftest->handlers; i++)
                if (selftest->probes[i].flaw)
                        nd_json_string(out, selftest->probes[i].handler, selftest->probes[i].flaw);
        nd_json_close(out, '}');
        nd_json_open(out, "runtimeHandlers", '{');
        for (size_t i = 1; i < selftest->handlers; i++) {
                nd_json_open(out, selftest->trials[i][0].handler, '{');
                for (enum cri_selftest_feature feature = 0; feature < SELFTEST_FEATURES; feature++)
                        nd_json_string(out, names[feature],
                                       cri_selftest_reason(selftest, selftest->trials[i][0].handler, feature) ?: "works");
                nd_json_close(out, '}');
        }
        nd_json_close(out, '}');
}
