/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/node/bindplan.h"

#include <dirent.h>
#include <limits.h>
#include <linux/major.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/strings.h"
#include "base/text.h"
#include "sys/file.h"
#include "sys/mount.h"

enum {
        ETC_CEILING = 4096,           /* limit of entries read from /etc */
        ETC_FILE_BYTES = 1024 * 1024, /* larger files are not copied */
        BINDS_CEILING = 64,
};

static void bind_done(struct rootless_bind *bind) {
        if (bind->kind == BIND_TEXT && bind->source)
                explicit_bzero(bind->source, strlen(bind->source)); /* it may have credentials */
        free(bind->target);
        free(bind->source);
}

void rootless_bindplan_done(struct rootless_bindplan *plan) {
        nd_vector_each (bind, plan) {
                bind_done(bind);
        }
        nd_vector_done(plan);
}

static struct rootless_bind *add(struct rootless_bindplan *plan, enum rootless_bind_kind kind, const char *target,
                                 const char *source) {
        nd_vector_push(plan,
                       ((struct rootless_bind) {
                               .kind = kind, .target = nd_strdup(target), .source = source ? nd_strdup(source) : nullptr}));
        return &plan->items[plan->count - 1];
}

static void add_tmpfs(struct rootless_bindplan *plan, const char *target, unsigned mode) {
        add(plan, BIND_TMPFS, target, nullptr)->mode = mode;
}

void rootless_bindplan_add_read_only(struct rootless_bindplan *plan, const char *path) {
        struct rootless_bind *bind = add(plan, BIND_TREE, path, path);

        bind->read_only = true;
        bind->optional = true;
}

void rootless_bindplan_add_hosts(struct rootless_bindplan *plan, const char *name, const char *alias) {
        nd_autofree char *text = nd_format("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 %s%s%s\n",
                                           name, alias ? " " : "", alias ? alias : "");

        add(plan, BIND_TEXT, "/etc/hosts", text);
}

void rootless_bindplan_add_text(struct rootless_bindplan *plan, const char *target, const char *text, unsigned mode) {
        add(plan, BIND_TEXT, target, text)->mode = mode;
}

/* A top-level directory of programs: read-only, or a symbolic link where /usr is merged. */
static void add_programs(struct rootless_bindplan *plan, const struct rootless_bindplan_facts *facts, const char *path) {
        nd_autofree char *real = nd_format("%s%s", facts->machine, path);
        char target[PATH_MAX];
        struct stat st;
        ssize_t n;

        if (lstat(real, &st) < 0)
                return;
        if (S_ISDIR(st.st_mode))
                rootless_bindplan_add_read_only(plan, path);
        n = S_ISLNK(st.st_mode) ? readlink(real, target, sizeof target - 1) : -1;
        if (n > 0) {
                target[n] = '\0';
                add(plan, BIND_SYMLINK, path, target);
        }
}

/* ---- /etc ---- */

/* Files that the node writes itself, and configuration of a node on the host: with it, ours would
 * connect to the wrong peers. */
static bool etc_hidden(const char *name) {
        static const char *const hidden[] = {"resolv.conf", "hosts",    "hostname",   "mtab",      "cni",
                                             "containerd",  "crio",     "kubernetes", "nodens",    "docker",
                                             "rancher",     "cni.lock", "ssh",        "credstore", "credstore.encrypted"};

        for (size_t i = 0; i < nd_count_of(hidden); i++)
                if (nd_streq(name, hidden[i]))
                        return true;
        return name[0] == '.';
}

static void add_etc_entry(struct rootless_bindplan *plan, const struct rootless_bindplan_facts *facts, const char *name) {
        nd_autofree char *path = nd_format("/etc/%s", name), *real = nd_format("%s%s", facts->machine, path);
        struct stat st;

        if (lstat(real, &st) < 0)
                return;
        if (S_ISLNK(st.st_mode)) {
                char target[PATH_MAX];
                ssize_t n = readlink(real, target, sizeof target - 1);

                if (n > 0) {
                        target[n] = '\0';
                        add(plan, BIND_SYMLINK, path, target);
                }
        } else if (access(real, R_OK) < 0) {
                /* The user cannot read it (shadow and the like), so the node does not get it. */
                return;
        } else if (S_ISDIR(st.st_mode)) {
                rootless_bindplan_add_read_only(plan, path);
        } else if (S_ISREG(st.st_mode) && st.st_size <= ETC_FILE_BYTES) {
                struct rootless_bind *copy = add(plan, BIND_COPY, path, path);

                copy->optional = true;
                copy->mode = st.st_mode & 0755;
        }
}

static struct nd_error *add_etc(struct rootless_bindplan *plan, const struct rootless_bindplan_facts *facts) {
        nd_autofree char *path = nd_format("%s/etc", facts->machine), *hostname = nullptr;
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        DIR *directory = opendir(path);

        if (!directory)
                return nd_error_new(nd_error_code_of(errno), errno, "list '%s'", path);
        for (struct dirent *entry;
             names.count < ETC_CEILING && (entry = readdir(directory));) /* NOLINT(concurrency-mt-unsafe) */
                if (!etc_hidden(entry->d_name))
                        nd_strings_add(&names, entry->d_name);
        (void) closedir(directory);
        nd_strings_sort(&names);

        add(plan, BIND_DIRECTORY, "/etc", nullptr);
        nd_vector_each (name, &names) {
                add_etc_entry(plan, facts, *name);
        }
        hostname = nd_format("%s\n", facts->name);
        rootless_bindplan_add_hosts(plan, facts->name, nullptr);
        add(plan, BIND_TEXT, "/etc/hostname", hostname);
        add(plan, BIND_TEXT, "/etc/resolv.conf", facts->resolv ? facts->resolv : "");
        add(plan, BIND_SYMLINK, "/etc/mtab", "../proc/self/mounts");
        return nullptr;
}

/* ---- /dev ---- */

static void add_devices(struct rootless_bindplan *plan) {
        static const char *const devices[] = {"/dev/null",    "/dev/zero", "/dev/full",    "/dev/random",
                                              "/dev/urandom", "/dev/tty",  "/dev/net/tun", "/dev/fuse"};
        static const char *const links[][2] = {{"/dev/fd", "/proc/self/fd"},       {"/dev/stdin", "/proc/self/fd/0"},
                                               {"/dev/stdout", "/proc/self/fd/1"}, {"/dev/stderr", "/proc/self/fd/2"},
                                               {"/dev/ptmx", "pts/ptmx"},          {"/dev/core", "/proc/kcore"}};

        add_tmpfs(plan, "/dev", 0755);
        for (size_t i = 0; i < nd_count_of(devices); i++)
                add(plan, BIND_FILE, devices[i], devices[i])->optional = true;
        /* A kubelet reads the kernel log. The node must not read the host's. */
        add(plan, BIND_FILE, "/dev/kmsg", "/dev/null")->optional = true;
        for (size_t i = 0; i < nd_count_of(links); i++)
                add(plan, BIND_SYMLINK, links[i][0], links[i][1]);
        add(plan, BIND_DEVPTS, "/dev/pts", nullptr);
        add_tmpfs(plan, "/dev/shm", 01777);
        add(plan, BIND_MQUEUE, "/dev/mqueue", nullptr);
}

/* ---- the user's --bind options ---- */

/* Returns true when path is the directory or below it. */
static bool within(const char *path, const char *directory) {
        size_t length = strlen(directory);

        return strncmp(path, directory, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

static struct nd_error *refuse(const char *option, const char *path, const char *why) {
        return nd_error_new(ND_DENIED, 0, "%s %s denied: %s", option, path, why);
}

/* Enforces on --bind and --programs the rules that the default plan follows by omission. */
static struct nd_error *check_bind(const struct rootless_bindplan_facts *facts, const char *option, const char *path) {
        static const char *const closed[] = {"/run", "/var/run", "/proc", "/sys", "/dev", "/tmp", "/var/tmp"};
        nd_autofree char *ssh = nd_format("%s/.ssh", facts->home), *gnupg = nd_format("%s/.gnupg", facts->home);

        if (path[0] != '/' || nd_streq(path, "/"))
                return refuse(option, path, "not an absolute path below /; write --bind \"$PWD/...\" for a relative one");
        for (size_t i = 0; i < nd_count_of(closed); i++)
                if (within(path, closed[i]) || within(closed[i], path))
                        return refuse(option, path,
                                      "the node has its own; the host's sockets there would treat the node as the user");
        if (facts->runtime && (within(path, facts->runtime) || within(facts->runtime, path)))
                return refuse(option, path, "sockets in the runtime directory would treat the node as the user");
        if (within(facts->home, path))
                return refuse(option, path, "the whole home directory is not allowed; name a directory in it");
        if (within(path, ssh) || within(path, gnupg))
                return refuse(option, path, "keys and agents are not allowed in the node");
        return nullptr;
}

/* Adds a path of the host, at the same path in the node. */
static struct nd_error *add_path(struct rootless_bindplan *plan, const struct rootless_bindplan_facts *facts,
                                 const char *option, const char *path, bool read_only) {
        nd_autofree char *real = nd_format("%s%s", facts->machine, path), *canonical = nullptr;
        const char *seen;
        struct stat st;
        struct rootless_bind *bind;

        nd_try(check_bind(facts, option, path));
        canonical = realpath(real, nullptr);
        if (!canonical || stat(canonical, &st) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "%s %s", option, path);
        seen = canonical + strlen(facts->machine);
        nd_try(check_bind(facts, option, seen)); /* a symbolic link may resolve to a denied path */
        bind = add(plan, S_ISDIR(st.st_mode) ? BIND_TREE : BIND_FILE, seen, seen);
        bind->read_only = read_only;
        return nullptr;
}

static struct nd_error *add_bind(struct rootless_bindplan *plan, const struct rootless_bindplan_facts *facts,
                                 const char *word) {
        size_t length = strlen(word);
        bool read_only = length > 3 && nd_streq(word + length - 3, ":ro");
        nd_autofree char *path = nd_strndup(word, read_only ? length - 3 : length);

        return add_path(plan, facts, "--bind", path, read_only);
}

/* Directories of programs that are in the node anyway are not mounted again. */
static struct nd_error *add_program_directory(struct rootless_bindplan *plan, const struct rootless_bindplan_facts *facts,
                                              const char *word) {
        if (within(word, "/usr") || within(word, "/opt"))
                return nullptr;
        return add_path(plan, facts, "--programs", word, true);
}

static struct nd_error *add_cdi_directory(struct rootless_bindplan *plan, const struct rootless_bindplan_facts *facts,
                                          const char *word) {
        return add_path(plan, facts, "--cdi", word, true);
}

/* By a terminal or a keyboard, processes in the node could type into a shell of the user; by kmsg
 * they could read the host's log. */
static bool device_denied(dev_t device) {
        static const unsigned denied[] = {TTY_MAJOR, TTYAUX_MAJOR, VCS_MAJOR, INPUT_MAJOR};
        unsigned number = major(device);

        for (size_t i = 0; i < nd_count_of(denied); i++)
                if (number == denied[i])
                        return true;
        return (number >= UNIX98_PTY_MASTER_MAJOR && number < UNIX98_PTY_SLAVE_MAJOR + UNIX98_PTY_MAJOR_COUNT) ||
               device == makedev(MEM_MAJOR, 1) || device == makedev(MEM_MAJOR, 4) || device == makedev(MEM_MAJOR, 11) ||
               device == makedev(MISC_MAJOR, 223); /* mem, port, kmsg; uinput */
}

static struct nd_error *add_device(struct rootless_bindplan *plan, const struct rootless_bindplan_facts *facts,
                                   const char *word) {
        nd_autofree char *path = nd_format("%s%s", facts->machine, word), *canonical = realpath(path, nullptr);
        const char *seen = canonical ? canonical + strlen(facts->machine) : word;
        struct stat st;

        if (!canonical || stat(canonical, &st) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "--devices %s", word);
        if (!S_ISCHR(st.st_mode) || !within(seen, "/dev"))
                return refuse("--devices", word, "not a character device below /dev");
        if (device_denied(st.st_rdev))
                return refuse("--devices", word,
                              "terminals, input devices and memory of the host are not allowed in the node");
        (void) add(plan, BIND_FILE, seen, seen);
        return nullptr;
}

/* Calls a function for each word of a list. */
static struct nd_error *add_list(struct rootless_bindplan *plan, const struct rootless_bindplan_facts *facts, const char *list,
                                 const char *separator,
                                 struct nd_error *(*add_word)(struct rootless_bindplan *plan,
                                                              const struct rootless_bindplan_facts *facts, const char *word)) {
        nd_autofree char *copy = nd_strdup(list ? list : "");
        size_t count = 0;

        for (char *rest = copy, *word; (word = strsep(&rest, separator));) {
                if (!*word)
                        continue;
                if (++count > BINDS_CEILING)
                        return nd_error_new(ND_INVALID, 0, "more than %d paths in --bind, --programs or --devices",
                                            BINDS_CEILING);
                nd_try(add_word(plan, facts, word));
        }
        return nullptr;
}

static struct rootless_bind *find(struct rootless_bindplan *plan, const char *target) {
        nd_vector_each (bind, plan) {
                if (nd_streq(bind->target, target))
                        return bind;
        }
        return nullptr;
}

/* An entry of more takes the place of ours with the same target: a text that of a copy. */
static void add_more(struct rootless_bindplan *plan, const struct rootless_bindplan *more) {
        nd_vector_each (bind, more) {
                struct rootless_bind *copy = find(plan, bind->target);

                if (copy) {
                        bind_done(copy);
                        *copy = (struct rootless_bind) {.kind = bind->kind,
                                                        .target = nd_strdup(bind->target),
                                                        .source = bind->source ? nd_strdup(bind->source) : nullptr};
                } else {
                        copy = add(plan, bind->kind, bind->target, bind->source);
                }

                copy->read_only = bind->read_only;
                copy->optional = bind->optional;
                copy->mode = bind->mode;
        }
}

/* ---- the whole plan ---- */

static void add_var(struct rootless_bindplan *plan, const struct rootless_bindplan_facts *facts) {
        static const char *const kept[] = {"lib", "log", "cache"};

        add(plan, BIND_DIRECTORY, "/var", nullptr);
        for (size_t i = 0; i < nd_count_of(kept); i++) {
                nd_autofree char *target = nd_format("/var/%s", kept[i]), *source = nullptr;

                if (!facts->data) {
                        add(plan, BIND_DIRECTORY, target, nullptr);
                        continue;
                }
                source = nd_format("%s/%s", facts->data, kept[i]);
                (void) add(plan, BIND_TREE, target, source);
        }
        add_tmpfs(plan, "/var/tmp", 01777);
        add(plan, BIND_SYMLINK, "/var/run", "../run");
}

struct nd_error *rootless_bindplan_make(const struct rootless_bindplan_facts *facts, struct rootless_bindplan *ret) {
        static const char *const programs[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt"};
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};

        for (size_t i = 0; i < nd_count_of(programs); i++)
                add_programs(&plan, facts, programs[i]);
        nd_try(add_etc(&plan, facts));
        add_devices(&plan);
        add(&plan, BIND_PROC, "/proc", nullptr);
        if (facts->own_network)
                add(&plan, BIND_SYSFS, "/sys", nullptr);
        else
                rootless_bindplan_add_read_only(&plan, "/sys");
        add(&plan, BIND_CGROUP, "/sys/fs/cgroup", nullptr);
        add_var(&plan, facts);
        add_tmpfs(&plan, "/run", 0755);
        add(&plan, BIND_DIRECTORY, "/run/user/0", nullptr)->mode = 0700;
        add_tmpfs(&plan, "/tmp", 01777);
        add_tmpfs(&plan, "/root", 0700);
        add(&plan, BIND_DIRECTORY, "/home", nullptr);
        add(&plan, BIND_TREE, facts->api, facts->api)->read_only = true;
        nd_try(add_list(&plan, facts, facts->binds, ",", add_bind));
        nd_try(add_list(&plan, facts, facts->programs, ":", add_program_directory));
        nd_try(add_list(&plan, facts, facts->devices, ",", add_device));
        nd_try(add_list(&plan, facts, facts->cdi, "\n", add_cdi_directory));
        if (facts->more)
                add_more(&plan, facts->more);
        *ret = nd_take(plan, (struct rootless_bindplan) {});
        return nullptr;
}

void rootless_bindplan_print(const struct rootless_bindplan *plan, FILE *to) {
        static const char *const kinds[] = {
                [BIND_DIRECTORY] = "directory", [BIND_TMPFS] = "tmpfs",    [BIND_TREE] = "tree",     [BIND_FILE] = "file",
                [BIND_COPY] = "copy",           [BIND_TEXT] = "written",   [BIND_SYMLINK] = "link",  [BIND_PROC] = "proc",
                [BIND_SYSFS] = "sysfs",         [BIND_CGROUP] = "cgroup2", [BIND_DEVPTS] = "devpts", [BIND_MQUEUE] = "mqueue",
        };
        static_assert(nd_count_of(kinds) == BIND_MQUEUE + 1);

        nd_vector_each (bind, plan) {
                bool from = bind->source && bind->kind != BIND_TEXT && !nd_streq(bind->source, bind->target);

                (void) fprintf(to, "%-9s %-2s %s%s%s\n", kinds[bind->kind], bind->read_only ? "ro" : "", bind->target,
                               from ? (bind->kind == BIND_SYMLINK ? " -> " : " from ") : "", from ? bind->source : "");
        }
}

struct nd_error *rootless_bindplan_check_data(const char *path) {
        static const char *const remote[] = {"nfs", "cifs", "9p", "ceph"};
        nd_autoclose int fd = -EBADF;
        const char *name;

        nd_try(nd_dir_open(AT_FDCWD, path, &fd));
        name = nd_mount_fs_name(fd);
        for (size_t i = 0; i < nd_count_of(remote); i++)
                if (nd_streq(name, remote[i]))
                        return nd_error_new(
                                ND_PRECONDITION, 0,
                                "data directory '%s' is on %s, which does not support the node's user IDs; choose a local disk with --data",
                                path, name);
        return nullptr;
}
