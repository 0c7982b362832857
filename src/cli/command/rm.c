/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/rm.h"

#include <nodens.pb-c.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "cli/core/client.h"
#include "cli/core/target.h"
#include "cli/output/sanitize.h"
#include "net/protobuf.h"
#include "sys/worker.h"

enum {
        REMOVALS_AT_ONCE = 16,
};

static constexpr uint64_t default_grace_s = 30;
static constexpr uint64_t most_grace_s = 3600;
/* for the removal itself, after the grace period */
static constexpr uint64_t remove_timeout_s = 120;
static constexpr uint64_t kubelet_silence_ns =
        60 * UINT64_C(1000000000); /* a kubelet asks every few seconds; allow for a busy one */

const struct nd_option cli_rm_options[] = {
        {.name = "force",
         .letter = 'f',
         .offset = offsetof(struct cli_rm_settings, force),
         .help = "kill immediately and ignore pods that do not exist"},
        {.name = "grace",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct cli_rm_settings, grace),
         .argument = "SECONDS",
         .help = "grace period after the stop signal (default 30)"},
        {.name = "all",
         .letter = 'a',
         .offset = offsetof(struct cli_rm_settings, all),
         .help = "remove all pods of this node"},
        CLIENT_SOCKET_OPTION(cli_rm_settings),
        {},
};

/* A client that calls the CRI's Status repeatedly is a kubelet. */
static void warn_of_kubelet(const Nodens__V1__PodsAnswer *answer) {
        uint64_t now = nd_clock_wall_ns(), at = answer->status_asked_at;

        if (at == 0 || now < at || now - at > kubelet_silence_ns)
                return;
        fprintf(stderr,
                "nodens rm: warning: a kubelet uses this runtime (last call %llu s ago) and will recreate its pods; use 'kubectl delete "
                "pod', or stop the kubelet first\n",
                (unsigned long long) ((now - at) / 1000000000));
}

static bool has_running(const Nodens__V1__PodEntry *pod) {
        for (size_t i = 0; i < pod->n_containers; i++)
                if (nd_streq(pod->containers[i]->state, "running"))
                        return true;
        return false;
}

/* ---- removals ---- */

/* Each pod may need its whole grace period, so several are removed at a time: each by a worker,
 * whose request waits for the answer. */
struct removals {
        const struct cli_rm_settings *settings;
        uint32_t grace;
        sd_event *loop;
        struct cli_target_pods pods;
        size_t next, running;
        int code;
};

struct removal {
        struct removals *all;
        const Nodens__V1__PodEntry *pod;
        char *name;
};

static void removal_free(struct removal *removal) {
        free(removal->name);
        free(removal);
}

static uint64_t timeout_of(const struct removals *all) {
        return (all->grace + remove_timeout_s) * ND_SECOND_US;
}

static struct nd_error *request_removal(void *argument, [[maybe_unused]] int *ret_fd) {
        const struct removal *removal = argument;
        Nodens__V1__RemoveRequest request = NODENS__V1__REMOVE_REQUEST__INIT;
        ProtobufCMessage *answer = nullptr;
        struct nd_error *error;

        request.sandbox = removal->pod->id;
        request.grace = removal->all->grace;
        error = cli_client_call_within(removal->all->settings->socket, "/nodens.v1.Node/Remove", &request.base,
                                       &nodens__v1__remove_answer__descriptor, timeout_of(removal->all), &answer);
        nd_protobuf_free(answer);
        return error;
}

/* Consumes the error. */
static void report(struct removal *removal, struct nd_error *error) {
        nd_autoerror struct nd_error *failed = nullptr;

        if (nd_error_code(error) == ND_NOT_FOUND) /* removed by another client */
                nd_error_done(&error);
        failed = nd_error_wrap(error, "pod %s", removal->name);
        if (failed)
                removal->all->code |= cli_sanitize_print_error("rm", failed);
        else
                printf("removed %s (%.12s)\n", removal->name, removal->pod->id);
        (void) fflush(stdout);
}

static void start_more(struct removals *all);

static void on_removed(struct nd_error *error, [[maybe_unused]] int fd, void *userdata) {
        struct removal *removal = userdata;
        struct removals *all = removal->all;

        report(removal, error);
        removal_free(removal);
        all->running--;
        start_more(all);
}

static void start_one(struct removals *all, const Nodens__V1__PodEntry *pod) {
        struct removal *removal = nd_new(struct removal);
        struct nd_worker *worker;
        struct nd_error *error;

        *removal = (struct removal) {.all = all, .pod = pod, .name = cli_target_pod_name(pod)};
        if (all->grace > 0 && has_running(pod))
                fprintf(stderr, "stopping %s (up to %u s)\n", removal->name, all->grace);
        error = nd_worker_start(all->loop, "remove", request_removal, removal, timeout_of(all) + ND_SECOND_US, on_removed,
                                removal, &worker);
        if (error) {
                report(removal, error);
                removal_free(removal);
                return;
        }
        all->running++;
}

static void start_more(struct removals *all) {
        while (all->running < REMOVALS_AT_ONCE && all->next < all->pods.count)
                start_one(all, all->pods.items[all->next++]);
        if (all->running == 0)
                (void) sd_event_exit(all->loop, 0);
}

static int remove_all(struct removals *all) {
        int r = sd_event_new(&all->loop);

        if (r >= 0) {
                start_more(all);
                r = sd_event_loop(all->loop);
        }
        sd_event_unref(all->loop);
        if (r < 0) {
                fprintf(stderr, "nodens rm: wait for removals: %s\n", strerror(-r));
                return EXIT_FAILURE;
        }
        return all->code;
}

/* ---- which pods ---- */

static void add_once(struct cli_target_pods *list, const Nodens__V1__PodEntry *pod) {
        nd_vector_each (other, list) {
                if (*other == pod)
                        return;
        }
        nd_vector_push(list, pod);
}

/* With --force a pod that does not exist is ignored. So the beginning of a name must not be enough
 * then: a script that removes 'web' twice would remove 'web-2' the second time. */
static int add_named(const struct cli_rm_settings *settings, const Nodens__V1__PodsAnswer *answer, const char *name,
                     struct cli_target_pods *list) {
        nd_autoerror struct nd_error *error = nullptr;
        struct cli_target_pods pods = {};

        error = cli_target_pod(answer, name, settings->force ? TARGET_NAMES_WHOLE : TARGET_NAMES_PREFIX, &pods);
        if (error)
                return settings->force && nd_error_code(error) == ND_NOT_FOUND ? 0 : cli_sanitize_print_error("rm", error);
        nd_vector_each (pod, &pods)
                add_once(list, *pod);
        nd_vector_done(&pods);
        return 0;
}

static int remove_pods(const struct cli_rm_settings *settings, uint32_t grace, const Nodens__V1__PodsAnswer *answer, int count,
                       char **names) {
        struct removals all = {.settings = settings, .grace = grace};

        for (size_t i = 0; settings->all && i < answer->n_pods; i++)
                add_once(&all.pods, answer->pods[i]);
        for (int i = 0; i < count; i++)
                all.code |= add_named(settings, answer, names[i], &all.pods);
        if (all.pods.count > 0) {
                warn_of_kubelet(answer);
                all.code = remove_all(&all);
        }
        nd_vector_done(&all.pods);
        return all.code;
}

int cli_rm_run(void *settings_pointer, int operand_count, char **operands) {
        const struct cli_rm_settings *settings = settings_pointer;
        nd_autoerror struct nd_error *error = nullptr;
        ProtobufCMessage *answer = nullptr;
        uint64_t grace = settings->force ? 0 : default_grace_s;
        int code;

        if ((operand_count > 0) == settings->all) {
                fputs("nodens rm: specify pods as NAMESPACE/POD, or --all\n", stderr);
                return ND_EXIT_USAGE;
        }
        if (settings->grace && nd_text_parse_u64(settings->grace, most_grace_s, &grace) < 0) {
                fprintf(stderr, "nodens rm: invalid --grace: must be a number from 0 to %d\n", (int) most_grace_s);
                return ND_EXIT_USAGE;
        }
        error = cli_client_pods(settings->socket, &answer);
        if (error)
                return cli_sanitize_print_error("rm", error);
        code = remove_pods(settings, (uint32_t) grace, (const Nodens__V1__PodsAnswer *) answer, operand_count, operands);
        nd_protobuf_free(answer);
        return code;
}
