/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/core/node.h"

#include <ctype.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "base/clock.h"
#include "base/json.h"
#include "net/unix.h"
#include "sys/child.h"
#include "sys/file.h"
#include "sys/process.h"

#define RECORD "node.json"

enum {
        NAME_CEILING = 48, /* sun_path has 108 bytes */
        COMPONENT_FILES_CEILING = 256,
};

static constexpr uint64_t connect_timeout_us = 5 * ND_SECOND_US;

void rootless_node_done(struct rootless_node *node) {
        free(node->name);
        free(node->path);
        nd_close_fd(&node->fd);
        nd_close_fd(&node->lock_fd);
        *node = NODE_NONE;
}

void rootless_node_record_done(struct rootless_node_record *record) {
        free(record->boot);
        free(record->net);
        free(record->data);
        free(record->cgroup);
        *record = (struct rootless_node_record) {};
}

bool rootless_node_name_valid(const char *name) {
        size_t length = strlen(name);

        if (length == 0 || length > NAME_CEILING || !isalnum((unsigned char) name[0]) ||
            !isalnum((unsigned char) name[length - 1]))
                return false;
        for (const char *c = name; *c; c++)
                if (!isdigit((unsigned char) *c) && !(*c >= 'a' && *c <= 'z') && *c != '-')
                        return false;
        return true;
}

struct nd_error *rootless_node_open_own(int dir_fd, const char *path, bool make, int *ret_fd) {
        nd_autoclose int fd = -EBADF;
        struct stat st;

        if (make)
                nd_try(nd_dir_make(dir_fd, path, 0700));
        nd_try(nd_dir_open(dir_fd, path, &fd));
        if (fstat(fd, &st) < 0)
                return nd_error_new(ND_INTERNAL, errno, "stat '%s'", path);
        if (st.st_uid != geteuid() || (st.st_mode & 077) != 0)
                return nd_error_new(ND_DENIED, 0, "'%s' must be owned by user %u and not accessible to others (chmod 0700)",
                                    path, geteuid());
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

char *rootless_node_runtime_dir(void) {
        const char *given = getenv("XDG_RUNTIME_DIR");

        if (given && given[0] == '/')
                return nd_format("%s/nodens", given);
        return nd_format("/tmp/nodens-%u", geteuid());
}

struct nd_error *rootless_node_open(const char *name, bool make, struct rootless_node *ret) {
        nd_cleanup(rootless_node_done) struct rootless_node node = NODE_NONE;
        nd_autofree char *top = rootless_node_runtime_dir();
        nd_autoclose int top_fd = -EBADF, api_fd = -EBADF;
        struct nd_error *error;

        if (!rootless_node_name_valid(name))
                return nd_error_new(ND_INVALID, 0,
                                    "invalid node name '%s': use lowercase letters, digits and '-', at most %d characters",
                                    name, NAME_CEILING);
        error = rootless_node_open_own(AT_FDCWD, top, make, &top_fd);
        if (!error)
                error = rootless_node_open_own(top_fd, name, make, &node.fd);
        if (error && nd_error_errno(error) == ENOENT && !make) {
                nd_error_free(error);
                return nd_error_new(ND_NOT_FOUND, 0, "node '%s' is not running; 'nodens-rootless up --name %s' starts it",
                                    name, name);
        }
        nd_try(nd_error_wrap(error, "directory of node '%s' in %s", name, top));
        if (make)
                nd_try(rootless_node_open_own(node.fd, "api", true, &api_fd));
        node.name = nd_strdup(name);
        node.path = nd_format("%s/%s", top, name);
        *ret = nd_take(node, NODE_NONE);
        return nullptr;
}

struct nd_error *rootless_node_lock(struct rootless_node *node) {
        nd_autoclose int fd = nd_sys->openat(node->fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open '%s/lock'", node->path);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return nd_error_new(errno == EWOULDBLOCK ? ND_EXISTS : ND_INTERNAL, errno,
                                    "another process is starting or stopping node '%s', or runs it in the foreground",
                                    node->name);
        node->lock_fd = nd_take_fd(fd);
        return nullptr;
}

struct nd_error *rootless_node_lock_service(const struct rootless_node *node, const char *file, int *ret_fd) {
        nd_autoclose int fd = nd_sys->openat(node->fd, file, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open '%s/%s'", node->path, file);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return nd_error_new(ND_EXISTS, errno, "another process already serves node '%s' ('%s/%s' is locked)",
                                    node->name, node->path, file);
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

/* ---- the record ---- */

static char *text_of(yyjson_val *object, const char *key) {
        const char *value = yyjson_get_str(yyjson_obj_get(object, key));

        return value && strlen(value) == yyjson_get_len(yyjson_obj_get(object, key)) ? nd_strdup(value) : nullptr;
}

struct nd_error *rootless_node_record_parse(const char *text, size_t length, struct rootless_node_record *ret) {
        nd_cleanup(rootless_node_record_done) struct rootless_node_record record = {};
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *top;
        uint64_t pid, mtu;

        nd_try(nd_json_parse(text, length, NODE_RECORD_BYTES, &doc));
        top = yyjson_doc_get_root(doc);
        pid = yyjson_get_uint(yyjson_obj_get(top, "pid"));
        mtu = yyjson_get_uint(yyjson_obj_get(top, "mtu"));
        record.started = yyjson_get_uint(yyjson_obj_get(top, "started"));
        record.ids = yyjson_get_uint(yyjson_obj_get(top, "ids"));
        record.boot = text_of(top, "boot");
        record.net = text_of(top, "net");
        record.data = text_of(top, "data");
        record.cgroup = text_of(top, "cgroup");
        if (pid < 2 || pid > INT32_MAX || record.started == 0 || mtu > 65535 || !record.boot || !record.net)
                return nd_error_new(ND_INVALID, 0, "invalid node record");
        record.pid = (pid_t) pid;
        record.mtu = (uint32_t) mtu;
        *ret = nd_take(record, (struct rootless_node_record) {});
        return nullptr;
}

char *rootless_node_record_format(const struct rootless_node_record *record) {
        nd_autotext struct nd_text text = ND_TEXT(NODE_RECORD_BYTES);
        struct nd_json_out out = {.text = &text, .indent = 1};

        nd_json_open(&out, nullptr, '{');
        nd_json_number(&out, "pid", (uint64_t) record->pid);
        nd_json_number(&out, "started", record->started);
        nd_json_string(&out, "boot", record->boot);
        nd_json_string(&out, "net", record->net);
        nd_json_number(&out, "mtu", record->mtu);
        nd_json_number(&out, "ids", record->ids);
        nd_json_string(&out, "data", record->data);
        nd_json_string(&out, "cgroup", record->cgroup);
        nd_json_close(&out, '}');
        nd_text_add(&text, "\n");
        return nd_text_steal(&text);
}

struct nd_error *rootless_node_record_save(const struct rootless_node *node, const struct rootless_node_record *record) {
        nd_autofree char *text = rootless_node_record_format(record), *pid = nd_format("%d", (int) record->pid);

        nd_try(nd_file_replace(node->fd, "api/child_pid", pid, strlen(pid), 0600));
        return nd_file_replace(node->fd, RECORD, text, strlen(text), 0600);
}

/* ---- processes ---- */

struct nd_error *rootless_process_open(pid_t pid, uint64_t started, int *ret_pidfd) {
        nd_autoclose int pidfd = pidfd_open(pid, 0);
        uint64_t now = 0;

        if (pidfd < 0)
                return nd_error_new(ND_NOT_FOUND, errno, "process %d", (int) pid);
        /* The PID may have been reused: open the descriptor first, then compare the start time. */
        nd_try(nd_error_recode(nd_process_start_time(pid, &now), ND_NOT_FOUND));
        if (now != started)
                return nd_error_new(ND_NOT_FOUND, ESRCH, "PID %d was reused by another process", (int) pid);
        *ret_pidfd = nd_take_fd(pidfd);
        return nullptr;
}

static struct nd_error *load(const struct rootless_node *node, struct rootless_node_record *ret) {
        nd_autofree char *text = nullptr;
        size_t length;

        nd_try(nd_file_read(node->fd, RECORD, NODE_RECORD_BYTES, &text, &length));
        return nd_error_wrap(rootless_node_record_parse(text, length, ret), "%s/" RECORD, node->path);
}

struct nd_error *rootless_node_open_init(const struct rootless_node *node, struct rootless_node_record *ret, int *ret_pidfd) {
        nd_cleanup(rootless_node_record_done) struct rootless_node_record record = {};
        nd_autoerror struct nd_error *error = load(node, &record);
        nd_autofree char *boot = nullptr;
        nd_autoclose int pidfd = -EBADF;

        if (!error)
                error = nd_file_read_kernel("/proc/sys/kernel/random/boot_id", 64, &boot);
        if (!error) {
                boot[strcspn(boot, "\n")] = '\0';
                if (!nd_streq(boot, record.boot))
                        error = nd_error_new(ND_NOT_FOUND, ESRCH, "its record is from an earlier boot");
        }
        if (!error)
                error = rootless_process_open(record.pid, record.started, &pidfd);
        if (error)
                return nd_error_new(ND_NOT_FOUND, 0, "node '%s' is not running (%s); 'nodens-rootless up --name %s' starts it",
                                    node->name, nd_error_text(error), node->name);
        *ret = nd_take(record, (struct rootless_node_record) {});
        *ret_pidfd = nd_take_fd(pidfd);
        return nullptr;
}

struct nd_error *rootless_node_connect(const struct rootless_node *node, int *ret_fd) {
        nd_autofree char *path = nd_format("%s/holder.sock", node->path);
        struct timeval timeout = {.tv_sec = connect_timeout_us / ND_SECOND_US};
        nd_autoclose int fd = -EBADF;
        struct sockaddr_un address;

        nd_try(nd_unix_address(path, &address));
        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        /* Root of the node can stop init from accepting and reading: never wait without a
         * timeout. */
        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) < 0 ||
            connect(fd, (struct sockaddr *) &address, sizeof address) < 0)
                return nd_error_new(ND_UNAVAILABLE, errno, "connect to the init process of node '%s' at '%s'", node->name,
                                    path);
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

static void clear_components(const struct rootless_node *node) {
        nd_cleanup(nd_strings_done) struct nd_strings files = {};
        nd_autoclose int fd = -EBADF;
        nd_autoerror struct nd_error *absent = nd_dir_open(node->fd, "components", &fd);

        if (absent)
                return;
        nd_ignore(nd_dir_list_files(fd, ".", COMPONENT_FILES_CEILING, &files));
        nd_vector_each (file, &files) {
                nd_autofree char *socket = nd_format("%s.sock", *file);

                (void) nd_sys->unlinkat(fd, socket, 0);
                (void) nd_sys->unlinkat(fd, *file, 0);
        }
        (void) nd_sys->unlinkat(node->fd, "components", AT_REMOVEDIR);
}

void rootless_node_clear(const struct rootless_node *node) {
        static const char *const files[] = {
                "api/child_pid",         "api/api.sock", RECORD,       "holder.sock", "helper",           "forward.sock",
                "forward.lock",          "api.lock",     "ports.json", "parts",       "owned-ports.json", "controller.lock",
                "controller.kubeconfig", "overlay.json", "broker",     "broker.lock", "api/broker.sock",  "etcd.sock",
                "etcd-peers:0"};

        for (size_t i = 0; i < nd_count_of(files); i++)
                (void) nd_sys->unlinkat(node->fd, files[i], 0);
        clear_components(node);
}

struct nd_error *rootless_node_remove(const struct rootless_node *node) {
        (void) nd_sys->unlinkat(node->fd, "up.conf", 0); /* stays until then, for the next start */
        if (nd_sys->unlinkat(node->fd, "api", AT_REMOVEDIR) < 0 || nd_sys->unlinkat(node->fd, "lock", 0) < 0 ||
            nd_sys->unlinkat(AT_FDCWD, node->path, AT_REMOVEDIR) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "remove '%s'", node->path);
        return nullptr;
}
