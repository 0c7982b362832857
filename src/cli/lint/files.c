/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/strings.h"
#include "cli/lint/lint.h"
#include "sys/file.h"

bool cli_lint_is_directory(const char *path) {
        struct stat st;

        return !nd_streq(path, "-") && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A walk through a directory. */
struct walk {
        struct cli_lint *lint;
        void (*take)(struct cli_lint *lint, const char *path, const char *bytes, size_t length);
        size_t files;
        size_t entries; /* of any kind */
};

static bool is_manifest(const char *name) {
        const char *end = strrchr(name, '.');

        return end && (nd_streq(end, ".json") || nd_streq(end, ".yaml") || nd_streq(end, ".yml"));
}

/* The entries that a walk needs, sorted: directories end with a slash. */
static struct nd_error *list(struct walk *walk, const char *path, struct nd_strings *ret) {
        nd_autoclose int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd >= 0 ? fdopendir(fd) : nullptr;
        struct nd_error *error = nullptr;
        struct dirent *entry;

        if (!dir)
                return nd_error_new(nd_error_code_of(errno), errno, "open '%s'", path);
        (void) nd_take_fd(fd); /* the stream owns it */
        while (!error && (errno = 0, entry = readdir(dir))) {
                struct stat st;
                bool directory = fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);

                if (++walk->entries > 100 * LINT_FILES)
                        error = nd_error_new(ND_EXHAUSTED, 0, "more than %d entries in the directory", 100 * LINT_FILES);
                else if (directory && walk->lint->recursive && !nd_streq(entry->d_name, ".") && !nd_streq(entry->d_name, ".."))
                        nd_strings_addf(ret, "%s/", entry->d_name);
                else if (!directory && is_manifest(entry->d_name))
                        nd_strings_add(ret, entry->d_name);
        }
        if (!error && errno != 0)
                error = nd_error_new(nd_error_code_of(errno), errno, "read '%s'", path);
        (void) closedir(dir);
        nd_strings_sort(ret);
        return error;
}

static void read_found(struct walk *walk, const char *path) {
        nd_autofree char *bytes = nullptr;
        struct nd_error *error;
        size_t length = 0;

        error = nd_file_read_linked(AT_FDCWD, path, LINT_BYTES, &bytes, &length);
        if (error)
                cli_lint_note_unreadable(walk->lint, path, error);
        else
                walk->take(walk->lint, path, bytes, length);
}

static struct nd_error *walk_directory(struct walk *walk, const char *path, unsigned depth);

/* A directory that cannot be read does not end the walk; a limit does. */
static struct nd_error *walk_below(struct walk *walk, const char *path, unsigned depth) {
        struct nd_error *error = walk_directory(walk, path, depth);

        if (!error || nd_error_code(error) == ND_EXHAUSTED)
                return error;
        cli_lint_note_unreadable(walk->lint, path, error);
        return nullptr;
}

static struct nd_error *walk_directory(struct walk *walk, const char *path, unsigned depth) {
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        const char *slash = path[strlen(path) - 1] == '/' ? "" : "/";

        if (depth > LINT_DIRECTORIES)
                return nd_error_new(ND_EXHAUSTED, 0, "%s: more than %d directories below each other", path, LINT_DIRECTORIES);
        nd_try(list(walk, path, &names));
        for (size_t i = 0; i < names.count; i++) {
                nd_autofree char *below = nd_format("%s%s%s", path, slash, names.items[i]);

                if (below[strlen(below) - 1] == '/')
                        nd_try(walk_below(walk, below, depth + 1));
                else if (++walk->files > LINT_FILES)
                        return nd_error_new(ND_EXHAUSTED, 0, "more than %d manifests in the directory", LINT_FILES);
                else
                        read_found(walk, below);
        }
        return nullptr;
}

void cli_lint_directory(struct cli_lint *lint, const char *path,
                        void (*take)(struct cli_lint *lint, const char *path, const char *bytes, size_t length)) {
        struct walk walk = {.lint = lint, .take = take};
        struct nd_error *error = walk_directory(&walk, path, 1);

        if (!error && walk.files == 0)
                error = nd_error_new(ND_NOT_FOUND, 0, "no *.json, *.yaml or *.yml in '%s'%s", path,
                                     lint->recursive ? "" : "; --recursive also reads the directories below it");
        if (error)
                cli_lint_note_unreadable(lint, path, error);
}
