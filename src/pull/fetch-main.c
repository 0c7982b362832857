/* SPDX-License-Identifier: Apache-2.0 */
/* fetch-main.c - nodens-fetch: fetches and verifies images for nodens-cri; nodens-unpack makes trees of their layers
 *
 *      descriptor  0  the request, one JSON object (request.h)
 *                  1  events, JSON lines (events.h)
 *                  2  for people
 *                  3  the channel to nodens-unpack (channel.h)
 *                  4  this pull's blobs/, and
 *                  6  staging/partial, downloads that a later pull may resume: the only places where anything is written
 *                  5  the archive of an import
 *
 * Exit code 0 after the event "done", 1 after the event "error". */
#include <curl/curl.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "pull/import.h"
#include "pull/jail.h"
#include "pull/network.h"
#include "pull/registry.h"
#include "sys/file.h"

enum {
        REQUEST_FD = 0,
        EVENTS_FD = 1,
        CHANNEL_FD = 3,
        BLOBS_FD = 4,
        ARCHIVE_FD = 5,
        PARTIAL_FD = 6,
};

static struct nd_error *read_request(struct nd_request *ret) {
        nd_autotext text = ND_TEXT(ND_REQUEST_BYTES);
        char piece[4096];
        ssize_t n;

        while ((n = read(REQUEST_FD, piece, sizeof piece)) > 0)
                nd_text_append(&text, piece, (size_t) n);
        explicit_bzero(piece, sizeof piece);
        if (n < 0 || text.overflow)
                return nd_error_new(ND_INVALID, n < 0 ? errno : EFBIG, "read the request");
        return nd_request_parse(nd_text_get(&text), text.length, ret);
}

static struct nd_error *check_descriptors(const struct nd_request *request) {
        static const int directories[] = {BLOBS_FD, PARTIAL_FD};
        struct stat st;

        for (size_t i = 0; i < nd_count_of(directories); i++)
                if (fstat(directories[i], &st) < 0 || !S_ISDIR(st.st_mode))
                        return nd_error_new(ND_INVALID, 0, "descriptor %d must be a directory: nodens-cri starts this program",
                                            directories[i]);
        if (request->operation == ND_IMPORT && fstat(ARCHIVE_FD, &st) < 0)
                return nd_error_new(ND_INVALID, 0, "descriptor %d must be the archive", ARCHIVE_FD);
        /* A pull comes without an archive. Something must stand there, or our next socket would, and be closed with the rest. */
        if (fcntl(ARCHIVE_FD, F_GETFD) < 0 && dup2(BLOBS_FD, ARCHIVE_FD) < 0)
                return nd_error_new(ND_INTERNAL, errno, "fill descriptor %d", ARCHIVE_FD);
        return nullptr;
}

/* The directories as the jail has them. */
static struct nd_error *open_place(struct nd_layers_place *place) {
        nd_try(nd_dir_open(AT_FDCWD, "/blobs", &place->blobs_fd));
        return nd_dir_open(AT_FDCWD, "/partial", &place->partial_fd);
}

static void each_secret(void *userdata, void (*each)(void *, const char *), void *each_userdata) {
        nd_auth_secrets(userdata, each, each_userdata);
}

static struct nd_error *work(const struct nd_request *request, struct nd_network *network, struct nd_layers_place *place) {
        nd_autoclose int archive = -EBADF;

        if (request->operation == ND_IMPORT) {
                archive = fcntl(ARCHIVE_FD, F_DUPFD_CLOEXEC, 16);
                if (archive < 0)
                        return nd_error_new(ND_INVALID, errno, "keep the archive's descriptor");
                /* All bytes are in the archive: no network at all. */
                if (nd_sys->unshare(CLONE_NEWNET) < 0)
                        return nd_error_new(nd_code_of_errno(errno), errno, "make an empty network namespace");
        }
        nd_try(nd_error_wrap(nd_network_jail(network, BLOBS_FD, PARTIAL_FD), "the fetcher's jail"));
        for (int fd = BLOBS_FD; fd <= PARTIAL_FD; fd++)
                (void) close(fd); /* ".." in these would lead out of the jail */
        nd_try(open_place(place));
        nd_try(nd_unpacker_meet(CHANNEL_FD, &place->unpacker));
        if (request->operation == ND_IMPORT)
                return nd_import(place, request, archive);
        nd_try(nd_network_fetcher(network, request->no_progress_seconds, &place->fetcher));
        return nd_registry_pull(place, request);
}

static struct nd_error *run(struct nd_events *events) {
        nd_cleanup(nd_request_done) struct nd_request request = {};
        nd_cleanup(nd_network_done) struct nd_network network = {};
        struct nd_layers_place place = {.blobs_fd = -EBADF, .partial_fd = -EBADF, .events = events};
        nd_autofree char *message = nullptr;
        struct nd_error *error;

        nd_try(read_request(&request));
        nd_try(check_descriptors(&request));
        place.repository = request.reference.path ? request.reference.path : "archive";
        place.parallel = request.parallel;
        place.total_bytes = request.total_bytes;
        nd_try(nd_network_prepare(&request, &network));
        events->secrets = each_secret;
        events->userdata = network.auth;

        error = work(&request, &network, &place);
        nd_fetcher_free(place.fetcher);
        nd_unpacker_free(place.unpacker);
        nd_close_fd(&place.blobs_fd);
        nd_close_fd(&place.partial_fd);
        if (error) /* while the secrets are still known */
                nd_event_error(events, error);
        events->secrets = nullptr;
        if (error)
                error = nd_error_recode(error, ND_CANCELLED); /* told already */
        return error;
}

int main(void) {
        struct nd_events events = {.fd = EVENTS_FD};
        nd_autoerror struct nd_error *error = nullptr;

        /* A daemon that was killed has nobody to tell, and the next one resumes the download: both must not write the same file. */
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) signal(SIGPIPE, SIG_IGN);
        (void) curl_global_init(CURL_GLOBAL_DEFAULT);
        error = run(&events);
        if (error && nd_error_code(error) != ND_CANCELLED)
                nd_event_error(&events, error);
        curl_global_cleanup();
        return error ? EXIT_FAILURE : EXIT_SUCCESS;
}
