/* SPDX-License-Identifier: Apache-2.0 */
/* pull.c - see pull.h
 *
 * Theory of operation
 *   A request becomes a job, or joins a job that does the same. A job is queued (@JOB_WAITING),
 *   then two programs run for it in its own staging directory (@JOB_RUNNING): nodens-fetch, which
 *   uses the network and can write only blobs/ and partial/, and nodens-unpack, which makes trees
 *   in unpack/. They are connected by a socket pair, and each reports its progress in lines on its
 *   standard output. The fetcher's report is untrusted; only the unpacker's counts for which layers
 *   exist. When both have exited successfully, the configured verifier is run, if any, and the
 *   store checks the staging directory and commits its contents. A job ends once, in job_end(): it
 *   notifies its listeners and is freed. A job without listeners is killed: so the kubelet's
 *   deadline, or a lost connection, ends the download too. The fetcher gets credentials on standard
 *   input, never on its command line, and they are wiped here after it has started.
 * Owns       jobs, pending calls, their programs and their staging directories.
 * Invariant  at most config->pulls jobs run; end() of a listener is called exactly once, unless
 *            it cancelled. */
#include "cri/image/pull.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "cri/image/image-gc.h"
#include "cri/stats/telemetry.h"
#include "net/broker.h"
#include "oci/platform.h"
#include "oci/reference.h"
#include "oci/store.h"
#include "sys/child.h"
#include "sys/file.h"

enum {
        REQUEST_CEILING = 64 << 10,
        ERRORS_KEPT = 16 << 10,
        JOBS_MOST = 256, /* including queued ones */
        VERIFIER_WORDS = 4 << 10,
};

static constexpr uint64_t verifier_deadline_us = 60 * ND_SECOND_US;

struct cri_pull_request {
        struct cri_pull_request *next;
        struct job *job;
        struct cri_pull_listener listener;
        void *userdata;
};

/* One of the two programs of a job. */
struct party {
        struct job *job;
        enum cri_pull_party is;
        struct nd_child *child; /* nullptr before it runs and after it has exited */
        struct nd_text line;
        struct cri_pull_event result; /* PULL_DONE, PULL_SYNCED or PULL_ERROR, once received */
        bool has_result;
        struct nd_error *exit; /* failure exit status */
};

struct job {
        struct cri_puller *puller;
        struct job *next;
        enum { JOB_WAITING, JOB_RUNNING } step;
        char *reference; /* canonical; nullptr for an import */
        char *request;   /* JSON for the fetcher; wiped, since it has credentials */
        size_t request_length;
        /* hash of the request, including credentials: equal requests share a job */
        struct nd_digest key;
        int archive;
        char *path;    /* of the archive, for messages; nullptr for a pull */
        char *staging; /* name under staging/, nullptr before it runs */
        struct party parties[PULL_PARTIES];
        /* The fetcher's end. Shut down when the fetcher has exited, even if descendants still
         * hold it open. */
        int channel;
        struct nd_oci_unpacked_layers unpacked;
        struct nd_child *verifier;
        struct nd_error *failure; /* our own: an invalid line */
        struct cri_pull_request *tickets;
};

struct cri_puller {
        sd_event *loop;
        const struct cri_config *config;
        struct nd_oci_store *store;
        struct cri_image_gc *image_gc;
        struct cri_telemetry *telemetry;
        struct job *jobs; /* in order of arrival */
        size_t running;
        /* starts queued jobs from the loop: no end() runs before its request returned */
        sd_event_source *starter;
};

static void wake(struct cri_puller *puller) {
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
        for (struct party *party = job->parties; party < job->parties + PULL_PARTIES; party++) {
                nd_child_cancel(party->child);
                nd_text_done(&party->line);
                cri_pull_event_done(&party->result);
                nd_error_free(party->exit);
        }
        nd_child_cancel(job->verifier);
        nd_close_fd(&job->channel);
        nd_vector_done(&job->unpacked);
        if (job->staging)
                nd_oci_store_unstage(job->puller->store, job->staging);
        nd_close_fd(&job->archive);
        nd_error_free(job->failure);
        free(job->staging);
        free(job->reference);
        free(job->path);
        free(job);
}

/* The image of a pull, or the archive of an import. */
static const char *subject(const struct job *job) {
        return job->reference ?: job->path;
}

/* Notifies every listener and frees the job. Takes the error; each listener gets its own copy. */
static void job_end(struct job *job, struct nd_error *error, const struct nd_strings *image_ids) {
        struct cri_puller *puller = job->puller;
        struct cri_pull_request *tickets = nd_take_ptr(job->tickets);

        cri_telemetry_pull(puller->telemetry, error);
        job_free(job);
        while (tickets) {
                struct cri_pull_request *request = tickets;

                tickets = request->next;
                request->listener.end(
                        error ? nd_error_received(nd_error_code(error), nd_error_errno(error), nd_error_text(error)) : nullptr,
                        image_ids, request->userdata);
                free(request);
        }
        nd_error_free(error);
        wake(puller);
        cri_image_gc_wake(puller->image_gc);
}

/* ---- output of the programs ---- */

static const char *const party_names[PULL_PARTIES] = {[PULL_FETCHER] = "nodens-fetch", [PULL_UNPACKER] = "nodens-unpack"};

static void take_line(struct party *party, const char *line, size_t length) {
        nd_cleanup(cri_pull_event_done) struct cri_pull_event event = {};
        struct nd_error *error = cri_pull_event_parse(party->is, line, length, &event);
        struct job *job = party->job;

        if (error) {
                job->failure = nd_error_wrap(error, "invalid event from %s", party_names[party->is]);
                return;
        }
        if (event.kind == PULL_UNPACKED && job->unpacked.count >= PULL_UNPACKED_MOST)
                job->failure = nd_error_new(ND_EXHAUSTED, 0, "more than %d layers in one pull", PULL_UNPACKED_MOST);
        else if (event.kind == PULL_UNPACKED)
                nd_vector_push(&job->unpacked, event.layer);
        if (event.kind == PULL_LAYER)
                for (struct cri_pull_request *t = job->tickets; t; t = t->next)
                        if (t->listener.layer)
                                t->listener.layer(&event, t->userdata);
        if (event.kind == PULL_DONE || event.kind == PULL_SYNCED || event.kind == PULL_ERROR) {
                cri_pull_event_done(&party->result);
                party->result = nd_take(event, (struct cri_pull_event) {});
                party->has_result = true;
        }
}

static void on_output(const char *bytes, size_t length, void *userdata) {
        struct party *party = userdata;
        struct job *job = party->job;

        while (length > 0 && !job->failure) {
                const char *end = memchr(bytes, '\n', length);
                size_t n = end ? (size_t) (end - bytes) : length;

                nd_text_append(&party->line, bytes, n);
                if (party->line.overflow)
                        job->failure = nd_error_new(ND_INTERNAL, 0, "%s wrote a line longer than %d bytes",
                                                    party_names[party->is], PULL_LINE);
                if (end && !job->failure) {
                        take_line(party, nd_text_get(&party->line), party->line.length);
                        nd_text_done(&party->line);
                }
                bytes += n + (end != nullptr);
                length -= n + (end != nullptr);
        }
}

/* ---- exit of the programs ---- */

static bool is_pinned(const struct cri_config *config, const struct nd_strings *names) {
        nd_vector_each (name, &config->pinned) {
                if (nd_strings_have(names, *name))
                        return true;
        }
        return false;
}

/* A pulled image gets the name it was requested by and the digest of that repository: the
 * kubelet reports both to the API server and may use either. */
static struct nd_error *name_pulled(const char *reference, struct cri_pull_image *image) {
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

/* Commits the pulled images to the store and collects their ids. */
static struct nd_error *commit(struct job *job, struct nd_strings *ret_ids) {
        struct cri_puller *puller = job->puller;

        nd_vector_each (image, &job->parties[PULL_FETCHER].result.images) {
                const struct nd_image *committed;
                char text[ND_DIGEST_TEXT];

                if (job->reference)
                        nd_try(name_pulled(job->reference, image));
                nd_try(nd_oci_store_commit(puller->store, job->staging,
                                           &(struct nd_oci_store_offer) {.manifest = image->manifest,
                                                                         .index = image->index,
                                                                         .config = image->config,
                                                                         .names = &image->names,
                                                                         .unpacked = &job->unpacked,
                                                                         .pinned = is_pinned(puller->config, &image->names),
                                                                         .pulled_at = nd_clock_wall_ns()},
                                           &committed));
                nd_strings_add(ret_ids, nd_digest_text(&committed->id, text));
        }
        return nullptr;
}

static struct nd_error *said_error(const struct party *party) {
        if (!party->has_result || party->result.kind != PULL_ERROR)
                return nullptr;
        return nd_error_new(party->result.code, 0, "%s", party->result.message);
}

/* The unpacker's own error takes precedence: the fetcher then only reports that it is gone. */
static struct nd_error *job_error(struct job *job) {
        struct party *fetcher = &job->parties[PULL_FETCHER], *unpacker = &job->parties[PULL_UNPACKER];

        if (job->failure)
                return nd_take_ptr(job->failure);
        nd_try(said_error(unpacker));
        nd_try(said_error(fetcher));
        nd_try(nd_take_ptr(fetcher->exit));
        nd_try(nd_take_ptr(unpacker->exit));
        if (!fetcher->has_result || !unpacker->has_result)
                return nd_error_new(ND_INTERNAL, 0, "%s exited without a result",
                                    party_names[fetcher->has_result ? PULL_UNPACKER : PULL_FETCHER]);
        return nullptr;
}

/* Commits the images, unless there is an error already, and ends the job. */
static void conclude(struct job *job, struct nd_error *error) {
        nd_cleanup(nd_strings_done) struct nd_strings ids = {};

        if (!error)
                error = nd_error_wrap(commit(job, &ids), "%s", subject(job));
        job_end(job, error, &ids);
}

/* ---- verification ---- */

static void on_verified(struct nd_child_result *result, void *userdata) {
        struct job *job = userdata;
        nd_autoerror struct nd_error *error = nd_child_result_error(result, "the verifier");

        job->verifier = nullptr;
        if (!error)
                conclude(job, nullptr);
        else /* the kubelet recognizes the prefix */
                conclude(job, nd_error_new(ND_UNKNOWN, 0, "SignatureValidationFailed: %s: %s", job->reference,
                                           result->output && *result->output ? result->output : nd_error_text(error)));
}

/* Verifies the digest that was pulled, not the tag, which may move: the digest is recorded. The
 * command line is that of containerd's verifier plugins. */
static struct nd_error *verify(struct job *job) {
        const struct cri_pull_image *image = &job->parties[PULL_FETCHER].result.images.items[0];
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
                              on_verified, job, &job->verifier);
}

/* Archives that root imports are not verified. */
static bool needs_verifier(const struct job *job) {
        return *job->puller->config->verifier && job->reference && job->parties[PULL_FETCHER].result.images.count > 0;
}

/* Both programs have exited. */
static void judge(struct job *job) {
        struct nd_error *error = nd_error_wrap(job_error(job), "%s", subject(job));

        if (!error && needs_verifier(job)) {
                error = nd_error_wrap(verify(job), "verify %s", job->reference);
                if (!error)
                        return;
        }
        conclude(job, error);
}

static void on_child(struct nd_child_result *result, void *userdata) {
        struct party *party = userdata;
        struct job *job = party->job;
        struct nd_child *other = job->parties[party->is == PULL_FETCHER ? PULL_UNPACKER : PULL_FETCHER].child;

        party->child = nullptr;
        party->exit = nd_child_result_error(result, party_names[party->is]);
        if (result->errors && result->errors[0])
                nd_log(ND_LOG_DEBUG, "output of a pull helper", nd_field("helper", party_names[party->is]),
                       nd_field("image", subject(job)), nd_field("text", result->errors));
        if (party->is == PULL_FETCHER) {
                (void) shutdown(job->channel, SHUT_RDWR);
                nd_close_fd(&job->channel);
        }
        if (!other)
                return judge(job);
        if (party->exit)
                nd_child_kill(other); /* it would only wait for this one */
}

/* ---- start of the programs ---- */

static struct nd_error *start(struct job *job, enum cri_pull_party is, const char *program, const int *descriptors,
                              size_t count) {
        struct party *party = &job->parties[is];
        const char *const argv[] = {program, nullptr};

        *party = (struct party) {.job = job, .is = is, .line = ND_TEXT(PULL_LINE)};
        return nd_child_start(job->puller->loop,
                              &(struct nd_child_plan) {.argv = argv,
                                                       .input = is == PULL_FETCHER ? job->request : nullptr,
                                                       .input_length = is == PULL_FETCHER ? job->request_length : 0,
                                                       .output_ceiling = ERRORS_KEPT,
                                                       .descriptors = descriptors,
                                                       .descriptor_count = count,
                                                       .output = on_output},
                              on_child, party, &party->child);
}

static struct nd_error *open_part(int staging, const char *name, int *ret_fd) {
        nd_try(nd_dir_make(staging, name, 0700));
        return nd_dir_open(staging, name, ret_fd);
}

/* The pull's own connection to the broker of the rootless node; -EBADF without one: nodens-fetch
 * uses our network then. */
static int open_broker(const struct job *job) {
        const char *path = job->puller->config->pull_broker;
        nd_autoerror struct nd_error *error = nullptr;
        int fd = -EBADF;

        if (!*path || job->archive >= 0)
                return -EBADF;
        error = nd_broker_connect(path, &fd);
        if (error)
                nd_log(ND_LOG_NOTICE, "pulling through the node's network", nd_field("image", subject(job)),
                       nd_field("reason", nd_error_text(error)));
        return fd;
}

static struct nd_error *run(struct job *job) {
        struct cri_puller *puller = job->puller;
        nd_autoclose int staging = -EBADF, blobs = -EBADF, unpack = -EBADF, theirs = -EBADF, broker = open_broker(job);
        struct nd_error *error;
        int pair[2];

        nd_try(nd_oci_store_stage(puller->store, &job->staging, &staging));
        nd_try(open_part(staging, "blobs", &blobs));
        nd_try(open_part(staging, "unpack", &unpack));
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a socket pair for nodens-fetch and nodens-unpack");
        job->channel = pair[0];
        theirs = pair[1];
        nd_try(start(job, PULL_UNPACKER, puller->config->unpack_helper,
                     (const int[]) {theirs, unpack, nd_oci_store_layers_fd(puller->store)}, 3));
        error = start(job, PULL_FETCHER, puller->config->fetch_helper,
                      (const int[]) {job->channel, blobs, job->archive, nd_oci_store_partial_fd(puller->store), broker},
                      broker >= 0 ? 5 : 4);
        wipe(job);
        return error;
}

static int on_starter([[maybe_unused]] sd_event_source *source, void *userdata) {
        struct cri_puller *puller = userdata;

        for (struct job *job = puller->jobs; job && puller->running < puller->config->pulls; job = job->next) {
                struct nd_error *error;

                if (job->step != JOB_WAITING)
                        continue;
                job->step = JOB_RUNNING;
                puller->running++;
                error = run(job);
                if (error) {
                        job_end(job, nd_error_wrap(error, "%s", subject(job)), &(struct nd_strings) {});
                        break; /* the list has changed; job_end() has scheduled another round */
                }
        }
        return 0;
}

/* ---- requests ---- */

static void add_credentials(struct nd_json_out *out, const struct cri_pull_credentials *c) {
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

static char *make_request(const struct cri_puller *puller, const char *reference,
                          const struct cri_pull_credentials *credentials, size_t *ret_length) {
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

static struct cri_pull_request *join(struct job *job, const struct cri_pull_listener *listener, void *userdata) {
        struct cri_pull_request *request = nd_new(struct cri_pull_request);

        *request = (struct cri_pull_request) {.next = job->tickets, .job = job, .listener = *listener, .userdata = userdata};
        job->tickets = request;
        return request;
}

/* Takes the request. nullptr if too many are queued. */
static struct job *add_job(struct cri_puller *puller, char **request, size_t request_length) {
        struct job *job, **place = &puller->jobs;
        size_t count = 0;

        for (; *place; place = &(*place)->next)
                count++;
        if (count >= JOBS_MOST)
                return nullptr;
        job = nd_new(struct job);
        *job = (struct job) {.puller = puller, .request_length = request_length, .archive = -EBADF, .channel = -EBADF};
        job->key = nd_digest_of(ND_HASH_SHA256, *request, request_length);
        job->request = nd_take_ptr(*request);
        *place = job;
        wake(puller);
        return job;
}

static struct nd_error *too_many(void) {
        return nd_error_new(ND_EXHAUSTED, 0, "too many pulls in progress (at most %d)", JOBS_MOST);
}

static struct job *find_job(const struct cri_puller *puller, const char *request, size_t length) {
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

struct nd_error *cri_puller_pull(struct cri_puller *puller, const char *reference,
                                 const struct cri_pull_credentials *credentials, const struct cri_pull_listener *listener,
                                 void *userdata, struct cri_pull_request **ret) {
        nd_cleanup(nd_reference_done) struct nd_reference parsed = {};
        nd_autofree char *canonical = nullptr;
        nd_cleanup(wipe_text) char *request = nullptr;
        size_t length = 0;
        struct job *job;

        nd_try(nd_reference_parse(reference, &parsed));
        canonical = nd_reference_text(&parsed);
        request = make_request(puller, canonical, credentials, &length);
        if (!request)
                return nd_error_new(ND_INVALID, 0, "the credentials are longer than %d bytes", REQUEST_CEILING);
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

struct nd_error *cri_puller_import(struct cri_puller *puller, const char *path, int archive_fd,
                                   const struct cri_pull_listener *listener, void *userdata, struct cri_pull_request **ret) {
        nd_autoclose int archive = archive_fd;
        nd_autofree char *request = nullptr;
        size_t length = 0;
        struct job *job;

        request = make_request(puller, nullptr, nullptr, &length);
        job = add_job(puller, &request, length);
        if (!job)
                return too_many();
        job->archive = nd_take_fd(archive);
        job->path = nd_strdup(path);
        *ret = join(job, listener, userdata);
        return nullptr;
}

void cri_pull_request_cancel(struct cri_pull_request *request) {
        struct job *job = request->job;

        for (struct cri_pull_request **place = &job->tickets; *place; place = &(*place)->next)
                if (*place == request) {
                        *place = request->next;
                        break;
                }
        free(request);
        if (job->tickets)
                return;
        cri_telemetry_pull_abandoned(job->puller->telemetry);
        wake(job->puller);
        cri_image_gc_wake(job->puller->image_gc);
        job_free(job);
}

size_t cri_puller_count(const struct cri_puller *puller) {
        size_t count = 0;

        for (const struct job *job = puller->jobs; job; job = job->next)
                count++;
        return count;
}

struct nd_error *cri_puller_new(sd_event *loop, const struct cri_config *config, struct nd_oci_store *store,
                                struct cri_image_gc *image_gc, struct cri_telemetry *telemetry, struct cri_puller **ret) {
        struct cri_puller *puller = nd_new(struct cri_puller);
        int r;

        *puller = (struct cri_puller) {
                .loop = sd_event_ref(loop), .config = config, .store = store, .image_gc = image_gc, .telemetry = telemetry};
        r = sd_event_add_defer(loop, &puller->starter, on_starter, puller);
        if (r >= 0)
                r = sd_event_source_set_enabled(puller->starter, SD_EVENT_OFF);
        if (r < 0) {
                cri_puller_free(puller);
                return nd_error_new(ND_INTERNAL, -r, "create the event source that starts pulls");
        }
        *ret = puller;
        return nullptr;
}

void cri_puller_free(struct cri_puller *puller) {
        if (!puller)
                return;
        for (struct job *job = puller->jobs, *next; job; job = next) {
                next = job->next; /* listeners request no new pulls: the server is already gone */
                job_end(job, nd_error_new(ND_UNAVAILABLE, 0, "nodens-cri is shutting down"), &(struct nd_strings) {});
        }
        sd_event_source_disable_unref(puller->starter);
        sd_event_unref(puller->loop);
        free(puller);
}
