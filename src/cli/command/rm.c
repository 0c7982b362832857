/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/rm.h"

#include <nodens.pb-c.h>
#include <string.h>

#include "base/clock.h"
#include "cli/core/client.h"
#include "cli/core/target.h"
#include "cli/output/sanitize.h"
#include "net/protobuf.h"

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

static int remove_one(const struct cli_rm_settings *settings, uint32_t grace, const Nodens__V1__PodEntry *pod) {
        Nodens__V1__RemoveRequest request = NODENS__V1__REMOVE_REQUEST__INIT;
        nd_autofree char *name = cli_target_pod_name(pod);
        nd_autoerror struct nd_error *error = nullptr;
        ProtobufCMessage *answer = nullptr;

        if (grace > 0 && has_running(pod))
                fprintf(stderr, "stopping %s (up to %u s)\n", name, grace);
        request.sandbox = pod->id;
        request.grace = grace;
        error = nd_error_wrap(cli_client_call_within(settings->socket, "/nodens.v1.Node/Remove", &request.base,
                                                     &nodens__v1__remove_answer__descriptor,
                                                     (grace + remove_timeout_s) * ND_SECOND_US, &answer),
                              "pod %s", name);
        nd_protobuf_free(answer);
        if (nd_error_code(error) == ND_NOT_FOUND) /* removed by another client */
                nd_error_done(&error);
        if (error)
                return cli_sanitize_print_error("rm", error);
        printf("removed %s (%.12s)\n", name, pod->id);
        (void) fflush(stdout);
        return 0;
}

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
        struct cli_target_pods list = {};
        int code = 0;

        for (size_t i = 0; settings->all && i < answer->n_pods; i++)
                add_once(&list, answer->pods[i]);
        for (int i = 0; i < count; i++)
                code |= add_named(settings, answer, names[i], &list);
        if (list.count > 0)
                warn_of_kubelet(answer);
        nd_vector_each (pod, &list)
                code |= remove_one(settings, grace, *pod);
        nd_vector_done(&list);
        return code;
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
