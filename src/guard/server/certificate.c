/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.c - see certificate.h
 *
 * Polls the files every @poll_interval_us. In a pod they are links into a directory that is
 * replaced atomically; elsewhere they are written one after the other. A poll between two such
 * writes reads a pair that does not match, keeps the former one, and reads again at the next
 * change. */
#include "guard/server/certificate.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/certificate-expiry.h"
#include "net/file-stamps.h"
#include "sys/file.h"

enum {
        PEM_BYTES = 1 << 20,
        SOON_SECONDS = 14 * 24 * 3600,
};

static constexpr uint64_t poll_interval_us = 5 * ND_SECOND_US;
static constexpr uint64_t warn_interval_us = 24 * 3600 * ND_SECOND_US;
#define CREATES "the guard's own certificate, which `nodens-guard certificate` makes"
#define REMEDY "make a new one, with `nodens-guard certificate` or as this one was made; it is loaded within seconds"

static void stamp(const struct guard_certificate *watched, struct stat stamps[static GUARD_CERTIFICATE_FILES]) {
        const char *const paths[GUARD_CERTIFICATE_FILES] = {watched->certificate, watched->key, watched->client_ca};

        nd_file_stamps_take(paths, nd_count_of(paths), stamps);
}

static struct nd_error *read_text(const char *path, const char *given, char **ret) {
        if (!given)
                return nd_file_read_kernel(path, PEM_BYTES, ret);
        *ret = nd_strdup(given);
        return nullptr;
}

static struct nd_error *read_files(struct guard_certificate *watched, struct guard_certificate_texts *ret,
                                   time_t *ret_expires) {
        /* before reading: the next poll sees a change made meanwhile */
        stamp(watched, watched->stamps);
        nd_try(nd_error_wrap(read_text(watched->certificate, watched->given.certificate, &ret->certificate), CREATES));
        nd_try(nd_error_wrap(read_text(watched->key, watched->given.key, &ret->key), CREATES));
        if (watched->client_ca)
                nd_try(nd_error_wrap(read_text(watched->client_ca, watched->given.client_ca, &ret->client_ca),
                                     "clientCA, the authority of the API servers' client certificates"));
        return nd_error_wrap(nd_certificate_expiry_read(ret->certificate, ret->key, ret_expires),
                             "certificate '%s' and key '%s'", watched->certificate, watched->key);
}

struct nd_error *guard_certificate_read(struct guard_certificate *watched, struct guard_certificate_texts *ret) {
        return read_files(watched, ret, &watched->expires);
}

void guard_certificate_texts_done(struct guard_certificate_texts *texts) {
        if (texts->key)
                explicit_bzero(texts->key, strlen(texts->key));
        free(texts->certificate);
        free(texts->key);
        free(texts->client_ca);
        *texts = (struct guard_certificate_texts) {};
}

struct guard_server_files guard_certificate_files(const struct guard_certificate_texts *texts) {
        return (struct guard_server_files) {
                .certificate = texts->certificate, .key = texts->key, .client_ca = texts->client_ca};
}

static struct nd_error *renew(struct guard_certificate *watched) {
        nd_cleanup(guard_certificate_texts_done) struct guard_certificate_texts texts = {};
        struct guard_server_files files;

        time_t expires = 0;

        nd_try(read_files(watched, &texts, &expires));
        files = guard_certificate_files(&texts);
        nd_try(guard_server_renew(watched->server, &files));
        watched->expires = expires;
        watched->warned_us = 0;
        return nullptr;
}

static bool has_changed(const struct guard_certificate *watched) {
        struct stat stamps[GUARD_CERTIFICATE_FILES];

        stamp(watched, stamps);
        return !nd_file_stamps_equal(stamps, watched->stamps, nd_count_of(stamps));
}

static void warn_of_expiry(struct guard_certificate *watched, const char *when) {
        uint64_t now_us = nd_clock_us();
        nd_autofree char *text = nullptr;

        if (watched->warned_us > 0 && now_us - watched->warned_us < warn_interval_us)
                return;
        watched->warned_us = now_us;
        text = nd_format("the guard's certificate '%s' expires on %s; " REMEDY, watched->certificate, when);
        nd_log(ND_LOG_WARNING, text);
}

/* Reviews are decided nevertheless: the clock of this host may be the wrong one. */
static void check_expiry(struct guard_certificate *watched) {
        time_t now = time(nullptr);
        char when[ND_CERTIFICATE_EXPIRY_TEXT];
        nd_autofree char *text = nullptr;

        (void) nd_certificate_expiry_text(watched->expires, when);
        if (watched->expires <= now)
                text = nd_format("the guard's certificate '%s' expired on %s, so API servers do not accept the guard; " REMEDY,
                                 watched->certificate, when);
        else if (watched->expires - now < SOON_SECONDS)
                warn_of_expiry(watched, when);
        watched->report(text, watched->expires, watched->userdata);
}

static void load_changed(struct guard_certificate *watched) {
        nd_autoerror struct nd_error *error = renew(watched);

        if (error)
                nd_log(ND_LOG_WARNING, "cannot use the new certificate; keeping the current one",
                       nd_field("certificate", watched->certificate), nd_field("error", nd_error_text(error)));
        else
                nd_log(ND_LOG_INFO, "loaded a new certificate", nd_field("certificate", watched->certificate));
}

static void replace(char **field, const char *text) {
        if (!text)
                return;
        if (*field)
                explicit_bzero(*field, strlen(*field));
        nd_strset(field, text);
}

void guard_certificate_give(struct guard_certificate *watched, const struct guard_server_files *files) {
        replace(&watched->given.certificate, files->certificate);
        replace(&watched->given.key, files->key);
        replace(&watched->given.client_ca, files->client_ca);
        if (!watched->server) /* before guard_certificate_read() */
                return;
        load_changed(watched);
        check_expiry(watched);
}

static int on_look(sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        struct guard_certificate *watched = userdata;

        (void) sd_event_source_set_time_relative(source, poll_interval_us);
        (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        if (has_changed(watched))
                load_changed(watched);
        check_expiry(watched);
        return 0;
}

struct nd_error *guard_certificate_watch(struct guard_certificate *watched, sd_event *loop, struct guard_server *server) {
        int r = sd_event_add_time_relative(loop, &watched->timer, CLOCK_MONOTONIC, poll_interval_us, 0, on_look, watched);

        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "poll the certificate files");
        watched->server = server;
        check_expiry(watched);
        return nullptr;
}

void guard_certificate_done(struct guard_certificate *watched) {
        watched->timer = sd_event_source_disable_unref(watched->timer);
        guard_certificate_texts_done(&watched->given);
}
