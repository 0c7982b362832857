/* SPDX-License-Identifier: Apache-2.0 */
/* pull.c - see pull.h
 *
 * Theory of operation
 *   An order becomes a job, or joins the job that does the same already. A job waits for its turn (@JOB_WAITING), then nodens-pull runs for
 *   it in a staging directory of its own (@JOB_RUNNING), telling what it does in lines on its standard output. When it has ended well, the
 *   configured verifier is asked, if there is one, and the store checks what lies in the staging directory and takes it over. A job ends once, in job_end(): it tells its listeners and goes.
 *   A job without listeners is killed: the kubelet's deadline, or a lost connection, ends the download too.
 *   The helper gets its secrets on standard input, never on its command line, and they are wiped here as soon as it has them.
 * Owns       jobs, tickets, the helpers and their staging directories.
 * Invariant  at most config->pulls helpers run; a listener hears end exactly once, unless it cancelled. */
#include "cri/pull.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "cri/sweeper.h"
#include "cri/telemetry.h"
#include "oci/platform.h"
#include "oci/reference.h"
#include "oci/store.h"
#include "sys/child.h"

enum {
        REQUEST_CEILING = 64 << 10,
        ERRORS_KEPT = 16 << 10,
        JOBS_MOST = 256, /* waiting ones included */
        VERIFIER_WORDS = 4 << 10,
};

static constexpr uint64_t verifier_deadline_us = 60 * ND_SECOND_US;

struct pull_ticket {
        struct pull_ticket *next;
        struct job *job;
        struct pull_listener listener;
        void *userdata;
};

struct job {
        struct puller *puller;
        struct job *next;
        enum { JOB_WAITING, JOB_RUNNING } step;
        char *reference; /* canonical; nullptr for an import */
        char *request;   /* JSON for the helper; with credentials, so it is wiped */
        size_t request_length;
        struct nd_digest key; /* of the request: two orders that are the same in all, credentials included */
        int archive;
        char *staging; /* name under staging/, nullptr before it runs */
        struct nd_child *child;
        struct nd_text line;
        struct pull_event result; /* PULL_DONE or PULL_ERROR, once it came */
        bool has_result;
        struct nd_error *failure; /* ours: a line that makes no sense */
        struct pull_ticket *tickets;
};

struct puller {
        sd_event *loop;
        const struct cri_config *config;
        struct nd_image_store *store;
        struct sweeper *sweeper;
        struct telemetry *telemetry;
        struct job *jobs; /* in the order in which they came */
        size_t running;
        sd_event_source *starter; /* starts what waits, from the loop: no listener hears of an end before its order returned */
};

static void wake(struct puller *puller) {
        (void) sd_event_source_set_enabled(puller->starter, SD_EVENT_ONESHOT);
}

static void wipe(struct job *job) {
        if (job->request)
                explicit_bzero(job->request, job->request_length);
        free(nd_take_ptr(job->request));
}

static void job_free(struct job *job) {
        for (struct job **place = &job->puller->jobs; *place; place = &(*place)->next)
                if (*place == job) {
                        *place = job->next;
                        break;
                }
        if (job->step == JOB_RUNNING)
                job->puller->running--;
        wipe(job);
        if (job->staging)
                nd_image_store_unstage(job->puller->store, job->staging);
        nd_close_fd(&job->archive);
        nd_text_done(&job->line);
        pull_event_done(&job->result);
        nd_error_free(job->failure);
        free(job->staging);
        free(job->reference);
        free(job);
}

/* Tells every listener and goes. Consumes the error; each listener gets one of its own. */
static void job_end(struct job *job, struct nd_error *error, const nd_strings *image_ids) {
        struct puller *puller = job->puller;
        struct pull_ticket *tickets = nd_take_ptr(job->tickets);

        telemetry_pull(puller->telemetry, error);
        job_free(job);
        while (tickets) {
                struct pull_ticket *ticket = tickets;

                tickets = ticket->next;
                ticket->listener.end(
                        error ? nd_error_received(nd_error_code(error), nd_error_errno(error), nd_error_text(error)) : nullptr,
                        image_ids, ticket->userdata);
                free(ticket);
        }
        nd_error_free(error);
        wake(puller);
        sweeper_wake(puller->sweeper);
}

/* ---- lines of the helper ---- */

static void take_line(struct job *job, const char *line, size_t length) {
        nd_cleanup(pull_event_done) struct pull_event event = {};
        struct nd_error *error = pull_event_parse(line, length, &event);

        if (error) {
                job->failure = nd_error_wrap(error, "nodens-pull said something odd");
                return;
        }
        if (event.kind == PULL_LAYER)
                for (struct pull_ticket *t = job->tickets; t; t = t->next)
                        if (t->listener.layer)
                                t->listener.layer(&event, t->userdata);
        if (event.kind == PULL_DONE || event.kind == PULL_ERROR) {
                pull_event_done(&job->result);
                job->result = nd_take(event, (struct pull_event) {});
                job->has_result = true;
        }
}

static void on_output(const char *bytes, size_t length, void *userdata) {
        struct job *job = userdata;

        while (length > 0 && !job->failure) {
                const char *end = memchr(bytes, '\n', length);
                size_t n = end ? (size_t) (end - bytes) : length;

                nd_text_append(&job->line, bytes, n);
                if (job->line.overflow)
                        job->failure =
                                nd_error_new(ND_INTERNAL, 0, "nodens-pull wrote a line of more than %d bytes", PULL_LINE);
                if (end && !job->failure) {
                        take_line(job, nd_text_get(&job->line), job->line.length);
                        nd_text_done(&job->line);
                }
                bytes += n + (end != nullptr);
                length -= n + (end != nullptr);
        }
}

/* ---- the end of the helper ---- */

static bool is_pinned(const struct cri_config *config, const nd_strings *names) {
        nd_vector_each (name, &config->pinned) {
                if (nd_strings_have(names, *name))
                        return true;
        }
        return false;
}

/* An image that was pulled has the name by which it was asked for, and that repository's digest of it: nodes tell their API server about
 * both, and a kubelet may ask for either. */
static struct nd_error *name_pulled(const char *reference, struct pull_image *image) {
        nd_cleanup(nd_reference_done) struct nd_reference parsed = {};
        nd_autofree char *with_digest = nullptr;

        nd_try(nd_reference_parse(reference, &parsed));
        nd_strings_done(&image->names);
        nd_strings_add(&image->names, reference);
        if (!parsed.tag)
                return nullptr;
        with_digest = nd_reference_with_digest(&parsed, nd_digest_is_set(&image->index) ? &image->index : &image->manifest);
        nd_strings_add(&image->names, with_digest);
        return nullptr;
}

/* Gives the store what was pulled, image by image, and collects their ids. */
static struct nd_error *commit(struct job *job, nd_strings *ret_ids) {
        struct puller *puller = job->puller;

        nd_vector_each (image, &job->result.images) {
                const struct nd_image *committed;
                char text[ND_DIGEST_TEXT];

                if (job->reference)
                        nd_try(name_pulled(job->reference, image));
                nd_try(nd_image_store_commit(puller->store, job->staging,
                                             &(struct nd_image_offer) {.manifest = image->manifest,
                                                                       .index = image->index,
                                                                       .config = image->config,
                                                                       .names = &image->names,
                                                                       .pinned = is_pinned(puller->config, &image->names),
                                                                       .pulled_at = nd_clock_wall_ns()},
                                             &committed));
                nd_strings_add(ret_ids, nd_digest_text(&committed->id, text));
        }
        return nullptr;
}

static struct nd_error *verdict(struct job *job, const struct nd_child_result *result) {
        if (job->failure)
                return nd_take_ptr(job->failure);
        if (job->has_result && job->result.kind == PULL_ERROR)
                return nd_error_new(job->result.code, 0, "%s", job->result.message);
        nd_try(nd_child_result_error(result, "nodens-pull"));
        if (!job->has_result)
                return nd_error_new(ND_INTERNAL, 0, "nodens-pull ended without a result");
        return nullptr;
}

/* Tells what came of it, after the store has taken the images, unless there is an error already. */
static void conclude(struct job *job, struct nd_error *error) {
        nd_cleanup(nd_strings_done) nd_strings ids = {};

        if (!error)
                error = nd_error_wrap(commit(job, &ids), "%s", job->reference ?: "import");
        job_end(job, error, &ids);
}

/* ---- whoever must agree ---- */

static void on_verified(struct nd_child_result *result, void *userdata) {
        struct job *job = userdata;
        nd_autoerror struct nd_error *error = nd_child_result_error(result, "the verifier");

        job->child = nullptr;
        if (!error)
                conclude(job, nullptr);
        else /* the kubelet knows the first word, when it is the first */
                conclude(job, nd_error_new(ND_UNKNOWN, 0, "SignatureValidationFailed: %s: %s", job->reference,
                                           result->output && *result->output ? result->output : nd_error_text(error)));
}

/* By the digest that was pulled: whatever the tag means a moment later, this is what is recorded. What the program is told is what containerd tells its own. */
static struct nd_error *verify(struct job *job) {
        const struct pull_image *image = &job->result.images.items[0];
        char digest[ND_DIGEST_TEXT];
        nd_autofree char *descriptor = nullptr;
        const char *const argv[] = {job->puller->config->verifier,
                                    "-name",
                                    job->reference,
                                    "-digest",
                                    nd_digest_text(nd_digest_is_set(&image->index) ? &image->index : &image->manifest, digest),
                                    "-stdin-media-type",
                                    "application/vnd.oci.descriptor.v1+json",
                                    nullptr};

        descriptor = nd_format("{\"digest\": \"%s\"}\n", digest);
        return nd_child_start(job->puller->loop,
                              &(struct nd_child_plan) {.argv = argv,
                                                       .input = descriptor,
                                                       .input_length = strlen(descriptor),
                                                       .deadline_us = verifier_deadline_us,
                                                       .output_ceiling = VERIFIER_WORDS,
                                                       .dies_with_us = true},
                              on_verified, job, &job->child);
}

/* An archive that root imports is root's to judge. */
static bool needs_verifier(const struct job *job) {
        return *job->puller->config->verifier && job->reference && job->result.images.count > 0;
}

static void on_child(struct nd_child_result *result, void *userdata) {
        struct job *job = userdata;
        struct nd_error *error;

        job->child = nullptr;
        error = nd_error_wrap(verdict(job, result), "%s", job->reference ?: "import");
        if (result->errors && result->errors[0])
                nd_log(ND_LOG_DEBUG, "nodens-pull said", nd_field("image", job->reference ?: ""),
                       nd_field("text", result->errors));
        if (!error && needs_verifier(job)) {
                error = nd_error_wrap(verify(job), "verify %s", job->reference);
                if (!error)
                        return;
        }
        conclude(job, error);
}

/* ---- the start of the helper ---- */

static struct nd_error *run(struct job *job) {
        struct puller *puller = job->puller;
        nd_autoclose int staging = -EBADF;
        const char *const argv[] = {puller->config->pull_helper, nullptr};
        struct nd_error *error;

        nd_try(nd_image_store_stage(puller->store, &job->staging, &staging));
        job->line = ND_TEXT(PULL_LINE);
        error = nd_child_start(
                puller->loop,
                &(struct nd_child_plan) {.argv = argv,
                                         .input = job->request,
                                         .input_length = job->request_length,
                                         .output_ceiling = ERRORS_KEPT,
                                         .descriptors = (const int[]) {staging, nd_image_store_layers_fd(puller->store),
                                                                       job->archive, nd_image_store_partial_fd(puller->store)},
                                         .descriptor_count = 4,
                                         .output = on_output},
                on_child, job, &job->child);
        wipe(job);
        return error;
}

static int on_starter([[maybe_unused]] sd_event_source *source, void *userdata) {
        struct puller *puller = userdata;

        for (struct job *job = puller->jobs; job && puller->running < puller->config->pulls; job = job->next) {
                struct nd_error *error;

                if (job->step != JOB_WAITING)
                        continue;
                job->step = JOB_RUNNING;
                puller->running++;
                error = run(job);
                if (error) {
                        job_end(job, nd_error_wrap(error, "%s", job->reference ?: "import"), &(nd_strings) {});
                        break; /* the list changed; job_end() has asked for another round */
                }
        }
        return 0;
}

/* ---- orders ---- */

static void add_credentials(struct nd_json_out *out, const struct pull_credentials *c) {
        const struct {
                const char *key;
                const char *value;
        } fields[] = {{"username", c->username},
                      {"password", c->password},
                      {"auth", c->auth},
                      {"serverAddress", c->server_address},
                      {"identityToken", c->identity_token},
                      {"registryToken", c->registry_token}};

        nd_json_open(out, "auth", '{');
        for (size_t i = 0; i < nd_count_of(fields); i++)
                nd_json_string(out, fields[i].key, fields[i].value ?: "");
        nd_json_close(out, '}');
}

static char *make_request(const struct puller *puller, const char *reference, const struct pull_credentials *credentials,
                          size_t *ret_length) {
        struct nd_platform platform = nd_platform_host();
        struct nd_text text = ND_TEXT(REQUEST_CEILING);
        struct nd_json_out out = {.text = &text};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "operation", reference ? "pull" : "import");
        if (reference)
                nd_json_string(&out, "reference", reference);
        nd_json_open(&out, "platform", '{');
        nd_json_string(&out, "os", platform.os);
        nd_json_string(&out, "architecture", platform.architecture);
        nd_json_string(&out, "variant", platform.variant);
        nd_json_close(&out, '}');
        if (credentials)
                add_credentials(&out, credentials);
        nd_json_string(&out, "hostsDir", puller->config->certificates);
        nd_json_number(&out, "parallel", puller->config->downloads);
        nd_json_number(&out, "noProgressSeconds", puller->config->stalled_s);
        nd_json_close(&out, '}');
        *ret_length = text.length;
        return text.overflow ? (explicit_bzero(text.bytes, text.length), nd_text_done(&text), nullptr) : nd_text_steal(&text);
}

static struct pull_ticket *join(struct job *job, const struct pull_listener *listener, void *userdata) {
        struct pull_ticket *ticket = nd_new(struct pull_ticket);

        *ticket = (struct pull_ticket) {.next = job->tickets, .job = job, .listener = *listener, .userdata = userdata};
        job->tickets = ticket;
        return ticket;
}

/* nullptr when too many wait already. Takes the request. */
static struct job *add_job(struct puller *puller, char **request, size_t request_length) {
        struct job *job, **place = &puller->jobs;
        size_t count = 0;

        for (; *place; place = &(*place)->next)
                count++;
        if (count >= JOBS_MOST)
                return nullptr;
        job = nd_new(struct job);
        *job = (struct job) {.puller = puller, .request_length = request_length, .archive = -EBADF};
        job->key = nd_digest_of(ND_HASH_SHA256, *request, request_length);
        job->request = nd_take_ptr(*request);
        *place = job;
        wake(puller);
        return job;
}

static struct nd_error *too_many(void) {
        return nd_error_new(ND_EXHAUSTED, 0, "%d pulls wait already", JOBS_MOST);
}

static struct job *find_job(const struct puller *puller, const char *request, size_t length) {
        struct nd_digest key = nd_digest_of(ND_HASH_SHA256, request, length);

        for (struct job *job = puller->jobs; job; job = job->next)
                if (job->reference && nd_digest_equal(&job->key, &key))
                        return job;
        return nullptr;
}

static void wipe_text(char **text) {
        if (*text)
                explicit_bzero(*text, strlen(*text));
        free(*text);
}

struct nd_error *puller_pull(struct puller *puller, const char *reference, const struct pull_credentials *credentials,
                             const struct pull_listener *listener, void *userdata, struct pull_ticket **ret) {
        nd_cleanup(nd_reference_done) struct nd_reference parsed = {};
        nd_autofree char *canonical = nullptr;
        nd_cleanup(wipe_text) char *request = nullptr;
        size_t length = 0;
        struct job *job;

        nd_try(nd_reference_parse(reference, &parsed));
        canonical = nd_reference_text(&parsed);
        request = make_request(puller, canonical, credentials, &length);
        if (!request)
                return nd_error_new(ND_INVALID, 0, "credentials of more than %d bytes", REQUEST_CEILING);
        job = find_job(puller, request, length);
        if (!job) {
                job = add_job(puller, &request, length);
                if (!job)
                        return too_many();
                job->reference = nd_take_ptr(canonical);
        }
        *ret = join(job, listener, userdata);
        return nullptr;
}

struct nd_error *puller_import(struct puller *puller, int archive_fd, const struct pull_listener *listener, void *userdata,
                               struct pull_ticket **ret) {
        nd_autoclose int archive = archive_fd;
        nd_autofree char *request = nullptr;
        size_t length = 0;
        struct job *job;

        request = make_request(puller, nullptr, nullptr, &length);
        job = add_job(puller, &request, length);
        if (!job)
                return too_many();
        job->archive = nd_take_fd(archive);
        *ret = join(job, listener, userdata);
        return nullptr;
}

void pull_ticket_cancel(struct pull_ticket *ticket) {
        struct job *job = ticket->job;

        for (struct pull_ticket **place = &job->tickets; *place; place = &(*place)->next)
                if (*place == ticket) {
                        *place = ticket->next;
                        break;
                }
        free(ticket);
        if (job->tickets)
                return;
        telemetry_pull_abandoned(job->puller->telemetry);
        nd_child_cancel(job->child);
        wake(job->puller);
        sweeper_wake(job->puller->sweeper);
        job_free(job);
}

size_t puller_count(const struct puller *puller) {
        size_t count = 0;

        for (const struct job *job = puller->jobs; job; job = job->next)
                count++;
        return count;
}

struct nd_error *puller_new(sd_event *loop, const struct cri_config *config, struct nd_image_store *store,
                            struct sweeper *sweeper, struct telemetry *telemetry, struct puller **ret) {
        struct puller *puller = nd_new(struct puller);
        int r;

        *puller = (struct puller) {
                .loop = sd_event_ref(loop), .config = config, .store = store, .sweeper = sweeper, .telemetry = telemetry};
        r = sd_event_add_defer(loop, &puller->starter, on_starter, puller);
        if (r >= 0)
                r = sd_event_source_set_enabled(puller->starter, SD_EVENT_OFF);
        if (r < 0) {
                puller_free(puller);
                return nd_error_new(ND_INTERNAL, -r, "watch for pulls");
        }
        *ret = puller;
        return nullptr;
}

void puller_free(struct puller *puller) {
        if (!puller)
                return;
        for (struct job *job = puller->jobs, *next; job; job = next) {
                next = job->next; /* a listener that is told orders nothing new: the server is gone by now */
                nd_child_cancel(job->child);
                job_end(job, nd_error_new(ND_UNAVAILABLE, 0, "nodens-cri is ending"), &(nd_strings) {});
        }
        sd_event_source_disable_unref(puller->starter);
        sd_event_unref(puller->loop);
        free(puller);
}
