/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.c - see certificate.h
 *
 * The first call makes an authority, ca.crt and ca.key; each call makes tls.crt and tls.key, signed
 * by it. A running guard loads them, and API servers keep the authority: renewing is calling it
 * again. */
#include "guard/certificate.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "guard/core/config.h"
#include "guard/server/issue.h"
#include "net/certificate-expiry.h"
#include "sys/file.h"

enum {
        PEM_BYTES = 1 << 20,
        AUTHORITY_DAYS = 3650,
        SERVER_DAYS = 365,
};

const struct nd_option guard_certificate_options[] = {
        {.name = "address",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_certificate_settings, address),
         .argument = "NAME,...",
         .help = "DNS names and IP addresses by which API servers reach the guard"},
        {.name = "directory",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_certificate_settings, directory),
         .argument = "DIR",
         .values = ND_VALUES_DIRECTORY,
         .help = "directory of ca.crt, ca.key, tls.crt and tls.key (default " GUARD_DIRECTORY ")"},
        {.name = "days",
         .kind = ND_OPTION_U32,
         .offset = offsetof(struct guard_certificate_settings, days),
         .argument = "NUMBER",
         .help = "validity of tls.crt (default 365)"},
        {},
};

static struct nd_error *split(const char *list, struct nd_strings *ret) {
        for (const char *at = list; *at; at += strspn(at, ",")) {
                size_t length = strcspn(at, ",");
                nd_autofree char *name = nd_strndup(at, length);

                if (length > 0 && !nd_strings_add_within(ret, GUARD_ISSUE_NAMES, name))
                        return nd_error_new(ND_INVALID, 0, "--address: more than %d names", GUARD_ISSUE_NAMES);
                at += length;
        }
        return ret->count > 0 ? nullptr : nd_error_new(ND_INVALID, 0, "--address is empty");
}

/* A directory with the set-group-ID bit gives files its group, which the guard's unit is in. */
static struct nd_error *open_directory(const char *path, int *ret_fd, mode_t *ret_key_mode) {
        nd_autoclose int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open directory '%s'", path);
        *ret_key_mode = st.st_mode & S_ISGID ? 0640 : 0600;
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

static struct nd_error *write_pair(int directory, const char *name, const struct guard_issued *issued, mode_t key_mode) {
        nd_autofree char *certificate = nd_format("%s.crt", name), *key = nd_format("%s.key", name);

        nd_try(nd_file_replace(directory, key, issued->key, strlen(issued->key), key_mode));
        return nd_file_replace(directory, certificate, issued->certificate, strlen(issued->certificate), 0644);
}

/* An authority whose key is missing is an error: a new one would make API servers refuse the guard
 * until webhooks name it. */
static struct nd_error *authority(int directory, struct guard_issued *ret) {
        nd_cleanup(guard_issued_done) struct guard_issued found = {};
        nd_autoerror struct nd_error *missing = nd_file_read(directory, "ca.crt", PEM_BYTES, &found.certificate, nullptr);

        if (missing && nd_error_code(missing) != ND_NOT_FOUND)
                return nd_take_ptr(missing);
        if (missing) {
                nd_try(guard_issue_authority(AUTHORITY_DAYS, &found));
                nd_try(write_pair(directory, "ca", &found, 0600));
        } else {
                nd_try(nd_error_wrap(nd_file_read(directory, "ca.key", PEM_BYTES, &found.key, nullptr),
                                     "ca.crt exists without its key (remove it to make another authority)"));
        }
        *ret = nd_take(found, (struct guard_issued) {});
        return nullptr;
}

/* Whether the command line is wrong. */
static struct nd_error *check_usage(const struct guard_certificate_settings *settings, struct nd_strings *ret_names) {
        if (!settings->address)
                return nd_error_new(
                        ND_INVALID, 0,
                        "--address is missing: the names by which API servers reach the guard, such as 127.0.0.1 or "
                        "nodens-guard.nodens-system.svc");
        if (settings->days > GUARD_ISSUE_MOST_DAYS)
                return nd_error_new(ND_INVALID, 0, "--days must be at most %d", GUARD_ISSUE_MOST_DAYS);
        return split(settings->address, ret_names);
}

static struct nd_error *make(const struct guard_certificate_settings *settings, const struct nd_strings *names) {
        const char *path = settings->directory ? settings->directory : GUARD_DIRECTORY;
        nd_cleanup(guard_issued_done) struct guard_issued ca = {}, server = {};
        nd_autoclose int directory = -EBADF;
        char when[ND_CERTIFICATE_EXPIRY_TEXT];
        mode_t key_mode = 0600;
        time_t expires = 0;

        nd_try(open_directory(path, &directory, &key_mode));
        nd_try(nd_error_wrap(authority(directory, &ca), "%s", path));
        nd_try(nd_error_wrap(guard_issue_server(&ca, names, settings->days > 0 ? settings->days : SERVER_DAYS, &server), "%s",
                             path));
        nd_try(nd_error_wrap(write_pair(directory, "tls", &server, key_mode), "%s", path));
        nd_try(nd_certificate_expiry_read(server.certificate, server.key, &expires));
        (void) printf("%s/tls.crt is valid until %s; API servers verify it with %s/ca.crt\n", path,
                      nd_certificate_expiry_text(expires, when), path);
        return nullptr;
}

int guard_certificate_run(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        nd_autoerror struct nd_error *usage = check_usage(settings, &names), *error = nullptr;

        if (usage) {
                nd_log(ND_LOG_ERROR, nd_error_text(usage));
                return ND_EXIT_USAGE;
        }
        error = make(settings, &names);
        if (error)
                nd_log(ND_LOG_ERROR, nd_error_text(error));
        return error ? EXIT_FAILURE : EXIT_SUCCESS;
}
