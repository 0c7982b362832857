/* SPDX-License-Identifier: Apache-2.0 */
/* api-credentials.c - see api-credentials.h
 *
 * Polls the files every @poll_interval_us: kubelets rotate the tokens of pods, and a timer or an
 * operator replaces the others. Files that cannot be used are reported, the former credentials
 * stay, and the files are read again when they change. Each response of the API server shows
 * whether it accepts the credentials, and the lack of one why it cannot be reached. */
#include "net/api-credentials.h"

#include <string.h>

#include "base/clock.h"
#include "net/certificate-expiry.h"
#include "net/file-stamps.h"

enum {
        READINGS = 3, /* at a time, of files that change while they are read */
};

static constexpr uint64_t poll_interval_us = 5 * ND_SECOND_US;

/* ---- files ---- */

static void stamp(const struct nd_api_credentials *c, struct stat stamps[static ND_API_CREDENTIAL_FILES]) {
        const char *const paths[ND_API_CREDENTIAL_FILES] = {c->config.file, c->config.ca_file, c->config.certificate_file,
                                                            c->config.key_file, c->config.token_file};

        nd_file_stamps_take(paths, nd_count_of(paths), stamps);
}

static bool has_changed(const struct nd_api_credentials *c) {
        struct stat stamps[ND_API_CREDENTIAL_FILES];

        stamp(c, stamps);
        return !nd_file_stamps_equal(stamps, c->stamps, nd_count_of(stamps));
}

static void forget_secrets(struct nd_kubeconfig *config) {
        if (config->key)
                explicit_bzero(config->key, strlen(config->key));
        if (config->token)
                explicit_bzero(config->token, strlen(config->token));
        free(nd_take_ptr(config->key));
        free(nd_take_ptr(config->token));
        free(nd_take_ptr(config->certificate));
        free(nd_take_ptr(config->ca));
}

static struct nd_error *find(const struct nd_api_credentials_settings *settings, struct nd_kubeconfig *config) {
        bool has_context = false;

        if (!settings->path || !settings->context)
                return nd_kubeconfig_find(settings->path, config);
        nd_try(nd_kubeconfig_has_context(settings->path, settings->context, &has_context));
        return nd_kubeconfig_load(settings->path, has_context ? settings->context : nullptr, config);
}

/* Reads the files into config. A certificate must match its key: of two files that are replaced one
 * after the other, a poll may see the first. */
static struct nd_error *read_files(const struct nd_api_credentials *c, struct nd_kubeconfig *config,
                                   time_t *ret_certificate_expires) {
        nd_try(find(&c->settings, config));
        if (config->certificate)
                return nd_error_wrap(nd_certificate_expiry_read(config->certificate, config->key, ret_certificate_expires),
                                     "client certificate of '%s'", config->file ? config->file : "the pod");
        return nullptr;
}

static struct nd_error *load(struct nd_api_credentials *c, sd_event *loop) {
        nd_cleanup(nd_kubeconfig_done) struct nd_kubeconfig config = {};
        time_t certificate_expires = 0;

        nd_try(read_files(c, &config, &certificate_expires));
        if (c->api)
                nd_try(nd_api_reload(c->api, &config));
        else
                nd_try(nd_api_new(loop, &config, &c->api));
        c->has_token = config.token != nullptr;
        c->has_certificate = config.certificate != nullptr;
        c->token_expires = config.token ? (time_t) nd_kubeconfig_token_expiry(config.token) : 0;
        c->certificate_expires = certificate_expires;
        forget_secrets(&config);
        nd_kubeconfig_done(&c->config);
        c->config = nd_take(config, (struct nd_kubeconfig) {});
        return nullptr;
}

/* Stamps come before reading, so that a change made meanwhile is seen. Which files there are is
 * known after the first reading only, hence the second. */
static struct nd_error *load_changed(struct nd_api_credentials *c, sd_event *loop) {
        for (int i = 0; i < READINGS && has_changed(c); i++) {
                stamp(c, c->stamps);
                nd_try(load(c, loop));
        }
        return nullptr;
}

static void read_again(struct nd_api_credentials *c) {
        nd_autoerror struct nd_error *error = load_changed(c, nullptr);

        c->settings.changed(error, c->settings.userdata);
}

static void on_probe([[maybe_unused]] const struct nd_api_answer *answer, void *userdata) {
        struct nd_api_credentials *c = userdata;

        c->probe = nullptr; /* on_answer() had the answer */
}

/* Watches that were open before continue, and a busy one needs no request for a long time. */
static void probe(struct nd_api_credentials *c) {
        if (!c->probe && c->refused)
                c->probe = nd_api_send(
                        c->api, &(struct nd_api_request) {
                                        .path = "/version", .timeout_us = poll_interval_us, .done = on_probe, .userdata = c});
}

static int on_poll(sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        struct nd_api_credentials *c = userdata;

        (void) sd_event_source_set_time_relative(source, poll_interval_us);
        (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        if (has_changed(c))
                read_again(c);
        probe(c);
        return 0;
}

/* ---- responses ---- */

static const char *file_of(const struct nd_api_credentials *c) {
        return c->config.file ? c->config.file : "the pod's service account";
}

static char *token_text(const struct nd_api_credentials *c) {
        const char *file = c->config.token_file ? c->config.token_file : file_of(c);
        bool expired = c->token_expires > 0 && c->token_expires <= time(nullptr);
        char when[ND_CERTIFICATE_EXPIRY_TEXT];

        if (expired)
                return nd_format("the token in '%s' expired on %s; write a new one there, it is read again within seconds",
                                 file, nd_certificate_expiry_text(c->token_expires, when));
        return nd_format(
                "the token in '%s' has expired or is not valid, for instance because its service account was deleted; "
                "write a new one there, it is read again within seconds",
                file);
}

static char *certificate_text(const struct nd_api_credentials *c) {
        const char *file = c->config.certificate_file ? c->config.certificate_file : file_of(c);
        char when[ND_CERTIFICATE_EXPIRY_TEXT];

        if (c->certificate_expires > 0 && c->certificate_expires <= time(nullptr))
                return nd_format(
                        "the client certificate in '%s' expired on %s; write a new one there, it is read again within "
                        "seconds",
                        file, nd_certificate_expiry_text(c->certificate_expires, when));
        return nd_format("the client certificate in '%s' is not signed by an authority that the API server trusts (its option "
                         "--client-ca-file); write another one there, it is read again within seconds",
                         file);
}

static char *refusal_text(const struct nd_api_credentials *c) {
        nd_autofree char *cause = nullptr;

        if (c->has_token)
                cause = token_text(c);
        else if (c->has_certificate)
                cause = certificate_text(c);
        else
                cause = nd_format("'%s' has neither a token nor a client certificate; %s", file_of(c), c->settings.advice);
        return nd_format("the API server %s refuses %s credentials (HTTP 401): %s", c->config.server, c->settings.owner,
                         cause);
}

/* The error has the address and the cause, in libcurl's words. */
static char *fault_text(const struct nd_api_credentials *c, const struct nd_api_answer *answer) {
        const char *words = nd_error_text(answer->error), *ca = c->config.ca_file ? c->config.ca_file : file_of(c);

        switch (answer->fault) {
        case ND_API_FAULT_EXPIRED:
                return nd_format(
                        "the certificate of the API server %s has expired; renew it there, with kubeadm: `kubeadm certs "
                        "renew apiserver`, and restart the API server",
                        c->config.server);
        case ND_API_FAULT_SIGNER:
                return nd_format(
                        "the certificate of the API server %s is not signed by the authority in '%s'; put the cluster's CA "
                        "there, with kubeadm: /etc/kubernetes/pki/ca.crt",
                        c->config.server, ca);
        case ND_API_FAULT_CERTIFICATE:
                return nd_format(
                        "the certificate of the API server is not valid: %s; set tls-server-name in '%s' to a name that it "
                        "has",
                        words, file_of(c));
        case ND_API_FAULT_CONNECTION:
        case ND_API_FAULT_TIMEOUT:
        case ND_API_FAULT_NONE:
                break;
        }
        return nd_format("no contact with the API server %s; check that it runs, and the address in '%s'", words, file_of(c));
}

static void report(struct nd_api_credentials *c, enum nd_api_problem problem, const char *text, bool at_once) {
        c->settings.report(problem, text, at_once, c->settings.userdata);
}

static void on_answer(const struct nd_api_answer *answer, void *userdata) {
        struct nd_api_credentials *c = userdata;
        nd_autofree char *text = nullptr;

        if (answer->fault != ND_API_FAULT_NONE) {
                text = fault_text(c, answer);
                report(c, ND_API_PROBLEM_CONTACT, text, answer->fault != ND_API_FAULT_TIMEOUT);
                return;
        }
        report(c, ND_API_PROBLEM_CONTACT, nullptr, false);
        c->refused = answer->status == 401;
        if (c->refused) {
                c->unauthorized++;
                text = refusal_text(c);
        }
        report(c, ND_API_PROBLEM_CREDENTIALS, text, true);
}

struct nd_error *nd_api_credentials_start(struct nd_api_credentials *c, sd_event *loop,
                                          const struct nd_api_credentials_settings *settings, struct nd_api **ret) {
        int r;

        c->settings = *settings;
        nd_try(load(c, loop));
        nd_try(load_changed(c, loop));
        nd_api_observe(c->api, on_answer, c);
        *ret = c->api;
        r = sd_event_add_time_relative(loop, &c->timer, CLOCK_MONOTONIC, poll_interval_us, 0, on_poll, c);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "poll the credentials for the API server") : nullptr;
}

void nd_api_credentials_done(struct nd_api_credentials *c) {
        c->timer = sd_event_source_disable_unref(c->timer);
        nd_kubeconfig_done(&c->config);
}

/* The API server uses the certificate if both are presented and it is valid. */
time_t nd_api_credentials_expire(const struct nd_api_credentials *c) {
        return c->has_token ? c->token_expires : c->certificate_expires;
}
