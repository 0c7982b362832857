/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - see verify.h
 *
 * Theory of operation
 *   A started container's ID is queued. When the loop is idle, a worker checks the first one, with
 *   a deadline; there is one worker at a time.
 *   By then the container's program runs and may have changed its root, its mounts and its mount
 *   table: it can make each of them large, or slow to read. So the loop reads nothing of the
 *   container itself; it takes the result from memory shared with the worker. The owner of an
 *   image's file was read when the root filesystem was built: /proc/<pid>/root is any root that the
 *   process has chosen, a FUSE filesystem under an overlay for example, whose server can block the
 *   reader forever (not even SIGKILL ends that wait). The start time of <pid>, before and after,
 *   shows whether it is still the container's process.
 * Owns       the queue, the worker and the memory shared with it. */
#include "cri/pod/verify.h"

#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/json-member.h"
#include "base/log.h"
#include "cri/core/record.h"
#include "sys/cgroup.h"
#include "sys/file.h"
#include "sys/worker.h"

enum {
        PROC_CEILING = 4 << 20,
        CHECKS_CEILING = 256 << 10,
        CHECKS_MOST = 1000,
        REPORTED_MOST = 16, /* failed checks logged per container */
};

static constexpr uint64_t check_deadline_us = 5 * ND_SECOND_US;

/* The container being checked. The worker has a copy of our memory; only the result is shared. */
struct look {
        /* for the worker; the loop looks it up again by ID */
        const struct cri_container *container;
        char id[POD_ID + 1];
        uint64_t birth;
        /* shared memory of VERDICT_CEILING bytes; nullptr = no check is running */
        char *checks_json;
};

struct cri_verify {
        sd_event *loop;
        const struct cri_pod_table *pods;
        struct cri_record_store *records;
        sd_event_source *idle;
        struct nd_strings waiting; /* IDs of containers */
        struct look check_job;
        struct nd_worker *worker; /* nullptr = not running */
};

void cri_verify_checks_done(struct cri_verify_checks *checks) {
        nd_vector_each (check, checks) {
                free(check->name);
                free(check->text);
        }
        nd_vector_done(checks);
}

static void add(struct cri_verify_checks *checks, char *name, enum cri_verify_result result, char *text) {
        nd_vector_push(checks, ((struct cri_verify_check) {.name = name, .result = result, .text = text}));
}

/* ---- checks ---- */

void cri_verify_map(const char *name, const char *map_text, const struct nd_userns_map *wanted,
                    struct cri_verify_checks *ret) {
        nd_cleanup(nd_userns_maps_done) struct nd_userns_maps maps = {};
        nd_autoerror struct nd_error *error = nd_userns_maps_parse(map_text, &maps);
        const struct nd_userns_map *found = maps.count == 1 ? maps.items : nullptr;
        bool same =
                found && found->inside == wanted->inside && found->outside == wanted->outside && found->count == wanted->count;

        if (error)
                add(ret, nd_strdup(name), VERIFY_FAILED, nd_strdup(nd_error_text(error)));
        else if (!found)
                add(ret, nd_strdup(name), VERIFY_FAILED, nd_format("%zu lines in the map", maps.count));
        else
                add(ret, nd_strdup(name), same ? VERIFY_PASSED : VERIFY_FAILED,
                    nd_format("%u to %u are %u to %u on the host", found->inside, found->inside + found->count - 1,
                              found->outside, found->outside + found->count - 1));
}

void cri_verify_cgroup(const char *cgroup_text, const char *parent, struct cri_verify_checks *ret) {
        nd_autofree char *path = nd_cgroup_path_of(cgroup_text);
        bool below;

        if (!path || !parent[0])
                return;
        below = nd_has_prefix(path, parent) && path[strlen(parent)] == '/';
        add(ret, nd_strdup("cgroup"), below ? VERIFY_PASSED : VERIFY_FAILED, nd_strdup(path));
}

/* Returns the n-th word of a line; *ret_length is 0 if there are fewer. */
static const char *word(const char *line, size_t length, size_t n, size_t *ret_length) {
        const char *end = line + length, *at = line;

        for (; n > 0 && at < end; n--) {
                at = memchr(at, ' ', (size_t) (end - at));
                at = at ? at + 1 : end;
        }
        *ret_length = 0;
        if (at < end) {
                const char *blank = memchr(at, ' ', (size_t) (end - at));

                *ret_length = (size_t) ((blank ?: end) - at);
        }
        return at;
}

static bool has_option(const char *options, size_t length, const char *option) {
        size_t wanted = strlen(option);

        for (const char *at = options, *end = options + length; at < end;) {
                const char *comma = memchr(at, ',', (size_t) (end - at));
                size_t this = (size_t) ((comma ?: end) - at);

                if (this == wanted && memcmp(at, option, wanted) == 0)
                        return true;
                at += this + 1;
        }
        return false;
}

/* The line of the last mount at a path, or nullptr. Paths are compared in the form of /proc, with
 * blanks and the like escaped. */
static const char *line_at(const char *mountinfo, const char *path, size_t *ret_length) {
        const char *found = nullptr;

        for (const char *line = mountinfo; *line;) {
                size_t length = strcspn(line, "\n"), at_length = 0;
                const char *at = word(line, length, 4, &at_length);

                if (at_length == strlen(path) && memcmp(at, path, at_length) == 0) {
                        found = line;
                        *ret_length = length;
                }
                line += length + (line[length] == '\n');
        }
        return found;
}

static char *escaped(const char *path) {
        nd_autotext struct nd_text text = ND_TEXT(4 * 4096);
        size_t length = strlen(path);

        for (; length > 1 && path[length - 1] == '/';)
                length--;
        for (size_t i = 0; i < length; i++)
                if (strchr(" \t\n\\", path[i]))
                        nd_text_addf(&text, "\\%03o", (unsigned char) path[i]);
                else
                        nd_text_append(&text, path + i, 1);
        return nd_text_steal(&text);
}

/* Whether a line of the mount table is that of a filesystem of nodens-bridge. */
static bool is_bridge(const char *line, size_t length) {
        static const char type[] = " - fuse.nodens-bridge ";

        return memmem(line, length, type, strlen(type));
}

static const char *found_mapping(bool mapped, bool bridged) {
        return bridged ? "bridged" : mapped ? "idmapped" : "not idmapped";
}

static bool is_mapped_as(const struct cri_mount_request *mount, enum cri_mapping how, bool mapped, bool bridged) {
        if (how == MAPPING_BRIDGED)
                return bridged;
        return !mount->idmapped || mapped || how == MAPPING_CHOWNED;
}

static void verify_mount(const char *mountinfo, const struct cri_mount_request *mount, enum cri_mapping how,
                         struct cri_verify_checks *ret) {
        nd_autofree char *path = escaped(mount->container_path);
        size_t length = 0, options_length = 0;
        const char *line = line_at(mountinfo, path ?: "", &length);
        const char *options = line ? word(line, length, 5, &options_length) : "";
        bool mapped = has_option(options, options_length, "idmapped"), read_only = has_option(options, options_length, "ro"),
             bridged = line && is_bridge(line, length);

        if (!line) {
                add(ret, nd_format("mount %s", mount->container_path), VERIFY_FAILED, nd_strdup("missing"));
                return;
        }
        add(ret, nd_format("mount %s", mount->container_path),
            !is_mapped_as(mount, how, mapped, bridged) || (mount->read_only && !read_only) ? VERIFY_FAILED : VERIFY_PASSED,
            nd_format("%s, %s", found_mapping(mapped, bridged), read_only ? "read-only" : "writable"));
}

void cri_verify_mounts(const char *mountinfo, const struct cri_container *container, struct cri_verify_checks *ret) {
        for (size_t i = 0; i < container->request.mounts.count; i++) {
                const struct cri_mount_request *mount = &container->request.mounts.items[i];

                if (ret->count < CHECKS_MOST && !mount->image[0])
                        verify_mount(mountinfo, mount, cri_container_mapping(container, i).how, ret);
        }
}

static void verify_owner(const struct cri_container *container, struct cri_verify_checks *ret) {
        const struct nd_userns_map *uids = &container->sandbox->request.uids;
        uid_t owner = container->image_owner;

        if (container->image_file)
                add(ret, nd_strdup("image's files"),
                    owner >= uids->outside && owner - uids->outside < uids->count ? VERIFY_PASSED : VERIFY_FAILED,
                    nd_format("/%s belongs to %u on the host", container->image_file, owner));
}

/* ---- one container ---- */

static char *read_proc(pid_t pid, const char *name) {
        nd_autofree char *path = nd_format("/proc/%d/%s", (int) pid, name);
        char *text = nullptr;

        nd_ignore(nd_file_read_kernel(path, PROC_CEILING, &text));
        return text;
}

/* Start time in clock ticks: field 22 of stat, counted from the end of the program's name. */
static uint64_t birth_of(pid_t pid) {
        nd_autofree char *stat = read_proc(pid, "stat");
        const char *end = stat ? strrchr(stat, ')') : nullptr;
        nd_autofree char *text = nullptr;
        uint64_t birth = 0;
        size_t length = 0;

        if (!end)
                return 0;
        end = word(end, strlen(end), 20, &length);
        text = nd_strndup(end, length);
        return nd_text_parse_u64(text, UINT64_MAX, &birth) < 0 ? 0 : birth;
}

static void verify_container(const struct cri_container *container, struct cri_verify_checks *ret) {
        const struct cri_sandbox_request *pod = &container->sandbox->request;
        nd_autofree char *uids = read_proc(container->pid, "uid_map"), *gids = read_proc(container->pid, "gid_map"),
                         *cgroup = read_proc(container->pid, "cgroup"), *mounts = read_proc(container->pid, "mountinfo");

        if (uids && gids && pod->user_namespace) {
                cri_verify_map("user IDs", uids, &pod->uids, ret);
                cri_verify_map("group IDs", gids, &pod->gids, ret);
                verify_owner(container, ret);
        }
        if (cgroup)
                cri_verify_cgroup(cgroup, pod->cgroup_parent, ret);
        if (mounts && *mounts)
                cri_verify_mounts(mounts, container, ret);
        else if (container->request.mounts.count > 0)
                add(ret, nd_strdup("mounts"), VERIFY_UNKNOWN, nd_strdup("the mount table is gone or longer than 4 MiB"));
}

/* In the worker. A result that does not fit is dropped as a whole. */
static struct nd_error *look_work(void *argument, [[maybe_unused]] int *ret_fd) {
        const struct look *check_job = argument;
        const struct cri_container *container = check_job->container;
        nd_cleanup(cri_verify_checks_done) struct cri_verify_checks checks = {};
        nd_autofree char *checks_json = nullptr;

        if (birth_of(container->pid) == check_job->birth)
                verify_container(container, &checks);
        if (birth_of(container->pid) != check_job->birth) {
                cri_verify_checks_done(&checks);
                add(&checks, nd_strdup("process"), VERIFY_UNKNOWN, nd_strdup("the process exited before it could be checked"));
        }
        checks_json = cri_verify_format(&checks);
        if (strlen(checks_json) < CHECKS_CEILING)
                memcpy(check_job->checks_json, checks_json, strlen(checks_json) + 1);
        return nullptr;
}

static void look_done(struct look *check_job) {
        if (check_job->checks_json)
                (void) munmap(check_job->checks_json, CHECKS_CEILING);
        *check_job = (struct look) {};
}

static void report(const struct cri_container *container, const struct cri_verify_checks *checks) {
        size_t failed = 0;

        nd_vector_each (check, checks) {
                if (check->result == VERIFY_FAILED && failed++ < REPORTED_MOST)
                        nd_log(ND_LOG_WARNING, "a check of a started container failed",
                               nd_field("pod", container->sandbox->request.name),
                               nd_field("namespace", container->sandbox->request.namespace),
                               nd_field("name", container->request.name), nd_field("container", container->id),
                               nd_field("check", check->name), nd_field("found", check->text));
        }
        if (failed > REPORTED_MOST) {
                nd_autofree char *more = nd_format("%zu", failed - REPORTED_MOST);

                nd_log(ND_LOG_WARNING, "more checks of a started container failed than are logged",
                       nd_field("container", container->id), nd_field("more", more));
        }
}

/* Stores the worker's result, or the error if it did not complete. */
static void take_verdict(const struct cri_verify *verify, const struct nd_error *error) {
        const struct look *check_job = &verify->check_job;
        struct cri_container *container = nd_map_get(&verify->pods->containers, check_job->id);
        nd_cleanup(cri_verify_checks_done) struct cri_verify_checks checks = {};

        if (!container || container->state == CONTAINER_REMOVED || container->pid_birth != check_job->birth)
                return;
        if (error)
                add(&checks, nd_strdup("process"), VERIFY_UNKNOWN, nd_strdup(nd_error_text(error)));
        else
                cri_verify_parse(check_job->checks_json, &checks);
        report(container, &checks);
        free(container->checks_json);
        container->checks_json = cri_verify_format(&checks);
        /* For information only: if this fails, the next save of the container includes it. */
        nd_ignore(cri_record_save_container(verify->records, container, RECORD_NOSYNC));
}

/* ---- queue ---- */

static void go_on(struct cri_verify *verify) {
        bool wanted = verify->waiting.count > 0 && !verify->worker;

        (void) sd_event_source_set_enabled(verify->idle, wanted ? SD_EVENT_ON : SD_EVENT_OFF);
}

static void on_looked(struct nd_error *error, [[maybe_unused]] int fd, void *userdata) {
        struct cri_verify *verify = userdata;
        nd_autoerror struct nd_error *failure = error;

        verify->worker = nullptr;
        take_verdict(verify, failure);
        look_done(&verify->check_job);
        go_on(verify);
}

static struct nd_error *start_look(struct cri_verify *verify, const struct cri_container *container) {
        struct look *check_job = &verify->check_job;

        *check_job = (struct look) {.container = container, .birth = container->pid_birth};
        memcpy(check_job->id, container->id, sizeof check_job->id);
        check_job->checks_json = mmap(nullptr, CHECKS_CEILING, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (check_job->checks_json == MAP_FAILED) {
                check_job->checks_json = nullptr;
                return nd_error_new(ND_EXHAUSTED, errno, "allocate memory shared with a worker");
        }
        return nd_worker_start(verify->loop, "check a started container", look_work, check_job, check_deadline_us, on_looked,
                               verify, &verify->worker);
}

static void look_at(struct cri_verify *verify, const char *id) {
        const struct cri_container *container = nd_map_get(&verify->pods->containers, id);
        nd_autoerror struct nd_error *error = nullptr;

        if (!container || container->state == CONTAINER_REMOVED || container->pid <= 0)
                return;
        error = start_look(verify, container);
        if (!error)
                return;
        take_verdict(verify, error);
        look_done(&verify->check_job);
}

static int on_idle([[maybe_unused]] sd_event_source *source, void *userdata) {
        struct cri_verify *verify = userdata;
        nd_autofree char *id = nullptr;

        if (verify->waiting.count > 0 && !verify->worker) {
                id = verify->waiting.items[0];
                memmove(verify->waiting.items, verify->waiting.items + 1, --verify->waiting.count * sizeof(char *));
                look_at(verify, id);
        }
        go_on(verify);
        return 0;
}

void cri_verify_later(struct cri_verify *verify, const struct cri_container *container) {
        /* a container is started once, so it is queued once */
        nd_strings_add(&verify->waiting, container->id);
        go_on(verify);
}

struct nd_error *cri_verify_new(sd_event *loop, const struct cri_pod_table *pods, struct cri_record_store *records,
                                struct cri_verify **ret) {
        struct cri_verify *verify = nd_new(struct cri_verify);
        int r;

        *verify = (struct cri_verify) {.loop = loop, .pods = pods, .records = records};
        r = sd_event_add_defer(loop, &verify->idle, on_idle, verify);
        if (r < 0) {
                free(verify);
                return nd_error_new(ND_INTERNAL, -r, "create the event source for started containers");
        }
        (void) sd_event_source_set_priority(verify->idle, SD_EVENT_PRIORITY_IDLE);
        (void) sd_event_source_set_enabled(verify->idle, SD_EVENT_OFF);
        *ret = verify;
        return nullptr;
}

void cri_verify_free(struct cri_verify *verify) {
        if (!verify)
                return;
        nd_worker_cancel(verify->worker);
        sd_event_source_disable_unref(verify->idle);
        look_done(&verify->check_job);
        nd_strings_done(&verify->waiting);
        free(verify);
}

/* ---- serialization ---- */

static const char *const results[] = {[VERIFY_PASSED] = "passed", [VERIFY_FAILED] = "failed", [VERIFY_UNKNOWN] = "unknown"};
static_assert(nd_count_of(results) == VERIFY_UNKNOWN + 1);

char *cri_verify_format(const struct cri_verify_checks *checks) {
        nd_autotext struct nd_text text = ND_TEXT(CHECKS_CEILING);
        struct nd_json_out out = {.text = &text};

        nd_json_open(&out, nullptr, '[');
        nd_vector_each (check, checks) {
                nd_json_open(&out, nullptr, '{');
                nd_json_string(&out, "check", check->name);
                nd_json_string(&out, "result", results[check->result]);
                nd_json_string(&out, "found", check->text);
                nd_json_close(&out, '}');
        }
        nd_json_close(&out, ']');
        return text.overflow ? nd_strdup("") : nd_text_steal(&text);
}

static struct nd_error *parse_check(yyjson_val *object, struct cri_verify_checks *ret) {
        const char *name = nullptr, *result = nullptr, *found = nullptr;

        if (!yyjson_is_obj(object))
                return nd_error_new(ND_INVALID, 0, "invalid check: not a JSON object");
        nd_try(nd_json_member_text(object, "check", CHECKS_CEILING, &name));
        nd_try(nd_json_member_text(object, "result", CHECKS_CEILING, &result));
        nd_try(nd_json_member_text(object, "found", CHECKS_CEILING, &found));
        for (enum cri_verify_result i = 0; result && i < nd_count_of(results); i++)
                if (nd_streq(result, results[i]))
                        add(ret, nd_strdup(name ?: ""), i, nd_strdup(found ?: ""));
        return nullptr;
}

void cri_verify_parse(const char *checks_json, struct cri_verify_checks *ret) {
        nd_autojson yyjson_doc *doc = nullptr;
        nd_autoerror struct nd_error *error = nd_json_parse(checks_json, strlen(checks_json), CHECKS_CEILING, &doc);
        yyjson_arr_iter checks;
        yyjson_val *check;

        if (error)
                return;
        checks = yyjson_arr_iter_with(yyjson_doc_get_root(doc));
        while (!error && (check = yyjson_arr_iter_next(&checks)))
                error = parse_check(check, ret);
}
