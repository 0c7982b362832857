/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check/certificates.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "sys/file.h"

enum {
        FILE_CEILING = 1 << 20,
        FILES_MOST = 256,
};

static bool names_certificate(const char *name) {
        static const char *const endings[] = {".crt", ".cert", ".pem", ".key"};
        const char *dot = strrchr(name, '.');

        for (size_t i = 0; dot && i < nd_count_of(endings); i++)
                if (nd_streq(dot, endings[i]))
                        return !strstr(name, "://");
        return false;
}

/* Returns the length of a string after its quote; the line may end before it. */
static size_t string_length(const char *text, char quote, bool *ret_escapes) {
        size_t length = 0;

        while (text[length] && text[length] != quote && text[length] != '\n') {
                if (quote == '"' && text[length] == '\\' && text[length + 1]) {
                        *ret_escapes = true;
                        length++;
                }
                length++;
        }
        return length;
}

/* Strings are in single or double quotes on one line; comments end with the line. A path with
 * escapes is rare and then not checked. */
void cli_certificates_named(const char *toml, struct nd_strings *ret) {
        for (const char *c = toml; *c && ret->count < FILES_MOST;) {
                bool escapes = false;
                size_t length;

                if (*c == '#') {
                        c += strcspn(c, "\n");
                        continue;
                }
                if (*c != '"' && *c != '\'') {
                        c++;
                        continue;
                }
                length = string_length(c + 1, *c, &escapes);
                if (c[1 + length] == *c && !escapes) {
                        nd_autofree char *text = nd_strndup(c + 1, length);

                        if (names_certificate(text))
                                nd_strings_add(ret, text);
                }
                c += 1 + length + (c[1 + length] == *c);
        }
}

static struct nd_error *check_file(const char *path) {
        nd_autofree char *bytes = nullptr;

        nd_try(nd_file_read_kernel(path, FILE_CEILING, &bytes));
        if (!strstr(bytes, "-----BEGIN "))
                return nd_error_new(ND_INVALID, 0, "no PEM certificate or key in '%s'", path);
        return nullptr;
}

static struct nd_error *check_named(const char *directory, const char *toml) {
        nd_cleanup(nd_strings_done) struct nd_strings named = {};

        cli_certificates_named(toml, &named);
        nd_vector_each (name, &named) {
                nd_autofree char *path = (*name)[0] == '/' ? nd_strdup(*name) : nd_format("%s/%s", directory, *name);

                nd_try(check_file(path));
        }
        return nullptr;
}

static void list(const char *directory, struct nd_strings *ret) {
        DIR *dir = opendir(directory);
        const struct dirent *entry;

        while (dir && (entry = readdir(dir)) && ret->count < FILES_MOST)
                if (entry->d_name[0] != '.')
                        nd_strings_add(ret, entry->d_name);
        if (dir)
                (void) closedir(dir);
        nd_strings_sort(ret);
}

/* With a hosts.toml only the files count that it names; otherwise all do, as Docker has them. */
static struct nd_error *check_registry(const char *directory) {
        nd_autofree char *path = nd_format("%s/hosts.toml", directory), *toml = nullptr;
        nd_cleanup(nd_strings_done) struct nd_strings files = {};
        nd_autoerror struct nd_error *error = nd_file_read_kernel(path, FILE_CEILING, &toml);

        if (nd_error_errno(error) == ENOTDIR) /* a file beside the registries */
                return nullptr;
        if (!error && *toml)
                return nd_error_wrap(check_named(directory, toml), "%s", path);
        if (error && nd_error_code(error) != ND_NOT_FOUND)
                return nd_take_ptr(error);
        list(directory, &files);
        nd_vector_each (name, &files) {
                nd_autofree char *file = nd_format("%s/%s", directory, *name);

                if (names_certificate(*name))
                        nd_try(check_file(file));
        }
        return nullptr;
}

struct nd_error *cli_certificates_check(const char *directory, size_t *ret_registries) {
        nd_cleanup(nd_strings_done) struct nd_strings registries = {};

        list(directory, &registries);
        *ret_registries = 0;
        nd_vector_each (name, &registries) {
                nd_autofree char *path = nd_format("%s/%s", directory, *name);
                struct stat st;

                *ret_registries += stat(path, &st) == 0 && S_ISDIR(st.st_mode);
                nd_try(check_registry(path));
        }
        return nullptr;
}
