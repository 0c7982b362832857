/* SPDX-License-Identifier: Apache-2.0 */
/* secret.c - see secret.h
 *
 * Theory of operation
 *   Every @tick_us each guard runs through the steps below, one request at a time:
 *      @READ_CLIENTS   read the authority that the API server publishes for client certificates
 *      @READ_SECRET    read the Secret, and serve with the certificate in it
 *      @READ_MUTATING, @READ_VALIDATING
 *                      read the two webhook configurations; if the bundle in them is not that of
 *                      the Secret, patch it
 *      then do the next step of the rotation that is due (guard_authority_advance()), if the bundle
 *      was in both configurations, and patch the Secret with the version that was read
 *   All guards do the same. Of two that change the Secret at the same time one gets 409 and reads
 *   what the other wrote. A step that fails ends the round; the next one begins anew.
 * Invariant  a guard serves only certificates that are in the Secret; a rotation only goes on when
 *            the bundle was seen in both configurations after the overlap. */
#include "guard/cluster/secret.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/log.h"
#include "guard/core/config.h"
#include "guard/server/authority.h"
#include "net/api-objects.h"

enum {
        AUTHORITY_DAYS = 365,
        SERVER_DAYS = 90,
        BODY_BYTES = 1 << 20,
        OBJECT_BYTES = 4 << 20,
        PATHS = 64, /* webhooks of one configuration that are patched, at most */
};

static constexpr uint64_t tick_us = 5 * ND_SECOND_US;
static constexpr uint64_t first_us = 10 * ND_MS_US;
static constexpr uint64_t request_timeout_us = 5 * ND_SECOND_US;
#define CONFIGURATION "nodens-guard"
#define PUBLISHED "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
#define PUBLISHED_KEY "client-ca-file"
#define REGISTRATION "/apis/admissionregistration.k8s.io/v1/"

enum step { WAITING, READ_CLIENTS, READ_SECRET, READ_MUTATING, READ_VALIDATING, STEPS };

struct guard_secret {
        struct guard_secret_settings settings;
        struct nd_strings names; /* of the certificate */
        sd_event_source *timer;
        struct nd_api_call *call;
        enum step step;
        struct guard_authority authority; /* as read */
        char *version;                    /* of the Secret */
        char *bundle;                     /* of the authorities, base64 */
        bool rotate;                      /* the Secret has the annotation */
        bool in_place;                    /* the bundle, in all configurations of this round */
        char *served, *clients;           /* certificate and client authority that the server has */
};

static void advance(struct guard_secret *s);

static void wait_for(struct guard_secret *s, uint64_t delay_us) {
        s->step = WAITING;
        (void) sd_event_source_set_time_relative(s->timer, delay_us);
        (void) sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

static void fail(struct guard_secret *s, const char *what, const char *path, const struct nd_error *error) {
        nd_autofree char *text = nd_format("cannot %s %s: %s", what, path, nd_error_text(error));

        s->settings.report(text, s->settings.userdata);
        wait_for(s, tick_us);
}

static void send(struct guard_secret *s, const char *method, const char *path, const char *body, const char *content_type,
                 void (*done)(const struct nd_api_answer *answer, void *userdata)) {
        s->call = nd_api_send(s->settings.api, &(struct nd_api_request) {.method = method,
                                                                         .path = path,
                                                                         .body = body,
                                                                         .content_type = content_type,
                                                                         .timeout_us = request_timeout_us,
                                                                         .ceiling = OBJECT_BYTES,
                                                                         .done = done,
                                                                         .userdata = s});
}

static char *secret_path(const struct guard_secret *s) {
        return nd_format("/api/v1/namespaces/%s/secrets/" GUARD_SECRET, s->settings.namespace);
}

/* ---- the Secret ---- */

static void serve(struct guard_secret *s) {
        if (!s->authority.server.certificate || (s->served && nd_streq(s->served, s->authority.server.certificate)))
                return;
        nd_strset(&s->served, s->authority.server.certificate);
        s->settings.take(
                &(struct guard_server_files) {.certificate = s->authority.server.certificate, .key = s->authority.server.key},
                s->settings.userdata);
}

static void on_secret_written(const struct nd_api_answer *answer, void *userdata) {
        nd_autofree char *path = nullptr;
        struct guard_secret *s = userdata;

        s->call = nullptr;
        path = secret_path(s);
        if (answer->error && answer->status != 409)
                fail(s, "write", path, answer->error);
        else /* also after a conflict: read what is there now */
                wait_for(s, first_us);
}

static void write_secret(struct guard_secret *s) {
        nd_autofree char *path = secret_path(s);
        nd_autotext struct nd_text body = ND_TEXT(BODY_BYTES);
        struct nd_json_out out = {.text = &body};

        nd_json_open(&out, nullptr, '{');
        nd_json_open(&out, "metadata", '{');
        nd_json_string(&out, "resourceVersion", s->version);
        nd_json_open(&out, "annotations", '{');
        nd_json_string(&out, GUARD_SECRET_ROTATE, nullptr);
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        guard_authority_encode(&s->authority, &out);
        nd_json_close(&out, '}');
        send(s, "PATCH", path, nd_text_get(&body), "application/merge-patch+json", on_secret_written);
        explicit_bzero(body.bytes, body.length);
}

static void log_step(enum guard_authority_step step) {
        static const char *const texts[] = {
                [GUARD_AUTHORITY_KEPT] = nullptr,
                [GUARD_AUTHORITY_MADE] = "made an authority and a certificate for the guards",
                [GUARD_AUTHORITY_ANNOUNCED] = "made a new authority; it signs when API servers have had time to learn it",
                [GUARD_AUTHORITY_SWITCHED] = "the new authority signs the guards' certificate; the former one stays trusted",
                [GUARD_AUTHORITY_RETIRED] = "removed the former authority",
                [GUARD_AUTHORITY_RENEWED] = "renewed the guards' certificate",
        };

        nd_log(ND_LOG_INFO, texts[step]);
}

/* The round is over: change the Secret if it is time. */
static void rotate(struct guard_secret *s) {
        const struct guard_authority_settings settings = {.names = &s->names,
                                                          .authority_days = AUTHORITY_DAYS,
                                                          .server_days = SERVER_DAYS,
                                                          .overlap_seconds = s->settings.overlap_seconds,
                                                          .now = (uint64_t) time(nullptr),
                                                          .rotate = s->rotate,
                                                          .in_place = s->in_place};
        enum guard_authority_step step = GUARD_AUTHORITY_KEPT;
        nd_autoerror struct nd_error *error = guard_authority_advance(&s->authority, &settings, &step);

        if (error) {
                fail(s, "make a certificate for", GUARD_SECRET, error);
                return;
        }
        s->settings.report(nullptr, s->settings.userdata);
        if (step == GUARD_AUTHORITY_KEPT) {
                wait_for(s, tick_us);
                return;
        }
        log_step(step);
        write_secret(s);
}

static void take_secret(struct guard_secret *s, yyjson_val *secret) {
        nd_autofree char *pem = nullptr;
        yyjson_val *annotations = yyjson_obj_get(yyjson_obj_get(secret, "metadata"), "annotations");

        nd_strset(&s->version, nd_api_version(secret));
        guard_authority_done(&s->authority);
        guard_authority_decode(yyjson_obj_get(secret, "data"), &s->authority);
        s->rotate = yyjson_obj_get(annotations, GUARD_SECRET_ROTATE);
        pem = guard_authority_bundle(&s->authority);
        free(s->bundle);
        s->bundle = nd_base64(pem, strlen(pem));
        s->in_place = true;
        serve(s);
        if (s->authority.current.certificate)
                advance(s);
        else
                rotate(s);
}

/* ---- the webhook configurations ---- */

static bool is_ours(const struct guard_secret *s, yyjson_val *client) {
        yyjson_val *service = yyjson_obj_get(client, "service");
        const char *namespace = yyjson_get_str(yyjson_obj_get(service, "namespace"));
        const char *name = yyjson_get_str(yyjson_obj_get(service, "name"));

        return namespace && name && nd_streq(namespace, s->settings.namespace) && nd_streq(name, s->settings.service);
}

static bool has_bundle(const struct guard_secret *s, yyjson_val *client) {
        const char *bundle = yyjson_get_str(yyjson_obj_get(client, "caBundle"));

        return bundle && nd_streq(bundle, s->bundle);
}

/* Writes a JSON patch for all webhooks of this guard without the bundle; returns their number. */
static size_t write_bundle_patch(const struct guard_secret *s, yyjson_val *configuration, struct nd_json_out *out) {
        yyjson_arr_iter webhooks = yyjson_arr_iter_with(yyjson_obj_get(configuration, "webhooks"));
        size_t found = 0, at = 0;

        nd_json_open(out, nullptr, '[');
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "op", "test");
        nd_json_string(out, "path", "/metadata/resourceVersion");
        nd_json_string(out, "value", nd_api_version(configuration));
        nd_json_close(out, '}');
        for (yyjson_val *one; (one = yyjson_arr_iter_next(&webhooks)); at++) {
                yyjson_val *client = yyjson_obj_get(one, "clientConfig");
                nd_autofree char *path = nullptr;

                if (!is_ours(s, client) || has_bundle(s, client) || found >= PATHS)
                        continue;
                path = nd_format("/webhooks/%zu/clientConfig/caBundle", at);
                nd_json_open(out, nullptr, '{');
                nd_json_string(out, "op", "add"); /* or replace */
                nd_json_string(out, "path", path);
                nd_json_string(out, "value", s->bundle);
                nd_json_close(out, '}');
                found++;
        }
        nd_json_close(out, ']');
        return found;
}

static char *configuration_path(const struct guard_secret *s) {
        return nd_format(REGISTRATION "%swebhookconfigurations/" CONFIGURATION,
                         s->step == READ_MUTATING ? "mutating" : "validating");
}

static void on_configuration_written(const struct nd_api_answer *answer, void *userdata) {
        struct guard_secret *s = userdata;
        nd_autofree char *path = configuration_path(s);

        s->call = nullptr;
        if (answer->error && answer->status != 409 && answer->status != 422) {
                fail(s, "write the bundle of authorities to", path, answer->error);
                return;
        }
        if (!answer->error)
                nd_log(ND_LOG_INFO, "wrote the bundle of authorities", nd_field("object", path));
        advance(s);
}

static void take_configuration(struct guard_secret *s, yyjson_val *configuration) {
        nd_autotext struct nd_text body = ND_TEXT(BODY_BYTES);
        struct nd_json_out out = {.text = &body};
        nd_autofree char *path = configuration_path(s);

        if (write_bundle_patch(s, configuration, &out) == 0) {
                advance(s);
                return;
        }
        s->in_place = false;
        send(s, "PATCH", path, nd_text_get(&body), "application/json-patch+json", on_configuration_written);
}

/* ---- the round ---- */

static void take_published(struct guard_secret *s, yyjson_val *map) {
        const char *authority = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(map, "data"), PUBLISHED_KEY));
        nd_autoerror struct nd_error *error = nullptr;

        if (!authority) {
                error = nd_error_new(ND_NOT_FOUND, 0,
                                     "no '" PUBLISHED_KEY "': the API server has no --client-ca-file, so clientCA cannot be "
                                     "'" GUARD_FROM_CLUSTER "'");
                fail(s, "use", PUBLISHED, error);
                return;
        }
        if (!s->clients || !nd_streq(s->clients, authority)) {
                nd_strset(&s->clients, authority);
                s->settings.take(&(struct guard_server_files) {.client_ca = authority}, s->settings.userdata);
        }
        advance(s);
}

static char *step_path(const struct guard_secret *s) {
        if (s->step == READ_CLIENTS)
                return nd_strdup(PUBLISHED);
        return s->step == READ_SECRET ? secret_path(s) : configuration_path(s);
}

static void take(struct guard_secret *s, yyjson_val *object) {
        if (s->step == READ_CLIENTS)
                take_published(s, object);
        else if (s->step == READ_SECRET)
                take_secret(s, object);
        else
                take_configuration(s, object);
}

static void on_read(const struct nd_api_answer *answer, void *userdata) {
        nd_autoerror struct nd_error *error = nullptr;
        struct guard_secret *s = userdata;
        nd_autojson yyjson_doc *doc = nullptr;
        nd_autofree char *path = step_path(s);

        s->call = nullptr;
        if (answer->status == 404 && (s->step == READ_MUTATING || s->step == READ_VALIDATING)) {
                s->in_place = false; /* not registered yet */
                advance(s);
                return;
        }
        if (!answer->error)
                error = nd_json_parse(answer->body, answer->length, OBJECT_BYTES, &doc);
        if (answer->error || error)
                fail(s, "read", path, answer->error ? answer->error : error);
        else
                take(s, yyjson_doc_get_root(doc));
}

/* Begins the next step of the round. */
static void advance(struct guard_secret *s) {
        nd_autofree char *path = nullptr;

        s->step++;
        if (s->step == READ_CLIENTS && !s->settings.reads_client_ca)
                s->step++;
        if (s->step == READ_SECRET && !s->settings.makes_certificate)
                s->step = STEPS;
        if (s->step < STEPS) {
                path = step_path(s);
                send(s, nullptr, path, nullptr, nullptr, on_read);
        } else if (s->settings.makes_certificate) {
                rotate(s);
        } else {
                s->settings.report(nullptr, s->settings.userdata);
                wait_for(s, tick_us);
        }
}

static int on_tick([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        advance(userdata);
        return 0;
}

struct guard_secret *guard_secret_new(const struct guard_secret_settings *settings) {
        struct guard_secret *s = nd_new(struct guard_secret);
        nd_autofree char *name = nd_format("%s.%s.svc", settings->service, settings->namespace);

        *s = (struct guard_secret) {.settings = *settings};
        nd_strings_add(&s->names, name);
        if (sd_event_add_time_relative(nd_api_loop(settings->api), &s->timer, CLOCK_MONOTONIC, first_us, 0, on_tick, s) < 0)
                abort(); /* out of memory, as everywhere */
        return s;
}

void guard_secret_free(struct guard_secret *s) {
        if (!s)
                return;
        sd_event_source_disable_unref(s->timer);
        nd_api_cancel(s->call);
        nd_strings_done(&s->names);
        guard_authority_done(&s->authority);
        free(s->version);
        free(s->bundle);
        free(s->served);
        free(s->clients);
        free(s);
}
