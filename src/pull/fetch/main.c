/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - nodens-fetch: fetches and verifies images for nodens-cri; nodens-unpack unpacks their
 * layers
 *
 *      descriptor  0  the request, one JSON object (request.h)
 *                  1  events, JSON lines (events.h)
 *                  2  messages for the log
 *                  3  the channel to nodens-unpack (protocol/messages.h)
 *                  4  this pull's blobs/, and
 *                  6  staging/partial, resumable downloads; files are written only in these two
 *                  5  the archive of an import
 *                  7  optional: a connection to the broker of a rootless node (net/broker.h)
 *
 * Exit status 0 after the event "done", 1 after the event "error". */
#include <curl/curl.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "pull/fetch/import.h"
#include "pull/fetch/registry-config.h"
#include "pull/fetch/registry.h"
#include "pull/jail/jail.h"
#include "sys/file.h"

enum {
        REQUEST_FD = 0,
        EVENTS_FD = 1,
        CHANNEL_FD = 3,
        BLOBS_FD = 4,
        ARCHIVE_FD = 5,
        PARTIAL_FD = 6,
        BROKER_FD = 7,
};

static struct nd_error *read_request(struct pull_request *ret) {
        nd_autotext struct nd_text text = ND_TEXT(REQUEST_BYTES);
        char piece[4096];
        ssize_t n;

        while ((n = read(REQUEST_FD, piece, sizeof piece)) > 0)
                nd_text_append(&text, piece, (size_t) n);
        explicit_bzero(piece, sizeof piece);
        if (n < 0 || text.overflow)
                return nd_error_new(ND_INVALID, n < 0 ? errno : EFBIG, "read the request");
        return pull_request_parse(nd_text_get(&text), text.length, ret);
}

static struct nd_error *check_descriptors(const struct pull_request *request) {
        static const int directories[] = {BLOBS_FD, PARTIAL_FD};
        struct stat st;

        for (size_t i = 0; i < nd_count_of(directories); i++)
                if (fstat(directories[i], &st) < 0 || !S_ISDIR(st.st_mode))
                        return nd_error_new(ND_INVALID, 0, "descriptor %d must be a directory: nodens-cri starts this program",
                                            directories[i]);
        if (request->operation == OPERATION_IMPORT && fstat(ARCHIVE_FD, &st) < 0)
                return nd_error_new(ND_INVALID, 0, "descriptor %d must be the archive", ARCHIVE_FD);
        /* A pull has no archive. The descriptor must be in use, else our next socket would get its
         * number and be closed with the rest. */
        if (fcntl(ARCHIVE_FD, F_GETFD) < 0 && dup2(BLOBS_FD, ARCHIVE_FD) < 0)
                return nd_error_new(ND_INTERNAL, errno, "reserve descriptor %d", ARCHIVE_FD);
        return nullptr;
}

/* The connection to the broker, above the descriptors that are closed; -EBADF if there is none. */
static int take_broker(void) {
        struct stat st;
        int fd;

        if (fstat(BROKER_FD, &st) < 0 || !S_ISSOCK(st.st_mode))
                return -EBADF;
        fd = fcntl(BROKER_FD, F_DUPFD_CLOEXEC, 16);
        (void) close(BROKER_FD);
        return fd >= 0 ? fd : -EBADF;
}

/* Opens the directories by their paths in the jail. */
static struct nd_error *open_directories(struct pull_layers_context *context) {
        nd_try(nd_dir_open(AT_FDCWD, "/blobs", &context->blobs_fd));
        return nd_dir_open(AT_FDCWD, "/partial", &context->partial_fd);
}

static void each_secret(void *userdata, void (*each)(void *, const char *), void *each_userdata) {
        pull_auth_each_secret(userdata, each, each_userdata);
}

static struct nd_error *work(const struct pull_request *request, struct pull_registry_config *config, int broker,
                             struct pull_layers_context *context) {
        nd_autoclose int archive = -EBADF;

        if (request->operation == OPERATION_IMPORT) {
                archive = fcntl(ARCHIVE_FD, F_DUPFD_CLOEXEC, 16);
                if (archive < 0)
                        return nd_error_new(ND_INVALID, errno, "duplicate the archive's descriptor");
                /* The archive has all data: no network is needed. */
                if (nd_sys->unshare(CLONE_NEWNET) < 0)
                        return nd_error_new(nd_error_code_of(errno), errno, "create an empty network namespace");
        }
        nd_try(nd_error_wrap(pull_registry_config_enter_jail(config, BLOBS_FD, PARTIAL_FD), "enter the jail of nodens-fetch"));
        for (int fd = BLOBS_FD; fd <= PARTIAL_FD; fd++)
                (void) close(fd); /* ".." in these would lead out of the jail */
        nd_try(open_directories(context));
        nd_try(pull_unpack_client_connect(CHANNEL_FD, &context->unpacker));
        if (request->operation == OPERATION_IMPORT)
                return pull_import(context, request, archive);
        nd_try(pull_registry_config_fetcher(config, request->no_progress_seconds, broker, &context->fetcher));
        return pull_registry_pull(context, request);
}

static struct nd_error *run(struct pull_events *events) {
        nd_cleanup(pull_request_done) struct pull_request request = {};
        nd_cleanup(pull_registry_config_done) struct pull_registry_config config = {};
        struct pull_layers_context context = {.blobs_fd = -EBADF, .partial_fd = -EBADF, .events = events};
        nd_autofree char *message = nullptr;
        nd_autoclose int broker = take_broker(); /* before a descriptor of ours has that number */
        struct nd_error *error;

        nd_try(read_request(&request));
        nd_try(check_descriptors(&request));
        context.repository = request.reference.path ? request.reference.path : "archive";
        context.parallel = request.parallel;
        context.total_bytes = request.total_bytes;
        nd_try(pull_registry_config_load(&request, &config));
        events->secrets = each_secret;
        events->userdata = config.auth;

        error = work(&request, &config, broker, &context);
        pull_fetcher_free(context.fetcher);
        pull_unpack_client_free(context.unpacker);
        nd_close_fd(&context.blobs_fd);
        nd_close_fd(&context.partial_fd);
        if (error) /* while the secrets to redact are still known */
                pull_event_error(events, error);
        events->secrets = nullptr;
        if (error)
                error = nd_error_recode(error, ND_CANCELLED); /* already reported */
        return error;
}

int main(void) {
        struct pull_events events = {.fd = EVENTS_FD};
        nd_autoerror struct nd_error *error = nullptr;

        /* After the death of the daemon a new one resumes the download: the two must not write the
         * same file. */
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) signal(SIGPIPE, SIG_IGN);
        (void) curl_global_init(CURL_GLOBAL_DEFAULT);
        error = run(&events);
        if (error && nd_error_code(error) != ND_CANCELLED)
                pull_event_error(&events, error);
        curl_global_cleanup();
        return error ? EXIT_FAILURE : EXIT_SUCCESS;
}
