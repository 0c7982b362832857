/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.c - see certificate.h
 *
 * The files are looked at every @LOOK_US. In a pod they are links into a directory that is exchanged as a whole, elsewhere they are
 * written one after the other: whoever comes between the two sees a pair that does not fit, and looks again when the other has changed. */
#include "guard/certificate.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "sys/file.h"

enum {
        PEM_BYTES = 1 << 20,
};

#define LOOK_US (5 * ND_SECOND_US)

static void stamp(const struct guard_certificate *watched, struct stat stamps[static 2]) {
        const char *const paths[] = {watched->certificate, watched->key};

        for (size_t i = 0; i < nd_count_of(paths); i++)
                if (stat(paths[i], &stamps[i]) < 0)
                        stamps[i] = (struct stat) {};
}

static bool is_same(const struct stat *a, const struct stat *b) {
        return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
               a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

struct nd_error *guard_certificate_read(struct guard_certificate *watched, char **ret_certificate, char **ret_key) {
        nd_autofree char *certificate = nullptr;

        stamp(watched, watched->stamps); /* before reading: a change meanwhile is seen at the next look */
        nd_try(nd_file_read_kernel(watched->certificate, PEM_BYTES, &certificate));
        nd_try(nd_file_read_kernel(watched->key, PEM_BYTES, ret_key));
        *ret_certificate = nd_take_ptr(certificate);
        return nullptr;
}

static struct nd_error *renew(struct guard_certificate *watched) {
        nd_autofree char *certificate = nullptr, *key = nullptr;
        struct nd_error *error = guard_certificate_read(watched, &certificate, &key);

        if (!error)
                error = guard_server_renew(watched->server, certificate, key);
        if (key)
                explicit_bzero(key, strlen(key));
        return error;
}

static int on_look(sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        nd_autoerror struct nd_error *error = nullptr;
        struct guard_certificate *watched = userdata;
        struct stat stamps[2];

        (void) sd_event_source_set_time_relative(source, LOOK_US);
        (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        stamp(watched, stamps);
        if (is_same(&stamps[0], &watched->stamps[0]) && is_same(&stamps[1], &watched->stamps[1]))
                return 0;
        error = renew(watched);
        if (error)
                nd_log(ND_LOG_WARNING, "the new certificate cannot be used, the former one stays",
                       nd_field("certificate", watched->certificate), nd_field("error", nd_error_text(error)));
        else
                nd_log(ND_LOG_INFO, "took a new certificate", nd_field("certificate", watched->certificate));
        return 0;
}

struct nd_error *guard_certificate_watch(struct guard_certificate *watched, sd_event *loop, struct guard_server *server) {
        int r = sd_event_add_time_relative(loop, &watched->timer, CLOCK_MONOTONIC, LOOK_US, 0, on_look, watched);

        watched->server = server;
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "event loop") : nullptr;
}

void guard_certificate_done(struct guard_certificate *watched) {
        watched->timer = sd_event_source_disable_unref(watched->timer);
}
