/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - see record.h
 *
 * Theory of operation
 *   An object exists when its .json exists. A new one gets its directory, then the request, then
 *   the .json; removal deletes them in reverse order. So whenever we are killed, a directory
 *   without a .json is a leftover that nothing was set up for yet, or any more, and loading removes
 *   it.
 *   A pod's directory can be traversed by its mapped root, since its root filesystems are below,
 *   and by no other user (cri_path_make_of_pod()); the directories above and below it by all users
 *   (0711). Only root can read the records (0600).
 *   A damaged record is loaded as an object that was never acknowledged and for which everything
 *   was set up. Undoing it works as for any other, by its id; steps that find nothing to undo are
 *   no error. A record written by a newer daemon, or one that cannot be read for another reason
 *   than its contents, is left alone.
 * Owns       the descriptor of <state>/pods. */
#include "cri/core/record.h"

#include <string.h>

#include "base/text.h"
#include "cri/core/config.h"
#include "cri/core/paths.h"
#include "cri/core/record-format.h"
#include "cri/core/request-decode.h"
#include "net/grpc.h"
#include "sys/file.h"
#include "sys/own-userns.h"

#define SANDBOX_JSON "sandbox.json"
#define SANDBOX_REQUEST "sandbox.pb"
#define CONTAINERS "containers"
#define CONTAINER_JSON "container.json"
#define CONTAINER_REQUEST "container.pb"

enum {
        DIRECTORIES_MOST = 1 << 20,
        CROSSED = 0711,
        PRIVATE = 0600,
};

struct cri_record_store {
        int pods_fd;
        char *path; /* of the directory, for errors */
        char boot_id[RECORD_BOOT_ID + 1];
};

static struct nd_error *read_boot_id(char ret[static RECORD_BOOT_ID + 1]) {
        nd_cleanup(nd_own_userns_done) struct nd_own_userns own = {};

        static_assert((int) RECORD_BOOT_ID == (int) ND_OWN_USERNS_START);
        nd_try(nd_own_userns_read(&own));
        return nd_own_userns_start(&own, ret);
}

struct nd_error *cri_record_store_open(const struct cri_config *config, struct cri_record_store **ret) {
        nd_autofree char *path = cri_path_of_pods(config);
        struct cri_record_store *store;
        int fd = -EBADF;

        nd_try(nd_dir_make(AT_FDCWD, config->state, CROSSED));
        nd_try(nd_dir_make(AT_FDCWD, path, CROSSED));
        nd_try(nd_dir_open(AT_FDCWD, path, &fd));
        store = nd_new(struct cri_record_store);
        store->pods_fd = fd;
        store->path = nd_take_ptr(path);
        *ret = store;
        return read_boot_id(store->boot_id);
}

void cri_record_store_free(struct cri_record_store *store) {
        if (!store)
                return;
        nd_close_fd(&store->pods_fd);
        free(store->path);
        free(store);
}

/* ---- saving ---- */

/* Names below the directory alone would not show which filesystem is full. */
static struct nd_error *in_store(const struct cri_record_store *store, struct nd_error *error) {
        return nd_error_wrap(error, "in '%s'", store->path);
}

static struct nd_error *write_record(const struct cri_record_store *store, int dir_fd, const char *name, const char *bytes,
                                     size_t length, enum cri_record_how how) {
        return in_store(store, how == RECORD_SYNC ? nd_file_replace(dir_fd, name, bytes, length, PRIVATE)
                                                  : nd_file_replace_unsynced(dir_fd, name, bytes, length, PRIVATE));
}

static struct nd_error *open_sandbox(const struct cri_record_store *store, const char *id, int *ret) {
        return nd_error_wrap(nd_dir_open(store->pods_fd, id, ret), "records of pod sandbox %s", id);
}

static struct nd_error *open_container(const struct cri_record_store *store, const struct cri_container *container, int *ret) {
        nd_autofree char *path = nd_format("%s/" CONTAINERS "/%s", container->sandbox->id, container->id);

        return nd_error_wrap(nd_dir_open(store->pods_fd, path, ret), "records of container %s", container->id);
}

struct nd_error *cri_record_save_sandbox(struct cri_record_store *store, const struct cri_sandbox *sandbox,
                                         enum cri_record_how how) {
        nd_autoclose int fd = -EBADF;
        nd_autotext struct nd_text text = {};

        nd_try(cri_record_format_sandbox(sandbox, sandbox->this_boot ? store->boot_id : "earlier", &text));
        nd_try(open_sandbox(store, sandbox->id, &fd));
        return nd_error_wrap(write_record(store, fd, SANDBOX_JSON, nd_text_get(&text), text.length, how), "pod sandbox %s",
                             sandbox->id);
}

static struct nd_error *sync_file(int dir_fd, const char *name) {
        nd_autoclose int fd = nd_sys->openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);

        if (fd < 0 || nd_sys->fsync(fd) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "sync '%s'", name);
        return nullptr;
}

struct nd_error *cri_record_sync_sandbox(struct cri_record_store *store, const struct cri_sandbox *sandbox) {
        nd_autoclose int fd = -EBADF;

        nd_try(open_sandbox(store, sandbox->id, &fd));
        nd_try(sync_file(fd, SANDBOX_REQUEST));
        nd_try(sync_file(fd, SANDBOX_JSON));
        nd_try(nd_dir_sync(fd, sandbox->id));
        return nd_dir_sync(store->pods_fd, "pods");
}

struct nd_error *cri_record_save_container(struct cri_record_store *store, const struct cri_container *container,
                                           enum cri_record_how how) {
        nd_autoclose int fd = -EBADF;
        nd_autotext struct nd_text text = {};

        nd_try(cri_record_format_container(container, &text));
        nd_try(open_container(store, container, &fd));
        return nd_error_wrap(write_record(store, fd, CONTAINER_JSON, nd_text_get(&text), text.length, how), "container %s",
                             container->id);
}

/* The container's directory is newer than the last sync of the sandbox; so are the directory of
 * all containers and, perhaps, the sandbox's own. */
struct nd_error *cri_record_sync_container(struct cri_record_store *store, const struct cri_container *container) {
        nd_autofree char *parent = nd_format("%s/" CONTAINERS, container->sandbox->id);
        nd_autoclose int fd = -EBADF, parent_fd = -EBADF, sandbox_fd = -EBADF;

        nd_try(open_container(store, container, &fd));
        nd_try(nd_dir_open(store->pods_fd, parent, &parent_fd));
        nd_try(open_sandbox(store, container->sandbox->id, &sandbox_fd));
        if (!container->internal)
                nd_try(sync_file(fd, CONTAINER_REQUEST));
        nd_try(sync_file(fd, CONTAINER_JSON));
        nd_try(nd_dir_sync(fd, container->id));
        nd_try(nd_dir_sync(parent_fd, parent));
        return nd_dir_sync(sandbox_fd, container->sandbox->id);
}

struct nd_error *cri_record_new_sandbox(struct cri_record_store *store, const struct cri_sandbox *sandbox, const char *bytes,
                                        size_t length) {
        nd_autoclose int fd = -EBADF;

        nd_try(in_store(store, cri_path_make_of_pod(store->pods_fd, sandbox->id, &sandbox->request)));
        nd_try(open_sandbox(store, sandbox->id, &fd));
        nd_try(in_store(store, nd_dir_make(fd, CONTAINERS, CROSSED)));
        nd_try(write_record(store, fd, SANDBOX_REQUEST, bytes, length, RECORD_NOSYNC));
        return cri_record_save_sandbox(store, sandbox, RECORD_NOSYNC);
}

struct nd_error *cri_record_new_container(struct cri_record_store *store, const struct cri_container *container,
                                          const char *bytes, size_t length) {
        nd_autofree char *path = nd_format("%s/" CONTAINERS "/%s", container->sandbox->id, container->id);
        nd_autoclose int fd = -EBADF;

        nd_try(in_store(store, nd_dir_make(store->pods_fd, path, CROSSED)));
        nd_try(open_container(store, container, &fd));
        if (bytes)
                nd_try(write_record(store, fd, CONTAINER_REQUEST, bytes, length, RECORD_NOSYNC));
        return cri_record_save_container(store, container, RECORD_NOSYNC);
}

/* ---- removing ---- */

static struct nd_error *remove_directory(int dir_fd, const char *name) {
        if (nd_sys->unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
                return nd_error_new(nd_error_code_of(errno), errno, "remove directory '%s'", name);
        return nullptr;
}

/* Removes the .json first, then temporary files of a killed writer and the request. */
static struct nd_error *remove_files(int fd, const char *json, const char *request) {
        nd_cleanup(nd_strings_done) struct nd_strings files = {};

        nd_try(nd_file_unlink(fd, json));
        nd_try(nd_file_unlink(fd, request));
        nd_try(nd_dir_list_files(fd, ".", DIRECTORIES_MOST, &files));
        nd_vector_each (file, &files) {
                if (nd_has_prefix(*file, ND_FILE_TEMPORARY))
                        nd_try(nd_file_unlink(fd, *file));
        }
        return nullptr;
}

static bool is_absent(const struct nd_error *error) {
        return nd_error_code(error) == ND_NOT_FOUND;
}

static struct nd_error *remove_container(int containers_fd, const char *id) {
        nd_autoerror struct nd_error *error = nullptr;
        nd_autoclose int fd = -EBADF;

        error = nd_dir_open(containers_fd, id, &fd);
        if (error)
                return is_absent(error) ? nullptr : nd_take_ptr(error);
        nd_try(remove_files(fd, CONTAINER_JSON, CONTAINER_REQUEST));
        return remove_directory(containers_fd, id);
}

static struct nd_error *remove_sandbox(int pods_fd, const char *id) {
        nd_autoerror struct nd_error *error = nullptr;
        nd_autoclose int fd = -EBADF;

        error = nd_dir_open(pods_fd, id, &fd);
        if (error)
                return is_absent(error) ? nullptr : nd_take_ptr(error);
        nd_try(remove_files(fd, SANDBOX_JSON, SANDBOX_REQUEST));
        nd_try(remove_directory(fd, CONTAINERS));
        return remove_directory(pods_fd, id);
}

struct nd_error *cri_record_remove_sandbox(struct cri_record_store *store, const struct cri_sandbox *sandbox) {
        return nd_error_wrap(remove_sandbox(store->pods_fd, sandbox->id), "records of pod sandbox %s", sandbox->id);
}

struct nd_error *cri_record_remove_container(struct cri_record_store *store, const struct cri_container *container) {
        nd_autofree char *path = nd_format("%s/" CONTAINERS, container->sandbox->id);
        nd_autoerror struct nd_error *error = nullptr;
        nd_autoclose int fd = -EBADF;

        error = nd_dir_open(store->pods_fd, path, &fd);
        if (error)
                return is_absent(error) ? nullptr : nd_take_ptr(error);
        return nd_error_wrap(remove_container(fd, container->id), "records of container %s", container->id);
}

/* ---- loading ---- */

struct loading {
        struct cri_record_store *store;
        struct cri_pod_table *pods;
        struct nd_strings *problems;
};

static void report(struct loading *loading, const char *kind, const char *id, const char *consequence,
                   const struct nd_error *error) {
        nd_autofree char *problem =
                nd_format("cannot load the records of %s %s, so %s: %s", kind, id, consequence, nd_error_text(error));

        nd_strings_add(loading->problems, problem);
}

static void report_left(struct loading *loading, const char *kind, const char *id, const struct nd_error *error) {
        report(loading, kind, id, "its resources are not cleaned up", error);
}

static void report_removed(struct loading *loading, const char *kind, const char *id, const struct nd_error *error) {
        report(loading, kind, id, "it is removed with all its resources", error);
}

/* True if the contents are invalid and a retry cannot help. A record without its request counts
 * as damaged too. */
static bool is_damage(const struct nd_error *error) {
        enum nd_error_code code = nd_error_code(error);

        return code == ND_INVALID || code == ND_DATA_LOSS || code == ND_NOT_FOUND;
}

static struct nd_error *read_container(int fd, const char *json, size_t json_length, struct cri_container *container) {
        nd_autofree char *request = nullptr, *sandbox_id = nullptr;
        size_t length = 0;

        if (!cri_record_is_internal(json, json_length)) {
                nd_try(nd_file_read(fd, CONTAINER_REQUEST, ND_GRPC_MESSAGE, &request, &length));
                nd_try(nd_error_wrap(cri_request_decode_container(request, length, &sandbox_id, &container->request),
                                     CONTAINER_REQUEST));
        }
        return nd_error_wrap(cri_record_parse_container(json, json_length, container), CONTAINER_JSON);
}

static void container_done(struct cri_container **container) {
        cri_container_free(*container);
}

static void condemn_container(struct cri_container *container) {
        container->state = CONTAINER_NEW;
        container->made = CONTAINER_MADE_DIRECTORY | CONTAINER_MADE_ROOT | CONTAINER_MADE_ENGINE;
        container->pid = 0;
        nd_strset(&container->cgroup, "");
        nd_strset(&container->monitor_cgroup, "");
}

static struct nd_error *load_container(struct loading *loading, struct cri_sandbox *sandbox, int containers_fd,
                                       const char *id) {
        nd_cleanup(container_done) struct cri_container *container = nd_new(struct cri_container);
        nd_autoerror struct nd_error *error = nullptr;
        nd_autofree char *json = nullptr;
        nd_autoclose int fd = -EBADF;
        size_t length = 0;

        nd_try(nd_dir_open(containers_fd, id, &fd));
        error = nd_file_read(fd, CONTAINER_JSON, RECORD_CEILING, &json, &length);
        if (is_absent(error))
                return remove_container(containers_fd, id);
        nd_try(nd_take_ptr(error));
        memcpy(container->id, id, POD_ID + 1);
        container->sandbox = sandbox;
        error = read_container(fd, json, length, container);
        if (error && !is_damage(error))
                return nd_take_ptr(error);
        if (error) {
                report_removed(loading, "container", id, error);
                condemn_container(container);
        }
        cri_pod_table_add_container(loading->pods, nd_take_ptr(container));
        return nullptr;
}

static struct nd_error *load_containers(struct loading *loading, struct cri_sandbox *sandbox, int sandbox_fd) {
        nd_cleanup(nd_strings_done) struct nd_strings ids = {};
        nd_autoclose int fd = -EBADF;

        nd_try(nd_dir_open(sandbox_fd, CONTAINERS, &fd));
        nd_try(nd_dir_list(fd, ".", DIRECTORIES_MOST, &ids));
        nd_vector_each (id, &ids) {
                nd_autoerror struct nd_error *error = nullptr;

                if (!cri_path_is_id(*id))
                        continue;
                error = load_container(loading, sandbox, fd, *id);
                if (error)
                        report_left(loading, "container", *id, error);
        }
        return nullptr;
}

static void sandbox_done(struct cri_sandbox **sandbox) {
        cri_sandbox_free(*sandbox);
}

static struct nd_error *read_sandbox(struct cri_record_store *store, int fd, const char *json, size_t json_length,
                                     struct cri_sandbox *sandbox) {
        nd_autofree char *request = nullptr;
        size_t length = 0;

        nd_try(nd_file_read(fd, SANDBOX_REQUEST, ND_GRPC_MESSAGE, &request, &length));
        nd_try(nd_error_wrap(cri_request_decode_sandbox(request, length, &sandbox->request), SANDBOX_REQUEST));
        return nd_error_wrap(cri_record_parse_sandbox(json, json_length, store->boot_id, sandbox), SANDBOX_JSON);
}

static void condemn_sandbox(struct cri_sandbox *sandbox) {
        cri_sandbox_request_fill(&sandbox->request);
        sandbox->state = SANDBOX_NEW;
        sandbox->made = SANDBOX_MADE_NAMESPACES | SANDBOX_MADE_FILES | SANDBOX_MADE_NETWORK | SANDBOX_MADE_INIT;
        sandbox->this_boot = true;
}

static struct nd_error *load_sandbox(struct loading *loading, const char *id) {
        nd_cleanup(sandbox_done) struct cri_sandbox *sandbox = nd_new(struct cri_sandbox);
        struct cri_sandbox *loaded;
        nd_autoerror struct nd_error *error = nullptr;
        nd_autofree char *json = nullptr;
        nd_autoclose int fd = -EBADF;
        size_t length = 0;

        nd_try(nd_dir_open(loading->store->pods_fd, id, &fd));
        error = nd_file_read(fd, SANDBOX_JSON, RECORD_CEILING, &json, &length);
        if (is_absent(error))
                return remove_sandbox(loading->store->pods_fd, id);
        nd_try(nd_take_ptr(error));
        memcpy(sandbox->id, id, POD_ID + 1);
        error = read_sandbox(loading->store, fd, json, length, sandbox);
        if (error && !is_damage(error))
                return nd_take_ptr(error);
        if (error) {
                report_removed(loading, "pod sandbox", id, error);
                condemn_sandbox(sandbox);
        }
        loaded = nd_take_ptr(sandbox);
        cri_pod_table_add_sandbox(loading->pods, loaded);
        return load_containers(loading, loaded, fd);
}

struct nd_error *cri_record_load(struct cri_record_store *store, struct cri_pod_table *pods, struct nd_strings *problems) {
        struct loading loading = {.store = store, .pods = pods, .problems = problems};
        nd_cleanup(nd_strings_done) struct nd_strings ids = {};

        nd_try(nd_dir_list(store->pods_fd, ".", DIRECTORIES_MOST, &ids));
        nd_vector_each (id, &ids) {
                nd_autoerror struct nd_error *error = nullptr;

                if (!cri_path_is_id(*id))
                        continue;
                error = load_sandbox(&loading, *id);
                if (error)
                        report_left(&loading, "pod sandbox", *id, error);
        }
        return nullptr;
}
