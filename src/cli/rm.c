/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/rm.h"

#include <nodens.pb-c.h>
#include <string.h>

#include "base/clock.h"
#include "cli/daemon.h"
#include "cli/plain.h"
#include "cli/target.h"
#include "net/protobuf.h"

enum {
        GRACE_S = 30,
        GRACE_MOST_S = 3600,
        REMOVE_S = 120, /* for the removal itself, after the grace */
        KUBELET_S = 60, /* a kubelet asks every few seconds; a busy one may take its time */
};

const struct nd_option rm_options[] = {
        {.name = "force",
         .letter = 'f',
         .offset = offsetof(struct rm_settings, force),
         .help = "kill at once, and do not mind pods that are not there"},
        {.name = "grace",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct rm_settings, grace),
         .argument = "SECONDS",
         .help = "how long containers have after their stop signal (default 30)"},
        {.name = "all", .letter = 'a', .offset = offsetof(struct rm_settings, all), .help = "all pods of this node"},
        DAEMON_SOCKET_OPTION(rm_settings),
        {},
};

static int complain(const struct nd_error *error) {
        nd_autofree char *text = plain_text(nd_error_text(error));

        fprintf(stderr, "nodens rm: %s\n", text);
        return 1;
}

/* Whoever asks for the CRI's Status again and again is a kubelet. */
static void warn_of_kubelet(const Nodens__V1__PodsAnswer *answer) {
        uint64_t now = nd_clock_wall_ns(), at = answer->status_asked_at;

        if (at == 0 || now < at || now - at > KUBELET_S * UINT64_C(1000000000))
                return;
        fprintf(stderr,
                "nodens rm: warning: a kubelet uses this runtime (it asked %llu s ago) and will make its pods again; 'kubectl delete "
                "pod' is the way then, or stop the kubelet first\n",
                (unsigned long long) ((now - at) / 1000000000));
}

static int remove_one(const struct rm_settings *settings, uint32_t grace, const Nodens__V1__PodEntry *pod) {
        Nodens__V1__RemoveRequest request = NODENS__V1__REMOVE_REQUEST__INIT;
        nd_autofree char *name = target_pod_name(pod);
        nd_autoerror struct nd_error *error = nullptr;
        ProtobufCMessage *answer = nullptr;

        request.sandbox = pod->id;
        request.grace = grace;
        error = nd_error_wrap(daemon_ask_within(settings->socket, "/nodens.v1.Node/Remove", &request.base,
                                                &nodens__v1__remove_answer__descriptor, (grace + REMOVE_S) * ND_SECOND_US,
                                                &answer),
                              "pod %s", name);
        nd_protobuf_free(answer);
        if (nd_error_code(error) == ND_NOT_FOUND) /* somebody else was faster */
                nd_error_done(&error);
        if (error)
                return complain(error);
        printf("removed %s (%.12s)\n", name, pod->id);
        (void) fflush(stdout);
        return 0;
}

static int remove_named(const struct rm_settings *settings, uint32_t grace, const Nodens__V1__PodsAnswer *answer,
                        const char *name) {
        nd_autoerror struct nd_error *error = nullptr;
        target_pods pods = {};
        int code = 0;

        error = target_pod(answer, name, &pods);
        if (error)
                return settings->force && nd_error_code(error) == ND_NOT_FOUND ? 0 : complain(error);
        nd_vector_each (pod, &pods) {
                if (remove_one(settings, grace, *pod) != 0)
                        code = 1;
        }
        nd_vector_done(&pods);
        return code;
}

static int remove_pods(const struct rm_settings *settings, uint32_t grace, const Nodens__V1__PodsAnswer *answer, int count,
                       char **names) {
        int code = 0;

        warn_of_kubelet(answer);
        for (size_t i = 0; settings->all && i < answer->n_pods; i++)
                if (remove_one(settings, grace, answer->pods[i]) != 0)
                        code = 1;
        for (int i = 0; i < count; i++)
                if (remove_named(settings, grace, answer, names[i]) != 0)
                        code = 1;
        return code;
}

int rm_run(void *settings_pointer, int operand_count, char **operands) {
        const struct rm_settings *settings = settings_pointer;
        Nodens__V1__PodsRequest request = NODENS__V1__PODS_REQUEST__INIT;
        nd_autoerror struct nd_error *error = nullptr;
        ProtobufCMessage *answer = nullptr;
        uint64_t grace = settings->force ? 0 : GRACE_S;
        int code;

        if ((operand_count > 0) == settings->all) {
                fputs("nodens rm: name the pods, as NAMESPACE/POD, or say --all\n", stderr);
                return ND_EXIT_USAGE;
        }
        if (settings->grace && nd_parse_u64(settings->grace, GRACE_MOST_S, &grace) < 0) {
                fprintf(stderr, "nodens rm: --grace needs a number from 0 to %d\n", GRACE_MOST_S);
                return ND_EXIT_USAGE;
        }
        error = daemon_ask(settings->socket, "/nodens.v1.Node/Pods", &request.base, &nodens__v1__pods_answer__descriptor,
                           &answer);
        if (error)
                return complain(error);
        code = remove_pods(settings, (uint32_t) grace, (const Nodens__V1__PodsAnswer *) answer, operand_count, operands);
        nd_protobuf_free(answer);
        return code;
}
