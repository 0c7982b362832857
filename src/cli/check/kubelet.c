/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check/kubelet.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.h"
#include "base/text.h"
#include "sys/file.h"

enum {
        ARGUMENTS_CEILING = 128 << 10,
        DROP_INS_MOST = 256,
        DROP_IN_CEILING = 1 << 20,
};

void cli_kubelet_arguments_done(struct cli_kubelet_arguments *arguments) {
        free(arguments->config);
        free(arguments->drop_ins);
        free(arguments->endpoint);
        free(arguments->cgroup_driver);
        *arguments = (struct cli_kubelet_arguments) {};
}

void cli_kubelet_done(struct cli_kubelet *kubelet) {
        free(kubelet->path);
        free(kubelet->problem);
        *kubelet = (struct cli_kubelet) {};
}

/* ---- arguments ---- */

/* Returns the value of "--name=value", "" for "--name", whose value follows, or nullptr. One dash
 * works, too. */
static const char *value_of(const char *argument, const char *name) {
        size_t length = strlen(name);

        argument += strspn(argument, "-");
        if (strncmp(argument, name, length) != 0 || (argument[length] != '=' && argument[length] != '\0'))
                return nullptr;
        return argument[length] == '=' ? argument + length + 1 : "";
}

static void take(const char *argument, const char *next, struct cli_kubelet_arguments *ret) {
        const struct {
                const char *name;
                char **target;
        } known[] = {
                {"config", &ret->config},
                {"config-dir", &ret->drop_ins},
                {"container-runtime-endpoint", &ret->endpoint},
                {"cgroup-driver", &ret->cgroup_driver},
        };

        for (size_t i = 0; i < nd_count_of(known); i++) {
                const char *value = argument[0] == '-' ? value_of(argument, known[i].name) : nullptr;

                if (value && *value == '\0' && !strchr(argument, '='))
                        value = next;
                if (value)
                        nd_strset(known[i].target, value); /* the last one counts */
        }
}

void cli_kubelet_arguments_parse(const char *bytes, size_t length, struct cli_kubelet_arguments *ret) {
        nd_cleanup(nd_strings_done) struct nd_strings words = {};

        for (size_t at = 0; at < length; at += strnlen(bytes + at, length - at) + 1)
                nd_strings_add_owned(&words, nd_strndup(bytes + at, strnlen(bytes + at, length - at)));
        for (size_t i = 0; i < words.count; i++)
                take(words.items[i], i + 1 < words.count ? words.items[i + 1] : nullptr, ret);
}

/* ---- the process ---- */

static size_t read_some(const char *path, char *buffer, size_t size) {
        nd_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
        size_t length = 0;
        ssize_t n = 1;

        while (fd >= 0 && length < size && (n = read(fd, buffer + length, size - length)) > 0)
                length += (size_t) n;
        return length;
}

static bool same_namespace(const char *process, const char *kind) {
        nd_autofree char *theirs = nd_format("/proc/%s/ns/%s", process, kind), *ours = nd_format("/proc/self/ns/%s", kind);
        struct stat a, b;

        return stat(theirs, &a) == 0 && stat(ours, &b) == 0 && a.st_ino == b.st_ino;
}

/* A process in a pod may have any name and arguments: the kubelet is root's, in our own namespaces.
 * Others than root cannot see a process's namespaces and believe the owner. */
static bool is_kubelet(const char *process) {
        nd_autofree char *comm = nd_format("/proc/%s/comm", process), *directory = nd_format("/proc/%s", process);
        char name[32] = "";
        struct stat st;

        (void) read_some(comm, name, sizeof name - 1);
        return nd_streq(name, "kubelet\n") && stat(directory, &st) == 0 && st.st_uid == 0 &&
               (geteuid() != 0 || (same_namespace(process, "pid") && same_namespace(process, "user")));
}

static void close_dir(DIR **dir) {
        if (*dir)
                (void) closedir(*dir);
}

static pid_t find_process(void) {
        nd_cleanup(close_dir) DIR *proc = opendir("/proc");
        const struct dirent *entry;
        uint32_t pid;

        while (proc && (entry = readdir(proc)))
                if (nd_text_parse_u32(entry->d_name, &pid) == 0 && is_kubelet(entry->d_name))
                        return (pid_t) pid;
        return 0;
}

/* kubeadm's file has one variable: KUBELET_KUBEADM_ARGS="--a=b --c=d". */
static void split_words(char *bytes, size_t length) {
        for (size_t i = 0; i < length; i++)
                if (strchr(" \t\n\"'", bytes[i]))
                        bytes[i] = '\0';
}

static void find_arguments(pid_t pid, struct cli_kubelet_arguments *ret) {
        nd_autofree char *path = pid > 0 ? nd_format("/proc/%d/cmdline", (int) pid) : nd_strdup(KUBELET_FLAGS),
                         *bytes = nd_malloc(ARGUMENTS_CEILING);
        size_t length = read_some(path, bytes, ARGUMENTS_CEILING);

        if (pid == 0)
                split_words(bytes, length);
        cli_kubelet_arguments_parse(bytes, length, ret);
}

/* ---- the configuration ---- */

/* As the kubelet does: files *.conf, by name, each over what was read before. */
static struct nd_error *read_drop_ins(const char *directory, struct cli_kubelet_config *config) {
        nd_cleanup(close_dir) DIR *dir = opendir(directory);
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        const struct dirent *entry;

        while (dir && (entry = readdir(dir)) && names.count < DROP_INS_MOST) {
                const char *dot = strrchr(entry->d_name, '.');

                if (dot && nd_streq(dot, ".conf"))
                        nd_strings_add(&names, entry->d_name);
        }
        nd_strings_sort(&names);
        nd_vector_each (name, &names) {
                nd_autofree char *path = nd_format("%s/%s", directory, *name), *text = nullptr;

                nd_try(nd_file_read_kernel(path, DROP_IN_CEILING, &text));
                nd_try(nd_error_wrap(cli_kubelet_config_parse(text, strlen(text), config), "%s", path));
        }
        return nullptr;
}

/* A path in the arguments of a process may be relative to its directory. */
static char *absolute(pid_t pid, const char *path) {
        return path[0] == '/' || pid == 0 ? nd_strdup(path) : nd_format("/proc/%d/cwd/%s", (int) pid, path);
}

static void override(const char *value, char *target, size_t size) {
        if (!value || strlen(value) >= size)
                return;
        memcpy(target, value, strlen(value) + 1);
}

static struct nd_error *read_config(const char *given, const struct cli_kubelet_arguments *arguments,
                                    struct cli_kubelet *kubelet) {
        const char *named = given ?: arguments->config;

        kubelet->path = named ? absolute(given ? 0 : kubelet->pid, named) : nd_strdup(KUBELET_CONFIG);
        nd_try(cli_kubelet_config_read(named ? kubelet->path : nullptr, &kubelet->config));
        if (!given && arguments->drop_ins) {
                nd_autofree char *directory = absolute(kubelet->pid, arguments->drop_ins);

                nd_try(read_drop_ins(directory, &kubelet->config));
        }
        return nullptr;
}

struct nd_error *cli_kubelet_find(const char *path, struct cli_kubelet *ret) {
        nd_cleanup(cli_kubelet_arguments_done) struct cli_kubelet_arguments arguments = {};
        nd_cleanup(cli_kubelet_done) struct cli_kubelet kubelet = {.pid = find_process()};
        nd_autoerror struct nd_error *error = nullptr;

        find_arguments(kubelet.pid, &arguments);
        error = read_config(path, &arguments, &kubelet);
        if (error && path)
                return nd_take_ptr(error);
        kubelet.denied = nd_error_code(error) == ND_DENIED && geteuid() != 0;
        if (error && !kubelet.denied)
                kubelet.problem = nd_strdup(nd_error_text(error));
        if (error)
                cli_kubelet_config_init(&kubelet.config);
        override(arguments.endpoint, kubelet.config.endpoint, sizeof kubelet.config.endpoint);
        override(arguments.cgroup_driver, kubelet.config.cgroup_driver, sizeof kubelet.config.cgroup_driver);
        *ret = nd_take(kubelet, (struct cli_kubelet) {});
        return nullptr;
}
